"""The maximum-likelihood mixture by a primal-dual interior point, on any channel whose normal equations can be solved.

The optimality conditions of max q . log(theta M) over the simplex are, with nu = theta M the fitted probabilities,
lam = q / nu the weights of the reports and s = 1 - M lam the slacks (g = M lam is the certificate's g):

    nu = theta M,    s = 1 - M lam,    lam_z nu_z = q_z,    theta_x s_x = 0,    all positive.

`lam nu = q` is kept as a second complementarity with the fixed target q, so both linear maps hold exactly along the
path and no logarithm needs a line search. Each step solves one positive definite system twice (Mehrotra).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ibukit._validate import Floats
from ibukit.solvers._cross_over import cross_over
from ibukit.solvers._normal_equations import Curved, Dense, Model

LEAST_COORDINATE = 1e-150


@dataclass(frozen=True)
class Settings:
    """How boldly to go: the first try suits nearly all problems, the others are for the rest."""

    em_steps: int
    uniform_share: float
    careful: bool
    polish_below: float
    max_iter: int


TRIES = (
    Settings(em_steps=10, uniform_share=0.1, careful=False, polish_below=1e-6, max_iter=100),
    Settings(em_steps=0, uniform_share=0.1, careful=True, polish_below=1e-6, max_iter=100),
    Settings(em_steps=50, uniform_share=0.5, careful=True, polish_below=1e-6, max_iter=200),
)


@dataclass
class Point:
    """Where the path stands."""

    theta: Floats
    s: Floats
    lam: Floats
    nu: Floats
    residual: Floats | float
    """c + H theta - M lam - s, which a quadratic part leaves until a full step is taken; 0 without one."""
    full_steps: bool = True
    """Whether the last step went more than half of the way in both variables."""

    @property
    def mu(self) -> float:
        """Mean complementarity of theta and s."""
        return float(self.theta @ self.s) / len(self.s)


def maximise(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, int]:
    """The maximiser of q . log(theta M) over the simplex as far as doubles go, and the steps taken.

    Every column of `matrix` must have a positive entry. Returns the best certified point of up to three tries.
    """
    scaled = matrix / matrix.max(axis=0)  # a factor of a report changes neither theta nor g
    live = scaled.max(axis=1) > 0  # the others explain nothing that was seen
    found, steps = maximise_model(Dense(scaled if live.all() else scaled[live]), q, tol)
    if live.all():
        return found, steps
    theta = np.zeros(len(matrix))
    theta[live] = found
    return theta, steps


def maximise_model(model: Model, q: Floats, tol: float) -> tuple[Floats, int]:
    """The same for any model whose columns have a largest entry of about 1."""
    best, steps = (np.inf, np.full(model.k, 1 / model.k)), 0
    for settings in TRIES:
        found, taken = _one_try(model.accurate() if settings.careful else model, q, tol, settings)
        steps += taken
        best = min(best, found, key=lambda point: point[0])
        if best[0] <= tol:
            break
    return best[1], steps


@np.errstate(over="ignore", invalid="ignore")  # a direction that leads out of the doubles only ends the try
def _one_try(model: Model, q: Floats, tol: float, settings: Settings) -> tuple[tuple[float, Floats], int]:
    start = em_start(model, q, settings)
    best = (model.excess(q, start), start)
    stalled = 0
    step = 0
    for step, point in enumerate(path(model, q, start, settings.careful)):
        on_simplex = point.theta / point.theta.sum()
        excess = model.excess(q, on_simplex)
        stalled = 0 if excess < best[0] else stalled + 1
        best = min(best, (excess, on_simplex), key=lambda found: found[0])
        if best[0] <= tol or (excess < settings.polish_below and point.full_steps):
            exact = cross_over(model, q, point.theta, point.s, tol)  # good enough or not: its zeros are zeros
            best = exact if exact[0] <= tol else min(best, exact, key=lambda found: found[0])
        if best[0] <= tol or stalled > 12 or step == settings.max_iter:
            break
    return best, step


def em_start(model: Model, q: Floats, settings: Settings) -> Floats:
    """A few updates from the uniform distribution, mixed with it."""
    theta = np.full(model.k, 1 / model.k)
    for _ in range(settings.em_steps):
        theta = theta * model.adjoint(q / model.forward(theta))
    return np.asarray((1 - settings.uniform_share) * theta / theta.sum() + settings.uniform_share / model.k)


def path(model: Model, q: Floats, start: Floats, careful: bool, curved: Curved | None = None) -> Iterator[Point]:
    """Follow the central path from `start` (positive), one Newton step for each point; ends where none can be solved.

    With `curved` = (H, c) the objective has 1/2 theta H theta + (c - 1) . theta in addition, so that
    s = c + H theta - M lam; its residual is carried because theta and s move by different lengths.
    """
    curved = curved or Curved.none(model.k)
    theta = start
    nu = model.forward(theta)
    lam = q / nu
    upper = np.maximum(curved.slope(theta), 0.01)  # 1 without a quadratic part; what is cut here stays in the residual
    back = model.adjoint(lam)
    margin = 1.1 * max(float((back / upper).max()), 1.0)
    point = Point(theta, upper - back / margin, lam / margin, nu, curved.slope(theta) - upper)
    yield point
    for step in range(10**6):
        theta, s, lam, nu = point.theta, point.s, point.lam, point.nu
        solve = model.factor(lam / nu, s / theta, curved, shrink=step >= 2 and not careful)
        if solve is None:
            return
        residual, mu = point.residual, point.mu

        def direction(r_q: Floats, r_c: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            d_theta = solve(r_c / theta - residual + model.adjoint(r_q / nu))  # noqa: B023 (used in this step only)
            d_nu = model.forward(d_theta)
            d_lam = (r_q - lam * d_nu) / nu  # noqa: B023
            return d_theta, d_nu, d_lam, residual + curved.apply(d_theta) - model.adjoint(d_lam)  # noqa: B023

        # predictor: straight at the solution; then centred by how far that could go, with second-order terms
        d_theta, d_nu, d_lam, d_s = direction(q - lam * nu, -theta * s)
        primal, dual = length(theta, d_theta, 1.0), min(length(s, d_s, 1.0), length(lam, d_lam, 1.0))
        # at the limits of doubles the product may exceed mu beyond all bounds; exactly, it never exceeds it
        centring = min(float((theta + primal * d_theta) @ (s + dual * d_s)) / model.k / mu, 1.0) ** 3
        d_theta, d_nu, d_lam, d_s = direction(q - lam * nu - d_lam * d_nu, centring * mu - theta * s - d_theta * d_s)
        share = 0.9 if careful and min(primal, dual) < 0.9 else max(0.99, 1 - mu)
        primal, dual = length(theta, d_theta, share), min(length(s, d_s, share), length(lam, d_lam, share))
        theta = np.maximum(theta + primal * d_theta, LEAST_COORDINATE)
        lam = np.maximum(lam + dual * d_lam, LEAST_COORDINATE)
        s = np.maximum(s + dual * d_s, LEAST_COORDINATE)
        residual = curved.slope(theta) - model.adjoint(lam) - s if curved.present else 0.0
        point = Point(theta, s, lam, model.forward(theta), residual, min(primal, dual) > 0.5)
        yield point


def length(value: Floats, change: Floats, share: float) -> float:
    """The step that keeps `value` positive: all of it, or `share` of the way to the boundary."""
    worst = -float((change / value).min()) if len(value) else 0.0
    return 1.0 if worst <= share else share / worst
