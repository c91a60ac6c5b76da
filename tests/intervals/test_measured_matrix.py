"""Intervals whose matrix was measured: they know the trials, or say that they do not."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.special import xlogy
from scipy.stats import beta

import ibukit as ik
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals.measured.boxes import Box, MeasuredRegion
from ibukit.intervals.measured.profile import JointProfile, most_likely

ILL = {"ill": 1}


def screening(trials, positive, n):
    test = ik.MatrixMechanism.from_trials(trials, ["ill", "well"], ["+", "-"])
    return ik.mle(test.tally_counts([positive, n - positive]))


def joint_fit(share, trials, counts):
    """The largest joint log-likelihood for a share of the second secret, by scipy."""

    def minus(x):
        a = 1 / (1 + np.exp(-x))
        p = (1 - share) * a[0] + share * a[1]
        found = xlogy(counts, [p, 1 - p]).sum()
        return -(found + xlogy(trials, np.transpose([a, 1 - a])).sum())

    starts = ([0.0, 0.0], [2.0, -2.0], [-2.0, 2.0])
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 5000}
    return -min(
        minimize(minus, start, method="Nelder-Mead", options=options).fun for start in starts
    )


@pytest.mark.parametrize(
    ("trials", "positive", "n", "share", "expected"),
    [
        # Two of 401 who are well test positive, and 103 of 122 who are ill.
        ([[103, 19], [2, 399]], 50, 3330, 0.0119, (0.0, 0.0199)),
        ([[45, 5], [3, 197]], 60, 1500, 0.0282, (0.0000, 0.0471)),
    ],
)
def test_profiles_of_published_kind_are_those_of_the_joint_likelihood(
    trials, positive, n, share, expected
):
    estimate = screening(trials, positive, n)
    assert estimate["ill"] == pytest.approx(share, abs=5.1e-5)
    assert estimate.interval(of=ILL) == pytest.approx(expected, abs=5.1e-5)
    well = estimate.interval(of={"well": 1})
    assert well == pytest.approx(1 - np.array(estimate.interval(of=ILL))[::-1], abs=1e-9)


CASES = [
    ([[45, 5], [3, 197]], [60, 1440]),
    ([[5, 45], [197, 3]], [60, 1440]),  # a test that is the wrong way round
    ([[8, 2], [3, 7]], [500, 500]),  # trials that hardly tell the two apart
    ([[6, 4], [5, 5]], [900, 100]),  # reports that no share explains well
    ([[5, 5], [5, 5]], [30, 70]),
    ([[5, 0], [0, 9]], [1, 20]),
    ([[5, 3], [0, 9]], [0, 20]),
    ([[50, 3], [20, 90]], [3, 4]),
]


@pytest.mark.parametrize(("trials", "counts"), CASES)
def test_the_profile_has_the_largest_likelihood_of_each_share_and_its_ends(trials, counts):
    tally = ik.MatrixMechanism.from_trials(trials).tally_counts(counts)
    trials, counts = np.array(trials), np.array(counts)
    region = JointProfile(tally, 0.9)
    shares = np.linspace(0, 1, 21)
    fits = np.array([region.fit(v, trials.astype(float)) for v in shares])
    others = np.array([joint_fit(v, trials, counts) for v in shares])
    assert fits == pytest.approx(others, abs=1e-5)
    assert (fits >= others - 1e-9).all()
    # The ends, against a fine grid of shares.
    grid = np.linspace(0, 1, 4001)
    values = np.array([region.fit(v, trials.astype(float)) for v in grid])
    inside = grid[values >= values.max() - normal_quantile(0.9) ** 2 / 2]
    lower, upper = ik.mle(tally).interval(0.9, of=[0, 1])
    assert lower == pytest.approx(inside.min(), abs=5.1e-4)
    assert upper == pytest.approx(inside.max(), abs=5.1e-4)


def test_the_row_that_fits_best_is_a_maximum():
    grid = np.linspace(0, 1, 100_001)
    for t_1, t_2, slope in [(3, 4, 2.0), (3, 4, -50.0), (0, 4, 3.0), (0, 4, 9.0), (2, 0, -7.0)]:
        best = most_likely(t_1, t_2, slope)
        values = xlogy(t_1, grid) + xlogy(t_2, 1 - grid) + slope * grid
        assert best == pytest.approx(grid[np.argmax(values)], abs=1e-4)


def test_many_trials_are_as_good_as_a_known_matrix():
    trials = np.array([[85, 15], [5, 95]]) * 10**9
    measured = ik.mle(ik.MatrixMechanism.from_trials(trials).tally_counts([150, 850]))
    known = ik.mle(ik.MatrixMechanism(trials / 10**11).tally_counts([150, 850]))
    for method in ("wald", "profile"):
        assert measured.interval(of=[1, 0], method=method) == pytest.approx(
            known.interval(of=[1, 0], method=method), abs=1e-5
        )


def test_boxes_of_two_secrets_are_the_monotone_bounds():
    estimate = screening([[85, 15], [6, 114]], 300, 2000)
    error = 0.05 / 6  # six ends, of which each may be wrong

    def ends(seen, n):
        return beta.ppf(error, seen, n - seen + 1), beta.ppf(1 - error, seen + 1, n - seen)

    p, ill, well = ends(300, 2000), ends(85, 100), ends(6, 120)
    assert well[1] < ill[0]
    expected = (p[0] - well[1]) / (ill[1] - well[1]), (p[1] - well[0]) / (ill[0] - well[0])
    found = estimate.interval(of=ILL, method="guaranteed")
    assert found == pytest.approx((max(expected[0], 0), expected[1]), abs=1e-8)


def test_boxes_hold_every_distribution_that_a_matrix_in_its_box_allows():
    rng = np.random.default_rng(5)
    trials = rng.multinomial(60, [[0.7, 0.2, 0.05, 0.05], [0.1, 0.6, 0.2, 0.1], [0, 0.1, 0.2, 0.7]])
    measured = ik.MatrixMechanism.from_trials(trials)
    known = ik.RandomizedResponse(3, epsilon=1.0)
    tally = measured.tally_counts([100, 120, 60, 50]) + known.tally_counts([80, 60, 60])
    region = MeasuredRegion(tally, 0.95)
    (box, none), k = region._boxes, 3
    assert none is None
    w = np.array([1.0, 0.0, 0.3])
    highest, lowest = region.highest(w), -region.highest(-w)

    def filled(low, high):
        """A corner of the box's rows: what is left above `low` goes to random reports in turn."""
        order = rng.permutation(4)
        room = (high - low)[order]
        left = 1 - low.sum() - np.cumsum(room) + room
        row = low.copy()
        row[order] += np.clip(left, 0, room)
        return row

    attained = []
    for _ in range(300):
        # A random row in each box, and the best distribution for this matrix.
        rows = np.array([filled(box.low[x], box.high[x]) for x in range(k)])
        assert rows.sum(axis=1) == pytest.approx(np.ones(k), abs=1e-12)
        columns = np.concatenate([rows, known.matrix()], axis=1).T
        found = linprog(
            -w,
            A_ub=np.concatenate([columns, -columns]),
            b_ub=np.r_[region._high, -region._low],
            A_eq=np.ones((1, k)),
            b_eq=[1],
        )
        if found.status == 0:
            attained.append(-found.fun)
    assert len(attained) > 20
    assert lowest <= max(attained) <= highest + 1e-9
    # The programme itself attains the bound, so that it is no wider than needed.
    assert -region._solve(-w).fun == pytest.approx(highest, abs=1e-7)
    # The parts are in the order of the tally: all frequencies have their share of the error.
    assert region._frequencies == 4 * (1 + 3) + 3


