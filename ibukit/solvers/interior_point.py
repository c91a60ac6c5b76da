"""The maximum-likelihood mixture by a primal-dual interior point, on any model of a channel.

The optimality conditions of max q . log(theta M) over the simplex are, with nu = theta M the fitted
probabilities, lam = q / nu the weights of the reports and s = 1 - M lam the slacks (g = M lam is
the certificate's g):

    nu = theta M,    s = 1 - M lam,    lam_z nu_z = q_z,    theta_x s_x = 0,    all positive.

`lam nu = q` is kept as a second complementarity with the fixed target q, so both linear maps hold
exactly along the path and no logarithm needs a line search. The path replaces theta_x s_x = 0 by
theta_x s_x = mu and lets mu fall to 0. Linearised at a point, with the residuals

    r_q = q - lam nu,    r_c = mu - theta s,

the equations are nu d_lam + lam d_nu = r_q, s d_theta + theta d_s = r_c, d_nu = d_theta M and
d_s = -M d_lam. Eliminating d_s, d_lam and d_nu in this order leaves one positive definite system,

    (M diag(lam / nu) M^T + diag(s / theta)) d_theta = r_c / theta + M (r_q / nu).

Each step solves it twice (Mehrotra's predictor and corrector): for a matrix or structured channels
by `_normal_equations`, for noise on a large grid by `plane`. `line` follows the same path in
compiled loops of its own. A try stops when max g - 1, the certificate, is at most the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.channels.dense import without_negligible
from ibukit.solvers._normal_equations import DenseModel
from ibukit.solvers.dense import portfolio
from ibukit.solvers.dense.central_path import MIN_COORDINATE, DensePath
from ibukit.solvers.interior_point_model import Iterate, Model, QuadraticTerm, System

# Above this tolerance small masses of a matrix model are cut off; exact zeros by Newton's method
# would take as long as some steps.
ROUGH_TOLERANCE = 1e-6
# Steps that a path goes on beyond the goal if the support is not yet clear.
MAX_STEPS_BEYOND_GOAL = 5
# A support is solved for once its size has settled, that is, once a step keeps this share of it.
# After a failure it is solved for again once it is smaller, or the excess better, by these factors.
SETTLED_RATIO = 0.9
SMALLER_RATIO = 0.95
BETTER_RATIO = 0.1
# Number of weights tried for the second-order correction, and the gain in step length required to
# accept one.
SECOND_ORDER_WEIGHTS = 10
MIN_STEP_GAIN = 1.1

# The excess max g - 1 of a distribution, and the distribution.
Certified = tuple[float, Floats]


@dataclass(frozen=True)
class Settings:
    """Parameters of one try, from fast to cautious; the first suits nearly all problems."""

    em_steps: int
    uniform_share: float
    careful: bool
    """True to stay well inside, with the model's accurate systems."""
    polish_below: float
    """Excess below which the support is guessed; 0 to guess that of certified points only."""
    max_iter: int
    patience: int = 12
    """Steps without progress after which a try ends."""


TRIES = (
    Settings(em_steps=10, uniform_share=0.1, careful=False, polish_below=1e-6, max_iter=100),
    Settings(em_steps=0, uniform_share=0.1, careful=True, polish_below=1e-6, max_iter=100),
    Settings(em_steps=50, uniform_share=0.5, careful=True, polish_below=1e-6, max_iter=200),
)


def maximise(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, int]:
    """Maximise q . log(theta M) over the simplex; return the maximiser and the steps taken.

    Every column of `matrix` must have a positive entry. The result is the first certified point of
    up to three tries, or the best.
    """
    theta, steps, _ = maximise_and_tell(matrix, q, tol)
    return theta, steps


def maximise_and_tell(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, int, str]:
    """Maximise as `maximise` does; return also the algorithm that found the maximiser, in words."""
    scaled = _scaled(matrix)
    largest = np.maximum.reduce(scaled, axis=1)
    if largest[largest.argmin()] > 0:
        return portfolio.maximise(DenseModel(np.ascontiguousarray(scaled)), q, tol, _by_the_path)
    # Secrets that cannot produce any of the reports have no mass.
    live = largest > 0
    theta_live, steps, algorithm = portfolio.maximise(
        DenseModel(np.ascontiguousarray(scaled[live])), q, tol, _by_the_path
    )
    theta = np.zeros(len(matrix))
    theta[live] = theta_live
    return theta, steps, algorithm


