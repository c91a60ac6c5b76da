"""A maximiser by quasi-Newton steps, and its exact zeros by Newton's method.

L-BFGS-B [byrd]_ solves

    min sum_x theta_x - q . log(theta M),    theta >= 0,

whose solution has the sum 1. Under a channel that separates the secrets well, fifty or so gradients
show which of them have mass, even if these are neither few nor all; whereas one product of the
matrix with itself, which each step of the central path needs, costs as much as k / 2 gradients.
Under a channel that blurs them the gradients gain little, and after the first few of them the path
takes over.

.. [byrd] Byrd, Lu, Nocedal and Zhu, "A limited memory algorithm for bound constrained
   optimization", SIAM J. Sci. Comput. 16, 1995.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from ibukit._ground.arguments import Floats
from ibukit.channels.dense import lower_gram
from ibukit.solvers._normal_equations import DenseModel, LinearSolve, cross_over
from ibukit.solvers.dense import interior_steps
from ibukit.solvers.dense.least_squares_steps import (
    EXACT_BELOW,
    are_clear,
    em_start,
    slack_of_zeros,
)

# Secrets, and entries of the matrix, below which the path costs as little as the gradients.
MIN_SECRETS = 100
MIN_ENTRIES = 30_000
# If there are more secrets than reports, other methods are as fast below this number of entries.
MIN_ENTRIES_OF_MANY = 2_000_000
# Number of first gradients: for each secret, and at least. After them max g - 1 has to be below
# FIRST_EXCESS, and below SHARE_LEFT times its value that number of gradients before. MAX_GRADIENTS
# is the largest number of gradients, also for each secret and at least.
FIRST_GRADIENTS = 1 / 20, 30
FIRST_EXCESS, SHARE_LEFT = 1.5e-3, 0.35
MAX_GRADIENTS = 1 / 5, 80
# max g - 1 that is near enough.
NEAR = 1e-7
# EM updates before the first gradient.
FIRST_UPDATES = 2
# Least pivot of the normal equations of the secrets with mass, scaled to a diagonal of 1: below it
# other masses on these secrets may fit as well.
MIN_PIVOT = 1e-6
MIN_FITTED = 1e-300


def applies(k: int, s: int, tol: float) -> bool:
    """Return False where other methods are as fast, or maximisers are often many."""
    least = MIN_ENTRIES if k <= s else MIN_ENTRIES_OF_MANY
    return MIN_SECRETS <= k <= 2 * s and k * s >= least and tol <= EXACT_BELOW


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def maximise(model: DenseModel, q: Floats, tol: float) -> tuple[Floats, int] | None:
    """The distribution and the gradients taken; None if it is not certified, or not unique."""
    near = _near(model.matrix, q)
    if near is None:
        return None
    theta, gradients = near
    if theta.min() > 0:
        start = interior_steps.Start(theta, gradients, converges=True)
        return interior_steps.maximise(model, q, tol, start)
    p = model.forward(theta)
    slack = 1 - model.adjoint(q / p)
    on = theta > slack
    solve = _regular_system(model, on, q / p**2)
    if solve is None:
        return None
    excess, theta = cross_over(model, q, theta, slack, tol, solve)
    if not excess <= tol:
        return None
    p = model.forward(theta)
    if (theta[~on] > 0).any() and _regular_system(model, theta > 0, q / p**2) is None:
        return None
    slack_left = slack_of_zeros(theta, model.adjoint(q / p))
    return (theta, gradients) if are_clear(slack_left, excess) else None


def _near(matrix: Floats, q: Floats) -> tuple[Floats, int] | None:
    """A distribution near the maximiser and the gradients taken; None if they gain little."""
    excesses: list[float] = []
    first, most = (
        max(math.ceil(share * len(matrix)), least)
        for share, least in (FIRST_GRADIENTS, MAX_GRADIENTS)
    )

    def loss(theta: Floats) -> tuple[float, Floats]:
        p = np.maximum(np.dot(theta, matrix), MIN_FITTED)
        g = np.dot(matrix, q / p)
        total = float(np.add.reduce(theta))
        excesses.append(total * float(g.max()) - 1)
        return total - float(np.dot(q, np.log(p))), 1 - g

    def stop(_: object) -> None:
        if excesses[-1] <= NEAR or is_slow():
            raise StopIteration

    def is_slow() -> bool:
        if len(excesses) < first:
            return False
        # The best of three is taken, since a step may overshoot.
        before, now = min(excesses[-first:][:3]), min(excesses[-3:])
        return now > min(FIRST_EXCESS, SHARE_LEFT * before)

    # The stubs of scipy do not know that a callback may take a result.
    found = scipy.optimize.minimize(  # type: ignore[call-overload]
        loss,
        em_start(matrix, q, FIRST_UPDATES),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * len(matrix),
        options={"maxfun": most, "ftol": 0, "gtol": NEAR / 10},
        callback=stop,
    )
    if is_slow() or not np.isfinite(found.x).all() or not found.x.any():
        return None
    return found.x / np.add.reduce(found.x), len(excesses)


def _regular_system(
    model: DenseModel, on: NDArray[np.bool_], weights: Floats
) -> LinearSolve | None:
    """The normal equations of these secrets; None if their rows nearly depend on each other."""
    if not on.any():
        return None
    normal = lower_gram(model.matrix[on], weights)
    scale = np.sqrt(normal.diagonal())
    factor, failed = dpotrf(normal / scale / scale[:, None], lower=1)
    if failed or not factor.diagonal().min() ** 2 > MIN_PIVOT:
        return None
    return lambda r: dpotrs(factor, r / scale, lower=1)[0] / scale
