"""Intervals that hold at every number of reports, from Clopper-Pearson intervals of the reports.

Each report's probability has a Clopper-Pearson interval, at a level at which all these intervals
hold together (the union bound). Then lo <= theta M <= hi, and the ends of w . theta are the values
of linear programmes; they hold for all functionals at once.

If reports get lost, those that were seen have the probabilities (theta M)_z / (theta . e), and the
region is lo_z (theta . e) <= (theta M)_z <= hi_z (theta . e), which is linear in theta, too.

The bits of unary encodings and of subset selection have a simpler region. Bit j is 1 with the
probability q + (p - q) theta_j and its count is binomial, so k intervals are enough, instead of one
for each of up to 2^k reports. They hold together, however the bits of one report depend on each
other.

With two kinds of reports the frequency of one kind is 1 minus that of the other. So one interval
serves for both and no level has to be shared: it is Clopper and Pearson's interval itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.binomial_bounds import binomial_bounds
from ibukit._ground.typing import override
from ibukit.domain.efficiency import efficiency_of
from ibukit.intervals.finite_reports import (
    counts_of_all_reports,
    refuse_programme,
    require_finite,
)
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.mechanisms.categorical.independent_bits import is_bits
from ibukit.tally.tally import Tally, TallyPart

# Probability with which a tally of the right mechanism is refused as not fitting it.
FALSE_ALARM_PROBABILITY = 1e-6
# The search for the largest error probability that leaves a region stops if the ratio of two of
# them, one with a region and one whose region is empty, is at most this.
ERRORS_MEET = 1.01
# SciPy's status of a programme without a solution.
INFEASIBLE = 2
# HiGHS accepts no smaller tolerances than these.
HIGHS_OPTIONS: Any = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}


class ConfidenceBoxes(ABC):
    """A region made of an interval for each report; the level is raised if it is empty."""

    misfit = "tally does not fit its mechanism: no distribution makes all reports as frequent"

    def __init__(self, level: float):
        self._error = 1 - level
        self._draw_bounds(self._error)

    @abstractmethod
    def _draw_bounds(self, error: float) -> None:
        """Set the intervals, which all hold together except with probability `error`."""

    @abstractmethod
    def _is_empty(self) -> bool:
        """Return whether nothing is in the region."""

    def _raise_level(self) -> None:
        """Lower the error probability to the largest one with which some distribution is left."""
        error = self._error
        low = FALSE_ALARM_PROBABILITY
        self._draw_bounds(low)
        if self._is_empty():
            raise ValueError(
                f"{self.misfit} as they were seen, and the right mechanism makes such a tally with "
                f"probability {low:g} at most; is it the mechanism that made them?"
            )
        while error > ERRORS_MEET * low:
            middle = math.sqrt(low * error)
            self._draw_bounds(middle)
            low, error = (low, middle) if self._is_empty() else (middle, error)
        self._error = low
        self._draw_bounds(low)


class ClopperPearsonRegion(ConfidenceBoxes):
    """{theta : lo <= theta M <= hi}, which holds the truth with probability at least `level`.

    If reports get lost, the region is {theta : lo (theta . e) <= theta M <= hi (theta . e)} with
    the efficiencies e; otherwise e is 1 everywhere.

    If no distribution is in the region, the level is raised until one is. This happens in a few of
    a thousand tallies whose truth is at the boundary.
    """

    def __init__(self, tally: Tally, level: float):
        boxed = [events_of(part) for part in tally.parts]
        self._matrix = np.concatenate([matrix for matrix, _ in boxed], axis=1)
        self._seen = np.concatenate([counts for _, counts in boxed])
        self._n = np.concatenate(
            [
                np.full(len(counts), part.n)
                for (_, counts), part in zip(boxed, tally.parts, strict=True)
            ]
        )
        self._frequencies = sum(number_of_frequencies(part) for part in tally.parts)
        lost = efficiency_of(tally.parts[0].mechanism)
        self._seen_shares = np.ones(len(self._matrix)) if lost is None else lost
        super().__init__(level)

    @override
    def _draw_bounds(self, error: float) -> None:
        # Each end of each frequency's interval may be wrong with the same probability; by the union
        # bound, some end is wrong with probability at most `error`.
        error = error / 2 / self._frequencies
        self._low, self._high = binomial_bounds(self._seen, self._n, error)

    @override
    def _is_empty(self) -> bool:
        return bool(self._solve(np.zeros(len(self._matrix))).status == INFEASIBLE)

    def _columns(self) -> tuple[Floats, Floats]:
        """Return A and B of the region {theta : theta A <= hi, theta B >= lo}."""
        # The region is lo_z (theta . e) <= (theta M)_z <= hi_z (theta . e), where theta sums to 1.
        # If no report gets lost, A and B are both M.
        unseen = 1 - self._seen_shares[:, None]
        return self._matrix + unseen * self._high, self._matrix + unseen * self._low

    def _solve(self, cost: Floats) -> Any:
        at_most, at_least = self._columns()
        return scipy.optimize.linprog(
            cost,
            A_ub=np.concatenate([at_most.T, -at_least.T]),
            b_ub=np.r_[self._high, -self._low],
            A_eq=np.ones((1, len(cost))),
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
            options=HIGHS_OPTIONS,
        )

    def highest(self, w: Floats) -> float:
        """Return an upper bound by weak duality.

        For all prices y, y' >= 0 and every member theta, w . theta is (w - A y + B y') . theta +
        theta A y - theta B y'. The first term is at most max_x (w - A y + B y')_x, the others at
        most hi . y - lo . y'. The solver's dual prices are nearly the best, but the bound holds
        however inexact they are.
        """
        solution = self._solve(-w)
        # If no distribution is left, the first programme shows it, and all later ones use the new
        # bounds.
        if solution.status == INFEASIBLE:
            self._raise_level()
            solution = self._solve(-w)
        if solution.x is None:
            # Without a solution there are no prices, and only the trivial bound is proved.
            return float(w.max())
        above, below = np.maximum(-solution.ineqlin.marginals, 0.0).reshape(2, -1)
        at_most, at_least = self._columns()
        rest = (w - at_most @ above + at_least @ below).max()
        return float(min(rest + self._high @ above - self._low @ below, w.max()))


def has_boxes(part: TallyPart) -> bool:
    """Return whether the events of a part can be listed, and are few enough."""
    try:
        number_of_frequencies(part)
    except ValueError:
        return False
    return True


def events_of(part: TallyPart) -> tuple[Floats, Ints]:
    """Return the probabilities of the events that have boxes, shape (k, e), and their counts.

    Under unary encodings and subset selection each event is that one of the bits is 1; under other
    mechanisms each report is an event.
    """
    mechanism: Any = part.mechanism
    if is_bits(mechanism):
        k = mechanism.k
        bits = np.unpackbits(part.reports, axis=1, count=k)
        contrast = mechanism.p_one - mechanism.p_zero
        return mechanism.p_zero + contrast * np.eye(k), part.counts @ bits.astype(np.int64)
    return require_finite(mechanism).matrix(), counts_of_all_reports(part)


def number_of_frequencies(part: TallyPart) -> int:
    """Return the number of intervals needed: one for each event, but only one for two reports."""
    mechanism: Any = part.mechanism
    if is_bits(mechanism):
        refuse_programme(mechanism.k, mechanism.k, "bits")
        return mechanism.k
    m = require_finite(mechanism).m
    return 1 if m == 2 else m


def clopper_pearson(request: IntervalRequest) -> Ends:
    """Return the ends over the region, for the distribution or for the people's own frequencies.

    Given the secrets, the number of reports z is a sum of independent variables with different
    success probabilities, whose mean is n (F M)_z. Its tails are lighter than those of a binomial
    variable of that mean (Hoeffding, 1956), so the same intervals hold. The people of each
    mechanism have frequencies of their own, in a region of their own; the frequencies of all people
    are the mean of these. Frequencies of people whose reports get lost are refused.
    """
    tally, functionals = request.checked_tally(lossy=True), request.functionals
    if tally.efficiency is not None:
        request.refuse_frequencies("guaranteed")
    if request.target == "distribution" or len(tally.parts) == 1:
        return ends(ClopperPearsonRegion(tally, request.level), functionals)
    all_frequencies = sum(number_of_frequencies(part) for part in tally.parts)
    lower, upper = np.zeros(len(functionals)), np.zeros(len(functionals))
    for part in tally.parts:
        # The error probability is shared out in proportion to the number of frequencies, so that
        # each has the level that it would have in one region for all parts.
        level = 1 - (1 - request.level) * number_of_frequencies(part) / all_frequencies
        low, high = ends(ClopperPearsonRegion(Tally((part,)), level), functionals)
        lower, upper = lower + part.n / tally.n * low, upper + part.n / tally.n * high
    return lower, upper