def from_support(matrix: Floats, q: Floats, theta: Floats, tol: float) -> Floats | None:
    """The maximiser by Newton's method on the support of `theta`; None if that fails."""
    slacks = np.where(theta > 0, 0.0, 1.0)
    excess, maximiser = DenseModel(_scaled(matrix)).cross_over(q, theta, slacks, tol)
    return maximiser if excess <= tol else None


def _scaled(matrix: Floats) -> Floats:
    """The matrix with a largest entry of 1 for each report, and no negligible ones."""
    # A factor of a report changes neither theta nor g.
    return without_negligible(matrix / np.maximum.reduce(matrix, axis=0), 1.0)


def _by_the_path(model: DenseModel, q: Floats, tol: float, cautious: bool) -> tuple[Floats, int]:
    def one_try(settings: Settings) -> tuple[Certified, int]:
        if settings.careful:
            return _one_try(model.accurate(), q, tol, settings)
        return _dense_try(model, q, tol, settings)

    return best_of(TRIES if cautious else TRIES[:1], tol, one_try)


def maximise_model(
    model: Model, q: Floats, tol: float, tries: Iterable[Settings] | None = None
) -> tuple[Floats, int]:
    """Maximise q . log(theta M) for any model whose columns have a largest entry of about 1."""
    return best_of(
        TRIES if tries is None else tries,
        tol,
        lambda settings: _one_try(
            model.accurate() if settings.careful else model, q, tol, settings
        ),
    )


def best_of(
    tries: Iterable[Settings], tol: float, one_try: Callable[[Settings], tuple[Certified, int]]
) -> tuple[Floats, int]:
    """The first point that is certified to `tol`, or the best; and the steps of all tries."""
    reached: list[Certified] = []
    steps = 0
    for settings in tries:
        certified, taken = one_try(settings)
        reached.append(certified)
        steps += taken
        if certified[0] <= tol:
            break
    return _better(*reached)[1], steps


def _better(*points: Certified) -> Certified:
    return min(points, key=lambda point: point[0])


# A direction that overflows only ends the try.
@np.errstate(over="ignore", invalid="ignore")
def _one_try(model: Model, q: Floats, tol: float, settings: Settings) -> tuple[Certified, int]:
    start = em_start(model, q, settings)
    best = (model.excess(q, start), start)
    points = central_path(model, q, start, settings.careful)
    del start
    stalled = 0
    step = 0
    for step, point in enumerate(points):
        on_simplex = point.theta / point.theta.sum()
        excess = model.excess(q, on_simplex)
        stalled = 0 if excess < best[0] else stalled + 1
        best = _better(best, (excess, on_simplex))
        # A certified point is polished as well, so that its zeros are exact.
        if best[0] <= tol or (excess < settings.polish_below and point.full_steps):
            exact = model.cross_over(q, point.theta, point.s, tol)
            best = exact if exact[0] <= tol else _better(best, exact)
        if best[0] <= tol or stalled > settings.patience or step == settings.max_iter:
            break
    return best, step


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def _dense_try(
    model: DenseModel, q: Floats, tol: float, settings: Settings
) -> tuple[Certified, int]:
    """One try on a matrix, by `DensePath`.

    At a rough tolerance small masses are cut off; otherwise Newton's method on the support gives
    exact zeros, once the support seems ripe.
    """
    path = DensePath(model.matrix, q, settings.em_steps, settings.uniform_share)
    best, at_goal = (np.inf, path.theta), None
    stalled, beyond = 0, 0
    ripe, size_before, failed = False, 0, (path.k + 1, np.inf)
    while True:
        excess = path.excess()
        stalled = 0 if excess < best[0] else stalled + 1
        if excess < best[0]:
            best = (excess, path.theta / path.theta.sum())
        if tol > ROUGH_TOLERANCE:
            if excess <= tol:
                trimmed = _trimmed(model, q, path)
                return (trimmed if trimmed[0] <= tol else best), path.steps
        else:
            size = int(np.count_nonzero(path.theta > path.s))
            ripe = size >= SETTLED_RATIO * size_before and (
                size <= SMALLER_RATIO * failed[0] or excess <= BETTER_RATIO * failed[1]
            )
            size_before = size
            if ripe and (excess <= tol or (excess < settings.polish_below and path.full_step)):
                exact = model.cross_over(q, path.theta, path.s, tol)
                if exact[0] <= tol:
                    return exact, path.steps
                best, failed = _better(best, exact), (size, excess)
        if best[0] <= tol:
            # The path goes on, because nearer to the solution the zeros are easier to tell. If
            # there are none, this point is as good as any.
            at_goal = at_goal or (best, path.steps)
            beyond += 1
        ended = (
            beyond > MAX_STEPS_BEYOND_GOAL
            or stalled > settings.patience
            or path.steps == settings.max_iter
        )
        if ended or not path.advance():
            # A support that has never settled is tried as it is.
            if at_goal and not ripe:
                exact = model.cross_over(q, path.theta, path.s, tol)
                return (exact, path.steps) if exact[0] <= tol else at_goal
            return at_goal or (best, path.steps)


