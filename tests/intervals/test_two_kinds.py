"""Two secrets with two kinds of reports: every tally is enumerated, and so is the coverage."""

import math

import numpy as np
import pytest
from scipy.special import xlog1py, xlogy
from scipy.stats import beta, binom

import ibukit as ik
from ibukit._ground import binomial_bounds
from ibukit.intervals.binomial import ratio
from ibukit.intervals.clopper_pearson import FALSE_ALARM_PROBABILITY

TEST = ik.MatrixMechanism([[0.85, 0.15], [0.01, 0.99]])
MECHANISMS = {
    "test": TEST,
    "swapped": ik.MatrixMechanism([[0.2, 0.8], [0.6, 0.4]]),
    "no noise": ik.MatrixMechanism(np.eye(2)),
    "k-RR": ik.RandomizedResponse(2, 1.0),
}


def accepted(mechanism, n, seen, level, shares):
    """The shares of secret 0 that the definition accepts, each by all n + 1 tallies."""
    matrix = mechanism.matrix()
    p = matrix[1, 0] + (matrix[0, 0] - matrix[1, 0]) * shares[:, None]
    x = np.arange(n + 1)
    attainable = np.sort(matrix[:, 0])

    def fit(p):
        return xlogy(x, p) + xlog1py(n - x, -p)

    ratios = fit(np.clip(x / n, *attainable)) - fit(p)
    # Outcomes that tie with the one seen belong to the tail.
    tail = ratios >= ratios[:, [seen]] - 1e-9
    return (binom.pmf(x, n, p) * tail).sum(axis=1) > 1 - level


