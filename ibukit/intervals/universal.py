"""Intervals that hold at every number of reports, by universal inference on split reports.

Let theta_p be an estimate from a part of the reports, and L the likelihood of the others. E =
L(theta_p) / L(theta) has mean at most 1 at the true theta, so E <= 1 / alpha holds with probability
at least 1 - alpha (Markov). This gives a region of the profile's kind. The same holds for the mean
of r such E_i, from splits of any kind. For all weights omega that sum to 1,

    log mean_i E_i >= sum_i omega_i log(E_i / (r omega_i))

(Jensen), with equality where omega_i is E_i's share of their sum. The right side is a profile of
weighted counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.intervals.profile import ProfileWithWitness
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.intervals.resampling import seeded
from ibukit.intervals.splitting import guess, split, tally_of
from ibukit.intervals.tilted_likelihood import Likelihood, likelihood_of
from ibukit.solvers import Problem
from ibukit.tally.tally import Tally

# Share of the reports from which an estimate is made, where the method is symmetric in the halves.
HALF = 0.5
# Largest number of choices of the weights omega for each end; more choices hardly improve a bound.
MAX_WEIGHT_CHOICES = 4
# Uniform share of the weights, so that every report counts.
UNIFORM_SHARE = 1e-4
# Improvement of a bound, for weights w from 0 to 1, below which no other omega is tried.
MIN_IMPROVEMENT = 1e-4
# A floor is at least this many nats per report below the maximum, so that its region has an inside.
MIN_DROP = 1e-9

# Counts of the reports that an estimate is made from, and of those that judge it.
Halves = tuple[Ints, Ints]


class Universal:
    """{theta : mean_i E_i(theta) <= 1 / (1 - level)}, bounded from outside."""

    def __init__(self, tally: Tally, level: float, splits: Sequence[Halves]):
        judges = np.array([judge for _, judge in splits])
        seen = judges.any(axis=0)
        self._counts = judges[:, seen]
        self._channel = tally_of(tally, judges.sum(axis=0)).operator
        self._price = math.log(1 / (1 - level))
        self._even = np.full(len(splits), 1 / len(splits))
        likelihood = self._likelihood(self._even)
        # log L_i(theta_p) of each split: the likelihood of the judging reports at the estimate.
        self._guessed = np.array(
            [
                own @ np.log(likelihood.forward(guess(tally_of(tally, pilot))))
                for (pilot, _), own in zip(splits, self._counts, strict=True)
            ]
        )
        self._even_region = self._region(likelihood, self._even)

    def highest(self, w: Floats) -> float:
        """Return the upper end: the least bound that several weights omega prove."""
        least, most = float(w.min()), float(w.max())
        unit = (w - least) / (most - least)
        region, bound = self._even_region, math.inf
        for _ in range(MAX_WEIGHT_CHOICES if len(self._counts) > 1 else 1):
            proved, point = region.end(unit)
            worse, bound = proved > bound - MIN_IMPROVEMENT, min(bound, proved)
            p = self._probabilities_on_face(region.likelihood, unit) if point is None else point.p
            if worse or p is None:
                break
            # Jensen's inequality is an equality if omega is proportional to E_i. So omega is taken
            # from the E_i at the end, where the bound should be tight. `evidence` is log E_i.
            evidence = self._guessed - self._counts @ np.log(p)
            chosen = (1 - UNIFORM_SHARE) * softmax(evidence) + UNIFORM_SHARE * self._even
            region = self._region(self._likelihood(chosen), chosen)
        return least + (most - least) * bound

    def _probabilities_on_face(self, likelihood: Likelihood, w: Floats) -> Floats | None:
        """Return theta M of the most likely distribution with w . theta = 1, if there is one."""
        theta = likelihood.on_face(w == 1)
        return None if theta is None else likelihood.forward(theta)

    def _likelihood(self, chosen: Floats) -> Likelihood:
        return likelihood_of(Problem(self._channel, chosen @ self._counts))

    def _region(self, likelihood: Likelihood, chosen: Floats) -> ProfileWithWitness:
        """Return {theta : sum_i omega_i log(E_i / (r omega_i)) <= log(1 / alpha)}."""
        total = float(chosen @ self._counts.sum(axis=1))
        floor = (
            float(chosen @ (self._guessed - np.log(len(chosen) * chosen))) - self._price
        ) / total
        # The region is never empty: with exact estimates no E_i is above 1 at the maximum of all
        # reports, because theta_p fits its part best.
        return ProfileWithWitness(likelihood, min(floor, likelihood.best.fit - MIN_DROP))


def _splits(
    request: IntervalRequest, by: str, seed: int, splits: int, share: float
) -> list[Halves]:
    if request.target != "distribution":
        raise ValueError(
            f"target must be 'distribution' with method='guaranteed', by={by!r}, got "
            f"{request.target!r}: by='boxes' and by='betting' also cover the frequencies"
        )
    request.refuse_if_too_slow("guaranteed")
    tally, rng = request.checked_tally(), seeded(seed)
    return [split(tally, share, rng) for _ in range(splits)]


def halved(request: IntervalRequest, seed: int = 0, share: float = HALF) -> Ends:
    """Return ends by an estimate from a `share` of the reports, judged by the others."""
    splits = _splits(request, "split", seed, 1, arguments.fraction("share", share, "()"))
    return ends(Universal(request.checked_tally(), request.level, splits), request.functionals)


def cross_fitted(request: IntervalRequest, seed: int = 0) -> Ends:
    """Return ends from two halves of the reports, each judged by the other."""
    return _both_ways(request, _splits(request, "cross-fitted", seed, 1, HALF))


def averaged(request: IntervalRequest, seed: int = 0, splits: int = 10) -> Ends:
    """Return ends from the mean over several random splits, each used both ways."""
    return _both_ways(
        request, _splits(request, "averaged", seed, arguments.whole("splits", splits, 1), HALF)
    )


def _both_ways(request: IntervalRequest, splits: list[Halves]) -> Ends:
    both = [pair for one, other in splits for pair in ((one, other), (other, one))]
    return ends(Universal(request.checked_tally(), request.level, both), request.functionals)