def _trimmed(model: DenseModel, q: Floats, path: DensePath) -> Certified:
    """The point of a path without the masses that it drives to zero, those with theta < s."""
    theta = np.where(path.theta > path.s, path.theta, 0.0)
    total = theta.sum()
    if not total > 0:
        return np.inf, theta
    theta /= total
    return model.excess(q, theta), theta


def em_start(model: Model, q: Floats, settings: Settings) -> Floats:
    """A few EM updates from uniform, mixed with uniform so that all masses stay large."""
    theta = np.full(model.k, 1 / model.k)
    for _ in range(settings.em_steps):
        theta = theta * model.adjoint(q / model.forward(theta))
    return (1 - settings.uniform_share) * theta / theta.sum() + settings.uniform_share / model.k


def central_path(
    model: Model, q: Floats, start: Floats, careful: bool, quadratic: QuadraticTerm | None = None
) -> Iterator[Iterate]:
    """Follow the central path from `start` (positive), one predictor-corrector step for each point.

    With `quadratic` = (H, c) the objective to be minimised has 1/2 theta H theta + (c - 1) . theta
    in addition, so that s = c + H theta - M lam. Theta and s move by different lengths, so this
    equation has a residual, which is carried along. Ends if a system cannot be solved.
    """
    quadratic = quadratic or QuadraticTerm.none()
    point: Iterate | None = _first_iterate(model, q, start, quadratic)
    del start
    for step in range(10**6):
        if point is None:
            return
        yield point
        system = model.system(point, quadratic, shrink=step >= 2 and not careful)
        point = (
            None
            if system is None
            else _predictor_corrector(model, q, point, quadratic, system, careful)
        )
        # The system holds the last point, which takes much memory with a million secrets.
        del system


def _first_iterate(model: Model, q: Floats, theta: Floats, quadratic: QuadraticTerm) -> Iterate:
    nu = model.forward(theta)
    lam = q / nu
    # `upper` is the upper bound of M lam, which is 1 without a quadratic part. If it is raised
    # here, the difference goes into the residual.
    upper = np.maximum(quadratic.gradient(theta), 0.01)
    back = model.adjoint(lam)
    margin = 1.1 * max(float((back / upper).max()), 1.0)
    s = upper - back / margin
    return Iterate(
        theta, s, lam / margin, nu, model.mean(theta, s), quadratic.gradient(theta) - upper
    )


class Direction(NamedTuple):
    """Change of each part of an iterate."""

    theta: Floats
    s: Floats
    lam: Floats
    nu: Floats