def test_the_smallest_row_of_a_box_is_that_of_a_linear_programme():
    rng = np.random.default_rng(6)
    for _ in range(20):
        middle = rng.dirichlet(np.ones(5), size=3)
        low, high = middle * rng.uniform(size=(3, 5)), middle + (1 - middle) * 0.1
        y = rng.normal(size=5)
        expected = [
            linprog(y, A_eq=np.ones((1, 5)), b_eq=[1], bounds=np.transpose([low[x], high[x]])).fun
            for x in range(3)
        ]
        assert Box(low, high).smallest(y) == pytest.approx(expected, abs=1e-9)


def test_a_tally_that_no_matrix_explains_is_refused():
    estimate = screening([[95, 5], [300, 700]], 5, 5000)
    with pytest.raises(ValueError, match="does not fit its mechanism"):
        estimate.interval(method="guaranteed")


def test_boxes_of_frequencies_are_those_of_each_mechanism():
    one = ik.MatrixMechanism.from_trials([[40, 10], [8, 42]])
    pooled = ik.mle(one.tally_counts([60, 40]) + ik.RandomizedResponse(2, 2.0).tally_counts([9, 5]))
    lower, upper = pooled.interval(method="guaranteed", target="frequencies")
    assert (lower <= pooled.distribution).all()
    assert (pooled.distribution <= upper).all()
    alone = ik.mle(one.tally_counts([60, 40]))
    same = (
        alone.interval(method="guaranteed"),
        alone.interval(method="guaranteed", target="frequencies"),
    )
    assert np.array_equal(*same)


