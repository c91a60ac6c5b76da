"""The penalty of most evidence on a plane too large for determinants: by how the evidence changes with it.

With L the log-likelihood, R the roughness and H the curvature, all at the best fit for a penalty,
the evidence is

    E = L - penalty R + (k - 1)/2 log penalty - 1/2 (log det H + log(r . H^-1 r)),   r = sqrt theta,

and as the best fit is a maximum, its slope in log penalty is

    E' = (k - 1)/2 - penalty R - 1/2 (tr H^-1 H' + (log(r . H^-1 r))').

H is F F^T with a column for each report and each pair of neighbours. For s of random signs x = H^-1
F s has the covariance H^-1, so k + x . (H' - H) x has the mean tr H^-1 H'. Where the penalty alone
decides, H' is H, and nothing is left to err: the variance goes with the number of parameters that
the reports decide, not with k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax

from ibukit._ground.arguments import Floats
from ibukit.estimators._plane_curvature import PlaneCurvature
from ibukit.estimators._roughness import Fit, Roughness, fit, plane_curvature
from ibukit.tally.tally import Tally

# draws of signs where the evidence is compared, and where its top is found; always the same ones,
# so that the slope is a smooth function of the penalty
FEW_SIGNS, MANY_SIGNS, SEED_OF_SIGNS = 4, 16, 0
# derivatives are differences over this change of log penalty, less where a log probability would
# change by more
MAX_CHANGE, MAX_MOVE = 0.1, 0.5
# of log penalty: nearer than the draws tell
NEAR_THE_TOP = 0.02
TOL = 1e-9


def most_evidence(
    tally: Tally, roughness: Roughness, penalties: Sequence[float], start: Fit, hopeless: float
) -> float:
    """The best of falling penalties, refined between its neighbours; the first fit begins at `start`.

    What is `hopeless` nats behind the best so far, and all below, is not looked at.
    """
    slopes, fits, evidence = [], [start], [0.0]
    for i, penalty in enumerate(penalties):
        optimum = fit(tally, roughness, penalty / tally.n, fits[-1].u, TOL)
        rise = slope(tally, roughness, penalty, optimum, FEW_SIGNS)
        if not math.isfinite(rise):  # a comb, beyond what can be solved
            break
        fits.append(optimum)
        slopes.append(rise)
        if i:
            evidence.append(
                evidence[-1] - math.log(penalties[i - 1] / penalty) * (slopes[-2] + slopes[-1]) / 2
            )
        if evidence[-1] < max(evidence) - hopeless:
            break
    best = int(np.argmax(evidence))
    if best in (0, len(slopes) - 1):
        return penalties[best]

    @cache  # the ends are asked for twice
    def between(log_penalty: float) -> float:
        again = fit(tally, roughness, math.exp(log_penalty) / tally.n, fits[best + 2].u, TOL)
        return slope(tally, roughness, math.exp(log_penalty), again, MANY_SIGNS)

    low, high = math.log(penalties[best + 1]), math.log(penalties[best - 1])
    if not (between(low) > 0 > between(high)):
        return penalties[best]
    return math.exp(float(brentq(between, low, high, xtol=NEAR_THE_TOP, disp=False)))


def slope(tally: Tally, roughness: Roughness, penalty: float, optimum: Fit, signs: int) -> float:
    """E' at the best fit for a penalty, from so many draws; not a number where rounding leaves none."""
    u, weight = optimum.u, penalty / tally.n
    curvature, rough = plane_curvature(tally, roughness, weight, u), roughness(u)
    # how the best fit changes: a step of Newton's for the change of the slope
    v = curvature.step(curvature.root * weight * (roughness.pulls(u) + rough), curvature.root)
    move = v * np.exp(np.minimum(-log_softmax(u) / 2, 700))
    change = min(MAX_CHANGE, MAX_MOVE / max(float(np.abs(move).max()), 1e-300))
    more, less = (
        plane_curvature(
            tally, roughness, weight * math.exp(sign * change), u + sign * change * move
        )
        for sign in (1, -1)
    )
    rng = np.random.Generator(np.random.PCG64(SEED_OF_SIGNS))
    trace = float(tally.k)
    for _ in range(signs):
        side = _drawn(curvature, roughness, weight, u, rng)
        x = curvature.solve(side)
        trace += (
            float(x @ (more.times(x) - less.times(x))) / (2 * change) - float(x @ side)
        ) / signs
    along = (_log_along(more) - _log_along(less)) / (2 * change)
    return (tally.k - 1) / 2 - penalty * rough - (trace + along) / 2


def _drawn(
    curvature: PlaneCurvature,
    roughness: Roughness,
    weight: float,
    u: Floats,
    rng: np.random.Generator,
) -> Floats:
    """F s for random signs s."""
    seen = np.sqrt(curvature.w) * rng.choice([-1.0, 1.0], len(curvature.w))
    side = curvature.root * curvature.channel.adjoint(seen)
    half = np.exp(roughness.log_ratios(u) / 2)
    pairs = np.sqrt(weight / 2 * roughness.weight) * rng.choice([-1.0, 1.0], len(roughness.weight))
    side += np.bincount(roughness.one, pairs * half, len(u))
    side -= np.bincount(roughness.other, pairs / half, len(u))
    return side


def _log_along(curvature: PlaneCurvature) -> float:
    along = float(curvature.root @ curvature.solve(curvature.root))
    return math.log(along) if along > 0 else math.nan
