"""The information about a distribution, and distributions with fewer secrets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.fisher_information import observed_information
from ibukit.intervals.boundary._ratio_kernels import RIDGE
from ibukit.intervals.finite_reports import MAX_PROGRAMME_ENTRIES
from ibukit.mechanisms import FiniteMechanism, HistogramEncoding
from ibukit.mechanisms.points import PointReports
from ibukit.tally.likelihood_rows import has_law
from ibukit.tally.tally import Tally, TallyPart

# Mechanisms whose reports have densities.
CONTINUOUS = (PointReports, HistogramEncoding)
# A probability that is less than this number of its standard errors may be 0.
ERRORS_ABOVE_ZERO = 1.5
# A report that is expected less often than this is treated as if it were expected this often.
# Otherwise the parabola would be steeper than any number of reports makes the likelihood.
MIN_EXPECTED_REPORTS = 1.0


def information_of(tally: Tally, theta: Floats, best: Floats) -> Floats:
    """Return the information of the reports about theta, shape (k, k), with a small ridge.

    `best` is the most likely distribution; a small share of it is mixed in where theta hardly makes
    a report.
    """
    information = np.zeros((tally.k, tally.k))
    for part in tally.parts:
        information += _of_part(part, theta, best)
    information[np.diag_indices(tally.k)] += RIDGE * np.trace(information) / tally.k
    return information


def _of_part(part: TallyPart, theta: Floats, best: Floats) -> Floats:
    """Return the expected information if the reports can be listed.

    Otherwise it is the observed information. All reports that were not seen then count as one more
    report, if probabilities are known and not only densities.
    """
    mechanism: Any = part.mechanism
    n = part.n
    if (
        isinstance(mechanism, FiniteMechanism)
        and mechanism.k * mechanism.m <= MAX_PROGRAMME_ENTRIES
    ):
        rows = mechanism.matrix()
        columns = rows * np.sqrt(n / np.maximum(theta @ rows, MIN_EXPECTED_REPORTS / n))
        return columns @ columns.T
    # A share 1 / n of the best distribution keeps a report that theta hardly makes from being
    # more than n times as informative as it is there.
    seen = observed_information(Tally((part,)), theta + (best - theta) / n)
    if isinstance(mechanism, CONTINUOUS) or not has_law(mechanism):
        return seen
    unseen = np.maximum(1 - part.channel.adjoint(np.exp(part.log_scale)), 0.0)
    share = max(float(unseen @ theta), MIN_EXPECTED_REPORTS / n)
    return seen + np.outer(unseen, unseen) * (n / share)


def sparser(theta: Floats, w: Floats, information: Floats) -> Floats:
    """Return theta without the probabilities that chance may have made, with the same w . theta.

    The standard errors are those on the support of theta. The mass of the removed probabilities
    moves to the other secrets of the same weight; if none is left, the largest of the group stays.
    """
    support = np.flatnonzero(theta)
    errors = np.sqrt(np.diag(np.linalg.inv(information[np.ix_(support, support)])))
    result = theta.copy()
    result[support[theta[support] < ERRORS_ABOVE_ZERO * errors]] = 0.0
    for weight in np.unique(w[support]):
        group = np.flatnonzero((w == weight) & (theta > 0))
        if not result[group].any():
            largest = group[np.argmax(theta[group])]
            result[largest] = theta[largest]
        result[group] *= theta[group].sum() / result[group].sum()
    return result
