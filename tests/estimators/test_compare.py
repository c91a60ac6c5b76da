"""Two independent tallies compared:
against binomial tests, brute force, enumeration and simulation.
"""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import chi2, chi2_contingency, norm

import ibukit as ik
from ibukit.intervals.comparison.methods import fieller

# every report is its secret
PLAIN = ik.MatrixMechanism(np.eye(2), ["no", "yes"])
COUNTS = [
    ((30, 70), (45, 55)),
    ((3, 9), (4, 9)),
    ((250, 750), (120, 380)),
    ((50, 0), (44, 6)),
    ((1, 40), (30, 2)),
]
Z = norm.ppf(0.975)


def log_likelihood_of(counts):
    no, yes = counts
    return lambda p: (yes * np.log(p) if yes else 0.0) + (no * np.log1p(-p) if no else 0.0)


@pytest.mark.parametrize("counts", COUNTS)
def test_without_noise_the_p_value_is_that_of_the_likelihood_ratio_of_two_binomials(counts):
    found = ik.compare(*map(PLAIN.tally_counts, counts), of="yes")
    expected = chi2_contingency(counts, correction=False, lambda_="log-likelihood").pvalue
    assert found.difference.p_value == pytest.approx(expected, rel=1e-5)
    assert found.ratio.p_value == found.difference.p_value
    (n_1, n_2), (a, b) = np.sum(counts, axis=1), (counts[0][1], counts[1][1])
    assert found.difference.estimate == pytest.approx(a / n_1 - b / n_2)
    assert found.ratio.estimate == pytest.approx(a / n_1 / (b / n_2))


