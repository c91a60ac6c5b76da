"""The maximum-likelihood mixture by a primal-dual interior point, on any model of a channel.

The optimality conditions of max q . log(theta M) over the simplex are, with nu = theta M the fitted
probabilities, lam = q / nu the weights of the reports and s = 1 - M lam the slacks (g = M lam is
the certificate's g):

    nu = theta M,    s = 1 - M lam,    lam_z nu_z = q_z,    theta_x s_x = 0,    all positive.

`lam nu = q` is kept as a second complementarity with the fixed target q, so both linear maps hold
exactly along the path and no logarithm needs a line search. Each step solves one positive definite
system twice (Mehrotra): of a matrix or of structured channels by `_normal_equations`, of noise on a
large grid by `plane`. `line` follows the same path in compiled loops of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.solvers._normal_equations import DenseModel
from ibukit.solvers.dense import least_squares_steps
from ibukit.solvers.dense.central_path import MIN_COORDINATE, DensePath
from ibukit.solvers.interior_point_model import Model, Point, QuadraticTerm, System

# a tolerance above which a matrix is not worth the way to the exact zeros, which takes as long as
# some steps
CUT_ABOVE = 1e-6
# steps that a path goes on beyond the goal where the support cannot be told there
MORE_STEPS = 5
# A support is worth solving for once the guess no longer shrinks, that is, it has this share of the
# one before; and after one has failed, when it has become smaller by so much, or the point better
# by so much
SETTLED = 0.9
SMALLER = 0.95
BETTER = 0.1
# what second-order terms are weighed by, at so many places; and how much longer the step must be
# for it
WEIGHTS_OF_SECOND_ORDER = 10
LONGER = 1.1

# max g - 1 of a distribution, and the distribution
Certified = tuple[float, Floats]


@dataclass(frozen=True)
class Settings:
    """Parameters of one attempt, from fast to cautious; the first suits nearly all problems."""

    em_steps: int
    uniform_share: float
    careful: bool
    """True to stay well inside, with the model's accurate systems."""
    polish_below: float
    """Excess from which the support is guessed; 0: only that of a certified point."""
    max_iter: int
    patience: int = 12
    """Steps without progress after which a try is given up."""


TRIES = (
    Settings(em_steps=10, uniform_share=0.1, careful=False, polish_below=1e-6, max_iter=100),
    Settings(em_steps=0, uniform_share=0.1, careful=True, polish_below=1e-6, max_iter=100),
    Settings(em_steps=50, uniform_share=0.5, careful=True, polish_below=1e-6, max_iter=200),
)


def maximise(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, int]:
    """The maximiser of q . log(theta M) over the simplex as far as doubles go, and the steps taken.

    Every column of `matrix` must have a positive entry. Returns the best certified point of up to
    three tries.
    """
    scaled = matrix / np.maximum.reduce(
        matrix, axis=0
    )  # a factor of a report changes neither theta nor g
    largest = np.maximum.reduce(scaled, axis=1)
    if largest[largest.argmin()] > 0:
        return _maximise_dense(DenseModel(np.ascontiguousarray(scaled)), q, tol)
    live = largest > 0  # the others explain nothing that was seen
    found, steps = _maximise_dense(DenseModel(np.ascontiguousarray(scaled[live])), q, tol)
    theta = np.zeros(len(matrix))
    theta[live] = found
    return theta, steps


def from_support(matrix: Floats, q: Floats, theta: Floats, tol: float) -> Floats | None:
    """Return the maximiser by Newton steps from a point with its support; None if they miss it."""
    scaled = matrix / matrix.max(axis=0)
    excess, found = DenseModel(scaled).cross_over(q, theta, np.where(theta > 0, 0.0, 1.0), tol)
    return found if excess <= tol else None


def _maximise_dense(model: DenseModel, q: Floats, tol: float) -> tuple[Floats, int]:
    few = least_squares_steps.maximise(model.matrix, q, tol)
    if few is not None:
        return few

    def one_try(settings: Settings) -> tuple[Certified, int]:
        if settings.careful:
            return _one_try(model.accurate(), q, tol, settings)
        return _dense_try(model, q, tol, settings)

    return best_of(TRIES, tol, one_try)


def maximise_model(
    model: Model, q: Floats, tol: float, tries: Iterable[Settings] | None = None
) -> tuple[Floats, int]:
    """The same for any model whose columns have a largest entry of about 1."""
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
    """Return the first result certified to `tol`, or the best, and the steps of all attempts."""
    reached: list[Certified] = []
    steps = 0
    for settings in tries:
        found, taken = one_try(settings)
        reached.append(found)
        steps += taken
        if found[0] <= tol:
            break
    return _better(*reached)[1], steps


def _better(*found: Certified) -> Certified:
    return min(found, key=lambda point: point[0])


