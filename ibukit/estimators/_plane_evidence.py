"""The penalty with the most evidence on a large plane, by the derivative of the evidence.

With L the log-likelihood, R the roughness and H the curvature, all at the best fit for a penalty,
the evidence is

    E = L - penalty R + (k - 1)/2 log penalty - 1/2 (log det H + log(r . H^-1 r)),   r = sqrt theta,

and as the best fit is a maximum, its slope in log penalty is

    E' = (k - 1)/2 - penalty R - 1/2 (tr H^-1 H' + (log(r . H^-1 r))').

The trace is estimated by Hutchinson's method. H is F F^T with a column of F for each report and
each pair of neighbours, so for random signs s, x = H^-1 F s has the covariance H^-1, and
k + x . (H' - H) x has the mean tr H^-1 H'. Where the penalty alone decides, H' is H and the
estimate is exact: its variance grows with the number of parameters that the reports decide, not
with k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import scipy

from ibukit._ground.arguments import Floats
from ibukit.estimators._plane_curvature import PlaneCurvature
from ibukit.estimators._roughness import (
    Fit,
    Roughness,
    fit,
    nearest_fit,
    plane_curvature,
    start_near,
)
from ibukit.tally.tally import Tally

# Draws of signs for comparing penalties, and for locating the maximum. Their seed is fixed, so that
# the derivative is a smooth function of the penalty.
FEW_SIGNS, MANY_SIGNS, SEED_OF_SIGNS = 4, 16, 0
# Derivatives are differences over this change of log penalty. A smaller change is taken if some log
# probability would otherwise change by more than the second number.
MAX_CHANGE, MAX_LOG_PROBABILITY_CHANGE = 0.1, 0.5
# Tolerance of log penalty at the maximum, below the error that the draws leave.
LOG_PENALTY_TOLERANCE = 0.02
# Change of log penalty from the guess by few draws to the other end of the first interval.
NEAR_GUESS = 0.15
# Certified excess of each fit, nats per report.
TOL = 1e-9


def most_evidence(
    tally: Tally, roughness: Roughness, penalties: Sequence[float], start: Fit, hopeless: float
) -> float:
    """Return the penalty with the most evidence, refined between neighbours of a falling sequence.

    The first fit begins at `start`. The search ends at a penalty whose evidence is `hopeless` nats
    below the best so far.
    """
    slopes, fits, evidence = [], [start], [0.0]
    for i, penalty in enumerate(penalties):
        weight = penalty / tally.n
        optimum = fit(tally, roughness, weight, start_near(tally, roughness, fits[-1], weight), TOL)
        rise = slope(tally, roughness, penalty, optimum, FEW_SIGNS)
        # Where the fit becomes a comb the system cannot be solved any more.
        if not math.isfinite(rise):
            break
        fits.append(optimum)
        slopes.append(rise)
        if i:
            # The trapezoidal rule in log penalty.
            evidence.append(
                evidence[-1] - math.log(penalties[i - 1] / penalty) * (slopes[-2] + slopes[-1]) / 2
            )
        if evidence[-1] < max(evidence) - hopeless:
            break
    best = int(np.argmax(evidence))
    if best in (0, len(slopes) - 1):
        return penalties[best]

    # Cached because brentq evaluates the ends again.
    @cache
    def between(log_penalty: float) -> float:
        weight = math.exp(log_penalty) / tally.n
        nearest = nearest_fit(fits[best + 1 :], weight)
        again = fit(tally, roughness, weight, start_near(tally, roughness, nearest, weight), TOL)
        fits.append(again)
        return slope(tally, roughness, math.exp(log_penalty), again, MANY_SIGNS)

    low, high = math.log(penalties[best + 1]), math.log(penalties[best - 1])
    # A few draws tell roughly where the slope is 0: a small interval there mostly has the maximum.
    ends = [math.log(penalties[i]) for i in (best + 1, best, best - 1)]
    guess = float(np.interp(0.0, [-slopes[i] for i in (best + 1, best, best - 1)], ends))
    beyond = guess + math.copysign(NEAR_GUESS, between(guess))
    inner = sorted((guess, min(max(beyond, low), high)))
    if between(inner[0]) > 0 > between(inner[1]):
        low, high = inner
    elif not (between(low) > 0 > between(high)):
        return penalties[best]
    return math.exp(
        float(scipy.optimize.brentq(between, low, high, xtol=LOG_PENALTY_TOLERANCE, disp=False))
    )


def slope(tally: Tally, roughness: Roughness, penalty: float, optimum: Fit, signs: int) -> float:
    """Return E' at the best fit for a penalty, from `signs` draws; NaN if rounding spoils it."""
    u, weight = optimum.u, penalty / tally.n
    curvature, rough = plane_curvature(tally, roughness, weight, u), roughness(u)
    # The derivative of the best fit: Newton's step for the change of the gradient.
    move = optimum.trend
    if move is None:
        return math.nan
    change = min(MAX_CHANGE, MAX_LOG_PROBABILITY_CHANGE / max(float(np.abs(move).max()), 1e-300))
    more, less = (
        plane_curvature(
            tally, roughness, weight * math.exp(sign * change), u + sign * change * move
        )
        for sign in (1, -1)
    )
    rng = np.random.Generator(np.random.PCG64(SEED_OF_SIGNS))
    trace = float(tally.k)
    for _ in range(signs):
        side = _draw_side(curvature, roughness, weight, u, rng)
        x = curvature.solve(side)
        trace += (
            float(x @ (more.times(x) - less.times(x))) / (2 * change) - float(x @ side)
        ) / signs
    term = (_log_root_term(more) - _log_root_term(less)) / (2 * change)
    return (tally.k - 1) / 2 - penalty * rough - (trace + term) / 2


def _draw_side(
    curvature: PlaneCurvature,
    roughness: Roughness,
    weight: float,
    u: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Draw F s for random signs s."""
    seen = np.sqrt(curvature.w) * rng.choice([-1.0, 1.0], len(curvature.w))
    side = curvature.root * curvature.channel.adjoint(seen)
    half = np.exp(roughness.log_ratios(u) / 2)
    pairs = np.sqrt(weight / 2 * roughness.weight) * rng.choice([-1.0, 1.0], len(roughness.weight))
    side += np.bincount(roughness.one, pairs * half, len(u))
    side -= np.bincount(roughness.other, pairs / half, len(u))
    return side


def _log_root_term(curvature: PlaneCurvature) -> float:
    """Return log(r . H^-1 r)."""
    value = float(curvature.root @ curvature.solve(curvature.root))
    return math.log(value) if value > 0 else math.nan
