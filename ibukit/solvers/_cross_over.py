"""From the interior to the vertex: guess which secrets have mass, and solve for exactly those."""

from __future__ import annotations

import numpy as np

from ibukit._validate import Floats
from ibukit.solvers._normal_equations import Dense, Model, cholesky

MOST_SUPPORT_ENTRIES = 2**24
# a fitted probability below this is as good as 0: the reciprocal of its square would not fit into a double
LEAST_FITTED = 1e-150


def cross_over(model: Model, q: Floats, theta: Floats, s: Floats, tol: float) -> tuple[float, Floats]:
    """Guess the support from theta > s, solve g = 1 on it by Newton's method; exact zeros elsewhere.

    Returns max g - 1 and the distribution, (inf, theta) where the guess leads nowhere.
    """
    nothing = (np.inf, theta)
    on = theta > s
    point = np.where(on, theta, 0.0)
    for _ in range(6):
        size = int(on.sum())
        if not 0 < size <= len(q) or size * len(q) > MOST_SUPPORT_ENTRIES:
            return nothing
        found = _newton(Dense(model.rows(np.flatnonzero(on))), q, point[on] / point.sum())
        if found is None:
            return nothing
        x, negative = found
        point = np.zeros(model.k)
        point[on] = x
        if not negative:
            g = model.adjoint(q / model.forward(point / point.sum()))
            if g.max() - 1 <= tol:
                return float(g.max() - 1), point / point.sum()
            violator = int(g.argmax())
            point[violator] = max(point[violator], 1e-12)
        on = point > 1e-14 * point.max()
        point = np.where(on, point, 0.0)
    return model.excess(q, point / point.sum()), point / point.sum()


def _newton(support: Dense, q: Floats, x: Floats) -> tuple[Floats, bool] | None:
    """Solve M (q / x M) = 1 for x; stops, saying so, where a coordinate would turn negative."""
    solve, worst_before = None, np.inf
    for _ in range(8):
        nu = support.forward(x)
        if nu.min() < LEAST_FITTED:
            return None
        residual = support.adjoint(q / nu) - 1
        worst = float(np.abs(residual).max())
        if worst < 1e-13:
            break
        if solve is None or worst > 1e-2 * worst_before:  # a factor serves as long as it gains two digits a step
            solve = cholesky(lambda: support.gram(q / nu**2, None))  # noqa: B023 (called at once)
            if solve is None:
                return None
        worst_before = worst
        change = solve(residual)
        too_far = -float((change / x).min())
        if too_far > 1:
            return np.maximum(x + change / too_far, 0), True
        x = np.maximum(x + change, 0)
    return x, False