@np.errstate(
    over="ignore", invalid="ignore"
)  # a direction that leads out of the doubles only ends the try
def _one_try(model: Model, q: Floats, tol: float, settings: Settings) -> tuple[Certified, int]:
    start = em_start(model, q, settings)
    best = (model.excess(q, start), start)
    points = path(model, q, start, settings.careful)
    del start
    stalled = 0
    step = 0
    for step, point in enumerate(points):
        on_simplex = point.theta / point.theta.sum()
        excess = model.excess(q, on_simplex)
        stalled = 0 if excess < best[0] else stalled + 1
        best = _better(best, (excess, on_simplex))
        if best[0] <= tol or (excess < settings.polish_below and point.full_steps):
            exact = model.cross_over(
                q, point.theta, point.s, tol
            )  # good enough or not: its zeros are zeros
            best = exact if exact[0] <= tol else _better(best, exact)
        if best[0] <= tol or stalled > settings.patience or step == settings.max_iter:
            break
    return best, step


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def _dense_try(
    model: DenseModel, q: Floats, tol: float, settings: Settings
) -> tuple[Certified, int]:
    """Maximise on a matrix in fewer calls; at a loose `tol` small entries are cut off to zeros."""
    path = DensePath(model.matrix, q, settings.em_steps, settings.uniform_share)
    best, at_goal = (np.inf, path.theta), None
    stalled, beyond = 0, 0
    ripe, size_before, failed = False, 0, (path.k + 1, np.inf)
    while True:
        excess = path.excess()
        stalled = 0 if excess < best[0] else stalled + 1
        if excess < best[0]:
            best = (excess, path.theta / path.theta.sum())
        if tol > CUT_ABOVE:
            if excess <= tol:
                trimmed = _trimmed(model, q, path)
                return (trimmed if trimmed[0] <= tol else best), path.steps
        else:
            size = int(np.count_nonzero(path.theta > path.s))
            ripe = size >= SETTLED * size_before and (
                size <= SMALLER * failed[0] or excess <= BETTER * failed[1]
            )
            size_before = size
            if ripe and (excess <= tol or (excess < settings.polish_below and path.full_step)):
                exact = model.cross_over(q, path.theta, path.s, tol)
                if exact[0] <= tol:
                    return exact, path.steps
                best, failed = _better(best, exact), (size, excess)
        if best[0] <= tol:
            # nearer to the solution its zeros are easier to tell; where there are none this point
            # is as good as any
            at_goal = at_goal or (best, path.steps)
            beyond += 1
        ended = (
            beyond > MORE_STEPS or stalled > settings.patience or path.steps == settings.max_iter
        )
        if ended or not path.advance():
            if at_goal and not ripe:  # nor will it ripen: it is tried as it is
                exact = model.cross_over(q, path.theta, path.s, tol)
                return (exact, path.steps) if exact[0] <= tol else at_goal
            return at_goal or (best, path.steps)


def _trimmed(model: DenseModel, q: Floats, path: DensePath) -> Certified:
    """Without what the path is driving to zero."""
    theta = np.where(path.theta > path.s, path.theta, 0.0)
    total = theta.sum()
    if not total > 0:
        return np.inf, theta
    theta /= total
    return model.excess(q, theta), theta


def em_start(model: Model, q: Floats, settings: Settings) -> Floats:
    """A few updates from the uniform distribution, mixed with it."""
    theta = np.full(model.k, 1 / model.k)
    for _ in range(settings.em_steps):
        theta = theta * model.adjoint(q / model.forward(theta))
    return np.asarray(
        (1 - settings.uniform_share) * theta / theta.sum() + settings.uniform_share / model.k
    )


def path(
    model: Model, q: Floats, start: Floats, careful: bool, curved: QuadraticTerm | None = None
) -> Iterator[Point]:
    """Follow the central path from a positive `start`, one Newton step for each point.

    With `curved` = (H, c) the objective has 1/2 theta H theta + (c - 1) . theta in addition, so
    that s = c + H theta - M lam; its residual is carried because theta and s move by different
    lengths.
    """
    curved = curved or QuadraticTerm.none()
    point: Point | None = _first(model, q, start, curved)
    del start
    for step in range(10**6):
        if point is None:
            return
        yield point
        system = model.system(point, curved, shrink=step >= 2 and not careful)
        point = None if system is None else _step(model, q, point, curved, system, careful)
        # it holds the last point, which at a million secrets is memory while this one is looked at
        del system


def _first(model: Model, q: Floats, theta: Floats, curved: QuadraticTerm) -> Point:
    nu = model.forward(theta)
    lam = q / nu
    upper = np.maximum(
        curved.slope(theta), 0.01
    )  # 1 without a quadratic part; what is cut here stays in the residual
    back = model.adjoint(lam)
    margin = 1.1 * max(float((back / upper).max()), 1.0)
    s = upper - back / margin
    return Point(theta, s, lam / margin, nu, model.mean(theta, s), curved.slope(theta) - upper)


