"""Intervals that hold at every number of reports, by betting against each end.

A bet pays lam_z > 0 on report z and is fixed before the reports are seen. The product of lam_z /
(theta M lam) over the reports has mean 1, so it exceeds 1 / alpha with probability at most alpha
(Markov). Therefore, with probability 1 - alpha,

    n log(theta . g) >= sum_i log lam_{z_i} - log(1 / alpha),    g = M lam.

The payments may differ between mechanisms, and between a pilot and the other reports; the payments
on the other reports may depend on what the pilot shows. If parts b of the reports, with the shares
s_b, have payments of their own, sum_b s_b log(theta . g_b) is at most log(theta . sum_b s_b g_b)
(Jensen). This again leaves a half-space, so the end of w . theta is the value of a linear
programme.

Given the people's secrets, the product of lam_z / g_x over the reports has mean 1 as well. So the
frequencies F_b of the secrets in each part obey

    sum_b s_b F_b . log g_b >= (sum_i log lam_{z_i} - log(1 / alpha)) / n.

The payments are those that the profile's bound would have if the reports were as frequent as
expected: lam = p / (theta_end M) with p = theta M, where theta is uniform for the pilot, and the
pilot's estimate for the other reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.intervals.finite_reports import all_possible_reports, codes_of, counts_of_all_reports
from ibukit.intervals.profile import ProfileWithWitness
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.intervals.resampling import seeded
from ibukit.intervals.splitting import guess, split, tally_of
from ibukit.intervals.tilted_likelihood import likelihood_of
from ibukit.solvers import Problem
from ibukit.tally.tally import Tally

# Share of the reports from which the bets on the others are designed.
PILOT_SHARE = 0.1
# Probability with which a tally of the right mechanism is refused as not fitting it.
FALSE_ALARM_PROBABILITY = 1e-6
# Largest number of corners that the minimisation of a convex, piecewise linear function of one
# variable visits. After that it returns the least value so far, which is a valid bound.
MAX_CORNERS = 200
# The minimum counts as found when it can be lower by at most this, for weights from 0 to 1.
CORNER_TOLERANCE = 1e-12

# A share s of the reports, and a vector h over the secrets, which is the difference of the two
# sides of a constraint.
WeightedGains = tuple[float, Floats]


class Bet(NamedTuple):
    """Payments of a bet on one part of the reports, against one end of an interval."""

    gained: float
    """sum_i log lam_{z_i}, over the reports of this part."""
    gains: tuple[Floats, ...]
    """g = M lam of each mechanism, shape (k,)."""


class Bets:
    """Payments on the reports of a tally, designed from a guess of the distribution.

    The payments are those of a profile region for reports exactly as expected under the guess: its
    floor is `drop` nats per report below the maximum of their likelihood.
    """

    def __init__(self, tally: Tally, theta: Floats, drop: float):
        self._possible = all_possible_reports(tally)
        channel = self._possible.operator
        self.n, self.shares = tally.n, [part.n / tally.n for part in tally.parts]
        self._before = channel.forward(theta)
        probabilities, seen = [], []
        for part, every, (_, p) in zip(
            tally.parts, self._possible.parts, self._possible.split(self._before), strict=True
        ):
            probabilities.append(p * np.exp(every.log_scale))
            seen.append(counts_of_all_reports(part)[codes_of(every)])
        self._probabilities, self._seen = probabilities, np.concatenate(seen)
        expected = np.concatenate([s * p for s, p in zip(self.shares, probabilities, strict=True)])
        likelihood = likelihood_of(Problem(channel, expected))
        best = likelihood.fit_of(likelihood.forward(theta))
        self._region = ProfileWithWitness(likelihood, min(best, likelihood.best.fit) - drop)

    def against(self, w: Floats) -> Bet:
        """Return a bet against values of w . theta above the expected end, for weights from 0 to 1.

        If the expected end is 1 there is nothing above it, and no bet is placed.
        """
        point = self._region.end(w).witness
        if point is None:
            return Bet(0.0, (np.ones(len(w)),) * len(self.shares))
        after = self._possible.operator.forward(point.theta)
        gains = [
            part.channel.adjoint(p / own)
            for (part, own), p in zip(self._possible.split(after), self._probabilities, strict=True)
        ]
        # lam_z is the ratio of the probabilities of z under the guess and under the end.
        return Bet(float(self._seen @ np.log(self._before / after)), tuple(gains))


class Betting:
    """The distributions, or people's frequencies, against which the bets gain little.

    Each end has bets, and so a region, of its own.
    """

    def __init__(self, request: IntervalRequest, seed: int, share: float):
        tally = request.checked_tally()
        pilot, main = (tally_of(tally, counts) for counts in split(tally, share, seeded(seed)))
        self.n = tally.n
        self._price = math.log(2 / (1 - request.level))
        self._frequencies = request.target == "frequencies"
        # The pilot's reports bet as well, with payments that were fixed before any report was seen.
        self._bets = [
            Bets(reports, theta, self._price / self.n)
            for reports, theta in ((pilot, np.full(tally.k, 1 / tally.k)), (main, guess(pilot)))
        ]
        # Nats per report beyond which the gain refutes the mechanism. By the union bound over both
        # ends of all functionals, a false alarm has at most the stated probability.
        all_bets = math.log(2 * len(request.functionals) / FALSE_ALARM_PROBABILITY)
        self._to_refuse = max(all_bets - self._price, 0.0) / self.n

    def highest(self, w: Floats) -> float:
        """Return the upper end by weak duality."""
        least, most = float(w.min()), float(w.max())
        unit = (w - least) / (most - least)
        return least + (most - least) * min(self._end(unit), 1.0)

    def _end(self, w: Floats) -> float:
        # The constraint for the end: sum_b s_b log(theta . g_b) >= gained / n, or the same with
        # F_b . log g_b for the people's frequencies.
        gained, weighed = -self._price, []
        for bets in self._bets:
            bet = bets.against(w)
            gained += bet.gained
            weighed += [
                (share * bets.n / self.n, g)
                for share, g in zip(bets.shares, bet.gains, strict=True)
            ]
        logarithms = [(share, np.log(g)) for share, g in weighed]
        # Jensen: sum_b s_b log(theta . g_b) <= log(theta . sum_b s_b g_b), a half-space.
        together = np.sum([share * g for share, g in weighed], axis=0)
        most = (
            sum(share * h.max() for share, h in logarithms)
            if self._frequencies
            else math.log(together.max())
        )
        if gained / self.n > most + self._to_refuse:
            raise ValueError(
                "tally does not fit its mechanism: no distribution makes the reports as probable "
                "as they should be; is it the mechanism that made them?"
            )
        # If no distribution is left, the constraint is loosened until one is.
        mean = min(gained / self.n, most)
        if self._frequencies:
            return least_upper(w, [(share, h - mean) for share, h in logarithms])
        return least_upper(w, [(1.0, together - math.exp(mean))])


def least_upper(w: Floats, weighed: Sequence[WeightedGains]) -> float:
    """Bound sum_b s_b w . F_b from above, over distributions F_b with sum_b s_b h_b . F_b >= 0.

    By duality the maximum is the least value of sum_b s_b max_x (w_x + mu h_bx) over mu >= 0, and
    every mu gives a bound. The function is convex and piecewise linear in mu. The next mu is where
    the lines through the last points on either side of the minimum meet.
    """

    def line(mu: float) -> tuple[float, float]:
        """Return intercept and slope of the linear piece at mu; at inf, of the last piece."""
        height = slope = 0.0
        for s, h in weighed:
            x = np.lexsort((h, w + mu * h))[-1] if math.isfinite(mu) else np.lexsort((w, h))[-1]
            height, slope = height + s * w[x], slope + s * h[x]
        return height, slope

    (left, falls), (right, rises) = line(0.0), line(math.inf)
    least = left
    for _ in range(MAX_CORNERS):
        if falls >= min(rises, 0.0):
            break
        mu = (right - left) / (falls - rises)
        height, slope = line(mu)
        value = height + mu * slope
        least = min(least, value)
        if value <= left + mu * falls + CORNER_TOLERANCE:
            break
        if slope < 0:
            left, falls = height, slope
        else:
            right, rises = height, slope
    return float(least)


def betting(request: IntervalRequest, seed: int = 0, share: float = PILOT_SHARE) -> Ends:
    """Return the ends by betting; each is wrong with probability at most (1 - level) / 2."""
    lower, upper = ends(
        Betting(request, seed, arguments.fraction("share", share, "()")), request.functionals
    )
    # Lower and upper end can cross only if one of them is wrong.
    return np.minimum(lower, upper), np.maximum(lower, upper)