@pytest.mark.parametrize("counts", COUNTS)
def test_without_noise_the_profile_ends_have_the_likelihood_ratio_of_the_level(counts):
    """At an end the best pair with that difference, or ratio, lies z^2 / 2 below the maximum."""
    one, other = map(log_likelihood_of, counts)
    best = sum(
        f(np.clip(c[1] / sum(c), 1e-300, 1)) for f, c in zip((one, other), counts, strict=True)
    )
    found = ik.compare(*map(PLAIN.tally_counts, counts), of="yes")
    grid = np.linspace(0, 1, 400_001)[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        for end in found.difference.interval:
            inside = grid[(grid > end) & (grid - end < 1)]
            inside = inside[(inside - end > 0) & (inside < 1)]
            assert 2 * (best - (one(inside) + other(inside - end)).max()) == pytest.approx(
                Z**2, abs=2e-3
            )
        for end in found.ratio.interval:
            if 0 < end < np.inf:
                inside = grid[grid / end < 1]
                assert 2 * (best - (one(inside) + other(inside / end)).max()) == pytest.approx(
                    Z**2, abs=2e-3
                )


@pytest.mark.parametrize("counts", COUNTS[:3])
def test_without_noise_wald_is_the_unpooled_z_test(counts):
    found = ik.compare(*map(PLAIN.tally_counts, counts), of="yes", method="wald")
    n, p = np.sum(counts, axis=1), np.array(counts)[:, 1] / np.sum(counts, axis=1)
    error = np.sqrt((p * (1 - p) / n).sum())
    assert found.difference.p_value == pytest.approx(2 * norm.sf(abs(p[0] - p[1]) / error))
    assert found.difference.interval == pytest.approx(
        (p[0] - p[1] - Z * error, p[0] - p[1] + Z * error)
    )
    for end in found.ratio.interval:
        errors = p * (1 - p) / n
        miss = abs(p[0] - end * p[1]) / np.sqrt(errors[0] + end**2 * errors[1])
        assert miss == pytest.approx(Z)


def brute_force(tallies, w, constraint):
    """The least likelihood ratio under an equation of (w . theta_1, w . theta_2), by scipy."""
    k = tallies[0].k
    rows = [tally.operator.rows(np.arange(k)) for tally in tallies]

    def minus_fit(x):
        pairs = zip(tallies, rows, np.split(x, 2), strict=True)
        return -sum(t.counts @ np.log(np.maximum(theta @ m, 1e-300)) for t, m, theta in pairs)

    def least(constraints):
        sums = [{"type": "eq", "fun": lambda x, i=i: np.split(x, 2)[i].sum() - 1} for i in (0, 1)]
        start = np.full(2 * k, 1 / k)
        found = [
            minimize(
                minus_fit,
                s / s.sum() * 2,
                bounds=[(0, 1)] * (2 * k),
                constraints=sums + constraints,
                options={"maxiter": 500, "ftol": 1e-13},
            ).fun
            for s in (start, np.concatenate([ik.mle(t).distribution + 1e-3 for t in tallies]))
        ]
        return min(found)

    fixed = [{"type": "eq", "fun": lambda x: constraint(*(w @ t for t in np.split(x, 2)))}]
    return 2 * (least(fixed) - least([]))


NOISY = {
    "two levels": (ik.RandomizedResponse(3, 1.0), ik.RandomizedResponse(3, 2.0)),
    "pooled": (ik.RandomizedResponse(3, 1.0), None),
    "another kind": (
        ik.TruncatedGeometric(ik.Line(0, 2), 1.0),
        ik.RandomizedResponse(ik.Line(0, 2), 2.0),
    ),
}


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("w", [[0, 1, 0], [0, 1, 1], [1, 2, 4]])
def test_under_noise_the_profile_is_that_of_brute_force(name, w):
    one, other = NOISY[name]
    first = one.tally_counts([200, 150, 80])
    second = (
        one.tally_counts([150, 180, 90]) + ik.RandomizedResponse(3, 2.0).tally_counts([90, 80, 30])
        if other is None
        else other.tally_counts([120, 130, 150])
    )
    w = np.array(w, dtype=float)
    found = ik.compare(first, second, of=w)
    statistic = brute_force((first, second), w, lambda u, v: u - v)
    assert found.difference.p_value == pytest.approx(chi2.sf(statistic, 1), rel=1e-3)
    for end in found.difference.interval:
        at_end = brute_force((first, second), w, lambda u, v, end=end: u - v - end)
        assert at_end == pytest.approx(Z**2, abs=1e-4)
    for end in found.ratio.interval:
        at_end = brute_force((first, second), w, lambda u, v, end=end: u - v * end)
        assert at_end == pytest.approx(Z**2, abs=1e-4)


@pytest.mark.parametrize("method", ["profile", "guaranteed"])
def test_an_interval_of_level_one_minus_p_ends_at_no_difference(method):
    mechanism = ik.RandomizedResponse(4, 1.5)
    tallies = (
        mechanism.tally_counts([400, 300, 200, 130]),
        mechanism.tally_counts([300, 330, 180, 120]),
    )
    found = ik.compare(*tallies, method=method)
    for x, p in enumerate(found.difference.p_value):
        if p > 0.99:
            continue
        again = ik.compare(*tallies, of=np.eye(4)[x], level=1 - p, method=method)
        assert min(map(abs, again.difference.interval)) < 2e-3
        assert min(abs(end - 1) for end in again.ratio.interval) < 2e-2


def test_exchanging_the_tallies_turns_the_sign_and_inverts_the_ratio():
    mechanism = ik.SubsetSelection(6, 1.0)
    rng = np.random.default_rng(3)
    one, other = (
        mechanism.simulate(rng.multinomial(900, [0.3, 0.2, 0.2, 0.1, 0.1, 0.1]), rng)
        for _ in range(2)
    )
    for method in ("profile", "wald"):
        there, back = ik.compare(one, other, method=method), ik.compare(other, one, method=method)
        np.testing.assert_allclose(
            there.difference.interval[0], -back.difference.interval[1], atol=1e-7
        )
        np.testing.assert_allclose(there.difference.p_value, back.difference.p_value, rtol=1e-5)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(
                there.ratio.interval[0], 1 / back.ratio.interval[1], rtol=1e-4, atol=1e-7
            )


def test_shares_of_zero_have_p_values_and_ratios_without_end():
    mechanism = ik.RandomizedResponse(["a", "b", "c"], 2.0)
    one, other = mechanism.tally_counts([700, 200, 100]), mechanism.tally_counts([600, 305, 95])
    for method in ("profile", "wald", "guaranteed"):
        found = ik.compare(one, other, method=method)
        for values in (found.difference.p_value, *found.difference.interval, *found.ratio.interval):
            assert not np.isnan(values).any()
        assert ((found.difference.p_value >= 0) & (found.difference.p_value <= 1)).all()
        assert np.isinf(found.ratio.interval[1][2])
        assert found.ratio.interval[0][2] == 0
        assert (found.difference.interval[0] <= found.difference.estimate).all()
        assert (found.difference.estimate <= found.difference.interval[1]).all()
    zero = PLAIN.tally_counts([50, 0]), PLAIN.tally_counts([40, 0])
    for method in ("profile", "wald", "guaranteed"):
        found = ik.compare(*zero, of="yes", method=method)
        assert (found.difference.p_value, found.ratio.interval) == (1.0, (0.0, np.inf))
        assert found.ratio.estimate == 1


def test_guaranteed_ends_are_those_of_independent_intervals():
    mechanism = ik.RandomizedResponse(["no", "yes"], 1.0)
    tallies = mechanism.tally_counts([600, 400]), mechanism.tally_counts([400, 600])
    found = ik.compare(*tallies, of="yes", level=0.9, method="guaranteed")
    (a, b), (c, d) = (
        ik.mle(tally).interval(0.9**0.5, of="yes", method="guaranteed") for tally in tallies
    )
    assert found.difference.interval == (a - d, b - c)
    assert found.ratio.interval == (a / d, b / c)

    def overlap(p):
        pairs = [ik.mle(t).interval((1 - p) ** 0.5, of="yes", method="guaranteed") for t in tallies]
        return pairs[0][1] - pairs[1][0]

    exact = brentq(overlap, 1e-12, 0.5, xtol=1e-16)
    assert exact <= found.difference.p_value <= 1.011 * exact


def test_undetermined_shares_may_differ_by_anything():
    merged = ik.compose(ik.RandomizedResponse(3, 1.0), [[1, 0], [0, 1], [0, 1]])
    tallies = merged.tally_counts([600, 400]), merged.tally_counts([500, 500])
    found = ik.compare(*tallies)
    assert found.difference.p_value[0] < 0.01
    assert found.difference.p_value[1:].tolist() == [1, 1]
    wald = ik.compare(*tallies, method="wald")
    assert wald.difference.p_value[1:].tolist() == [1, 1]
    assert np.isinf(wald.ratio.interval[1][1:]).all()


def test_what_cannot_be_compared_is_refused_by_name():
    mechanism = ik.RandomizedResponse(3, 1.0)
    one, other = mechanism.tally_counts([50, 30, 20]), mechanism.tally_counts([40, 30, 30])
    with pytest.raises(ValueError, match="tally_2 must be another sample"):
        ik.compare(one, one)
    with pytest.raises(ik.errors.AlphabetMismatch, match="tally_2 must be over the secrets"):
        ik.compare(one, ik.RandomizedResponse(4, 1.0).tally_counts([5, 3, 2, 1]))
    for method in ("bootstrap", "credible", "calibrated", "score"):
        with pytest.raises(ValueError, match=f"method must be one of .* got '{method}'"):
            ik.compare(one, other, method=method)
    with pytest.raises(ValueError, match="of must have weights that are not negative"):
        _ = ik.compare(one, other, of=[1, -1, 0]).ratio
    assert list(ik.compare(one, other, of=[1, -1, 0]).to_frame()) == [
        "difference",
        "lower",
        "upper",
        "p_value",
    ]
    with pytest.raises(ValueError, match="level"):
        ik.compare(one, other, level=1.0)
    with pytest.raises(TypeError, match="tally must be a Tally"):
        ik.compare(one, [50, 30, 20])
    many = ik.RandomizedResponse(3000, 1.0)
    with pytest.raises(ik.errors.TooLarge, match=r"of=\.\.\."):
        ik.compare(many.tally_counts(np.ones(3000, int)), many.tally_counts(np.ones(3000, int)))


def test_a_constant_question_has_no_difference():
    mechanism = ik.RandomizedResponse(3, 1.0)
    tallies = mechanism.tally_counts([50, 30, 20]), mechanism.tally_counts([40, 30, 30])
    for method in ("profile", "guaranteed"):
        found = ik.compare(*tallies, of=[2, 2, 2], method=method)
        assert found.difference.interval == (0, 0)
        assert found.ratio.interval == (1, 1)
        assert found.difference.p_value == 1


def test_a_question_in_another_unit_has_the_same_answer_in_that_unit():
    mechanism = ik.RandomizedResponse(3, 2.0)
    tallies = mechanism.tally_counts([50, 30, 20]), mechanism.tally_counts([30, 30, 40])
    for method in ("profile", "wald", "guaranteed"):
        years, months = (
            ik.compare(*tallies, of=np.array([0, 1, 2]) * unit, method=method).difference
            for unit in (1, 12)
        )
        np.testing.assert_allclose(12 * np.array(years.interval), months.interval, rtol=1e-5)
        assert months.interval[0] < -1, "it is longer than a share can be"
        assert years.p_value == pytest.approx(months.p_value, rel=1e-5)


def test_tables_have_labels_cells_or_numbers():
    grid = ik.Grid(1, 2)
    mechanism = ik.RandomizedResponse(grid, 1.0)
    tallies = mechanism.tally_counts([60, 40]), mechanism.tally_counts([50, 50])
    frame = ik.compare(*tallies).to_frame()
    assert frame.index.tolist() == [(0, 0), (0, 1)]
    assert frame.index.names == ["row", "col"]
    assert ik.compare(*tallies, of=[[1, 0]]).to_frame().index.tolist() == ["question 0"]
    words = ik.RandomizedResponse(["no", "yes"], 1.0)
    tallies = words.tally_counts([60, 40]), words.tally_counts([50, 50])
    assert ik.compare(*tallies, of="yes").to_frame().index.tolist() == ["yes"]


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.RandomizedResponse([("a",), ("b",)], 1.0),
        ik.product(*[ik.RandomizedResponse(2, 1.0)] * 2),
        ik.product(*[ik.RandomizedResponse(2, 1.0)] * 3),
        ik.RandomizedResponse(np.array(["2026-01-01", "2026-02-01"], dtype="datetime64[ns]"), 1.0),
    ],
)
def test_rows_of_all_probabilities_are_labelled_as_those_of_an_estimate(mechanism):
    one, other = np.arange(mechanism.m) + 1, np.arange(mechanism.m)[::-1] + 1
    tallies = mechanism.tally_counts(one), mechanism.tally_counts(other)
    index = ik.mle(tallies[0]).to_frame(level=None).index
    assert ik.compare(*tallies).to_frame().index.identical(index)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "theta", "least", "most"),
    [
        ("profile", [0.4, 0.35, 0.25], 0.93, 0.97),
        ("wald", [0.4, 0.35, 0.25], 0.93, 0.97),
        ("guaranteed", [0.4, 0.35, 0.25], 0.95, 1.0),
        ("profile", [0.6, 0.4, 0.0], 0.93, 1.0),
        ("guaranteed", [0.6, 0.4, 0.0], 0.95, 1.0),
    ],
)
def test_intervals_cover_and_p_values_reject_at_their_level(method, theta, least, most):
    """1,000 pairs: the standard error of a coverage is 0.7 points, so the limits are three of them
    beside the level; false alarms 1 in 300.
    """
    rng = np.random.default_rng(11)
    one, other = ik.RandomizedResponse(3, 1.0), ik.RandomizedResponse(3, 2.0)
    second = np.array([0.3, 0.45, 0.25]) if theta[2] else np.array(theta)
    covered, ratios, rejected = [], [], []
    for _ in range(1000):
        first = one.simulate(rng.multinomial(1500, theta), rng)
        found = ik.compare(
            first, other.simulate(rng.multinomial(600, second), rng), of=[0, 0, 1], method=method
        )
        lower, upper = found.difference.interval
        covered.append(lower <= theta[2] - second[2] <= upper)
        low, high = found.ratio.interval
        ratios.append(low <= 1 <= high)
        rejected.append(found.difference.p_value < 0.05)
    assert least <= np.mean(covered) <= most
    assert least <= np.mean(ratios) <= most
    assert 1 - most <= np.mean(rejected) <= 1 - least


def test_a_difference_that_is_surely_0_has_the_ratio_0():
    assert fieller(0.0, 0.25, 0.0, 0.125) == (0.0, 0.0)
