"""Guaranteed intervals of whatever mechanism: boxes of bits, and which construction is taken."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta, binomtest

import ibukit as ik
from ibukit.intervals.finite_reports import counts_of_all_reports
from ibukit.intervals.methods import for_all_together

LEVEL = 0.95
ZIPF = 1 / np.arange(1, 21)
ZIPF /= ZIPF.sum()
BLOOM = ik.BloomRappor(20, bits=32, hashes=2, cohorts=8, f=0.25, p=0.25, q=0.75)
SHARES_AND_SUM = [np.eye(20)[0], np.eye(20)[7], (np.arange(20) < 10) * 1.0]


def tally_of(mechanism, n, law=ZIPF, seed=1):
    rng = np.random.default_rng(seed)
    return mechanism.simulate(rng.multinomial(n, law), rng)


@pytest.mark.parametrize(
    "mechanism", [ik.Rappor(6, 2.0), ik.OptimizedUnaryEncoding(6, 1.0), ik.SubsetSelection(6, 1.0)]
)
def test_boxes_of_bits_are_a_linear_programme_over_each_bit_s_interval(mechanism):
    k, rng = 6, np.random.default_rng(2)
    n, rows = 700, mechanism.randomize(rng.integers(0, k, 700) // 2, rng)
    found = ik.mle(mechanism.tally(rows)).interval(LEVEL, method="guaranteed", by="region")
    seen, share = rows.sum(axis=0, dtype=np.int64), (1 - LEVEL) / 2 / k
    low = np.nan_to_num(beta.ppf(share, seen, n - seen + 1), nan=0.0)
    high = np.nan_to_num(beta.ppf(1 - share, seen + 1, n - seen), nan=1.0)
    # The probability of each bit given each secret, from the listed reports.
    codes = np.arange(mechanism.m)
    every = mechanism.tally_counts(np.ones(mechanism.m, dtype=int)).parts[0].reports
    probabilities = mechanism.matrix() @ np.unpackbits(every, axis=1, count=k)[codes]
    for x in range(k):
        for sign, end in ((1, found[0][x]), (-1, found[1][x])):
            solution = linprog(
                sign * np.eye(k)[x],
                np.r_[probabilities.T, -probabilities.T],
                np.r_[high, -low],
                np.ones((1, k)),
                [1.0],
            )
            assert end == pytest.approx(sign * solution.fun, abs=1e-7)


def test_boxes_of_bits_are_narrower_than_those_of_all_reports():
    for cls in (ik.Rappor, ik.OptimizedUnaryEncoding):
        mechanism = cls(8, 1.0)
        tally = tally_of(mechanism, 10_000, np.arange(1, 9) / 36)
        listed = ik.MatrixMechanism(mechanism.matrix()).tally_counts(
            counts_of_all_reports(tally.parts[0])
        )
        bits, reports, profile = (
            np.subtract(*ik.mle(own).interval(LEVEL, of=[1] + [0] * 7, method=method)[::-1])
            for own, method in (
                (tally, "guaranteed"),
                (listed, "guaranteed"),
                (tally, "profile"),
            )
        )
        # Seen: 1.4 to 1.5 times the profile's, and 2.9 to 4.5 times it.
        assert profile < bits < 1.8 * profile
        assert reports > 2 * profile


@pytest.mark.parametrize(
    ("mechanism", "by"),
    [
        (ik.RandomizedResponse(20, 1.0), "boxes"),
        (ik.OptimizedUnaryEncoding(20, 1.0), "boxes"),
        (ik.Rappor(20, 1.0), "boxes"),
        (ik.SubsetSelection(20, 1.0), "boxes"),
        (ik.ThresholdedHistogram(20, 1.0), "boxes"),
        (ik.LocalHashing(20, 1.0), "cross-fitted"),
        (BLOOM, "cross-fitted"),
        (ik.LinearGeometric(ik.Line(0, 19), 1.0), "boxes"),
        (ik.PlanarGeometric(ik.Grid(4, 5), 1.0), "cross-fitted"),
    ],
)
def test_every_mechanism_has_guaranteed_intervals(mechanism, by):
    estimate = ik.mle(tally_of(mechanism, 3000))
    found = estimate.interval(LEVEL, of=SHARES_AND_SUM, method="guaranteed", by="region")
    expected = estimate.interval(LEVEL, of=SHARES_AND_SUM, method="guaranteed", by=by)
    np.testing.assert_array_equal(found, expected)
    default = estimate.interval(LEVEL, of=SHARES_AND_SUM, method="guaranteed")
    assert (default[1] - default[0] <= expected[1] - expected[0] + 1e-9).all()
    assert (found[1][:2] - found[0][:2]).max() < 1
    truth = np.array([ZIPF @ w for w in SHARES_AND_SUM])
    assert ((found[0] <= truth) & (truth <= found[1])).all()
    if by == "boxes":
        estimate.interval(LEVEL, of=SHARES_AND_SUM, method="guaranteed", target="frequencies")
    else:
        with pytest.raises(ValueError, match="'distribution' with method='guaranteed' for reports"):
            estimate.interval(method="guaranteed", target="frequencies")


@pytest.mark.parametrize("by", ["boxes", "betting"])
def test_reports_beyond_a_line_count_as_its_ends(by):
    line = ik.Line(5, 24)
    beyond = tally_of(ik.LinearGeometric(line, 1.0), 3000)
    (part,) = beyond.parts
    assert part.reports.min() < 5
    at_ends = ik.TruncatedGeometric(line, 1.0).tally(part.reports.clip(5, 24), counts=part.counts)
    found, expected = (
        ik.mle(tally).interval(LEVEL, of=SHARES_AND_SUM, method="guaranteed", by=by)
        for tally in (beyond, at_ends)
    )
    np.testing.assert_array_equal(found, expected)


def test_pools_take_boxes_only_if_all_reports_have_them():
    bits, hashes = ik.OptimizedUnaryEncoding(20, 1.0), ik.LocalHashing(20, 1.0)
    listed = tally_of(ik.RandomizedResponse(20, 1.0), 2000)
    for other, by in ((bits, "boxes"), (hashes, "cross-fitted")):
        estimate = ik.mle(listed + tally_of(other, 2000, seed=2))
        found, expected = (
            estimate.interval(LEVEL, of=SHARES_AND_SUM, method="guaranteed", **options)
            for options in ({}, {"by": by})
        )
        np.testing.assert_array_equal(found, expected)


def by_scipy(seen, n, p_in, p_out):
    """Return Clopper and Pearson's interval of a share in, from the count of its event."""
    found = binomtest(seen, n).proportion_ci(LEVEL, "exact")
    return np.clip((np.array(found) - p_out) / (p_in - p_out), 0, 1)


