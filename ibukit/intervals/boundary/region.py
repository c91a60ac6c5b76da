r"""The region of a profile interval with a threshold for each value.

By Wilks' theorem the likelihood ratio of the true w . theta is about chi-squared with one degree of
freedom, but not where probabilities are 0 or nearly so: the distributions that fit are then cut off
by the boundary, and with many zeros the ratio can be several times larger. Its law is that of a
Gaussian problem [chernoff]_: with the information J and a score s ~ N(0, J),

.. math:: R = \min_{x\in\Delta,\,w\cdot x=v}|x-\theta-J^{-1}s|_J^2-\min_{x\in\Delta}|x-\theta-J^{-1}s|_J^2.

R is drawn at the most likely distribution with the value v, and at a sparser one: a probability
that chance alone may have made positive is taken for 0, because the threshold grows with the number
of zeros. The larger quantile counts, and never less than the chi-squared one. A ratio without the
boundary is drawn from the same scores, and its quantile, which is known, corrects the other: in the
interior the threshold is exactly the chi-squared one.

.. [chernoff] Chernoff, "On the distribution of the likelihood ratio", Ann. Math. Statist. 25, 1954;
   Self and Liang, "Asymptotic properties of maximum likelihood estimators and likelihood ratio
   tests under nonstandard conditions", J. Am. Statist. Assoc. 82, 1987.
"""  # noqa: E501 - a formula is one line

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals.boundary._ratio_kernels import ratios
from ibukit.intervals.boundary.information import information_of, sparser
from ibukit.intervals.calibrated import RatioRegion, constrained
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.intervals.resampling import rank_of, seeded
from ibukit.intervals.two_kinds import TwoKindsRegion, has_two_kinds
from ibukit.tally.tally import Tally

# Scores drawn for one threshold.
DRAWS = 400
# Mass below which a secret of a fitted distribution counts as empty.
EMPTY = 1e-9


class BoundaryRegion(RatioRegion):
    """{v : ratio(v) <= c(v)} with the threshold c of the Gaussian problem at v."""

    def __init__(self, tally: Tally, level: float, draws: int, seed: int):
        super().__init__(tally, level)
        self._noise = seeded(seed).standard_normal((draws, tally.k))

    @override
    def threshold(self, w: Floats, v: float) -> tuple[float, float]:
        """Return the larger threshold of the fitted distribution and of a sparser one."""
        at = constrained(self._likelihood, self._tally.n, w, v)
        theta = np.where(at.theta > EMPTY, at.theta, 0.0)
        theta /= theta.sum()
        information = self._information(theta)
        sparse = sparser(theta, w, information)
        excess = self._excess(information, theta, w)
        if (sparse != theta).any():
            excess = max(excess, self._excess(self._information(sparse), sparse, w))
        return normal_quantile(self._level) ** 2 + max(excess, 0.0), 0.0

    def _excess(self, information: Floats, theta: Floats, w: Floats) -> float:
        """Return by how much the boundary raises the quantile of the ratio."""
        scores = self._noise @ np.linalg.cholesky(information).T
        inside, free = ratios(information, scores, theta, w)
        rank = rank_of(len(scores), self._level) - 1
        return float(np.sort(inside)[rank] - np.sort(free)[rank])

    def _information(self, theta: Floats) -> Floats:
        return information_of(self._tally, theta, self._likelihood.best.theta)


def auto(request: IntervalRequest, draws: int = DRAWS, seed: int = 0) -> Ends:
    """Return the ends of the profile with a threshold that knows the boundary.

    Two secrets with two kinds of reports are enumerated instead, and the ends are exact.

    Parameters
    ----------
    request : IntervalRequest
    draws : int
        Scores drawn for each threshold.
    seed : int
        Of these, not negative.

    Returns
    -------
    (lower, upper) : ndarrays, shape (r,)
    """
    request.refuse_frequencies("auto")
    request.refuse_if_too_slow("auto")
    tally = request.checked_tally()
    if has_two_kinds(tally):
        return ends(TwoKindsRegion(tally, request.level), request.functionals)
    return ends(BoundaryRegion(tally, request.level, draws, seed), request.functionals)
