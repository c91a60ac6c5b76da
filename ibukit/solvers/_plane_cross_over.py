"""Cross over from an interior point to exact zeros on grids where no system can be formed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit.channels.plane import PlaneChannel
from ibukit.solvers._plane_preconditioner import Preconditioner

MAX_GRADIENTS = 400
ROUNDS = 12
NEWTON_STEPS = 6
# D / h for the preconditioner: a secret of the support is free, the others are held
FREE, HELD = 1e-4, 1e12


def cross_over(
    channel: PlaneChannel,
    q: Floats,
    theta: Floats,
    s: Floats,
    preconditioner: Preconditioner,
    tol: float,
) -> tuple[float, Floats]:
    """Solve g = 1 by Newton's method on the secrets with theta > s: a point with exact zeros.

    Returns max g - 1 and the distribution, (inf, theta) where the guess leads nowhere, as in
    `_normal_equations`. There a support of hundreds is solved to the last digit, and one secret at
    a time is put right. Here it has thousands, and conjugate gradients find as many digits as `tol`
    asks for; so secrets that would become negative are dropped together, the worst where g exceeds
    1 are added together, and only what is certified counts.
    """
    nothing = (np.inf, theta)
    on, before = theta > s, np.inf
    for _ in range(ROUNDS):
        if not on.any():
            return nothing
        solved, dropped = _solve_on(channel, q, np.where(on, theta, 0.0), on, preconditioner, tol)
        if solved is None:
            return nothing
        theta = solved / solved.sum()
        del solved
        p = channel.forward(theta)
        if not p.min() > 0:
            return nothing
        g = channel.adjoint(q / p)
        excess = float(g.max() - 1)
        if excess <= tol:
            return excess, theta
        if not excess <= 10 * before:
            return nothing  # the support was no good guess
        on, before = theta > 0, min(before, excess)
        if not dropped:
            violating = np.where(on, 0, g - 1)
            added = violating > max(tol, 0.1 * float(violating.max()))
            theta = np.where(added, theta[on].min(), theta)
            on |= added
            del violating, added
        del p, g  # at a million secrets they are memory, as what is deleted elsewhere
    return nothing


def _solve_on(
    channel: PlaneChannel,
    q: Floats,
    theta: Floats,
    on: NDArray[np.bool_],
    preconditioner: Preconditioner,
    tol: float,
) -> tuple[Floats | None, bool]:
    """Newton's method on a support; stops early, with True, if an entry would become negative."""
    for _ in range(NEWTON_STEPS):
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
        if not preconditioner.factor(np.where(on, FREE, HELD) * h, h):
            return None, False
        del h
        change = conjugate_gradients(
            lambda p: np.where(on, channel.adjoint(weights * channel.convolve(p)), 0.0),  # noqa: B023 (used at once)
            error,
            None,
            lambda rest: np.where(on, preconditioner.solve(rest), 0.0),
            lambda rest: float(np.abs(rest).max()) <= max(0.01 * size, 0.03 * tol),  # noqa: B023
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
    """Solve H x = rhs from `start`, which is overwritten, to the residual `enough` or rounding."""
    x = np.zeros_like(rhs) if start is None else start
    rest = rhs.copy() if start is None else rhs - times(x)
    z = precondition(rest)
    p, size = z.copy(), float((rest * z).sum())
    for _ in range(MAX_GRADIENTS):
        if enough(rest):
            break
        image = times(p)
        curvature = float((p * image).sum())
        if not (curvature > 0 and np.isfinite(curvature)):
            break
        x += size / curvature * p
        image *= size / curvature
        rest -= image
        z = precondition(rest)
        before, size = size, float((rest * z).sum())
        p *= size / before
        p += z
        del z  # at a million secrets it is memory while H is applied
    return x