def ends(mechanism, n, seen, level, method):
    estimate = ik.mle(mechanism.tally_counts([seen, n - seen]))
    return estimate.interval(level, of=[1, 0], method=method)


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
@pytest.mark.parametrize(("n", "level"), [(1, 0.5), (7, 0.95), (40, 0.9)])
def test_ends_are_those_of_the_definition(mechanism, n, level):
    shares = np.linspace(0, 1, 20_001)
    for seen in {0, 1, n // 3, n - 1, n}:
        inside = shares[accepted(mechanism, n, seen, level, shares)]
        expected = (inside.min(), inside.max())
        found = ends(mechanism, n, seen, level, "calibrated")
        assert found == pytest.approx(expected, abs=1e-4)


def test_nobody_of_fifty_tests_positive():
    _, upper = ends(TEST, 50, 0, 0.95, "calibrated")
    assert upper == pytest.approx(0.0641, abs=5e-5)
    assert ends(MECHANISMS["no noise"], 50, 0, 0.95, "calibrated")[1] == pytest.approx(
        0.0602, abs=5e-5
    )


@pytest.mark.parametrize(
    ("n", "method", "floor"),
    [
        *((n, "calibrated", 0.95 - 1e-5) for n in (10, 50, 400)),
        # Each interval takes two linear programmes, whatever the number of reports.
        *((n, "guaranteed", 0.95 - 1e-5) for n in (10, 50, 150)),
        *((n, "auto", 0.93) for n in (10, 50, 400)),
    ],
)
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_coverage_is_never_below_the_floor(mechanism, n, method, floor):
    """Exact coverage, at 200 truths; that of "profile" is below, which is the control.

    `data/two-secrets-coverage.csv` has that of every method.
    """
    matrix, shares = mechanism.matrix(), np.linspace(0, 1, 200)
    p = matrix[1, 0] + (matrix[0, 0] - matrix[1, 0]) * shares[:, None]
    chances = binom.pmf(np.arange(n + 1), n, p)
    # Rarer tallies, which count as missed, have a probability of at most 1e-5 together.
    likely = np.flatnonzero(chances.max(axis=0) > FALSE_ALARM_PROBABILITY)

    def coverage(method):
        lower, upper = np.zeros(n + 1), np.zeros(n + 1)
        for seen in likely:
            lower[seen], upper[seen] = ends(mechanism, n, seen, 0.95, method)
        holds = (lower - 1e-9 <= shares[:, None]) & (shares[:, None] <= upper + 1e-9)
        return (chances[:, likely] * holds[:, likely]).sum(axis=1).min()

    assert coverage(method) >= floor
    if n == 50 and method == "calibrated":
        assert coverage("profile") < 0.95 - 1e-2


@pytest.mark.parametrize("n", [10**6, 10**12, 10**15, 10**18])
def test_with_many_reports_it_is_the_interval_of_the_normal_law(n):
    seen = n // 10
    lower, upper = ends(MECHANISMS["no noise"], n, seen, 0.95, "calibrated")
    margin = 1.959964 * math.sqrt(0.09 / n)
    assert (lower, upper) == pytest.approx((0.1 - margin, 0.1 + margin), abs=0.01 * margin)


def test_the_end_does_not_depend_on_how_many_pieces_are_computed_together(monkeypatch):
    rng = np.random.default_rng(8)
    cases = []
    for n in (3, 40, 700, 2 * 10**6):
        first, last = sorted(rng.random(2))
        cases += [(int(rng.integers(n + 1)), n, first, last) for _ in range(10)]
    at_once = [ratio.BinomialRatio(*case).upper_end(0.05) for case in cases]
    monkeypatch.setattr(ratio, "PIECES_AT_ONCE", 2)
    monkeypatch.setattr(ratio, "PARTS", 3)
    assert [ratio.BinomialRatio(*case).upper_end(0.05) for case in cases] == at_once


def test_equal_rows_leave_everything_open():
    estimate = ik.mle(ik.MatrixMechanism([[0.3, 0.7], [0.3, 0.7]]).tally_counts([3, 7]))
    assert estimate.interval(0.95, of=[1, 0], method="calibrated") == (0.0, 1.0)


def test_guaranteed_is_the_interval_of_clopper_and_pearson():
    found = ends(MECHANISMS["no noise"], 199, 2, 0.95, "guaranteed")
    expected = beta.ppf(0.025, 2, 198), beta.ppf(0.975, 3, 197)
    assert found == pytest.approx(expected, abs=1e-9)


def test_guaranteed_answers_where_fewer_are_seen_than_the_noise_alone_makes():
    """At the boundary a box may miss the simplex; the level is raised until it does not."""
    mechanism, n = ik.RandomizedResponse(2, math.log(3)), 1000
    # 1,000 people without the secret make fewer than this many reports of it in 1 % of the cases.
    few = int(binom.ppf(0.01, n, 0.25))
    lower, upper = ends(mechanism, n, few, 0.95, "guaranteed")
    assert lower == 0
    assert 0 <= upper < 0.001
    impossible = int(binom.ppf(FALSE_ALARM_PROBABILITY / 100, n, 0.25))
    with pytest.raises(ValueError, match="does not fit its mechanism"):
        ends(mechanism, n, impossible, 0.95, "guaranteed")


def test_where_scipy_finds_no_bound_there_is_a_wider_one(monkeypatch):
    seen, n = np.array([0, 3, 10**15, 2**53]), 2**53
    low, high = binomial_bounds.binomial_bounds(seen, n, 0.01)
    monkeypatch.setattr(binomial_bounds, "betaincinv", lambda a, b, p: np.full(a.shape, np.nan))
    lower, higher = binomial_bounds.binomial_bounds(seen, n, 0.01)
    assert (lower >= 0).all()
    assert (lower <= low).all()
    assert (high <= higher).all()
    assert (higher <= 1).all()
    np.testing.assert_allclose([lower, higher], [low, high], atol=3e-8)
    lower, higher = binomial_bounds.binomial_bounds(np.array([2**61]), 2**62, 0.01)
    assert lower < 0.5 < higher


def test_guaranteed_comparisons_of_very_many_reports_have_ends():
    k_rr = ik.RandomizedResponse(3, 1.0)
    few = k_rr.tally_counts([1, 2, 3])
    many = k_rr.tally_counts([2**53 + 1, 2**53 - 1, 2**53])
    lower, upper = ik.compare(many, few, method="guaranteed").difference.interval
    assert ((lower <= 0) & (upper >= 0)).all()
    with pytest.raises(ValueError, match="does not fit its mechanism"):
        ik.compare(k_rr.tally_counts([2**53 + 1, 2**53 - 1, 1]), few, method="guaranteed")
