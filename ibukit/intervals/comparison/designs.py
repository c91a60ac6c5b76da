"""Errors of the difference of two tallies that may be weighted, by the designs of their surveys.

Groups of one table have strata and clusters in common, so their estimates are correlated: the
difference moves, to first order, by a total over the reports of both, whose variance is that by the
design of the table. Tallies of separate surveys are independent: their variances add up, with the
degrees of freedom of Welch and Satterthwaite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from ibukit._ground.arguments import Floats
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.errors import WeightsRefused
from ibukit.fisher_information import variances_of_differences
from ibukit.intervals.request import IntervalRequest
from ibukit.tally.survey import Survey
from ibukit.tally.table_share import NOBODY
from ibukit.tally.tally import Tally

ONE_CALL = "in one table, by one call of Tally.from_table(..., groups=...)"


class ErrorsOfDifferences(NamedTuple):
    """Standard errors of differences, and what their intervals need, each of shape (r,)."""

    errors: Floats
    covariances: Floats
    """Of the two values; 0 for independent tallies."""
    degrees_of_freedom: Floats
    """Of Student's distribution; inf for the normal one."""

    def critical_values(self, level: float) -> Floats:
        """Return the half-widths of intervals in standard errors."""
        normal = normal_quantile(level)
        student = stdtrit(self.degrees_of_freedom, (1 + level) / 2)
        return np.where(np.isinf(self.degrees_of_freedom), normal, student)

    def p_values(self, scores: Floats) -> Floats:
        """Return the two-sided p-values of scores from 0."""
        student = stdtr(self.degrees_of_freedom, -scores)
        return 2 * np.where(np.isinf(self.degrees_of_freedom), ndtr(-scores), student)


def errors_of_differences(
    first: IntervalRequest, second: IntervalRequest, error: Floats, other_error: Floats
) -> ErrorsOfDifferences:
    """Return the errors of first - second, given the standard errors of both."""
    assert first.tally is not None, "a comparison has both tallies"
    assert second.tally is not None, "a comparison has both tallies"
    one, other = _survey_of(first.tally), _survey_of(second.tally)
    errors, zeros = np.hypot(error, other_error), np.zeros_like(error)
    if one is None or other is None or not _of_one_table(one, other):
        freedom = [np.inf if each is None else each.degrees_of_freedom for each in (one, other)]
        return ErrorsOfDifferences(errors, zeros, _satterthwaite(error, other_error, *freedom))
    variances, freedom_of_both = variances_of_differences(
        first.tally, second.tally, first.theta, second.theta, first.functionals.weights
    )
    known = np.isfinite(errors)
    covariances = np.where(known, (errors**2 - variances) / 2, 0.0)
    errors = np.where(known, np.sqrt(variances), errors)
    return ErrorsOfDifferences(errors, covariances, np.full_like(zeros, freedom_of_both))


def _survey_of(tally: Tally) -> Survey | None:
    """Return the weights of a tally, or None if it has none; refuse those known by sums only."""
    if tally.weighted and tally.survey is None:
        raise WeightsRefused(
            "tally must hold weights that are known one by one for a comparison, got their sums "
            "only: make it by Tally.from_table(..., weighted=True) of a row for each report"
        )
    return tally.survey if tally.weighted else None


def _of_one_table(one: Survey, other: Survey) -> bool:
    """Return whether two surveys are groups of one table; refuse those that may overlap."""
    parts, others = (
        {(share.table, share.part) for share in each.shares if share.part != NOBODY}
        for each in (one, other)
    )
    if parts & others:
        raise WeightsRefused(
            "tallies must hold different people to be compared, got some of one group in both"
        )
    if {table for table, _ in parts} & {table for table, _ in others}:
        return True
    if len(one.replicates) and len(other.replicates):
        raise WeightsRefused(
            "tallies with replicate weights must be groups of one table to be compared, or their "
            f"replicates are not known to be the same: make them {ONE_CALL}"
        )
    shared = one.named_clusters & other.named_clusters
    if shared:
        raise WeightsRefused(
            "tallies must be groups of one table to be compared if they have clusters in common, "
            f"got {min(shared)[1]!r} in both: make them {ONE_CALL}; or, if these are two clusters "
            "of separate surveys, give the strata of each survey names of their own, by strata=..."
        )
    return False


def _satterthwaite(error: Floats, other_error: Floats, one: float, other: float) -> Floats:
    """Return the degrees of freedom of the sum of two independent estimated variances."""
    # Only the ratio of the errors matters, so squares of small ones do not vanish.
    largest = np.maximum(error, other_error)
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v = (error / largest) ** 2, (other_error / largest) ** 2
        freedom = (u + v) ** 2 / (u**2 / one + v**2 / other)
    # Two errors of 0 or of infinity: any quantile gives the same interval.
    return np.where(np.isnan(freedom), min(one, other), freedom)
