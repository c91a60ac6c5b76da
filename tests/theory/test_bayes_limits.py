"""Errors of the best estimates under a prior:
limits for many users, the paper's constants, and van Trees for few.
"""

import math
import sys

import numpy as np
import pytest
from scipy import special, stats

import ibukit as ik
from ibukit.theory import bayes_limits, ldp_bounds, least_asymptotic_mse, van_trees_bound
from oracles import bayes_error, estimation, naive

EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0]
KINDS = [ik.RandomizedResponse, ik.OptimizedUnaryEncoding, ik.SubsetSelection]
PRIORS = {"Jeffreys": 0.5, "uniform": 1.0, "increasing": None}
GAUSS = math.log(2 * math.pi * math.e)


def parameter(prior, k):
    """Dir(2, 3, 4, ...) for the last."""
    return np.arange(2.0, k + 2) if PRIORS[prior] is None else np.full(k, PRIORS[prior])


@pytest.mark.ledger("D-TI", "D-T4.4", "D-C4.3")
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 8, 10])
def test_no_bound_is_above_the_limit(prior, k, rng):
    alpha = parameter(prior, k)
    for kind in KINDS:
        for eps in EPSILONS:
            draws = 100 if k < 8 or kind is not ik.OptimizedUnaryEncoding else 20
            limits, paper = (
                bayes_limits(kind(k, eps), alpha, rng=rng, draws=draws),
                ldp_bounds(k, eps),
            )
            # Jensen and the geometric mean hold for the drawn points themselves, so there is no
            # Monte-Carlo slack
            assert limits.distribution >= limits.distribution_bound * (1 - 1e-9)
            assert limits.frequencies >= limits.frequencies_bound * (1 - 1e-9)
            assert limits.distribution >= least_asymptotic_mse(k, eps)
            assert limits.k1 >= paper.k1
            assert limits.k2 >= paper.k2
            assert limits.distribution_bound >= paper.distribution
            assert limits.frequencies_bound >= paper.frequencies
            # what a mechanism of a fourth of its level would have to keep, it does not
            if eps <= 2:
                weaker = ldp_bounds(k, eps / 4)
                assert limits.k1 < weaker.k1
                assert limits.distribution < weaker.distribution


