"""Intervals of Poisson counts over a background that hold at every number of counts.

Each mean nu_z has a Garwood interval, at a level at which all these intervals hold together (the
union bound). Then lo <= lambda M + b <= hi, and the ends of numbers and of shares are the values of
linear programmes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from scipy.special import gammaincinv

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.intervals.clopper_pearson import HIGHS_OPTIONS, INFEASIBLE, ConfidenceBoxes
from ibukit.intervals.poisson.model import PoissonModel


class GarwoodRegion(ConfidenceBoxes):
    """{lambda >= 0 : lo <= lambda M + b <= hi}, in units of all counts.

    If no lambda is in it, the level is raised until one is.
    """

    misfit = (
        "counts do not fit their matrix and background: no numbers of secrets make all as large"
    )

    def __init__(self, model: PoissonModel, level: float):
        # A report that no secret can produce tells nothing of lambda.
        reached = model.response.any(axis=0)
        self._rows = model.among_seen[:, reached]
        self._counts, self._background = model.counts[reached], model.background[reached]
        self._efficiency = model.efficiency
        self._unit = max(float(self._counts.sum()), 1.0)
        super().__init__(level)
        if self._is_empty():
            self._raise_level()
        self._least_total = -self._highest_seen(-1 / self._efficiency)

    def highest_number(self, w: Floats) -> float:
        """Return an upper bound on w . lambda."""
        return self._highest_seen(w / self._efficiency)

    def highest_share(self, w: Floats) -> float:
        """Return an upper bound on w . lambda / sum lambda.

        Charnes and Cooper's programme, whose variables are lambda / s and 1 / s with s = sum
        lambda, gives the largest share v. If (w - v) . lambda <= B and sum lambda >= T > 0 on the
        region, the share is at most v + B / T.
        """
        if self._least_total <= 0:
            return float(w.max())
        # The columns of the programme are the shares and the unit of counts over sum lambda.
        room = (self._high - self._background) / self._unit
        need = (self._low - self._background) / self._unit
        rows = (self._rows * self._efficiency[:, None]).T
        solution = scipy.optimize.linprog(
            -np.append(w, 0.0),
            A_ub=np.concatenate([np.c_[rows, -room], np.c_[-rows, need]]),
            b_ub=np.zeros(2 * len(room)),
            A_eq=[np.append(np.ones(len(w)), 0.0)],
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
            options=HIGHS_OPTIONS,
        )
        v = float(w.max()) if solution.x is None else float(w @ solution.x[:-1])
        beyond = self._highest_seen((w - v) / self._efficiency)
        return v + max(beyond, 0.0) / self._least_total

    @override
    def _draw_bounds(self, error: float) -> None:
        # Each end of each interval may be wrong with the same probability.
        error = error / 2 / max(len(self._counts), 1)
        n = self._counts
        self._low = np.zeros(len(n))
        self._low[n > 0] = gammaincinv(n[n > 0], error)
        self._high = gammaincinv(n + 1, 1 - error)

    @override
    def _is_empty(self) -> bool:
        return bool(self._solve(np.zeros(len(self._rows))).status == INFEASIBLE)

    def _solve(self, cost: Floats) -> Any:
        columns = self._rows.T
        return scipy.optimize.linprog(
            cost,
            A_ub=np.concatenate([columns, -columns]),
            b_ub=np.r_[self._high - self._background, self._background - self._low] / self._unit,
            bounds=(0, None),
            method="highs",
            options=HIGHS_OPTIONS,
        )

    def _highest_seen(self, c: Floats) -> float:
        """Return an upper bound on c . mu, mu the numbers seen, by weak duality.

        For all y, y' >= 0 the bound is max_x (c - P y + P y')_x sum mu, if that is positive, plus
        (hi - b) . y - (lo - b) . y'. And sum mu = sum_z (mu P)_z is at most sum_z (hi_z - b_z).
        """
        room, need = self._high - self._background, self._low - self._background
        size = float(np.abs(c).max())
        if not size:
            return 0.0
        most_seen = float(np.maximum(room, 0).sum())
        trivial = max(float(c.max()), 0.0) * most_seen
        solution = self._solve(-c / size)
        if solution.x is None:
            return trivial
        above, below = np.maximum(-size * solution.ineqlin.marginals, 0.0).reshape(2, -1)
        rest = max(float((c - self._rows @ (above - below)).max()), 0.0)
        return min(rest * most_seen + float(room @ above - need @ below), trivial)