def test_sums_of_shares_under_k_rr_have_exact_intervals():
    mechanism = ik.RandomizedResponse(5, 1.0)
    counts = np.array([310, 240, 190, 150, 110])
    estimate = ik.mle(mechanism.tally_counts(counts))
    p, q = mechanism.matrix()[0, :2]
    for secrets in ([0], [3], [1, 2], [0, 2, 3, 4]):
        w = np.isin(np.arange(5), secrets).astype(float)
        right = by_scipy(counts[secrets].sum(), 1000, p + (len(secrets) - 1) * q, len(secrets) * q)
        for options in ({}, {"by": "binomial"}):
            found = estimate.interval(LEVEL, of=w, method="guaranteed", **options)
            np.testing.assert_allclose(found, right, atol=1e-7)
    # Two weights other than 0 and 1.
    found = estimate.interval(LEVEL, of=[3, 3, 1, 1, 1], method="guaranteed")
    right = by_scipy(550, 1000, p + q, 2 * q)
    np.testing.assert_allclose(found, 1 + 2 * right, atol=1e-7)


@pytest.mark.parametrize("k", [25, 100])
@pytest.mark.parametrize("law", ["zipf", "uniform"])
def test_exact_intervals_are_nearly_as_narrow_as_the_profile(k, law):
    weights = 1 / np.arange(1, k + 1) if law == "zipf" else np.ones(k)
    tally = tally_of(ik.RandomizedResponse(k, 1.0), 100_000, weights / weights.sum(), seed=3)
    of = [np.eye(k)[0], np.eye(k)[k // 2], (np.arange(k) < k // 2) * 1.0]
    exact, profile = (
        np.subtract(*ik.mle(tally).interval(LEVEL, of=of, method=method)[::-1])
        for method in ("guaranteed", "profile")
    )
    assert (exact < 1.6 * profile).all()


@pytest.mark.parametrize(
    "mechanism",
    [ik.OptimizedUnaryEncoding(20, 1.0), ik.Rappor(20, 1.0), ik.SubsetSelection(20, 1.0)],
)
def test_single_bits_have_exact_intervals(mechanism):
    tally = tally_of(mechanism, 3000)
    (part,) = tally.parts
    bits = np.unpackbits(part.reports, axis=1, count=20)
    estimate = ik.mle(tally)
    for j in (0, 7, 8, 19):
        seen = int(part.counts @ bits[:, j].astype(np.int64))
        right = by_scipy(seen, 3000, mechanism.p_one, mechanism.p_zero)
        found = estimate.interval(LEVEL, of=np.eye(20)[j], method="guaranteed")
        np.testing.assert_allclose(found, right, atol=1e-7)
        others = estimate.interval(LEVEL, of=1 - np.eye(20)[j], method="guaranteed")
        np.testing.assert_allclose(others, 1 - right[::-1], atol=1e-7)


def test_what_no_single_event_answers_has_the_region():
    estimate = ik.mle(tally_of(ik.OptimizedUnaryEncoding(20, 1.0), 3000))
    for of in (np.arange(20) < 5, np.arange(20.0)):
        found = estimate.interval(LEVEL, of=of, method="guaranteed")
        right = estimate.interval(LEVEL, of=of, method="guaranteed", by="region")
        assert found == right
        with pytest.raises(ValueError, match="question 0 does not: take by='region'"):
            estimate.interval(LEVEL, of=of, method="guaranteed", by="binomial")


def test_frequencies_have_binomial_intervals_too():
    """Given the people, an event's count is a sum of two binomial ones, less spread than one."""
    mechanism, people = ik.RandomizedResponse(10, 1.0), np.array([700, 200, 100] + 7 * [0])
    rng, held = np.random.default_rng(4), 0
    for _ in range(200):
        estimate = ik.mle(mechanism.simulate(people, rng))
        lower, upper = estimate.interval(
            LEVEL, of=np.eye(10)[0], method="guaranteed", target="frequencies", by="binomial"
        )
        held += lower <= 0.7 <= upper
    assert binomtest(held, 200, LEVEL, alternative="less").pvalue > 1e-3


def test_ranges_over_one_region_hold_together():
    for by in ("region", "boxes", "split", "cross-fitted", "averaged"):
        assert for_all_together(0.9, 10, "guaranteed", {"by": by}) == (0.9, {"by": by})
    assert for_all_together(0.9, 10, "guaranteed", {}) == (0.9, {"by": "region"})
    for by in ("betting", "binomial"):
        level, _ = for_all_together(0.9, 10, "guaranteed", {"by": by})
        assert level == pytest.approx(0.99)


def held(mechanism, law, n, draws, target="distribution"):
    """How often each interval has the truth, and how often all three intervals of a region have."""
    rng, covered = np.random.default_rng(12), np.zeros(3)
    w, together = np.array(SHARES_AND_SUM), 0
    people = np.round(n * law).astype(int)
    people[0] += n - people.sum()
    for _ in range(draws):
        if target == "distribution":
            people = rng.multinomial(n, law)
        truth = w @ (law if target == "distribution" else people / n)
        tally = mechanism.simulate(people, rng)
        estimate, inside = ik.mle(tally), []
        for by in (None, "region"):
            low, high = estimate.interval(LEVEL, of=w, method="guaranteed", target=target, by=by)
            inside.append((low <= truth + 1e-12) & (truth - 1e-12 <= high))
        covered, together = covered + inside[0], together + inside[1].all()
    return covered / draws, together / draws


@pytest.mark.slow
@pytest.mark.parametrize("law", [ZIPF, np.eye(20)[0]], ids=["zipf", "vertex"])
@pytest.mark.parametrize(
    ("mechanism", "target"),
    [
        (ik.OptimizedUnaryEncoding(20, 1.0), "distribution"),
        (ik.OptimizedUnaryEncoding(20, 1.0), "frequencies"),
        (ik.SubsetSelection(20, 1.0), "distribution"),
        (ik.LocalHashing(20, 1.0), "distribution"),
        (BLOOM, "distribution"),
    ],
    ids=["bits", "bits of people", "subsets", "hashes", "filters"],
)
def test_what_is_guaranteed_by_default_holds(mechanism, target, law):
    draws = 200
    covered, together = held(mechanism, law, 1000, draws, target)
    error = np.sqrt(LEVEL * (1 - LEVEL) / draws)
    assert (covered >= LEVEL - 2 * error).all()
    assert together >= LEVEL - 2 * error


@pytest.mark.slow
@pytest.mark.parametrize("law", [1 / np.arange(1, 26), np.ones(25)], ids=["zipf", "uniform"])
def test_boxes_and_bets_are_as_wide_as_the_docstring_says(law):
    """Four draws, k-RR of 25 values, epsilon 1, 100,000 reports: widths over the profile's."""
    rng, mechanism = np.random.default_rng(7), ik.RandomizedResponse(25, 1.0)
    of = [np.eye(25)[0], (np.arange(25) < 12) * 1.0]
    widths = np.zeros((3, 2))
    for _ in range(4):
        estimate = ik.mle(mechanism.simulate(rng.multinomial(100_000, law / law.sum()), rng))
        for row, options in enumerate(({}, {"by": "boxes"}, {"by": "betting"})):
            method = "guaranteed" if options else "profile"
            widths[row] += np.subtract(*estimate.interval(of=of, method=method, **options)[::-1])
    boxes, betting = widths[1:] / widths[0]
    assert 1.5 < boxes[0] < 1.8
    assert 1.5 < betting[0] < 1.8
    assert 5 < boxes[1] < 8
    assert 1.8 < betting[1] < 2.2


def test_questions_of_one_event_and_others_are_answered_together():
    estimate = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([30, 14, 6]))
    questions = [[1, 0, 0], [0.1, 0.5, 0.9]]
    lower, upper = estimate.interval(of=questions, method="guaranteed")
    for row, question in enumerate(questions):
        alone = estimate.interval(of=question, method="guaranteed")
        assert (lower[row], upper[row]) == pytest.approx(alone, abs=1e-9)
    assert (lower < upper).all()