@pytest.mark.ledger("D-T4.2")
@pytest.mark.parametrize(
    ("mechanism", "matrix"),
    [
        (ik.RandomizedResponse(2, 1.0), naive.k_rr(2, 1.0)),
        (ik.RandomizedResponse(4, 0.5), naive.k_rr(4, 0.5)),
        (ik.OptimizedUnaryEncoding(3, 2.0), naive.oue(3, 2.0)),
        (ik.SubsetSelection(5, 0.4, 2), estimation.subset_selection(5, 0.4, 2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_constants_are_the_papers_letter_by_letter(mechanism, matrix):
    """The same points drawn twice:
    our short forms against (36)-(40), and traces against the inverse of J.
    """
    k, alpha = len(matrix), 0.7
    limits = bayes_limits(mechanism, alpha, rng=np.random.default_rng(3), draws=200)
    if k == 2:
        points, weights = bayes_error.dirichlet_nodes((alpha, alpha), 200)
    else:
        points, weights = (
            np.random.default_rng(3).dirichlet(np.full(k, alpha), 200),
            np.full(200, 1 / 200),
        )
    k1, k2 = weights @ [bayes_error.k1_k2_at(matrix, p) for p in points]
    assert (limits.k1, limits.k2) == pytest.approx((k1, k2), abs=1e-9)
    traces = weights @ [np.trace(estimation.tangent_inverse(matrix, p)) for p in points]
    assert limits.distribution == pytest.approx(traces, rel=1e-9)
    sampling = weights @ (1 - (points**2).sum(axis=1))
    assert limits.distribution - limits.frequencies == pytest.approx(sampling, rel=1e-6)
    factor = (k - 1) * k ** (1 / (k - 1))
    assert limits.distribution_bound == pytest.approx(factor * math.exp(2 * k1 / (k - 1)), rel=1e-9)
    assert limits.frequencies_bound == pytest.approx(factor * math.exp(2 * k2 / (k - 1)), rel=1e-9)


@pytest.mark.ledger("D-T4.2", "D-C4.3")
def test_entropies_and_errors_tend_to_the_limits():
    """Quadrature over all counts: what is missing is a fourth for four times the users."""
    limits = bayes_limits(ik.RandomizedResponse(2, 2.0), 3.0)
    missing = []
    for n in (125, 500, 2000):
        exact = bayes_error.binary_response_entropies(2.0, (3, 3), n, n // 2 + 100)
        half_log = math.log(n) / 2
        missing.append(
            [
                limits.k1 - (exact["h"] + half_log - GAUSS / 2),
                limits.k2 - (exact["H"] - half_log - GAUSS / 2),
                limits.distribution - n * exact["distribution"],
                limits.frequencies - n * exact["frequencies"],
            ]
        )
    missing = np.array(missing)
    assert (missing > 0).all()
    assert (missing[-1] < 0.005).all()
    assert missing[1:] / missing[:-1] == pytest.approx(np.full((2, 4), 0.25), abs=0.05)


@pytest.mark.ledger("D-T4.2")
def test_the_numbers_for_two_secrets():
    jeffreys = bayes_limits(ik.RandomizedResponse(2, 1.0), 0.5)
    assert (jeffreys.k1, jeffreys.k2) == pytest.approx((0.02053, -0.04132), abs=5e-6)
    strict = bayes_limits(ik.RandomizedResponse(2, 0.3), 2.0)
    assert (strict.k1, strict.k2) == pytest.approx((1.2092, 1.2002), abs=5e-5)
    assert (strict.distribution, strict.frequencies) == pytest.approx((22.456, 22.056), abs=5e-4)
    n = 1000
    exact = bayes_error.binary_response_entropies(0.3, (2, 2), n, 600)
    half_log = math.log(n) / 2
    on_the_way = exact["h"] + half_log - GAUSS / 2, exact["H"] - half_log - GAUSS / 2
    assert on_the_way == pytest.approx((1.0742, 1.0672), abs=5e-5)


@pytest.mark.slow
@pytest.mark.ledger("D-T4.2")
def test_the_numbers_for_two_secrets_and_four_thousand_users():
    n = 4000
    exact = bayes_error.binary_response_entropies(0.3, (2, 2), n, 2200)
    half_log = math.log(n) / 2
    on_the_way = exact["h"] + half_log - GAUSS / 2, exact["H"] - half_log - GAUSS / 2
    assert on_the_way == pytest.approx((1.1644, 1.1559), abs=5e-5)


def test_the_monte_carlo_error_is_what_it_says(rng):
    mechanism = ik.SubsetSelection(4, 1.0, 2)
    many = [bayes_limits(mechanism, 0.5, rng=rng, draws=300) for _ in range(100)]
    for name, which in (("k1", 0), ("k2", 1), ("distribution", 2), ("frequencies", 3)):
        values = np.array([getattr(limits, name) for limits in many])
        stated = np.mean([limits.standard_errors()[which] for limits in many])
        assert values.std() == pytest.approx(stated, rel=0.3)
    few = bayes_limits(ik.RandomizedResponse(2, 1.0), 0.5)
    assert max(few.standard_errors()) < 1e-9


def test_draws_are_taken_in_stretches(monkeypatch):
    module = sys.modules[bayes_limits.__module__]
    mechanism = ik.SubsetSelection(4, 1.0, 2)
    whole = bayes_limits(mechanism, 0.5, rng=np.random.default_rng(1), draws=100)
    monkeypatch.setattr(module, "DRAWN_ENTRIES_AT_ONCE", 7 * 24)
    assert bayes_limits(mechanism, 0.5, rng=np.random.default_rng(1), draws=100) == whole


CASES = [
    (naive.k_rr(2, 1.0), 1.0, (1, 2, 10, 80)),
    (naive.k_rr(2, 0.1), 0.1, (1, 10, 80)),
    (naive.k_rr(3, 1.0), 1.0, (1, 4, 16)),
    (estimation.subset_selection(3, 0.4, 2), 0.4, (1, 4, 16)),
    (naive.k_rr(3, 4.0), 4.0, (1, 4, 16)),
    (naive.oue(2, 2.0), 2.0, (1, 6)),
]


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 3.0, "increasing", "large"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_van_trees_is_below_the_exact_least_error(case, alpha):
    matrix, eps, users = CASES[case]
    k = len(matrix)
    prior = {"increasing": np.arange(0.5, k), "large": np.arange(2.5, k + 2)}.get(
        alpha, np.full(k, alpha)
    )
    for n in users:
        exact = bayes_error.least_errors(matrix, tuple(prior), n)
        bounds = [
            van_trees_bound(k, eps, n=n, alpha=prior, of=of)
            for of in ("distribution", "frequencies")
        ]
        assert np.all(np.array(bounds) <= np.array(exact) * (1 + 1e-9))
        total = prior.sum()
        variance = (prior / total * (1 - prior / total)).sum() / (total + 1)
        assert bounds[0] < variance
        if n == 1 and eps <= 1:
            assert bounds[0] > 0.55 * exact[0]


def test_the_two_bounds_of_van_trees_are_those_of_one_error():
    """Given the secrets, P is Dirichlet(alpha + n F): its error is n^2 / (n + alpha_0)^2 times
    that of F, and its own variance on average.
    """
    prior, n = np.ones(3), 20
    total = prior.sum()
    bounds = {
        of: van_trees_bound(3, 0.5, n=n, alpha=prior, of=of)
        for of in ("distribution", "frequencies")
    }
    assert bounds["frequencies"] > 0, "what is compared is not cut"
    of_prior = stats.dirichlet(prior).var().sum()
    # E var(P | F) by the law of total variance: the posterior mean varies by n / (n + alpha_0).
    within = of_prior * (1 - n / (n + total))
    shrunk = (n / (n + total)) ** 2 * bounds["frequencies"]
    assert bounds["distribution"] == pytest.approx(shrunk + within, rel=1e-12)


def test_van_trees_would_fail_with_less_information(rng):
    """A level too low, as if the reports said less than they do,
    is caught: the test above can fail.
    """
    caught = [
        (matrix_eps, alpha, n)
        for matrix_eps in (1.0, 2.0)
        for alpha in (0.5, 3.0)
        for n in (10, 40)
        if van_trees_bound(2, matrix_eps / 4, n=n, alpha=alpha)
        > bayes_error.least_errors(naive.k_rr(2, matrix_eps), (alpha, alpha), n)[0]
    ]
    assert len(caught) == 8


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("k", [2, 3])
def test_the_information_that_van_trees_counts_is_the_most_there_is(k, alpha):
    """E tr(S J S) by exact nodes:
    at most v for every mechanism, and v for sets of the worst size.
    """
    points, weights = bayes_error.dirichlet_nodes(np.full(k, alpha), 120)
    total = k * alpha
    spread = (total - alpha) / (total + 1)
    for eps in EPSILONS:
        found = []
        sets = [estimation.subset_selection(k, eps, size) for size in range(1, k)]
        for matrix in (naive.k_rr(k, eps), naive.oue(k, eps), *sets):
            reports = points @ matrix
            moved = points[:, :, None] * (matrix - reports[:, None, :])
            found.append(weights @ ((moved**2).sum(axis=1) / reports).sum(axis=1))
        # solved for v, where the other bound is not the larger one
        n = 1
        bound = van_trees_bound(k, eps, n=n, alpha=alpha)
        v = spread**2 / bound - total * spread
        if alpha <= 2:
            assert max(found) == pytest.approx(v, rel=1e-8)
        else:
            assert max(found) >= v * (1 - 1e-8)


@pytest.mark.parametrize(("k", "alpha"), [(5, 0.01), (30, 0.5), (300, 2.0), (1024, 0.5)])
def test_the_worst_sets_among_many_secrets(k, alpha):
    """V against Gauss's rule for every size of the sets, or a hundred of them."""
    total = k * alpha
    spread = (total - alpha) / (total + 1)
    for eps in (0.5, 3.0, 6.0):
        gain = math.exp(eps) - 1
        sizes = np.unique(np.geomspace(1, k - 1, 100).astype(int))
        found = []
        for j in sizes:
            u, weights = bayes_error.beta_nodes(j * alpha + 2, (k - j) * alpha + 2, 150)
            squares = (
                (alpha + 1) * j * alpha * (k - j) * alpha / (total * (total + 1) * (total + 3))
            )
            found.append(gain**2 * squares * (weights @ (1 / (1 + gain * u))) / (1 + gain * j / k))
        bound = van_trees_bound(k, eps, n=10, alpha=alpha)
        v = (spread**2 / bound - total * spread) / 10
        # sizes between the hundred may be a little worse
        assert max(found) * (1 - 1e-9) <= v <= max(found) * (1.001 if k > 100 else 1 + 1e-9)


def test_with_no_privacy_left_to_lose_nothing_beats_the_constant():
    for k, alpha in ((3, 0.5), (10, np.arange(1.0, 11)), (1024, 0.5)):
        prior = np.broadcast_to(alpha, k)
        variance = (prior / prior.sum() * (1 - prior / prior.sum())).sum() / (prior.sum() + 1)
        assert van_trees_bound(k, 1e-5, n=10, alpha=alpha) == pytest.approx(variance, rel=1e-8)
        assert van_trees_bound(k, 1e-5, n=10, alpha=alpha) <= variance
    # a thousand secrets, ten thousand users, epsilon 1: within two per cent
    assert van_trees_bound(1024, 1.0, n=10_000, alpha=0.5) == pytest.approx(1.918e-3, abs=5e-7)
    assert van_trees_bound(1024, 1.0, n=10_000, alpha=0.5) > 0.98 * (1 - 1 / 1024) / 513


@pytest.mark.parametrize("alpha", [0.5, (0.5, 1.5), (3.0, 2.5), 4.0])
def test_frequencies_and_distribution_are_one_computation_apart(alpha):
    prior = np.broadcast_to(alpha, 2).astype(float)
    total = prior.sum()
    spread = 2 * prior[0] * prior[1] / (total * (total + 1))
    for eps in (0.5, 2.0):
        for n in (1, 5, 30):
            exact = bayes_error.binary_response_entropies(eps, tuple(prior), n, 200)
            identity = ((total + n) / n) ** 2 * (exact["distribution"] - spread / (total + n))
            assert exact["frequencies"] == pytest.approx(identity, rel=1e-9)
            least = bayes_error.least_errors(naive.k_rr(2, eps), tuple(prior), n)
            assert least == pytest.approx((exact["distribution"], exact["frequencies"]), rel=1e-9)


def test_the_prior_s_own_information():
    """I by quadrature of the squared gradient along the simplex."""
    for prior in ((3.0, 4.0), (2.5, 3.0, 6.0)):
        k = len(prior)
        # grad log f squared times the density is a density of smaller parameters: nodes for alpha -
        # 2 are exact
        points, weights = bayes_error.dirichlet_nodes(np.array(prior) - 2, 20)
        gradient = (np.array(prior) - 1) / points
        gradient -= gradient.mean(axis=1, keepdims=True)
        ratio = np.exp(
            bayes_error.log_density(points, prior)
            - bayes_error.log_density(points, np.array(prior) - 2)
        )
        information = weights @ (ratio * (gradient**2).sum(axis=1))
        eps, n = 0.1, 10**7
        expected = (k - 1) ** 2 / (n * k * (math.exp(eps / 2) - 1) ** 2 + information)
        assert van_trees_bound(k, eps, n=n, alpha=prior) == pytest.approx(expected, rel=1e-12)
        others = (k - 1) ** 2 / (n * k * (math.exp(eps / 2) - 1) ** 2 + 0.99 * information)
        assert van_trees_bound(k, eps, n=n, alpha=prior) != pytest.approx(others, rel=1e-9)


def test_bad_input(rng):
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        bayes_limits(ik.RandomizedResponse(3, 1.0), 0.5)
    with pytest.raises(ValueError, match="alpha must be finite and above 0, got 0"):
        bayes_limits(ik.RandomizedResponse(3, 1.0), 0.0, rng=rng)
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match=r"alpha must be a number or have shape \(3,\), got shape \(2,\)",
    ):
        van_trees_bound(3, 1.0, n=1, alpha=(1.0, 1.0))
    with pytest.raises(ik.errors.NotInvertible, match="do not identify the distribution"):
        bayes_limits(ik.MatrixMechanism(np.full((3, 3), 1 / 3)), 0.5, rng=rng)
    with pytest.raises(ValueError, match="mechanism must have reports that can be listed"):
        bayes_limits(ik.PlanarGeometric(ik.Grid(1, 3), 1.0), 0.5, rng=rng)
    with pytest.raises(ValueError, match="reports are too many to list"):
        bayes_limits(ik.Rappor(20, 1.0), 0.5, rng=rng)
    with pytest.raises(ValueError, match="draws must be at least 2, got 1"):
        bayes_limits(ik.RandomizedResponse(3, 1.0), 0.5, rng=rng, draws=1)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        van_trees_bound(3, 1.0, n=0, alpha=0.5)
    with pytest.raises(ValueError, match='of must be "distribution" or "frequencies", got \'P\''):
        van_trees_bound(3, 1.0, n=1, alpha=0.5, of="P")


@pytest.mark.parametrize("alpha", [0.06, 0.5, 1.0, 2.0, 30.0, 3000.0])
def test_reports_that_exclude_a_secret_have_the_limits_of_digamma_functions(alpha):
    """Without noise the limits are moments of a beta distribution, whose logarithms diverge at 0;
    if every other report says nothing, the information is halved.
    """
    mean_log = special.digamma(alpha) - special.digamma(2 * alpha)
    variance = alpha / (2 * alpha + 1)
    plain, half = (
        bayes_limits(ik.MatrixMechanism(matrix), alpha)
        for matrix in (np.eye(2), [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    )
    assert plain.k1 == pytest.approx(mean_log, rel=1e-9, abs=1e-9)
    assert half.k1 == pytest.approx(mean_log + math.log(2) / 2, rel=1e-9, abs=1e-9)
    assert (plain.k2, plain.frequencies) == (-math.inf, pytest.approx(0, abs=1e-12))
    assert (plain.distribution, half.distribution) == pytest.approx((variance, 2 * variance))
    assert half.frequencies == pytest.approx(variance)


def test_shares_that_are_no_doubles_are_missed_and_said_so():
    with pytest.raises(ik.ConvergenceError, match="alpha is so small") as caught:
        bayes_limits(ik.MatrixMechanism(np.eye(2)), 1e-3)
    limits = caught.value.estimate
    exact = special.digamma(1e-3) - special.digamma(2e-3)
    assert abs(limits.k1 - exact) <= limits._errors[0]


@pytest.mark.filterwarnings("error")
def test_what_is_minus_infinite_in_every_draw_has_no_error():
    found = bayes_limits(np.eye(3), 1.0, rng=np.random.default_rng(0), draws=20)
    assert found.k2 == -math.inf
    assert found.standard_errors()[1] == 0
    assert found.standard_errors()[0] > 0


@pytest.mark.parametrize(
    "alpha", [(14.9, 15.0), (15.1, 15.0), (200.0, 3.0), (0.4, 200.0), (31.0, 1e-3), (1e4, 3e4)]
)
def test_peaked_priors_have_the_limits_of_gauss_and_jacobi(alpha):
    mechanism = ik.RandomizedResponse(2, 1.0)
    limits = bayes_limits(mechanism, alpha)
    # The spread of the last prior is a 300th, so a few nodes around its mean are enough there.
    if max(alpha) < 1e4:
        nodes, weights = special.roots_jacobi(150, alpha[1] - 1, alpha[0] - 1)
        shares = (1 + nodes) / 2
    else:
        mean, deviation = stats.beta(*alpha).mean(), stats.beta(*alpha).std()
        nodes, weights = special.roots_legendre(100)
        shares = mean + 12 * deviation * nodes
        weights = weights * stats.beta(*alpha).pdf(shares)
    truth = 1 / (math.e + 1)
    seen = shares * (1 - truth) + (1 - shares) * truth
    errors = 2 * seen * (1 - seen) / (1 - 2 * truth) ** 2
    expected = weights @ errors / weights.sum()
    assert limits.distribution == pytest.approx(expected, rel=1e-9)
    assert max(limits.standard_errors()) < 1e-8


# of a million it is not lost yet; the larger alpha is, the longer the quadrature searches
@pytest.mark.parametrize("alpha", [1e8, pytest.param(2.0**53, marks=pytest.mark.slow)])
def test_a_prior_whose_density_is_lost_to_rounding_is_refused(alpha):
    with pytest.raises(ik.ConvergenceError, match="alpha is so large that its density is lost"):
        bayes_limits(ik.RandomizedResponse(2, 1.0), alpha)
