"""Intervals by optimisation: against other solvers, at their ends, and how often they hold."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.stats import beta, chi2

import ibukit as ik
from ibukit.intervals import sqp, tilted_likelihood
from ibukit.intervals.clopper_pearson import ClopperPearsonRegion
from ibukit.intervals.finite_reports import counts_of_all_reports
from ibukit.intervals.profile import ENDS_MEET, Profile

LEVEL = 0.9
MERGED = ik.compose(ik.RandomizedResponse(3, 1.0), [[1, 0], [0, 1], [0, 1]]).tally_counts([60, 40])


def instance(seed):
    """A channel, its tally, and a question:
    noise weak or strong, reports few or many, truth inside or not.
    """
    rng = np.random.default_rng(seed)
    k, m = rng.integers(2, 7), rng.integers(2, 10)
    matrix = rng.dirichlet(np.full(m, rng.choice([0.3, 1.0, 5.0])), k)
    theta = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0])))
    tally = ik.MatrixMechanism(matrix).simulate(rng.multinomial(rng.choice([30, 1000]), theta), rng)
    return tally, rng.choice([np.eye(k)[rng.integers(k)], rng.normal(size=k)])


def fits(tally, theta):
    columns = tally.matrix()
    return tally.frequencies @ np.log(theta @ columns)


def drop_of(tally):
    return chi2.ppf(LEVEL, 1) / 2 / tally.n


# The profile likelihood


@pytest.mark.parametrize("seed", range(60))
def test_no_end_is_passed_and_each_is_attained(seed):
    tally, w = instance(seed)
    region = Profile.of(tally, LEVEL)
    for question in (w, -w):
        low, high = question.min(), question.max()
        attained, bound = region.bracket((question - low) / (high - low))
        assert attained <= bound + 1e-12
        assert bound - attained <= 1e-8


@pytest.mark.parametrize("seed", range(25))
def test_a_general_solver_ends_where_the_profile_does(seed):
    """SLSQP from several starts, on the problem as it is written."""
    tally, w = instance(seed)
    columns, q, best = tally.matrix(), tally.frequencies, ik.mle(tally)
    least = fits(tally, best.distribution) - drop_of(tally)
    rng, found = np.random.default_rng(seed), -np.inf
    for start in [best.distribution, *rng.dirichlet(np.ones(tally.k), 4)]:
        ended = minimize(
            lambda theta: -w @ theta,
            0.99 * start + 0.01 / tally.k,
            jac=lambda theta: -w,
            bounds=[(0, 1)] * tally.k,
            constraints=[
                {
                    "type": "eq",
                    "fun": lambda theta: theta.sum() - 1,
                    "jac": lambda theta: np.ones(len(theta)),
                },
                {
                    "type": "ineq",
                    "fun": lambda theta: q @ np.log(np.maximum(theta @ columns, 1e-300)) - least,
                    "jac": lambda theta: columns @ (q / np.maximum(theta @ columns, 1e-300)),
                },
            ],
            options={"maxiter": 500, "ftol": 1e-13},
        )
        theta = np.maximum(ended.x, 0) / np.maximum(ended.x, 0).sum()
        if fits(tally, theta) >= least - 1e-7:
            found = max(found, w @ theta)
    upper = best.interval(LEVEL, of=w, method="profile")[1]
    assert found <= upper + 1e-5
    assert found == pytest.approx(upper, abs=2e-3)


@pytest.mark.slow
def test_a_conic_solver_ends_where_the_profile_does():
    """500 instances by cvxpy 1.9.3 and Clarabel 0.11,
    on the problem as it is written, tolerances 1e-11.
    """
    recorded = np.loadtxt(
        Path(__file__).parents[1] / "oracles" / "profile_ends.csv", delimiter=",", skiprows=1
    )
    assert len(recorded) == 500
    for seed, *ends in recorded.tolist():
        tally, w = instance(int(seed))
        found = ik.mle(tally).interval(LEVEL, of=w, method="profile")
        assert found == pytest.approx(ends, abs=1e-6 * np.ptp(w)), seed


def test_between_the_ends_everything_is_as_likely():
    """Along the path of the fits the likelihood falls to the threshold at the end:
    a binomial profile by hand.
    """
    tally = ik.RandomizedResponse(2, 1.0).tally_counts([600, 400])
    lower, upper = ik.mle(tally).interval(LEVEL, of=[1, 0], method="profile")
    for end in (lower, upper):
        assert fits(tally, np.array([end, 1 - end])) == pytest.approx(
            fits(tally, ik.mle(tally).distribution) - drop_of(tally), abs=1e-9
        )


@pytest.mark.parametrize("method", ["profile", "guaranteed"])
def test_what_reports_leave_open_stays_open(method):
    estimate = ik.mle(MERGED)
    lower, upper = estimate.interval(LEVEL, method=method)
    share = estimate.interval(LEVEL, of=[0, 1, 1], method=method)
    assert lower[1:].tolist() == [0, 0]
    np.testing.assert_allclose(upper[1:], share[1], atol=1e-8)
    assert share == pytest.approx((1 - upper[0], 1 - lower[0]), abs=1e-8)
    ranges = ik.theory.mle_set(MERGED)
    assert (lower <= ranges.lower + 1e-9).all()
    assert (upper >= ranges.upper - 1e-9).all()


POOLED = ik.RandomizedResponse(2, 0.001).tally_counts([2**59, 2**59]) + ik.RandomizedResponse(
    2, 20.0
).tally_counts([1, 0])
DENSE = np.random.default_rng(0).dirichlet(np.ones(4), 3)


@pytest.mark.parametrize("n", [10**12, 10**14, 10**16, 10**18, None])
def test_ends_among_very_many_reports_hold_the_estimate(n):
    """Rounding hides the likelihood ratio there, but not more than the interval is wider."""
    tally = POOLED
    if n is not None:
        counts = np.rint(DENSE.mean(axis=0) * n).astype(np.int64)
        tally = ik.MatrixMechanism(DENSE).tally_counts(counts)
    estimate = ik.mle(tally)
    ends = np.array(estimate.interval(LEVEL, method="profile")) - estimate.distribution
    wald = np.array(estimate.interval(LEVEL, method="wald")) - estimate.distribution
    assert (ends / wald >= 0.99).all()
    if n is not None and n <= 10**14:
        assert (ends / wald <= 1.02).all()
    contrast = ik.compare(tally, replace(tally), level=LEVEL, method="profile").difference
    assert (contrast.interval[0] < wald[0]).all()
    assert (contrast.interval[1] > wald[1]).all()


def test_a_vertex_that_the_reports_allow_is_an_end():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([2, 1, 0])
    lower, upper = ik.mle(tally).interval(0.95, method="profile")
    assert upper[0] == 1
    assert lower[1] == lower[2] == 0


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_both_ways_to_an_end_lead_there(seed, monkeypatch):
    """Quadratic models are quick and may fail; tilted estimates are sure."""
    tally, w = instance(seed)
    ends = Profile.of(tally, LEVEL).highest(w)
    monkeypatch.setattr(sqp, "MAX_QUADRATICS", 0)
    assert Profile.of(tally, LEVEL).highest(w) == pytest.approx(ends, abs=1e-8 * np.ptp(w))


def test_quadratic_models_are_mostly_enough(monkeypatch):
    """On a real map the other way is not taken once."""
    data = ik.datasets.load_gowalla("manhattan")
    tally = ik.TruncatedPlanarGeometric(data.alphabet, 1.0).simulate(
        data.counts, np.random.default_rng(1)
    )
    region = Profile.of(tally, LEVEL)
    taken = []

    def along(w):
        taken.append(w)
        yield from ()

    monkeypatch.setattr(region, "_along_tilts", along)
    for x in range(0, 280, 10):
        unit = np.eye(1, 280, x)[0]
        region.highest(unit)
        region.highest(-unit)
    assert taken == []
    monkeypatch.setattr(sqp, "MAX_QUADRATICS", 1)
    region.highest(unit)
    assert len(taken) == 1


@pytest.mark.parametrize("kind", [ik.TruncatedGeometric, ik.RandomizedResponse])
@pytest.mark.parametrize("n", [40, 4000])
def test_structure_and_matrix_have_the_same_ends(kind, n, monkeypatch):
    monkeypatch.setattr(tilted_likelihood, "MAX_K_DENSE", 20)
    rng, k = np.random.default_rng(5), 30
    theta, mechanism = (
        rng.dirichlet(np.full(k, 0.3)),
        kind(ik.Line(0, k - 1), 0.4 if n == 40 else 2.0),
    )
    tally = mechanism.simulate(rng.multinomial(n, theta), rng)
    (part,) = tally.parts
    listed = ik.MatrixMechanism(mechanism.matrix()).tally(part.reports, counts=part.counts)
    questions = np.vstack(
        [np.eye(k)[::6], np.arange(k), np.arange(k) > 20, np.arange(k) <= 20, rng.normal(size=k)]
    )
    assert Profile.of(tally, LEVEL).likelihood.rows is None
    assert Profile.of(listed, LEVEL).likelihood.rows is not None
    found, expected = (
        ik.mle(each).interval(LEVEL, of=questions, method="profile") for each in (tally, listed)
    )
    size = np.ptp(questions, axis=1)
    np.testing.assert_allclose(np.array(found) / size, np.array(expected) / size, atol=3e-9)


@pytest.mark.parametrize(
    "mechanism", [ik.TruncatedGeometric(10_000, 0.1), ik.RandomizedResponse(10_000, 8.0)]
)
def test_ten_thousand_secrets_end_certified(mechanism):
    """What is attained and what is proved differ by 1e-8 of the range at most."""
    rng, k = np.random.default_rng(3), 10_000
    theta = np.exp(-(((np.arange(k) - 4000) / 1500.0) ** 2))
    tally = mechanism.simulate(rng.multinomial(10**6, theta / theta.sum()), rng)
    region = Profile.of(tally, LEVEL)
    for question in (np.eye(1, k, 4000)[0], np.arange(k) / (k - 1), (np.arange(k) > 6000) * 1.0):
        attained, bound = region.bracket(question)
        assert attained - 1e-9 <= bound <= attained + 1e-8
    with pytest.raises(ik.errors.TooLarge, match="would take hours"):
        ik.mle(type(mechanism)(100_000, 8.0).tally([5, 8])).interval()


def test_a_looser_bound_is_seen():
    """The control: with another multiplier the bound is above what is attained."""
    tally, w = instance(3)
    region = Profile.of(tally, LEVEL)
    w = (w - w.min()) / np.ptp(w)
    point = region.likelihood.tilted(w, 0.2)
    right = region.bound(w, point)
    _, bound = region.bracket(w)
    assert right >= bound - 1e-12
    assert region.bound(w, point._replace(slope=3 * point.slope)) > bound + ENDS_MEET
    higher, lower = (Profile(region.likelihood, floor) for floor in (point.fit + 1e-3, point.fit))
    assert higher.bound(w, point) < lower.bound(w, point)


# Boxes


@pytest.mark.parametrize("seed", range(25))
def test_boxes_are_what_a_linear_programme_says(seed):
    tally, w = instance(seed)
    (part,) = tally.parts
    m = part.mechanism.m
    seen = np.bincount(part.reports, part.counts, minlength=m)
    # One interval holds the frequencies of both of two reports.
    share = (1 - LEVEL) / 2 / (m if m > 2 else 1)
    low = np.nan_to_num(beta.ppf(share, seen, tally.n - seen + 1), nan=0.0)
    high = np.nan_to_num(beta.ppf(1 - share, seen + 1, tally.n - seen), nan=1.0)
    columns = part.mechanism.matrix().T
    solution = linprog(
        -w,
        np.r_[columns, -columns],
        np.r_[high, -low],
        np.ones((1, tally.k)),
        [1.0],
        method="highs-ipm",
    )
    upper = ik.mle(tally).interval(LEVEL, of=w, method="guaranteed")[1]
    assert upper >= -solution.fun - 1e-8
    assert upper == pytest.approx(-solution.fun, abs=1e-6)


@pytest.mark.parametrize(
    "mechanism", [ik.Rappor(4, 2.0), ik.OptimizedUnaryEncoding(4, 2.0), ik.SubsetSelection(5, 2.0)]
)
def test_rows_of_bits_are_listed_as_the_matrix_lists_them(mechanism):
    rng = np.random.default_rng(2)
    tally = mechanism.simulate(rng.multinomial(500, rng.dirichlet(np.ones(mechanism.k))), rng)
    listed = ik.MatrixMechanism(mechanism.matrix()).tally_counts(
        counts_of_all_reports(tally.parts[0])
    )
    assert listed.n == tally.n
    assert ik.mle(listed).distribution == pytest.approx(ik.mle(tally).distribution, abs=1e-5)
    found, expected = (
        ik.mle(each).interval(LEVEL, method="guaranteed", by="betting") for each in (tally, listed)
    )
    # Bets are of another random tenth.
    np.testing.assert_allclose(found, expected, atol=0.2)
    assert (found[1] - found[0]).max() < 0.9


def test_reports_that_no_distribution_makes_are_named():
    with pytest.raises(ValueError, match="does not fit its mechanism"):
        ik.mle(ik.RandomizedResponse(2, 0.1).tally_counts([10_000, 0])).interval(
            method="guaranteed"
        )


def test_pooled_reports_have_boxes_of_their_own():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([430, 310, 260])
    both = tally + ik.RandomizedResponse(3, 3.0).tally_counts([5800, 2900, 1300])
    one, two = (ik.mle(t).interval(LEVEL, of=[1, 0, 0], method="guaranteed") for t in (tally, both))
    assert two[1] - two[0] < one[1] - one[0]
    assert len(ClopperPearsonRegion(both, LEVEL)._low) == 6


def test_regions_of_pooled_people_share_the_error_by_their_numbers_of_frequencies():
    one = ik.RandomizedResponse(3, 1.0).tally_counts([430, 310, 260])
    for other, part in (
        (ik.RandomizedResponse(3, 3.0).tally_counts([580, 290, 130]), 1 / 2),
        (ik.Rappor(3, 1.0).simulate([600, 300, 100], np.random.default_rng(1)), 1 / 2),
        (ik.MatrixMechanism(np.eye(3, 6) * 0.4 + 0.1).tally_counts([9] * 6), 2 / 3),
    ):
        both, asked = one + other, {"method": "guaranteed", "target": "frequencies", "by": "boxes"}
        # With one's share of the error each, both hold together by the union bound.
        alone = [
            np.multiply(each.n / both.n, ik.mle(each).interval(1 - share * (1 - LEVEL), **asked))
            for each, share in ((one, 1 - part), (other, part))
        ]
        np.testing.assert_allclose(ik.mle(both).interval(LEVEL, **asked), sum(alone), atol=1e-9)


# How often they hold


def covers(method, mechanism, theta, n, draws, level=LEVEL, region=None):
    """Of each of the draws, whether the true theta_0 is in the interval."""
    rng, w = np.random.default_rng(8), np.eye(len(theta))[0]
    for _ in range(draws):
        tally = mechanism.simulate(rng.multinomial(n, theta), rng)
        try:
            if region is None:
                lower, upper = ik.mle(tally).interval(level, of=w, method=method)
            else:
                made = region(tally, level)
                lower, upper = -made.highest(-w), made.highest(w)
        except ValueError as error:  # one that says that nothing fits does not hold
            if "does not fit" not in str(error):
                raise
            yield False
        else:
            yield lower <= theta[0] <= upper


def at_least(share, nominal, draws):
    return share >= nominal - 3 * np.sqrt(nominal * (1 - nominal) / draws)


def holds(drawn, nominal, draws):
    """`at_least` of the share of the draws that hold; none is made after the answer is known."""
    least = next(held for held in range(draws + 1) if at_least(held / draws, nominal, draws))
    held = 0
    for i, one in enumerate(drawn, 1):
        held += bool(one)
        if held >= least or held + draws - i < least:
            return held >= least
    raise AssertionError(f"{draws} draws were promised, and there were {i}")


def test_the_answer_is_that_of_all_draws(rng):
    for chance in (0.7, 0.8, 0.85, 0.9):
        drawn, made = rng.random(150) < chance, []
        answer = holds((made.append(one) or one for one in drawn), LEVEL, 150)
        assert answer == at_least(drawn.mean(), LEVEL, 150)
        assert len(made) < 150


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "theta", "n"),
    [
        (ik.RandomizedResponse(5, 1.0), [1.0, 0, 0, 0, 0], 300),
        (ik.RandomizedResponse(3, 0.5), [0.2, 0.5, 0.3], 20),
        (MERGED.parts[0].mechanism, [0.6, 0.2, 0.2], 100),
        (ik.TruncatedGeometric(6, 0.5), [0.0, 0.1, 0.2, 0.4, 0.2, 0.1], 1000),
    ],
)
def test_what_is_guaranteed_holds(mechanism, theta, n):
    assert holds(covers("guaranteed", mechanism, theta, n, 150), LEVEL, 150)


def test_the_profile_holds_inside():
    drawn = covers(
        "profile", ik.TruncatedGeometric(6, 0.5), [0.15, 0.1, 0.2, 0.3, 0.15, 0.1], 3000, 300
    )
    share = np.mean(list(drawn))
    assert abs(share - LEVEL) <= 3 * np.sqrt(LEVEL * (1 - LEVEL) / 300)


def test_wald_holds_inside_and_with_half_of_its_errors_it_does_not():
    mechanism, theta = ik.TruncatedGeometric(6, 0.5), np.array([0.15, 0.1, 0.2, 0.3, 0.15, 0.1])
    rng, held, halved = np.random.default_rng(9), 0, 0
    for _ in range(300):
        estimate = ik.mle(mechanism.simulate(rng.multinomial(3000, theta), rng))
        lower, upper = estimate.interval(LEVEL, of=np.eye(6)[0], method="wald")
        held += lower <= theta[0] <= upper
        halved += abs((lower + upper) / 2 - theta[0]) <= (upper - lower) / 4
    assert abs(held / 300 - LEVEL) <= 3 * np.sqrt(LEVEL * (1 - LEVEL) / 300)
    assert not at_least(halved / 300, LEVEL, 300)


class OfFewBoxes(ClopperPearsonRegion):
    """The control: as if each box could go wrong by itself, at fifty times the risk."""

    def __init__(self, tally, level):
        super().__init__(tally, max(0.0, 1 - 50 * (1 - level)))


def of_a_quarter_of_the_drop(tally, level):
    """The control: another threshold."""
    region = Profile.of(tally, level)
    top = region.likelihood.best.fit
    return Profile(region.likelihood, top - (top - region.floor) / 4)


def test_broken_intervals_are_seen_not_to_hold():
    inside = (ik.TruncatedGeometric(6, 0.5), [0.15, 0.1, 0.2, 0.3, 0.15, 0.1], 3000, 150)
    assert not holds(covers("", *inside, region=of_a_quarter_of_the_drop), LEVEL, 150)
    few = (ik.RandomizedResponse(2, 3.0), [0.5, 0.5], 200, 150)
    assert not holds(covers("", *few, level=0.99, region=OfFewBoxes), 0.99, 150)


# What cannot be asked


def test_bad_questions_are_named():
    estimate = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2]))
    with pytest.raises(
        ValueError, match=r"method must be one of 'auto', 'wald', 'profile', .*, got 'exact'"
    ):
        estimate.interval(method="exact")
    with pytest.raises(
        ValueError, match="target must be 'distribution' with method='profile', got 'frequencies'"
    ):
        estimate.interval(method="profile", target="frequencies")
    with pytest.raises(ValueError, match="level"):
        estimate.interval(1.0, method="profile")
    with pytest.raises(ValueError, match="has no tally"):
        replace(estimate, tally=None).interval(method="profile")
    with pytest.raises(ValueError, match="reports that can be listed"):
        ik.mle(ik.PlanarGeometric(ik.Grid(2, 2), 1.0).tally([[0, 0], [-1, 3], [0, 1]])).interval(
            method="guaranteed", by="boxes"
        )
    bits = ik.mle(ik.Rappor(40, 3.0).simulate([5] * 40, np.random.default_rng(1)))
    with pytest.raises(ik.errors.TooLarge, match="reports of 40 secrets"):
        bits.interval(method="guaranteed", by="betting")
    with pytest.raises(ik.errors.TooLarge, match='take method="wald"'):
        ik.mle(ik.Exponential(4000, 9.0).tally([0, 1])).interval(of={0: 1}, method="profile")


def test_a_question_without_an_answer_to_find_has_its_value():
    estimate = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2]))
    for method in ("profile", "guaranteed"):
        assert estimate.interval(of=[2, 2, 2], method=method) == (2.0, 2.0)


def test_tallies_of_another_likelihood_are_refused():
    lossy = ik.MatrixMechanism(0.8 * np.eye(3) + 0.02, efficiency=np.full(3, 0.86)).tally_counts(
        [5, 3, 2]
    )
    weighted = ik.RandomizedResponse(3, 1.0).tally_counts([5.5, 3.2, 2.0], weighted=True)
    endless = ik.LinearGeometric(ik.Line(0, None), 0.5).tally([3, 4, 4, 9])
    for tally, says in (
        (lossy, "do not get lost"),
        (weighted, "got weights"),
        (endless, "bounded alphabet"),
    ):
        for method in ("calibrated",) if tally is lossy else ("profile", "guaranteed"):
            with pytest.raises(ValueError, match=says):
                ik.mle(tally).interval(method=method)


def test_a_segment_may_end_where_a_report_has_next_to_no_probability():
    """The probability of 4 falls from 1/3 to 1e-63: adding the difference would make it 0."""
    tally = ik.LinearGeometric(ik.Line(0, 9), 36.0).tally([-500] * 3 + [4] * 2 + [1000])
    lower, upper = ik.mle(tally).interval(0.95, method="profile")
    # With so little noise each report is its nearest secret: 3, 2 and 1 of six.
    plain = ik.MatrixMechanism(np.eye(3)).tally_counts([3, 2, 1])
    least, most = ik.mle(plain).interval(0.95, method="profile")
    np.testing.assert_allclose(lower[[0, 4, 9]], least, atol=1e-6)
    np.testing.assert_allclose(upper[[0, 4, 9]], most, atol=1e-6)


@pytest.mark.filterwarnings("error")
def test_likelihoods_whose_squares_leave_the_doubles_have_profiles():
    entries = np.exp(np.random.default_rng(4).uniform(-700, 700, (7, 2)))
    found = ik.mle(ik.Tally.from_likelihoods(entries))
    lower, upper = found.interval(method="profile")
    assert ((lower <= found.distribution) & (found.distribution <= upper)).all()
