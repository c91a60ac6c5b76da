"""Intervals that hold at every number of reports, from Clopper-Pearson intervals of the reports.

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
from ibukit.intervals.finite_reports import counts_of_all_reports, require_finite
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.tally.tally import Tally

# HiGHS accepts no smaller tolerances than these.
HIGHS_OPTIONS: Any = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}


class ClopperPearsonRegion:
    """{theta : lo <= theta M <= hi}, which holds the truth with probability at least `level`."""

    def __init__(self, tally: Tally, level: float):
        matrices, counts, totals = [], [], []
        for part in tally.parts:
            mechanism = require_finite(part.mechanism)
            matrices.append(mechanism.matrix())
            counts.append(counts_of_all_reports(part))
            totals.append(np.full(mechanism.m, part.n))
        self._matrix = np.concatenate(matrices, axis=1)
        seen, n = np.concatenate(counts), np.concatenate(totals)
        # Each end of each report's interval may be wrong with the same probability; together, by
        # the union bound, with 1 - level.
        error = (1 - level) / 2 / len(seen)
        some, all_ = seen > 0, seen == n
        self._low, self._high = np.zeros(len(seen)), np.ones(len(seen))
        self._low[some] = betaincinv(seen[some], (n - seen + 1)[some], error)
        self._high[~all_] = betaincinv((seen + 1)[~all_], (n - seen)[~all_], 1 - error)

    def highest(self, w: Floats) -> float:
        """Return an upper bound by weak duality.

        For every y and every member theta, w . theta = (w - M y) . theta + theta M y. The first
        term is at most max_x (w - M y)_x, the second at most sum_z max(hi_z y_z, lo_z y_z). The
        solver's dual prices are nearly the best y, but the bound holds however inexact they are.
        """
        transposed = self._matrix.T
        solution = linprog(
            -w,
            A_ub=np.concatenate([transposed, -transposed]),
            b_ub=np.r_[self._high, -self._low],
            A_eq=np.ones((1, len(w))),
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
            options=HIGHS_OPTIONS,
        )
        # SciPy's status 2 means infeasible: the region is empty.
        if solution.status == 2:
            raise ValueError(
                "tally does not fit its mechanism: no distribution makes all reports as frequent "
                "as they were seen, at this level; is it the mechanism that made them?"
            )
        if solution.x is None:
            # Without prices only the trivial bound is proved.
            return float(w.max())
        above, below = np.maximum(-solution.ineqlin.marginals, 0.0).reshape(2, -1)
        rest = (w - self._matrix @ (above - below)).max()
        return float(min(rest + self._high @ above - self._low @ below, w.max()))


def clopper_pearson(request: IntervalRequest) -> Ends:
    """Return the ends over the region, for the distribution or for the people's own frequencies.

    Given the secrets, the number of reports z is a sum of independent variables with different
    success probabilities, whose mean is n (F M)_z. Its tails are lighter than those of a binomial
    variable of that mean (Hoeffding, 1956), so the same intervals hold. The people of each
    mechanism have frequencies of their own, in a region of their own; those of all are the mean.
    """
    tally, functionals = request.checked_tally(), request.functionals
    if request.target == "distribution" or len(tally.parts) == 1:
        return ends(ClopperPearsonRegion(tally, request.level), functionals)
    reports = sum(require_finite(part.mechanism).m for part in tally.parts)
    lower, upper = np.zeros(len(functionals)), np.zeros(len(functionals))
    for part in tally.parts:
        # The error probability is shared out in proportion to the number of reports, so that each
        # report's interval has the level that it would have in one region for all parts.
        level = 1 - (1 - request.level) * require_finite(part.mechanism).m / reports
        low, high = ends(ClopperPearsonRegion(Tally((part,)), level), functionals)
        lower, upper = lower + part.n / tally.n * low, upper + part.n / tally.n * high
    return lower, upper
