"""Intervals of mechanisms with efficiencies: reports that get lost."""

import numpy as np
import pytest
from scipy.optimize import brentq, linprog, minimize
from scipy.special import betaincinv

import ibukit as ik
from ibukit.intervals.lossy_profile import LossyProfile
from ibukit.intervals.profile import Profile

Z2 = 1.959963984540054**2 / 2
TWO = np.array([[0.6, 0.2], [0.05, 0.15]])
THREE = np.array([[0.5, 0.1, 0.05], [0.02, 0.1, 0.03], [0.05, 0.05, 0.9]])
NOT_SQUARE = np.array([[0.2, 0.3, 0.05, 0.1], [0.3, 0.1, 0.2, 0.2]])


def estimate_of(matrix, counts):
    return ik.mle(ik.MatrixMechanism(matrix, efficiency=True).tally_counts(counts))


def log_likelihood(matrix, counts, theta):
    some = np.asarray(counts) > 0
    p = theta @ matrix / (theta @ matrix.sum(axis=1))
    return float(np.asarray(counts)[some] @ np.log(np.maximum(p[some], 1e-300)))


def ends_of_two(matrix, counts):
    """The profile interval of the first of two shares, by root finding."""
    best = estimate_of(matrix, counts)[0]

    def excess(share):
        theta = np.array([share, 1 - share])
        top = log_likelihood(matrix, counts, np.array([best, 1 - best]))
        return log_likelihood(matrix, counts, theta) - top + Z2

    low = 0.0 if excess(0.0) >= 0 else brentq(excess, 0.0, best, xtol=1e-15)
    high = 1.0 if excess(1.0) >= 0 else brentq(excess, best, 1.0, xtol=1e-15)
    return low, high


def end_by_slsqp(matrix, counts, w, rng):
    """The largest w . theta of the profile's region by SciPy, from several starts."""
    k = len(w)
    best = estimate_of(matrix, counts).distribution
    floor = log_likelihood(matrix, counts, best) - Z2
    found = -np.inf
    for _ in range(8):
        result = minimize(
            lambda theta: -(w @ theta),
            0.9 * best + 0.1 * rng.dirichlet(np.ones(k)),
            method="SLSQP",
            bounds=[(0, 1)] * k,
            constraints=[
                {"type": "eq", "fun": lambda theta: theta.sum() - 1},
                {
                    "type": "ineq",
                    "fun": lambda theta: (
                        log_likelihood(matrix, counts, np.clip(theta, 0, 1)) - floor
                    ),
                },
            ],
            options={"maxiter": 500, "ftol": 1e-13},
        )
        theta = np.clip(result.x, 0, None)
        theta /= theta.sum()
        if log_likelihood(matrix, counts, theta) >= floor - 1e-7:
            found = max(found, float(w @ theta))
    return found


@pytest.mark.parametrize(
    ("matrix", "counts"),
    [
        (TWO, [70, 30]),
        (TWO, [12, 9]),
        (TWO, [40, 13]),
        (TWO, [0, 9]),
        (TWO, [25, 75]),
        (np.eye(2) * [[1e-5], [1.0]], [3, 200]),
        (np.array([[0.3, 0.0], [0.0, 0.9]]), [0, 20]),
        (NOT_SQUARE, [4, 9, 0, 3]),
    ],
)
def test_profiles_of_two_shares_are_those_of_root_finding(matrix, counts):
    low, high = ends_of_two(matrix, counts)
    lower, upper = estimate_of(matrix, counts).interval()
    np.testing.assert_allclose([lower[0], upper[0]], [low, high], atol=3e-9)
    np.testing.assert_allclose([lower[1], upper[1]], [1 - high, 1 - low], atol=3e-9)
    # The ends are given from outside.
    assert lower[0] <= low + 1e-12
    assert upper[0] >= high - 1e-12


