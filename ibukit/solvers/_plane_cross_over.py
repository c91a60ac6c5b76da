"""Exact zeros from an interior point near the solution, on grids too large for a matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit.channels.plane import PlaneChannel
from ibukit.solvers._plane_preconditioner import Preconditioner

MAX_CG_ITERATIONS = 400
MAX_ROUNDS = 12
MAX_NEWTON_STEPS = 6
# The preconditioner's D / h for the secrets of the support, which may move, and for all others.
FREE, FIXED = 1e-4, 1e12


def cross_over(
    channel: PlaneChannel,
    q: Floats,
    theta: Floats,
    s: Floats,
    preconditioner: Preconditioner,
    tol: float,
) -> tuple[float, Floats]:
    """A certified point with exact zeros: Newton's method for g = 1 on the secrets with theta > s.

    Returns max g - 1 and the distribution; (inf, theta) if that fails, as in `_normal_equations`.
    There a support of hundreds of secrets is solved to the last digit, and one secret enters at a
    time. Here the support has thousands, and conjugate gradients give as many digits as `tol`
    needs. So secrets that would become negative leave together, those with the largest g > 1 enter
    together, and only a certified point counts.
    """
    failure = (np.inf, theta)
    on, before = theta > s, np.inf
    for _ in range(MAX_ROUNDS):
        if not on.any():
            return failure
        solved, dropped = _solve_on(channel, q, np.where(on, theta, 0.0), on, preconditioner, tol)
        if solved is None:
            return failure
        theta = solved / solved.sum()
        del solved
        p = channel.forward(theta)
        if not p.min() > 0:
            return failure
        g = channel.adjoint(q / p)
        excess = float(g.max() - 1)
        if excess <= tol:
            return excess, theta
        # The excess grows if the support was guessed wrongly.
        if not excess <= 10 * before:
            return failure
        on, before = theta > 0, min(before, excess)
        if not dropped:
            violating = np.where(on, 0, g - 1)
            added = violating > max(tol, 0.1 * float(violating.max()))
            theta = np.where(added, theta[on].min(), theta)
            on |= added
            del violating, added
        # With a million secrets each vector takes much memory, here and at every other `del`.
        del p, g
    return failure


def _solve_on(
    channel: PlaneChannel,
    q: Floats,
    theta: Floats,
    on: NDArray[np.bool_],
    preconditioner: Preconditioner,
    tol: float,
) -> tuple[Floats | None, bool]:
    """Newton's method for g = 1 on a support; (theta, True) if a secret would become negative.

    As in `_normal_equations`, but a step solves its system by conjugate gradients.
    """
    for _ in range(MAX_NEWTON_STEPS):
        nu = channel.forward(theta)
        if not nu.min() > 0:
            return None, False
        weights = q / nu**2
        error = np.where(on, channel.adjoint(q / nu) - 1, 0.0)
        size = float(np.abs(error).max())
        if size <= 0.1 * tol:
            break
        h = channel.adjoint_of_squares(weights)
        h = np.maximum(h, 1e-12 * h.max())
        if not preconditioner.factor(np.where(on, FREE, FIXED) * h, h):
            return None, False
        del h
        change = conjugate_gradients(
            lambda p: np.where(on, channel.adjoint(weights * channel.convolve(p)), 0.0),  # noqa: B023 (used at once)
            error,
            None,
            lambda residual: np.where(on, preconditioner.solve(residual), 0.0),
            lambda residual: float(np.abs(residual).max()) <= max(0.01 * size, 0.03 * tol),  # noqa: B023
        )
        theta = theta + change
        del change
        if not np.isfinite(theta).all():
            return None, False
        negative = theta < 0
        np.maximum(theta, 0.0, out=theta)
        if negative.any():
            return theta, True
    return theta, False


def conjugate_gradients(
    times: Callable[[Floats], Floats],
    rhs: Floats,
    start: Floats | None,
    precondition: Callable[[Floats], Floats],
    enough: Callable[[Floats], bool],
) -> Floats:
    """Solve H x = rhs by preconditioned conjugate gradients; `start` is overwritten.

    Ends when `enough(residual)` holds, or when rounding spoils the curvature.
    """
    x = np.zeros_like(rhs) if start is None else start
    residual = rhs.copy() if start is None else rhs - times(x)
    z = precondition(residual)
    p, size = z.copy(), float((residual * z).sum())
    for _ in range(MAX_CG_ITERATIONS):
        if enough(residual):
            break
        image = times(p)
        curvature = float((p * image).sum())
        if not (curvature > 0 and np.isfinite(curvature)):
            break
        x += size / curvature * p
        image *= size / curvature
        residual -= image
        z = precondition(residual)
        before, size = size, float((residual * z).sum())
        p *= size / before
        p += z
        del z
    return x