class Direction(NamedTuple):
    """A change of each part of a point."""

    theta: Floats
    s: Floats
    lam: Floats
    nu: Floats


def _step(
    model: Model, q: Floats, point: Point, curved: QuadraticTerm, system: System, careful: bool
) -> Point | None:
    """One predictor and corrector; None where numbers give out."""
    theta, s, lam, nu, mu = point.theta, point.s, point.lam, point.nu, point.mu

    def direction(r_q: Floats, r_c: Floats, near: Floats | None, centring: float) -> Direction:
        d_theta = system(r_c / theta - point.residual + model.adjoint(r_q / nu), near, centring)
        d_nu = model.fit_of(d_theta)
        d_lam = (r_q - lam * d_nu) / nu
        d_s = point.residual + curved.apply(d_theta) - model.adjoint(d_lam)
        if model.farthest is not None:
            # where theta is the smaller, its own row of the system gives it with more digits than
            # were solved for
            d_theta = np.where(s > theta, (r_c - theta * d_s) / s, d_theta)
        return Direction(d_theta, d_s, d_lam, d_nu)

    # predictor: straight at the solution; then centred by how far that could go, with second-order
    # terms
    ahead = direction(q - lam * nu, -theta * s, None, 1.0)
    primal, dual = _lengths(point, ahead, 1.0)
    # at the limits of doubles the product may exceed mu beyond all bounds; exactly, it never
    # exceeds it
    centring = (
        min(max(model.mean(theta + primal * ahead.theta, s + dual * ahead.s), 0.0) / mu, 1.0) ** 3
    )
    r_c = centring * mu - theta * s - ahead.theta * ahead.s
    r_q, straight = q - lam * nu - ahead.lam * ahead.nu, ahead.theta
    del ahead  # at a million secrets, its other parts are memory
    change = direction(r_q, r_c, straight if model.farthest is None else straight.copy(), centring)
    reach, share = primal * dual, _share(model, min(primal, dual), mu, careful)
    primal, dual = _lengths(point, change, share)
    if model.farthest is not None:
        d_theta, primal = _longest(theta, straight, change.theta, reach, share)
        change = change._replace(theta=d_theta)
        del d_theta
    del straight
    if not math.isfinite(primal + dual):
        return None
    theta = np.maximum(theta + primal * change.theta, MIN_COORDINATE)
    lam = np.maximum(lam + dual * change.lam, MIN_COORDINATE)
    s = np.maximum(s + dual * change.s, MIN_COORDINATE)
    nu = model.forward(theta)
    if model.farthest is not None:
        nu = np.maximum(
            nu, MIN_COORDINATE
        )  # for others it is, because each column has an entry of 1
    residual = curved.slope(theta) - model.adjoint(lam) - s if curved.present else 0.0
    return Point(theta, s, lam, nu, model.mean(theta, s), residual, min(primal, dual) > 0.5)


def _share(model: Model, reach: float, mu: float, careful: bool) -> float:
    """Share of the way to the boundary that a step may go, if the predictor could go `reach`."""
    if reach < 0.9 and careful:
        return 0.9
    # to all but mu of it; but that near the boundary a direction that is not exact means nothing
    return max(0.99, 1 - mu) if model.farthest is None else model.farthest


def _longest(
    theta: Floats, straight: Floats, bent: Floats, reach: float, share: float
) -> tuple[Floats, float]:
    """Return the longest admissible step among straight + w (bent - straight), reach <= w <= 1.

    Second-order terms are those of a whole step: where one is far from it they may be the only
    hindrance (Colombo and Gondzio 2008, Computational Optimization and Applications 41). `bent`
    stays unless a tenth is gained.
    """
    found, length = 1.0, _length(theta, bent, share)
    least = LONGER * length
    if least >= 1:  # no step is longer than a whole one
        return bent, length
    for w in np.linspace(1.0, reach, WEIGHTS_OF_SECOND_ORDER + 1)[1:]:
        other = _length(theta, straight + w * (bent - straight), share)
        if other > max(least, length):
            found, length = w, other
    return (bent if found == 1.0 else straight + found * (bent - straight)), length


def _lengths(point: Point, change: Direction, share: float) -> tuple[float, float]:
    """Longest steps of theta, and of lam and s."""
    dual = min(_length(point.s, change.s, share), _length(point.lam, change.lam, share))
    return _length(point.theta, change.theta, share), dual


def _length(value: Floats, change: Floats, share: float) -> float:
    """The step that keeps `value` positive: all of it, or `share` of the way to the boundary."""
    worst = -float((change / value).min()) if len(value) else 0.0
    return 1.0 if worst <= share else share / worst
