r"""The region of a profile interval with a threshold for each value.

By Wilks' theorem the likelihood ratio of the true w . theta is about chi-squared with one degree of
freedom, but not where probabilities are 0 or nearly so: the distributions that fit are then cut off
by the boundary, and with many zeros the ratio can be several times larger. Its law is then that of
a Gaussian problem [chernoff]_: with the information J and a score s ~ N(0, J),

.. math:: R = \min_{x\in\Delta,\,w\cdot x=v}|x-\theta-J^{-1}s|_J^2-\min_{x\in\Delta}|x-\theta-J^{-1}s|_J^2.

R is drawn at the most likely distribution with the value v, and at a sparser one: a probability
that chance alone may have made positive is taken for 0, because the threshold grows with the number
of zeros. The larger of the two quantiles counts, unless the reports reject the sparser
distribution, but the threshold is never below the chi-squared one. A ratio without the boundary is
drawn from the same scores as well, and since its true quantile is known, it corrects the other: in
the interior the threshold is exactly the chi-squared one.

.. [chernoff] Chernoff, "On the distribution of the likelihood ratio", Ann. Math. Statist. 25, 1954;
   Self and Liang, "Asymptotic properties of maximum likelihood estimators and likelihood ratio
   tests under nonstandard conditions", J. Am. Statist. Assoc. 82, 1987.
"""  # noqa: E501 - a formula is one line

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_solve

from ibukit._ground.arguments import Floats
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals.binomial.two_kinds import TwoKindsRegion, has_two_kinds
from ibukit.intervals.boundary._ratio_kernels import ratios
from ibukit.intervals.boundary.information import information_of, sparser
from ibukit.intervals.calibrated import Constrained, constrained
from ibukit.intervals.profile import ProfileWithWitness
from ibukit.intervals.request import Ends, IntervalRequest, Region, ends
from ibukit.intervals.resampling import ROUNDING_TOLERANCE, enough_draws, rank_of, seeded
from ibukit.intervals.tilted_likelihood import likelihood_of_tally
from ibukit.tally.tally import Tally

# Number of scores that are drawn beyond a threshold's quantile: 400 in all at level 0.95.
DRAWS_BEYOND = 20
# Largest number of scores drawn by default. Because of it the threshold is less certain at levels
# above 0.99, and above 0.9995 it is the largest ratio drawn.
MAX_DRAWS = 2_000
# Questions times the third power of the number of secrets up to which thresholds are drawn, which
# takes ten to fifty seconds: one question of 256 secrets, or all shares of 64.
MAX_QUESTIONS_TIMES_CUBED_SECRETS = 2**24
# Largest number of thresholds drawn for one end; mostly two or three are enough.
MAX_THRESHOLDS = 5
# Difference between a ratio and its threshold that counts as none: small compared with the
# Monte-Carlo error of a threshold, which is a few tenths.
THRESHOLD_TOLERANCE = 0.05
# If (ratio - threshold) rises by less than this for each unit of the ratio, a secant leads nowhere.
MIN_SLOPE = 0.2
# A sparser distribution is not believed if the share of drawn tallies that fit it as badly as the
# reports do is below this.
SPARSE_P_VALUE = 0.1
# A distribution this near to an end stands for the likeliest one at the end; the unit is the
# distance of the end from the best value.
SAME_END = 1e-4
# Mass below which a secret of a fitted distribution counts as empty.
EMPTY = 1e-9