@pytest.mark.parametrize("kind", ["parametric", "reports"])
def test_the_bootstrap_draws_reports_and_trials(kind):
    estimate = screening([[85, 15], [6, 114]], 300, 2000)
    lower, upper = estimate.interval(of=ILL, method="bootstrap", draws=400, kind=kind)
    known = ik.MatrixMechanism(np.array([[0.85, 0.15], [0.05, 0.95]]), ["ill", "well"])
    narrow = ik.mle(known.tally_counts([300, 1700])).interval(of=ILL, method="bootstrap", draws=400)
    wald = estimate.interval(of=ILL, method="wald")
    # 400 draws leave about a tenth of the width uncertain.
    assert upper - lower == pytest.approx(wald[1] - wald[0], rel=0.2)
    assert upper - lower > 1.5 * (narrow[1] - narrow[0])


def test_the_bootstrap_keeps_reports_possible_that_few_trials_had():
    test = ik.MatrixMechanism.from_trials([[10, 1, 0], [0, 2, 9]])
    lower, upper = ik.mle(test.tally_counts([50, 5, 60])).interval(method="bootstrap", draws=60)
    assert (lower < upper).all()


def test_the_bootstrap_of_frequencies_is_narrower():
    estimate = screening([[850, 150], [60, 1140]], 60, 200)
    of_law = estimate.interval(of=ILL, method="bootstrap", draws=400)
    of_people = estimate.interval(of=ILL, method="bootstrap", draws=400, target="frequencies")
    assert of_people[1] - of_people[0] < 0.9 * (of_law[1] - of_law[0])


@pytest.mark.parametrize("method", ["calibrated", "credible"])
def test_methods_that_do_not_know_the_trials_are_refused(method):
    estimate = screening([[45, 5], [3, 197]], 60, 1500)
    with pytest.raises(ik.errors.MatrixUncertain, match='take method="profile", "wald"'):
        estimate.interval(method=method)
    with pytest.raises(ik.errors.MatrixUncertain):
        estimate.band(method=method)


@pytest.mark.parametrize("by", ["betting", "split", "cross-fitted", "averaged"])
def test_other_guaranteed_intervals_are_refused(by):
    estimate = screening([[45, 5], [3, 197]], 60, 1500)
    with pytest.raises(ik.errors.MatrixUncertain, match="by must be 'boxes'"):
        estimate.interval(method="guaranteed", by=by)


def three_secrets():
    test = ik.MatrixMechanism.from_trials([[40, 5, 5], [3, 60, 7], [2, 3, 80]], list("abc"))
    return ik.mle(test.tally_counts([300, 200, 500]))


