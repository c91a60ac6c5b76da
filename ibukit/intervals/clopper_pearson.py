"""Intervals that hold at every number of reports: all distributions whose reports are as frequent as they may be.

Each report's probability has its Clopper-Pearson interval, at a level that leaves all of them true
together (the union bound). Then lo <= theta M <= hi, and the ends of w . theta are linear
programmes, for all functionals at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.special import betaincinv

from ibukit._ground.arguments import Floats
from ibukit.intervals.finite_reports import counted, finite
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.tally.tally import Tally

# the least that HiGHS takes
TIGHT: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class ClopperPearsonRegion:
    """{theta : lo <= theta M <= hi}, which holds the true distribution with probability at least `level`."""

    def __init__(self, tally: Tally, level: float):
        matrices, counts, totals = [], [], []
        for part in tally.parts:
            mechanism = finite(part.mechanism)
            matrices.append(mechanism.matrix())
            counts.append(counted(part))
            totals.append(np.full(mechanism.m, part.n))
        self._matrix = np.concatenate(matrices, axis=1)
        seen, n = np.concatenate(counts), np.concatenate(totals)
        # half of what may go wrong, for one end of one report
        share = (1 - level) / 2 / len(seen)
        some, all_ = seen > 0, seen == n
        self._low, self._high = np.zeros(len(seen)), np.ones(len(seen))
        self._low[some] = betaincinv(seen[some], (n - seen + 1)[some], share)
        self._high[~all_] = betaincinv((seen + 1)[~all_], (n - seen)[~all_], 1 - share)

    def highest(self, w: Floats) -> float:
        """The upper end by weak duality: what the solver's prices prove, however exact its solution is."""
        transposed = self._matrix.T
        solution = linprog(
            -w,
            A_ub=np.concatenate([transposed, -transposed]),
            b_ub=np.r_[self._high, -self._low],
            A_eq=np.ones((1, len(w))),
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
            options=TIGHT,
        )
        if solution.status == 2:
            raise ValueError(
                "tally does not fit its mechanism: no distribution makes all reports as frequent as they were seen, at "
                "this level; is it the mechanism that made them?"
            )
        if solution.x is None:
            return float(w.max())  # nothing is proved
        prices = np.maximum(-solution.ineqlin.marginals, 0.0).reshape(2, -1)
        # w . theta = (w - M y) . theta + theta M y, for every y = high prices - low prices
        rest = (w - self._matrix @ (prices[0] - prices[1])).max()
        return float(min(rest + self._high @ prices[0] - self._low @ prices[1], w.max()))


def clopper_pearson(request: IntervalRequest) -> Ends:
    """The ends over the boxes, of the people's own frequencies as of the distribution.

    Given the secrets, the number of reports z is a sum of independent variables of different
    chances whose mean is n (F M)_z. Its tails are lighter than those of a binomial variable of that
    mean (Hoeffding, 1956). The people of each mechanism have frequencies of their own, in boxes of
    their own: those of all are the mean.
    """
    tally, functionals = request.checked_tally(), request.functionals
    if request.target == "distribution" or len(tally.parts) == 1:
        return ends(ClopperPearsonRegion(tally, request.level), functionals)
    reports = sum(finite(part.mechanism).m for part in tally.parts)
    lower, upper = np.zeros(len(functionals)), np.zeros(len(functionals))
    for part in tally.parts:
        # as many boxes as all together have, at the same level each
        own = 1 - (1 - request.level) * finite(part.mechanism).m / reports
        low, high = ends(ClopperPearsonRegion(Tally((part,)), own), functionals)
        lower, upper = lower + part.n / tally.n * low, upper + part.n / tally.n * high
    return lower, upper
