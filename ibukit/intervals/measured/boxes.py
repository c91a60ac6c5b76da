"""Guaranteed intervals where matrices were measured: boxes of the reports and of the rows.

Each row of a measured matrix is a multinomial sample, whose shares have Clopper-Pearson intervals,
as the reports do. At a common level at which all these intervals hold together (the union bound),
low <= theta M <= high and M is in its box. With J_xz = theta_x M_xz all of this is linear in
(theta, J): low_xz theta_x <= J_xz <= high_xz theta_x, the rows of J sum to theta, and the columns
are in the boxes of the reports. So the ends are the values of linear programmes, and these are not
a relaxation: every J gives a matrix, whose row x may be anything in its box if theta_x = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from ibukit._ground.arguments import Floats, readable
from ibukit._ground.binomial_bounds import binomial_bounds
from ibukit._ground.typing import override
from ibukit.errors import TooLarge
from ibukit.intervals.clopper_pearson import (
    HIGHS_OPTIONS,
    INFEASIBLE,
    ClopperPearsonRegion,
    events_of,
)
from ibukit.intervals.clopper_pearson import number_of_frequencies as of_reports
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.tally.tally import Tally, TallyPart
from ibukit.tally.trials import trials_of

# Entries of all measured matrices together: a programme this large takes a few seconds, and
# there are two for each interval.
MAX_MEASURED_ENTRIES = 2**14


@dataclass(frozen=True)
class Box:
    """Rows of probabilities between bounds, all of shape (k, m)."""

    low: Floats
    high: Floats

    def smallest(self, y: Floats) -> Floats:
        """Return min M_x . y over the rows in the box that sum to 1, shape (k,)."""
        # What the lower bounds leave of 1 goes to the reports of the smallest y first.
        order = np.argsort(y, kind="stable")
        low, room = self.low[:, order], (self.high - self.low)[:, order]
        left = 1 - low.sum(axis=1, keepdims=True)
        before = np.cumsum(room, axis=1) - room
        return (low + np.clip(left - before, 0.0, room)) @ y[order]


def number_of_frequencies(part: TallyPart) -> int:
    """Return how many intervals a part needs: for its reports, and each row of its trials."""
    mechanism: Any = part.mechanism
    return of_reports(part) * (1 + (0 if trials_of(mechanism) is None else mechanism.k))


class MeasuredRegion(ClopperPearsonRegion):
    """{theta : low <= theta M <= high for some M in its box}; coverage is at least `level`.

    If no distribution is in the region, the level is raised until one is, as for a known matrix.
    """

    def __init__(self, tally: Tally, level: float):
        self._trials = [trials_of(part.mechanism) for part in tally.parts]
        super().__init__(tally, level)
        entries = sum(trials.size for trials in self._trials if trials is not None)
        if entries > MAX_MEASURED_ENTRIES:
            raise TooLarge(
                f"guaranteed intervals would take linear programmes of {readable(entries)} "
                f"measured probabilities, and at most {MAX_MEASURED_ENTRIES} are accepted: merge "
                'reports or secrets, or take method="wald"'
            )
        self._starts = np.cumsum([0] + [len(events_of(part)[1]) for part in tally.parts])
        self._frequencies = sum(number_of_frequencies(part) for part in tally.parts)
        self._draw_bounds(self._error)

    @override
    def _draw_bounds(self, error: float) -> None:
        each = error / 2 / self._frequencies
        self._low, self._high = binomial_bounds(self._seen, self._n, each)
        self._boxes: list[Box | None] = []
        for trials in self._trials:
            if trials is None:
                self._boxes.append(None)
                continue
            totals = np.broadcast_to(trials.sum(axis=1, keepdims=True), trials.shape)
            self._boxes.append(Box(*binomial_bounds(trials, totals, each)))

    def _slices(self) -> list[slice]:
        return [slice(*pair) for pair in zip(self._starts[:-1], self._starts[1:], strict=True)]

    @override
    def _solve(self, cost: Floats) -> Any:
        # The variables are theta, then the rows of each J, one after the other.
        k = len(cost)
        reports: list[Any] = []
        rows: list[Any] = []
        sums: list[Any] = []
        measured = [box for box in self._boxes if box is not None]
        widths = [k * box.low.shape[1] for box in measured]
        place = 0
        for columns, box in zip(self._slices(), self._boxes, strict=True):
            m = columns.stop - columns.start
            if box is None:
                reports.append([self._matrix[:, columns].T, *self._none(m, widths)])
                continue
            blocks = self._none(m, widths)
            blocks[place] = sparse.hstack([sparse.eye(m)] * k)
            reports.append([sparse.csr_matrix((m, k)), *blocks])
            by_secret = sparse.kron(sparse.eye(k), np.ones((m, 1)))
            for sign, bound in ((1, box.high), (-1, box.low)):
                blocks = self._none(k * m, widths)
                blocks[place] = sign * sparse.eye(k * m)
                theta = -sign * by_secret.multiply(bound.reshape(-1, 1))
                rows.append([theta, *blocks])
            blocks = self._none(k, widths)
            blocks[place] = sparse.kron(sparse.eye(k), np.ones((1, m)))
            sums.append([-sparse.eye(k), *blocks])
            place += 1
        of_reports = sparse.bmat(reports)
        of_rows = sparse.bmat(rows)
        whole = sparse.hstack([sparse.csr_matrix(np.ones((1, k))), *self._none(1, widths)])
        return scipy.optimize.linprog(
            np.r_[cost, np.zeros(sum(widths))],
            A_ub=sparse.vstack([of_reports, -of_reports, of_rows], format="csr"),
            b_ub=np.r_[self._high, -self._low, np.zeros(of_rows.shape[0])],
            A_eq=sparse.vstack([sparse.bmat(sums), whole], format="csr"),
            b_eq=np.r_[np.zeros(k * len(sums)), 1.0],
            bounds=(0, None),
            method="highs",
            options=HIGHS_OPTIONS,
        )

    @staticmethod
    def _none(rows: int, widths: list[int]) -> list[Any]:
        return [sparse.csr_matrix((rows, width)) for width in widths]

    @override
    def highest(self, w: Floats) -> float:
        """Return an upper bound by weak duality.

        As for a known matrix, w . theta = (w - M y) . theta + theta M y for every y, and the first
        term is at most max_x w_x - min M_x . y, the minimum taken over the rows in the box. The
        solver's dual prices are nearly the best y, but the bound holds however inexact they are.
        """
        solution = self._solve(-w)
        if solution.status == INFEASIBLE:
            self._raise_level()
            solution = self._solve(-w)
        if solution.x is None:
            return float(w.max())
        size = len(self._low)
        prices = np.maximum(-solution.ineqlin.marginals, 0.0)
        above, below = prices[:size], prices[size : 2 * size]
        rest = w.astype(np.float64)
        for columns, box in zip(self._slices(), self._boxes, strict=True):
            y = above[columns] - below[columns]
            rest = rest - (self._matrix[:, columns] @ y if box is None else box.smallest(y))
        return float(min(rest.max() + self._high @ above - self._low @ below, w.max()))


def boxes(request: IntervalRequest) -> Ends:
    """Return the ends over the region, for the distribution or for the people's own frequencies.

    `clopper_pearson` says why the frequencies have the same intervals, and how the error
    probability is shared among several mechanisms.
    """
    tally, functionals = request.checked_tally(), request.functionals
    if request.target == "distribution" or len(tally.parts) == 1:
        return ends(MeasuredRegion(tally, request.level), functionals)
    total = sum(number_of_frequencies(part) for part in tally.parts)
    lower, upper = np.zeros(len(functionals)), np.zeros(len(functionals))
    for part in tally.parts:
        level = 1 - (1 - request.level) * number_of_frequencies(part) / total
        region = ClopperPearsonRegion if trials_of(part.mechanism) is None else MeasuredRegion
        low, high = ends(region(Tally((part,)), level), functionals)
        lower, upper = lower + part.n / tally.n * low, upper + part.n / tally.n * high
    return lower, upper
