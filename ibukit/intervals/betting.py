"""Intervals that hold at every number of reports: bets against each end, fixed before the reports they are laid on.

A bet pays lam_z > 0 on report z and is fixed before the reports. The product of lam_z / (theta M
lam) over the reports has mean 1, so it exceeds 1 / alpha with probability at most alpha (Markov).
Therefore, with probability 1 - alpha,

    n log(theta . g) >= sum_i log lam_{z_i} - log(1 / alpha),    g = M lam.

The payments may differ between mechanisms, and between a pilot and the other reports, where they
may depend on what the pilot shows. With shares s_b of the reports that have payments of their own,
sum_b s_b log(theta . g_b) is at most log(theta . sum_b s_b g_b) (Jensen), which again leaves a
half-space; the end of w . theta is a linear programme.

Given the people's secrets the same product of lam_z / g_x has mean 1. So their frequencies F_b in
each share obey

    sum_b s_b F_b . log g_b >= (sum_i log lam_{z_i} - log(1 / alpha)) / n.

The payments are those of the profile's bound if the reports were as expected: lam = p / (theta_end
M), p = theta M with theta uniform for the pilot and its estimate for the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.intervals.finite_reports import codes_of, counted, possible
from ibukit.intervals.profile import ProfileWithWitness
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.intervals.resampling import seeded
from ibukit.intervals.splitting import guess, split, tally_of
from ibukit.intervals.tilted_likelihood import likelihood_of
from ibukit.solvers import Problem
from ibukit.tally.tally import Tally

# share of the reports from which the bets on the others are designed
PILOT = 0.1
# how rarely a right mechanism makes reports that are refused
REFUSED = 1e-6
# corners of a convex function of one variable that are looked at; mostly a few
MAX_CORNERS = 200
# how far the minimum may be below what was found, of the range of the answers
CORNERS_MEET = 1e-12

# a share of the reports, and how their gains weigh on each secret
Weighed = tuple[float, Floats]


class Bet(NamedTuple):
    """The payments of a part of the reports, against one end."""

    gained: float
    """sum_i log lam_{z_i}."""
    gains: tuple[Floats, ...]
    """M lam of each mechanism, shape (k,)."""


class Bets:
    """Payments on the reports of a tally, designed from a guess, with the strength of `drop` nats per report."""

    def __init__(self, tally: Tally, theta: Floats, drop: float):
        self._possible = possible(tally)
        channel = self._possible.operator
        self.n, self.shares = tally.n, [part.n / tally.n for part in tally.parts]
        self._before = channel.forward(theta)
        probabilities, seen = [], []
        for part, every, (_, p) in zip(
            tally.parts, self._possible.parts, self._possible.split(self._before), strict=True
        ):
            probabilities.append(p * np.exp(every.log_scale))
            seen.append(counted(part)[codes_of(every)])
        self._probabilities, self._seen = probabilities, np.concatenate(seen)
        expected = np.concatenate([s * p for s, p in zip(self.shares, probabilities, strict=True)])
        likelihood = likelihood_of(Problem(channel, expected))
        best = likelihood.fit_of(likelihood.forward(theta))
        self._region = ProfileWithWitness(likelihood, min(best, likelihood.best.fit) - drop)

    def against(self, w: Floats) -> Bet:
        """Against answers above the end expected, of weights from 0 to 1; none is placed where that is the largest."""
        point = self._region.end(w).witness
        if point is None:
            return Bet(0.0, (np.ones(len(w)),) * len(self.shares))
        after = self._possible.operator.forward(point.theta)
        gains = [
            part.channel.adjoint(p / own)
            for (part, own), p in zip(self._possible.split(after), self._probabilities, strict=True)
        ]
        return Bet(float(self._seen @ np.log(self._before / after)), tuple(gains))


class Betting:
    """What the bets leave of the simplex, or of the people's own frequencies; for each end a region of its own."""

    def __init__(self, request: IntervalRequest, seed: int, share: float):
        tally = request.checked_tally()
        pilot, main = (tally_of(tally, counts) for counts in split(tally, share, seeded(seed)))
        self.n = tally.n
        self._price = math.log(2 / (1 - request.level))
        self._frequencies = request.target == "frequencies"
        # the pilot bets, too, by what can be said before any report is seen
        self._bets = [
            Bets(reports, theta, self._price / self.n)
            for reports, theta in ((pilot, np.full(tally.k, 1 / tally.k)), (main, guess(pilot)))
        ]
        # of all the bets against a right mechanism (union bound)
        self._to_refuse = (
            max(math.log(2 * len(request.functionals) / REFUSED) - self._price, 0.0) / self.n
        )

    def highest(self, w: Floats) -> float:
        """The upper end by weak duality."""
        least, most = float(w.min()), float(w.max())
        unit = (w - least) / (most - least)
        return least + (most - least) * min(self._end(unit), 1.0)

    def _end(self, w: Floats) -> float:
        gained, weighed = -self._price, []
        for bets in self._bets:
            bet = bets.against(w)
            gained += bet.gained
            weighed += [
                (share * bets.n / self.n, g)
                for share, g in zip(bets.shares, bet.gains, strict=True)
            ]
        logarithms = [(share, np.log(g)) for share, g in weighed]
        together = np.sum([share * g for share, g in weighed], axis=0)
        most = (
            sum(share * h.max() for share, h in logarithms)
            if self._frequencies
            else math.log(together.max())
        )
        if gained / self.n > most + self._to_refuse:
            raise ValueError(
                "tally does not fit its mechanism: no distribution makes the reports as probable as they should be; "
                "is it the mechanism that made them?"
            )
        # where there is no member, that which is nearest
        mean = min(gained / self.n, most)
        if self._frequencies:
            return least_upper(w, [(share, h - mean) for share, h in logarithms])
        return least_upper(w, [(1.0, together - math.exp(mean))])


def least_upper(w: Floats, weighed: Sequence[Weighed]) -> float:
    """The largest sum_b s_b w . F_b over distributions F_b with sum_b s_b h_b . F_b >= 0, from above.

    That is the least of the heights sum_b s_b max_x (w_x + mu h_bx), mu >= 0, each of which is a
    bound. They are convex in mu and made of straight lines: the next mu is where the last lines on
    either side of the least meet.
    """

    def line(mu: float) -> tuple[float, float]:
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
        found = height + mu * slope
        least = min(least, found)
        if found <= left + mu * falls + CORNERS_MEET:
            break
        if slope < 0:
            left, falls = height, slope
        else:
            right, rises = height, slope
    return float(least)


def betting(request: IntervalRequest, seed: int = 0, share: float = PILOT) -> Ends:
    """The ends that the bets leave; each is wrong with probability at most (1 - level) / 2."""
    lower, upper = ends(
        Betting(request, seed, arguments.fraction("share", share, "()")), request.functionals
    )
    return np.minimum(lower, upper), np.maximum(
        lower, upper
    )  # they cross only where one of them is wrong
