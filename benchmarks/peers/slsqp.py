"""Profile likelihoods as a programme of scipy: the ends of mu over all mu that fit well enough."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.stats import chi2


def number(
    matrix: np.ndarray,
    background: np.ndarray,
    counts: np.ndarray,
    level: float,
    together: float | None = None,
) -> tuple[float, float]:
    """The interval of the first secret's number; `together` is the known sum of all, if any."""
    # Until the end, numbers are in units of the sum of all counts.
    k, n = len(matrix), counts.sum()
    background, counts = background / n, counts / n

    def loss(mu: np.ndarray) -> float:
        nu = np.maximum(mu @ matrix + background, 1e-300)
        return float(nu.sum() - counts @ np.log(nu))

    def slope(mu: np.ndarray) -> np.ndarray:
        return matrix @ (1 - counts / np.maximum(mu @ matrix + background, 1e-300))

    total = [] if together is None else [{"type": "eq", "fun": lambda mu: mu.sum() - together / n}]
    settings = {"bounds": [(0, None)] * k, "method": "SLSQP", "options": {"maxiter": 500}}
    settings["options"]["ftol"] = 1e-9
    best = minimize(loss, np.full(k, 1 / k), jac=slope, constraints=total, **settings)
    floor = best.fun + chi2.ppf(level, 1) / 2 / n
    fits = {"type": "ineq", "fun": lambda mu: floor - loss(mu), "jac": lambda mu: -slope(mu)}
    ends = []
    for sign in (1.0, -1.0):
        w = sign * np.eye(k)[0]
        end = minimize(
            lambda mu, w=w: w @ mu,
            best.x,
            jac=lambda mu, w=w: w,
            constraints=[fits, *total],
            **settings,
        )
        if not end.success:
            raise RuntimeError(end.message)
        ends.append(n * end.x[0])
    return ends[0], ends[1]


def share(matrix: np.ndarray, counts: np.ndarray, level: float) -> tuple[float, float]:
    """The interval of the first secret's share."""
    n, nothing = float(counts.sum()), np.zeros(matrix.shape[1])
    lower, upper = number(matrix, nothing, counts, level, together=n)
    return lower / n, upper / n