class BoundaryRegion:
    """{v : ratio(v) <= c(v)} with the threshold c of the Gaussian problem at v."""

    def __init__(self, tally: Tally, level: float, draws: int, seed: int):
        self._tally, self._level = tally, level
        self._likelihood = likelihood_of_tally(tally)
        self._noise = seeded(seed).standard_normal((draws, tally.k))
        # A quantile of few draws is uncertain, so the quantile one standard error higher is taken.
        self._drawn_level = min(level + math.sqrt(level * (1 - level) / draws), draws / (draws + 1))

    def highest(self, w: Floats) -> float:
        """Return the value of w . theta beyond which the ratio exceeds its threshold."""
        least, most = float(w.min()), float(w.max())
        return least + (most - least) * self._end((w - least) / (most - least))

    def _end(self, w: Floats) -> float:
        """Find the root of c(v) = ratio(v) by secants, for weights from 0 to 1.

        The unknown is the ratio, which grows with v. All thresholds are made of the same scores, so
        that they differ only through v and not by chance.
        """
        ratio = normal_quantile(self._level) ** 2
        before = missed = math.nan
        for _ in range(MAX_THRESHOLDS):
            v, at = self._with_ratio(w, ratio)
            if v >= 1:
                # No distribution goes further than 1. The ratio there may be smaller than the
                # wanted one, or, if only rounding makes v 1, larger.
                ratio = min(ratio, at.ratio)
            miss = self.threshold(w, at.theta) - ratio
            if v >= 1 and miss >= 0:
                return 1.0
            if abs(miss) <= THRESHOLD_TOLERANCE:
                return v if miss == 0 else self._with_ratio(w, ratio + miss)[0]
            # The first step goes to the threshold itself, as does one where secants lead nowhere.
            slope = (missed - miss) / (ratio - before)
            following = ratio + miss / slope if slope > MIN_SLOPE else ratio + miss
            before, missed = ratio, miss
            ratio = max(following, normal_quantile(self._level) ** 2)
        return self._with_ratio(w, ratio)[0]

    def _with_ratio(self, w: Floats, ratio: float) -> tuple[float, Constrained]:
        """Return the largest v whose ratio is at most `ratio`, with its likeliest distribution."""
        floor = self._likelihood.floor(ratio, self._tally.n)
        bound, witness = ProfileWithWitness(self._likelihood, floor).end(w)
        tilt = 0.0
        if witness is not None:
            distance = bound - float(w @ self._likelihood.best.theta)
            if abs(witness.answer - bound) <= SAME_END * distance:
                return bound, Constrained(witness.theta, ratio, tilt)
            # The search for the distribution begins at the tilt that proved the end.
            tilt = witness.slope / (1 + witness.slope * witness.answer) / max(distance, EMPTY)
        return bound, constrained(self._likelihood, self._tally.n, w, bound, tilt)

    def threshold(self, w: Floats, fitted: Floats) -> float:
        """Return the larger threshold of a fitted distribution and of a sparser one."""
        theta = np.where(fitted > EMPTY, fitted, 0.0)
        theta /= theta.sum()
        information = self._information(theta)
        sparse = sparser(theta, w, information)
        excess, _ = self._excess(information, theta, w)
        if (sparse != theta).any():
            of_sparse, losses = self._excess(self._information(sparse), sparse, w)
            loss = self._fit(theta) - self._fit(sparse)
            if (losses >= 2 * self._tally.n * loss).mean() >= SPARSE_P_VALUE:
                excess = max(excess, of_sparse)
        return normal_quantile(self._level) ** 2 + max(excess, 0.0)

    def _excess(self, information: Floats, theta: Floats, w: Floats) -> tuple[float, Floats]:
        """Return by how much the boundary raises the quantile, and the drawn ratios of theta."""
        factor = np.linalg.cholesky(information)
        scores = self._noise @ factor.T
        inside, of_theta = ratios(information, scores, theta, w)
        # Without x >= 0 the estimate of w . theta misses by direction . score.
        solved = cho_solve((factor, True), np.column_stack([w, np.ones_like(w)]))
        total, of_w = solved[:, 1].sum(), solved[:, 0].sum()
        direction = solved[:, 0] - solved[:, 1] * (of_w / total)
        free = (scores @ direction) ** 2 / (w @ direction)
        rank = rank_of(len(scores), self._drawn_level) - 1
        return float(np.sort(inside)[rank] - np.sort(free)[rank]), of_theta

    def _fit(self, theta: Floats) -> float:
        """Return the mean log-likelihood."""
        return self._likelihood.fit_of(self._likelihood.forward(theta))

    def _information(self, theta: Floats) -> Floats:
        return information_of(self._tally, theta, self._likelihood.best.theta)


def applies(request: IntervalRequest) -> bool:
    """Return whether thresholds can be drawn, in seconds for all questions together."""
    tally, functionals = request.tally, request.functionals
    if tally is None or tally.weighted or tally.efficiency is not None:
        return False
    work = len(functionals) * functionals.k**3
    return work <= MAX_QUESTIONS_TIMES_CUBED_SECRETS or has_two_kinds(tally)


def boundary_profile(request: IntervalRequest, draws: int | None = None, seed: int = 0) -> Ends:
    """Return the ends of the profile with a threshold that takes the boundary into account.

    If there are two secrets and two kinds of reports, all tallies are enumerated instead, and the
    ends are exact.

    Parameters
    ----------
    request : IntervalRequest
    draws : int, optional
        Scores drawn for each threshold. By default 20 / (1 - level), at most 2,000.
    seed : int
        Seed of these scores, not negative.

    Returns
    -------
    (lower, upper) : ndarrays, shape (r,)
    """
    request.refuse_frequencies("auto")
    tally = request.checked_tally()
    if draws is None:
        draws = min(math.ceil(DRAWS_BEYOND / (1 - request.level) - ROUNDING_TOLERANCE), MAX_DRAWS)
    else:
        draws = enough_draws(draws, request.level)
    region: Region = (
        TwoKindsRegion(tally, request.level)
        if has_two_kinds(tally)
        else BoundaryRegion(tally, request.level, draws, seed)
    )
    return ends(region, request.functionals)