def test_profiles_of_more_secrets_are_refused_and_tables_have_walds():
    estimate = three_secrets()
    with pytest.raises(ik.errors.MatrixUncertain, match='take method="wald", "bootstrap" or'):
        estimate.interval(method="profile")
    table = estimate.to_frame()
    lower, upper = estimate.interval(method="wald")
    assert np.array_equal(estimate.interval(), (lower, upper))
    assert np.array_equal(table["lower"], lower)
    assert np.array_equal(table["upper"], upper)
    assert 'by method "wald"' in estimate.summary().head
    pooled = screening([[45, 5], [3, 197]], 60, 1500).tally
    pooled += ik.RandomizedResponse(["ill", "well"], 1.0).tally_counts([10, 90])
    with pytest.raises(ik.errors.MatrixUncertain, match="of one mechanism"):
        ik.mle(pooled).interval(method="profile")


def test_tables_of_two_secrets_have_the_joint_profile():
    estimate = screening([[45, 5], [3, 197]], 60, 1500)
    table = estimate.to_frame()
    assert np.allclose(table[["lower", "upper"]].T, estimate.interval())
    assert "method" not in table


def test_the_profile_is_of_the_distribution_alone():
    with pytest.raises(ValueError, match="target must be 'distribution'"):
        screening([[45, 5], [3, 197]], 60, 1500).interval(target="frequencies")


def test_groups_have_the_intervals_of_each_alone():
    pd = pytest.importorskip("pandas")
    test = ik.MatrixMechanism.from_trials([[45, 5], [3, 197]], ["ill", "well"], ["+", "-"])
    table = pd.DataFrame({"report": ["+", "-"] * 2, "n": [60, 940, 30, 700], "town": [*"aabb"]})
    tallies = ik.Tally.from_table(table, test, count="n", groups="town")
    estimates = ik.mle(tallies)
    for method in ("wald", "profile"):
        lower, _ = estimates.intervals(0.95, method)
        assert lower[1] == pytest.approx(estimates["b"].interval(method=method)[0], abs=1e-12)


SENSITIVITY, SPECIFICITY, PREVALENCE = 0.85, 0.95, 0.08


def screened(draws, seed):
    """Estimates of 2,000 people by a test measured on 80 who are ill and 120 who are well."""
    rng = np.random.default_rng(seed)
    p = PREVALENCE * SENSITIVITY + (1 - PREVALENCE) * (1 - SPECIFICITY)
    for _ in range(draws):
        ill, well = rng.binomial(80, SENSITIVITY), rng.binomial(120, 1 - SPECIFICITY)
        trials = [[ill, 80 - ill], [well, 120 - well]]
        yield trials, int(rng.binomial(2000, p))


def covers(interval):
    return interval[0] <= PREVALENCE <= interval[1]


def test_a_matrix_taken_for_known_misleads_where_its_trials_do_not():
    # 100 draws: the share of .54 has a standard error of .05, so that .75 and .85 are far beyond.
    known, joint = 0, 0
    for trials, positive in screened(100, 1):
        rows = np.array(trials) / np.sum(trials, axis=1, keepdims=True)
        exact = ik.mle(
            ik.MatrixMechanism(rows, ["ill", "well"]).tally_counts([positive, 2000 - positive])
        )
        known += covers(exact.interval(of=ILL))
        joint += covers(screening(trials, positive, 2000).interval(of=ILL))
    assert known < 75
    assert joint > 85


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "least", "most"),
    [
        # Four standard errors of a share of .95 among 400 are .044: a false alarm in 16,000.
        ("profile", 0.906, 0.994),
        ("wald", 0.906, 0.994),
        ("bootstrap", 0.906, 0.994),
        ("guaranteed", 0.95, 1.0),
    ],
)
def test_the_trials_are_covered(method, least, most):
    options = {"draws": 200} if method == "bootstrap" else {}
    draws = [screening(trials, positive, 2000) for trials, positive in screened(400, 2)]
    share = np.mean([covers(each.interval(of=ILL, method=method, **options)) for each in draws])
    assert least <= share <= most
