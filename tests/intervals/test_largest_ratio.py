"""Likelihood ratios that are hardly ever exceeded, against sums over all tallies."""

import math

import numpy as np
import pytest
from scipy.special import xlogy

from ibukit.intervals.listed.largest_ratio import largest_ratio, log_complexity
from test_listed_region import all_tallies, log_chances


@pytest.mark.parametrize(("k", "n"), [(1, 7), (2, 1), (2, 30), (3, 12), (4, 8)])
def test_the_complexity_is_the_sum_of_the_largest_likelihoods(k, n):
    counts = all_tallies(n, k)
    right = math.log(np.exp(log_chances(counts, 1.0) + xlogy(counts, counts / n).sum(axis=1)).sum())
    # Stirling's bound is above the factorial, by less than 1 / (360 n^3).
    assert -1e-12 <= log_complexity(k, n) - right <= k / (360 * n**3) + 1e-12


def test_the_complexity_of_very_many_people_is_the_known_limit():
    n, k = 10**15, 9
    limit = (k - 1) / 2 * math.log(n / 2 / math.pi) + k * math.lgamma(0.5) - math.lgamma(k / 2)
    assert log_complexity(k, n) == pytest.approx(limit, abs=1e-6)


@pytest.mark.parametrize("error", [0.05, 0.3])
@pytest.mark.parametrize("p", [0.02, 0.4, 1.0])
def test_no_distribution_exceeds_the_ratio_more_often_than_said(p, error):
    """Two secrets and five kinds of reports: the largest likelihoods by a grid of shares."""
    matrix = np.array([[0.5, 0.2, 0.1, 0.1, 0.1], [0.05, 0.05, 0.2, 0.3, 0.4]])
    counts, shares = all_tallies(12, 5), np.linspace(0, 1, 401)
    fits = xlogy(counts[:, None], np.column_stack([shares, 1 - shares]) @ matrix).sum(axis=2)
    truth = np.array([p, 1 - p]) @ matrix
    ratios = 2 * (fits.max(axis=1) - xlogy(counts, truth).sum(axis=1))
    # With five kinds of reports it is the bound by secrets that is smaller.
    bound = largest_ratio(2, 4, 12, error)
    assert bound < largest_ratio(50, 4, 12, error)
    chances = np.exp(log_chances(counts, truth))
    assert chances[ratios >= bound].sum() <= error
    assert bound == 2 * (log_complexity(2, 12) - math.log(error))


def test_with_few_kinds_of_reports_these_are_counted():
    assert largest_ratio(50, 2, 1000, 0.05) == largest_ratio(80, 2, 1000, 0.05)
    assert largest_ratio(5, 1000, 1000, 0.05) == largest_ratio(5, 2000, 1000, 0.05)
    # e^(d - t) (t / d)^d = error at half the ratio.
    t, d = largest_ratio(50, 2, 1000, 0.05) / 2, 2
    assert math.exp(d - t) * (t / d) ** d == pytest.approx(0.05)