@pytest.mark.parametrize("counts", [[60, 11, 80], [30, 0, 0], [0, 7, 4], [3, 3, 3]])
def test_profiles_of_three_shares_and_of_sums_are_those_of_scipy(counts):
    rng = np.random.default_rng(5)
    sums = np.array([[1, 0, 0], [1, 1, 0], [0.3, -2.0, 5.0]])
    lower, upper = estimate_of(THREE, counts).interval(of=sums)
    for w, low, high in zip(sums, lower, upper, strict=True):
        np.testing.assert_allclose(-end_by_slsqp(THREE, counts, -w, rng), low, atol=2e-6)
        np.testing.assert_allclose(end_by_slsqp(THREE, counts, w, rng), high, atol=2e-6)


def test_equal_efficiencies_change_no_interval():
    rows = ik.RandomizedResponse(4, 1.0).matrix()
    counts = [50, 20, 9, 0]
    plain = ik.mle(ik.MatrixMechanism(rows).tally_counts(counts))
    lossy = estimate_of(0.3 * rows, counts)
    sums = [[1, 1, 0, 0], [0, 1, 2, 3]]
    for method, options in (
        ("profile", {}),
        ("guaranteed", {}),
        ("bootstrap", {"draws": 60}),
        ("wald", {}),
    ):
        for of in (None, sums):
            np.testing.assert_allclose(
                lossy.interval(of=of, method=method, **options),
                plain.interval(of=of, method=method, **options),
                atol=1e-8,
            )


def test_every_end_of_the_profile_is_met_by_a_member():
    rng = np.random.default_rng(3)
    for _ in range(20):
        k, m = rng.integers(2, 7, 2)
        matrix = rng.dirichlet(np.full(m, 0.7), k) * 10 ** rng.uniform(-4, 0, (k, 1))
        seen = rng.dirichlet(np.full(k, 0.5)) @ matrix
        tally = ik.MatrixMechanism(matrix, efficiency=True).tally_counts(
            rng.multinomial(200, seen / seen.sum())
        )
        region = LossyProfile.of(tally, 0.95)
        w = rng.random(k)
        w = (w - w.min()) / np.ptp(w)
        attained, bound = region.bracket(w)
        assert -1e-12 <= bound - attained <= 1e-8


def test_a_bound_holds_whatever_point_it_is_taken_at():
    tally = ik.MatrixMechanism(THREE, efficiency=True).tally_counts([60, 11, 80])
    region = LossyProfile.of(tally, 0.95)
    w = np.array([1.0, 0.0, 0.4])
    _, true = region.bracket(w)
    for v in (0.1, 0.3, 0.6):
        u = (w - v) / (THREE.sum(axis=1) / THREE.sum(axis=1).max())
        span = np.ptp(u)
        for rho in (0.01, 0.2, 0.7):
            point = region.likelihood.tilted((u - u.min()) / span, rho)
            assert region._bound_of_all(w, v, span, point) >= true - 1e-12


def test_boxes_are_those_of_a_linear_fractional_programme():
    counts = np.array([60, 11, 80])
    n, error = counts.sum(), 0.05 / 2 / 3
    low = betaincinv(counts, n - counts + 1, error)
    high = betaincinv(counts + 1, n - counts, 1 - error)
    # Charnes and Cooper: phi = y / sum y among those seen, y free, sum of theta = phi / e is 1.
    e = THREE.sum(axis=1)
    phi_matrix = THREE / e[:, None]
    w = np.array([0.2, 1.0, -0.5])
    ends = []
    for sign in (1, -1):
        solution = linprog(
            sign * w / e,
            A_ub=np.concatenate([phi_matrix.T - high[:, None], low[:, None] - phi_matrix.T]),
            b_ub=np.zeros(6),
            A_eq=[1 / e],
            b_eq=[1.0],
        )
        ends.append(sign * solution.fun)
    got = estimate_of(THREE, counts).interval(of=w, method="guaranteed")
    np.testing.assert_allclose(got, ends, atol=1e-7)


