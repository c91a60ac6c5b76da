"""Intervals that hold at every number of reports: all distributions whose reports are as frequent as they may be.

Each report's probability has its Clopper-Pearson interval, at a level that leaves all of them true together (the union
bound). Then lo <= theta M <= hi, and the ends of w . theta are linear programmes, for all questions at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.special import betaincinv

from ibukit._validate import Floats, readable
from ibukit.errors import TooLarge
from ibukit.intervals.asked import Asked, Ends, ends
from ibukit.mechanisms import FiniteMechanism
from ibukit.tally import Tally

# numbers in the matrix of a programme
MOST_BOXED = 2**22
# the least that HiGHS takes
TIGHT: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Boxes:
    """{theta : lo <= theta M <= hi}, which holds the true distribution with probability at least `level`."""

    def __init__(self, tally: Tally, level: float):
        matrices, counts, totals = [], [], []
        for part in tally.parts:
            mechanism = part.mechanism
            if not isinstance(mechanism, FiniteMechanism):
                raise ValueError(
                    f"guaranteed intervals need reports that can be listed, which those of {type(mechanism).__name__} "
                    'cannot: take method="profile"'
                )
            if mechanism.k * mechanism.m > MOST_BOXED:
                raise TooLarge(
                    f"guaranteed intervals would list {readable(mechanism.m)} reports of {readable(mechanism.k)} "
                    f'secrets, and at most {MOST_BOXED} probabilities are accepted: take method="profile"'
                )
            matrices.append(mechanism.matrix())
            counts.append(np.bincount(part.reports, part.counts, minlength=mechanism.m))
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


def guaranteed(asked: Asked) -> Ends:
    """The ends over the boxes, which hold of the people's own frequencies as of the distribution.

    Given the secrets, the number of reports z is a sum of independent variables of different chances whose mean is n
    (F M)_z. Its tails are lighter than those of a binomial variable of that mean (Hoeffding, 1956).
    """
    return ends(Boxes(asked.tally(), asked.level), asked.questions)
