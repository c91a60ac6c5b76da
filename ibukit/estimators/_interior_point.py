"""Primal-dual interior point for the maximum-likelihood mixture, on a dense channel.

The optimality conditions of max q . log(theta M) over the simplex are, with nu = theta M the fitted probabilities,
lam = q / nu the weights of the reports and s = 1 - M lam the slacks (g = M lam is the certificate's g):

    nu = theta M,    s = 1 - M lam,    lam_z nu_z = q_z,    theta_x s_x = 0,    all positive.

`lam nu = q` is kept as a second complementarity with the fixed target q, so both linear maps hold exactly along the
path and no logarithm needs a line search. Each step solves one k x k positive definite system twice (Mehrotra).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ibukit._validate import Floats

TINY = 1e-150


@dataclass(frozen=True)
class Settings:
    """How boldly to go: the first try suits nearly all problems, the others are for the rest."""

    em_steps: int
    uniform_share: float
    careful: bool
    polish_below: float
    max_iter: int


TRIES = (
    Settings(em_steps=10, uniform_share=0.1, careful=False, polish_below=1e-7, max_iter=100),
    Settings(em_steps=0, uniform_share=0.1, careful=True, polish_below=1e-6, max_iter=100),
    Settings(em_steps=50, uniform_share=0.5, careful=True, polish_below=1e-6, max_iter=200),
)


def maximise(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, int]:
    """The maximiser of q . log(theta M) over the simplex as far as doubles go, and the steps taken.

    Every column of `matrix` must have a positive entry. Returns the best certified point of up to three tries.
    """
    scaled = matrix / matrix.max(axis=0)  # a factor of a report changes neither theta nor g
    live = scaled.max(axis=1) > 0  # the others explain nothing that was seen
    rows = np.ascontiguousarray(scaled[live])
    best, steps = (np.inf, np.full(len(rows), 1 / len(rows))), 0
    for settings in TRIES:
        found, taken = _one_try(rows, q, tol, settings)
        steps += taken
        best = min(best, found, key=lambda point: point[0])
        if best[0] <= tol:
            break
    theta = np.zeros(len(matrix))
    theta[live] = best[1]
    return theta, steps


def _one_try(M: Floats, q: Floats, tol: float, settings: Settings) -> tuple[tuple[float, Floats], int]:
    theta = np.full(len(M), 1 / len(M))
    for _ in range(settings.em_steps):
        theta = theta * (M @ (q / (theta @ M)))
    theta = (1 - settings.uniform_share) * theta / theta.sum() + settings.uniform_share / len(M)
    nu = theta @ M
    lam = q / nu
    margin = 1.1 * max((M @ lam).max(), 1.0)
    lam /= margin
    s = 1 - M @ lam
    best = (_excess(M, q, theta / theta.sum()), theta / theta.sum())
    primal = dual = 0.5
    stalled = 0
    for step in range(settings.max_iter):
        on_simplex = theta / theta.sum()
        excess = _excess(M, q, on_simplex)
        stalled = 0 if excess < best[0] else stalled + 1
        best = min(best, (excess, on_simplex), key=lambda point: point[0])
        if best[0] <= tol or (excess < settings.polish_below and min(primal, dual) > 0.5):
            exact = _cross_over(M, q, theta, s, tol)  # good enough or not: its zeros are zeros
            best = exact if exact[0] <= tol else min(best, exact, key=lambda point: point[0])
        if best[0] <= tol or stalled > 12:
            return best, step
        solve = _factor(M, lam / nu, s / theta)
        if solve is None:
            return best, step
        mu = theta @ s / len(M)

        def direction(r_q: Floats, r_c: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            d_theta = solve(r_c / theta + M @ (r_q / nu))  # noqa: B023 (called within this step only)
            d_nu = d_theta @ M
            d_lam = (r_q - lam * d_nu) / nu  # noqa: B023
            return d_theta, d_nu, d_lam, -(M @ d_lam)

        # predictor: straight at the solution; then centred by how far that could go, with second-order terms
        d_theta, d_nu, d_lam, d_s = direction(q - lam * nu, -theta * s)
        primal, dual = _length(theta, d_theta, 1.0), min(_length(s, d_s, 1.0), _length(lam, d_lam, 1.0))
        centring = ((theta + primal * d_theta) @ (s + dual * d_s) / len(M) / mu) ** 3
        d_theta, d_nu, d_lam, d_s = direction(q - lam * nu - d_lam * d_nu, centring * mu - theta * s - d_theta * d_s)
        share = 0.9 if settings.careful and min(primal, dual) < 0.9 else max(0.99, 1 - mu)
        primal, dual = _length(theta, d_theta, share), min(_length(s, d_s, share), _length(lam, d_lam, share))
        theta = np.maximum(theta + primal * d_theta, TINY)
        lam = np.maximum(lam + dual * d_lam, TINY)
        s = np.maximum(s + dual * d_s, TINY)
        nu = theta @ M
    return best, settings.max_iter


def _excess(M: Floats, q: Floats, theta: Floats) -> float:
    """Max g - 1 at a distribution."""
    nu = theta @ M
    if nu.min() <= 0:
        return np.inf
    return float((M @ (q / nu)).max() - 1)


def _length(value: Floats, change: Floats, share: float) -> float:
    """The step that keeps `value` positive: all of it, or `share` of the way to the boundary."""
    worst = float((-change / value).max())
    return 1.0 if worst <= share else share / worst


def _factor(M: Floats, weights: Floats, diagonal: Floats):  # type: ignore[no-untyped-def]
    """Cholesky of M diag(weights) M^T + diag(diagonal) as a solver; None if it fails even with a ridge of 1e-7."""
    half = M * np.sqrt(weights)
    normal = half @ half.T
    normal.flat[:: len(M) + 1] += diagonal
    for ridge in (1e-15, 1e-12, 1e-9, 1e-7):
        try:
            factor = cho_factor(
                normal + np.diag(ridge * np.diag(normal)), lower=True, overwrite_a=True, check_finite=False
            )
        except LinAlgError:
            continue
        return lambda rhs: cho_solve(factor, rhs, check_finite=False)
    return None


def _cross_over(M: Floats, q: Floats, theta: Floats, s: Floats, tol: float) -> tuple[float, Floats]:
    """Guess the support from theta > s, solve g = 1 on it by Newton's method; exact zeros elsewhere."""
    nothing = (np.inf, theta)
    on = theta > s
    point = np.where(on, theta, 0.0)
    for _ in range(6):
        if not on.any() or on.sum() > M.shape[1]:
            return nothing
        x, rows, negative = point[on] / point.sum(), M[on], False
        for _ in range(6):
            nu = x @ rows
            if nu.min() <= 0:
                return nothing
            residual = rows @ (q / nu) - 1
            if np.abs(residual).max() < 1e-13:
                break
            solve = _factor(rows, q / nu**2, np.zeros(len(rows)))
            if solve is None:
                return nothing
            change = solve(residual)
            negative = _length(x, change, 1.0) < 1
            x = np.maximum(x + _length(x, change, 1.0) * change, 0)
            if negative:
                break
        point = np.zeros(len(M))
        point[on] = x
        if not negative:
            excess = _excess(M, q, point / point.sum())
            if excess <= tol:
                return excess, point / point.sum()
            violator = int((M @ (q / (point @ M))).argmax())
            point[violator] = max(point[violator], 1e-12)
        on = point > 1e-14 * point.max()
        point = np.where(on, point, 0.0)
    return (_excess(M, q, point / point.sum()), point / point.sum())