def test_the_bootstrap_draws_among_the_secrets_seen():
    counts = [700, 300]
    estimate = estimate_of(np.diag([0.1, 0.9]), counts)
    lower, upper = estimate.interval(method="bootstrap", draws=4000)
    # Without noise the number of the first is binomial, and the share follows from it.
    from scipy.stats import binom

    quantiles = binom.ppf([0.025, 0.975], 1000, 0.7) / 1000
    shares = quantiles / 0.1 / (quantiles / 0.1 + (1 - quantiles) / 0.9)
    np.testing.assert_allclose([lower[0], upper[0]], shares, atol=0.003)


def test_frequencies_and_what_is_not_known_are_refused_by_name():
    estimate = estimate_of(TWO, [70, 30])
    for method in ("profile", "guaranteed", "bootstrap", "credible", "wald"):
        with pytest.raises(ValueError, match="target must be 'distribution' where reports may"):
            estimate.interval(method=method, target="frequencies")
    for options in ({"method": "calibrated"}, {"method": "guaranteed", "by": "split"}):
        with pytest.raises(ValueError, match="reports that do not get lost"):
            estimate.interval(**options)


def test_tables_have_profile_intervals():
    estimate = estimate_of(TWO, [70, 30])
    ends = np.array(estimate.interval())
    np.testing.assert_array_equal(estimate.to_frame()[["lower", "upper"]].to_numpy().T, ends)
    summary = estimate.summary()
    assert 'by method "profile"' in summary.head
    np.testing.assert_array_equal(summary.table[["lower", "upper"]].to_numpy().T, ends)


def test_a_share_that_is_not_determined_has_all_that_is_possible():
    twins = np.array([[0.4, 0.1], [0.4, 0.1], [0.1, 0.3]])
    lower, upper = estimate_of(twins, [60, 40]).interval()
    together = estimate_of(twins, [60, 40]).interval(of=[1, 1, 0])
    np.testing.assert_allclose(upper[:2], together[1], atol=1e-8)
    np.testing.assert_allclose(lower[:2], 0, atol=1e-12)
    alone = estimate_of(twins[1:], [60, 40]).interval()
    np.testing.assert_allclose(together, [alone[0][0], alone[1][0]], atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "least"), [("profile", 0.93), ("guaranteed", 0.95), ("bootstrap", 0.92)]
)
def test_intervals_cover(method, least):
    # 600 tallies: a standard error of .009 at .95, and a false alarm at 4 of them below 1e-4.
    rng = np.random.default_rng(17)
    mechanism = ik.MatrixMechanism(THREE, efficiency=True)
    truth = np.array([0.3, 0.45, 0.25])
    options = {"draws": 200} if method == "bootstrap" else {}
    repetitions, covered = 600, np.zeros(3)
    for _ in range(repetitions):
        tally = mechanism.simulate(rng.multinomial(2000, truth), rng)
        lower, upper = ik.mle(tally).interval(method=method, **options)
        covered += (lower <= truth) & (truth <= upper)
    error = np.sqrt(least * (1 - least) / repetitions)
    assert (covered / repetitions >= least - 4 * error).all(), covered / repetitions


def test_without_losses_the_region_is_the_other_one():
    # The two classes are independent searches of one end where all efficiencies are 1.
    tally = ik.RandomizedResponse(5, 1.0).tally_counts([30, 20, 10, 5, 2])
    plain = Profile.of(tally, 0.9)
    lossy = LossyProfile(plain.likelihood, plain.floor, np.ones(5))
    for w in np.eye(5):
        np.testing.assert_allclose(lossy.bracket(w)[1], plain.bracket(w)[1], atol=1e-8)
        np.testing.assert_allclose(lossy.bracket(1 - w)[1], plain.bracket(1 - w)[1], atol=1e-8)