def _predictor_corrector(
    model: Model, q: Floats, point: Iterate, quadratic: QuadraticTerm, system: System, careful: bool
) -> Iterate | None:
    """The next iterate by a predictor and a corrector; None if numbers overflow."""
    theta, s, lam, nu, mu = point.theta, point.s, point.lam, point.nu, point.mu

    # The elimination of the module docstring: d_theta first, then the others by back-substitution.
    def direction(r_q: Floats, r_c: Floats, start: Floats | None, centring: float) -> Direction:
        d_theta = system(r_c / theta - point.residual + model.adjoint(r_q / nu), start, centring)
        d_nu = model.fit_of(d_theta)
        d_lam = (r_q - lam * d_nu) / nu
        d_s = point.residual + quadratic.apply(d_theta) - model.adjoint(d_lam)
        if model.boundary_share is not None:
            # An approximate solution leaves a residual. Where theta is smaller than s, its own
            # equation s d_theta + theta d_s = r_c gives d_theta with more digits.
            d_theta = np.where(s > theta, (r_c - theta * d_s) / s, d_theta)
        return Direction(d_theta, d_s, d_lam, d_nu)

    # The predictor aims at mu = 0. Its feasible length tells how much to centre: mu falls by the
    # cube of the share of complementarity that the predictor would leave. The corrector also
    # carries the second-order terms d_theta d_s and d_lam d_nu of the predictor.
    ahead = direction(q - lam * nu, -theta * s, None, 1.0)
    primal, dual = _step_lengths(point, ahead, 1.0)
    # In exact arithmetic the product never exceeds mu; at the limits of doubles it may, by any
    # factor.
    centring = (
        min(max(model.mean(theta + primal * ahead.theta, s + dual * ahead.s), 0.0) / mu, 1.0) ** 3
    )
    r_c = centring * mu - theta * s - ahead.theta * ahead.s
    r_q, predictor = q - lam * nu - ahead.lam * ahead.nu, ahead.theta
    # With a million secrets its other parts take much memory.
    del ahead
    start = predictor if model.boundary_share is None else predictor.copy()
    change = direction(r_q, r_c, start, centring)
    del start
    reach, share = primal * dual, _boundary_share(model, min(primal, dual), mu, careful)
    primal, dual = _step_lengths(point, change, share)
    if model.boundary_share is not None:
        d_theta, primal = _longest_step(theta, predictor, change.theta, reach, share)
        change = change._replace(theta=d_theta)
        del d_theta
    del predictor
    if not math.isfinite(primal + dual):
        return None
    theta = np.maximum(theta + primal * change.theta, MIN_COORDINATE)
    lam = np.maximum(lam + dual * change.lam, MIN_COORDINATE)
    s = np.maximum(s + dual * change.s, MIN_COORDINATE)
    nu = model.forward(theta)
    # An exact model has an entry of 1 in each column, so its nu is positive; convolutions may err.
    if model.boundary_share is not None:
        nu = np.maximum(nu, MIN_COORDINATE)
    residual = quadratic.gradient(theta) - model.adjoint(lam) - s if quadratic.is_present else 0.0
    return Iterate(theta, s, lam, nu, model.mean(theta, s), residual, min(primal, dual) > 0.5)


def _boundary_share(model: Model, reach: float, mu: float, careful: bool) -> float:
    """Share of the way to the boundary that a step may go; the predictor could go `reach`."""
    if reach < 0.9 and careful:
        return 0.9
    # With exact directions a step may go the whole way but for a share of mu, which makes the last
    # steps quadratic. An approximate direction is meaningless so near the boundary.
    return max(0.99, 1 - mu) if model.boundary_share is None else model.boundary_share


def _longest_step(
    theta: Floats, predictor: Floats, corrector: Floats, reach: float, share: float
) -> tuple[Floats, float]:
    """The change predictor + w (corrector - predictor), reach <= w <= 1, with the longest step.

    Second-order terms are those of a whole step. If the step is much shorter they may be all that
    blocks it, and less weight on them is better (Colombo and Gondzio 2008, Computational
    Optimization and Applications 41). The corrector stays as it is unless a tenth is gained.
    """
    weight, length = 1.0, _step_length(theta, corrector, share)
    min_length = MIN_STEP_GAIN * length
    # No step is longer than a whole one.
    if min_length >= 1:
        return corrector, length
    for w in np.linspace(1.0, reach, SECOND_ORDER_WEIGHTS + 1)[1:]:
        other = _step_length(theta, predictor + w * (corrector - predictor), share)
        if other > max(min_length, length):
            weight, length = w, other
    change = corrector if weight == 1.0 else predictor + weight * (corrector - predictor)
    return change, length


def _step_lengths(point: Iterate, change: Direction, share: float) -> tuple[float, float]:
    """Step lengths of theta, and of lam and s together."""
    dual = min(_step_length(point.s, change.s, share), _step_length(point.lam, change.lam, share))
    return _step_length(point.theta, change.theta, share), dual


def _step_length(value: Floats, change: Floats, share: float) -> float:
    """Step length that keeps `value` positive: 1, or `share` of the way to the boundary."""
    worst = -float((change / value).min()) if len(value) else 0.0
    return 1.0 if worst <= share else share / worst
