"""Lower bounds on the error of any estimate:
never violated, attained where they are said to be, and not for show.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

import ibukit as ik
from ibukit.theory import (
    asymptotic_mse,
    binary_response_mse,
    ldp_bounds,
    least_asymptotic_mse,
    posterior_entropy_bound,
)
from oracles import bayes_error, estimation, naive

SECRETS = [2, 3, 4, 5, 6, 8, 10]
EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0]
KINDS = [ik.RandomizedResponse, ik.OptimizedUnaryEncoding, ik.SubsetSelection]
GAUSS = 2 * math.pi * math.e


def thetas(k, rng):
    """Uniform, a power law, and random ones, some of them close to the border."""
    random = [
        rng.dirichlet(np.full(k, alpha)) + 1e-9 for alpha in (0.1, 0.5, 1.0, 3.0) for _ in range(3)
    ]
    return [weights / weights.sum() for weights in (np.ones(k), 1 / np.arange(1, k + 1), *random)]


def matrix_of(kind, k, eps):
    """By the oracle."""
    if kind is ik.RandomizedResponse:
        return naive.k_rr(k, eps)
    if kind is ik.OptimizedUnaryEncoding:
        return naive.oue(k, eps)
    return estimation.subset_selection(k, eps, ik.SubsetSelection(k, eps).size)


def violations(value, squares, k, eps, theta):
    """Names of the bounds that an error and its share for the frequencies break."""
    paper = ldp_bounds(k, eps)
    floors = {
        "at theta": (value, least_asymptotic_mse(k, eps, theta)),
        "anywhere": (value, least_asymptotic_mse(k, eps)),
        "(59)": (value, paper.distribution),
        "(60)": (value - 1 + squares, paper.frequencies),
    }
    return [name for name, (error, floor) in floors.items() if error < floor * (1 - 1e-11)]


@pytest.mark.ledger("D-TI", "D-T4.5")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", SECRETS)
def test_no_mechanism_is_below_a_bound(kind, k, rng):
    for eps in EPSILONS:
        matrix = matrix_of(kind, k, eps)
        for theta in thetas(k, rng):
            value = np.trace(estimation.tangent_inverse(matrix, theta))
            assert asymptotic_mse(kind(k, eps), theta) == pytest.approx(value, rel=1e-7)
            assert violations(value, theta @ theta, k, eps, theta) == []


@pytest.mark.parametrize("k", SECRETS)
def test_a_mechanism_of_a_higher_level_is_caught(k):
    """Each bound fails for a mechanism
    that gives away more than it is told: the test above can fail.
    """
    uniform = ik.uniform(k)
    for eps in (0.1, 1.0):
        value = asymptotic_mse(ik.SubsetSelection(k, eps), uniform)
        assert "at theta" in violations(value, 1 / k, k, eps / 1.2, uniform)
        assert violations(value, 1 / k, k, eps / 4, uniform) == [
            "at theta",
            "anywhere",
            "(59)",
            "(60)",
        ]


@pytest.mark.ledger("D-T4.5")
@pytest.mark.erratum("D4")
def test_subset_selection_attains_the_bound_at_uniform_secrets():
    for k in SECRETS:
        uniform = ik.uniform(k)
        for eps in EPSILONS:
            closed = 4 * (k - 1) ** 2 * math.exp(eps) / (k * (math.exp(eps) - 1) ** 2)
            assert least_asymptotic_mse(k, eps, uniform) == pytest.approx(closed, rel=1e-12)
            if k / (math.exp(eps) + 1) >= 1:  # else one secret is too many already
                assert asymptotic_mse(ik.SubsetSelection(k, eps), uniform) < 1.14 * closed
        for size in range(1, (k + 1) // 2):
            eps = math.log(k / size - 1)  # where the best size is whole
            mechanism = ik.SubsetSelection(k, eps)
            assert mechanism.size == size
            assert asymptotic_mse(mechanism, uniform) == pytest.approx(
                least_asymptotic_mse(k, eps, uniform), rel=1e-12
            )
    ten = (
        asymptotic_mse(ik.SubsetSelection(10, 0.1, 5), ik.uniform(10)),
        least_asymptotic_mse(10, 0.1, ik.uniform(10)),
    )
    assert ten == pytest.approx((3245.4, 3237.3), abs=0.05)
    # the paper's form in the limit of small epsilon, below by a factor of 4 (1 - 1/k)^2; nothing
    # depends on m
    for k in (2, 4, 6, 8, 10):
        ratio = (
            asymptotic_mse(ik.SubsetSelection(k, 1e-5), ik.uniform(k))
            / ldp_bounds(k, 1e-5).distribution
        )
        assert ratio == pytest.approx(4 * (1 - 1 / k) ** 2, rel=1e-4)


def test_two_secrets_attain_the_bound_that_holds_everywhere():
    for theta in ([0.5, 0.5], [0.9, 0.1], [0.999, 0.001]):
        eps = 1e-4
        value = asymptotic_mse(ik.RandomizedResponse(2, eps), theta)
        assert value == pytest.approx(least_asymptotic_mse(2, eps), rel=2e-4)


def test_the_bound_at_theta_is_the_sum_of_roots_and_above_the_shorter_one(rng):
    for k in (2, 3, 7):
        for theta in thetas(k, rng):
            root = np.sqrt(theta)
            beside = np.eye(k) - np.outer(root, root)
            values = np.maximum(np.linalg.eigvalsh(beside @ np.diag(theta) @ beside), 0)
            eps = 1.3
            expected = 4 * math.exp(eps) / (math.exp(eps) - 1) ** 2 * np.sqrt(values).sum() ** 2
            shorter = 4 * math.exp(eps) / (math.exp(eps) - 1) ** 2 * (root * (1 - theta)).sum() ** 2
            found = least_asymptotic_mse(k, eps, theta)
            # roots of rounding errors
            assert found == pytest.approx(max(expected, least_asymptotic_mse(k, eps)), rel=1e-6)
            assert found >= shorter * (1 - 1e-12)
    # with the root over all of theta (1 - theta) it would be false: subset selection is better than
    # that
    k, eps = 10, 0.1
    too_much = (
        4 * math.exp(eps) / (math.exp(eps) - 1) ** 2 * (k * math.sqrt((1 / k) * (1 - 1 / k))) ** 2
    )
    assert asymptotic_mse(ik.SubsetSelection(k, eps), ik.uniform(k)) < too_much


def staircase(k, eps, rng):
    """A random extreme mechanism: every column a multiple of e^eps on some set and 1 elsewhere."""
    sets = np.array([bits for bits in itertools.product((0, 1), repeat=k) if 0 < sum(bits) < k])
    columns = np.where(sets == 1, math.exp(eps), 1.0).T
    found = optimize.linprog(
        rng.normal(size=len(sets)), A_eq=columns, b_eq=np.ones(k), bounds=(0, None)
    )
    used = found.x > 1e-12
    return columns[:, used] * found.x[used]


@pytest.mark.ledger("D-T4.5")
@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_no_random_staircase_is_below_a_bound(k, rng):
    closest = np.inf
    for eps in (0.1, 1.0, 3.0):
        for _ in range(40):
            vertices = [staircase(k, eps, rng) for _ in range(2)]
            for matrix in (*vertices, np.hstack([0.5 * vertex for vertex in vertices])):
                if np.linalg.matrix_rank(matrix) < k:
                    continue
                assert ik.privacy.epsilon_ldp(ik.MatrixMechanism(matrix)) <= eps * (1 + 1e-9)
                theta = rng.dirichlet(np.full(k, rng.choice([0.5, 1.0, 5.0]))) + 1e-6
                theta /= theta.sum()
                value = np.trace(estimation.tangent_inverse(matrix, theta))
                assert violations(value, theta @ theta, k, eps, theta) == []
                closest = min(closest, value / least_asymptotic_mse(k, eps, theta))
    assert closest < 2  # so close do they come


@pytest.mark.ledger("D-T4.1")
@pytest.mark.parametrize("eps", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("alpha", [(0.5, 0.5), (1, 1), (2, 3)])
def test_posterior_entropies_bound_the_exact_errors_of_two_secrets(eps, alpha):
    for n in (1, 2, 3, 10, 40):
        exact = bayes_error.binary_response_entropies(eps, alpha, n, 400)
        bound = posterior_entropy_bound(exact["h"], k=2)
        assert bound == pytest.approx(2 / GAUSS * math.exp(2 * exact["h"]), rel=1e-12)
        assert 0.25 * exact["distribution"] < bound < exact["distribution"]
        finite = posterior_entropy_bound(exact["H"], k=2, n=n)
        assert finite <= exact["frequencies"]
        literal = 2 / (GAUSS * n**2) * math.exp(2 * exact["H"])
        assert finite == pytest.approx(max(0, literal - 2 / 12 / n**2), rel=1e-12, abs=1e-15)


@pytest.mark.ledger("D-T4.1")
@pytest.mark.erratum("D2")
def test_the_bound_on_frequencies_is_false_for_few_users_without_its_correction():
    exact = bayes_error.binary_response_entropies(9.0, (0.5, 0.5), 3, 200)
    literal = 2 / (GAUSS * 9) * math.exp(2 * exact["H"])
    assert exact["frequencies"] == pytest.approx(8.2e-5, abs=5e-7)
    assert literal == pytest.approx(1.31e-2, abs=5e-5)
    assert literal > 100 * exact["frequencies"]
    assert posterior_entropy_bound(exact["H"], k=2, n=3) <= exact["frequencies"]


@pytest.mark.ledger("D-T4.1")
@pytest.mark.erratum("D3")
@pytest.mark.parametrize("alpha", [(1, 1, 1), (2, 3, 4)])
def test_the_larger_constant_holds_for_three_secrets(alpha):
    for matrix in (naive.k_rr(3, 1.0), naive.k_rr(3, 2.5), estimation.subset_selection(3, 0.4, 2)):
        for n in (1, 4, 10):
            h, powers = bayes_error.posterior_entropy(matrix, alpha, n, 30)
            error, _ = bayes_error.least_errors(matrix, alpha, n)
            bound = posterior_entropy_bound(h, k=3)
            assert 0.5 * error < bound < error
            # 2 sqrt(3) in the place of the paper's 3
            assert bound / (3 / GAUSS * math.exp(h)) == pytest.approx(
                2 * math.sqrt(3) / 3, rel=1e-12
            )
            # before Jensen, which is the closer one
            assert bound * (1 - 1e-12) <= 2 * math.sqrt(3) / GAUSS * powers <= error
    # a Gaussian of equal variances attains it, and the paper's constant leaves a seventh
    assert posterior_entropy_bound(math.log(GAUSS * 0.01) - math.log(3) / 2, k=3) == pytest.approx(
        0.02, rel=1e-12
    )
    factors = [(k - 1) * k ** (1 / (k - 1)) / k for k in range(2, 200)]
    assert factors[0] == 1
    assert min(factors[1:]) > 1


def to_lattice(v):
    """The nearest whole vector of sum 0 (Conway and Sloane)."""
    near = np.rint(v)
    order = np.argsort(v - near)
    excess = round(near.sum())
    near[order[:excess] if excess > 0 else order[len(v) + excess :]] -= np.sign(excess)
    return near


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_the_correction_for_whole_numbers(k, rng):
    """Noise that fills the gaps between whole vectors has the second moment that is taken off."""
    cube = rng.random((4000, k - 1))
    points = np.c_[cube, -cube.sum(axis=1)]
    squares = np.array([((point - to_lattice(point)) ** 2).sum() for point in points])
    moment = (k - 1) * (k + 2) / (12 * k)
    spread = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - moment) < 5 * spread
    if k > 2:  # where it is k / 12
        assert abs(squares.mean() - k / 12) > 5 * spread
    n, entropy = 1000, 4.0 * (k - 1)
    uncertain = math.exp(8.0) / GAUSS
    factor = (k - 1) * k ** (1 / (k - 1))
    expected = max(k * uncertain - k / 12, factor * uncertain - moment) / n**2
    assert posterior_entropy_bound(entropy, k=k, n=n) == pytest.approx(expected, rel=1e-12)


def test_frequencies_of_three_secrets_keep_the_bound():
    """H(F | reports) by enumeration of users: all secrets and reports of four people."""
    matrix, n, alpha = naive.k_rr(3, 2.0), 4, (1, 1, 1)
    points, weights = bayes_error.dirichlet_nodes(alpha, n)
    counts = list(bayes_error.all_counts(3, n))
    given = {}  # P(s | t) by all splits
    for t in counts:
        users = np.repeat(np.arange(3), t)
        law = np.zeros((n + 1,) * 3)
        for reports in itertools.product(range(3), repeat=n):
            law[tuple(np.bincount(reports, minlength=3))] += np.prod(matrix[users, reports])
        given[tuple(t)] = law
    p_t = np.array(
        [bayes_error.multinomial(t) * (weights @ (points**t).prod(axis=1)) for t in counts]
    )
    joint = np.array(
        [[p * given[tuple(t)][tuple(s)] for s in counts] for p, t in zip(p_t, counts, strict=True)]
    )
    p_s = joint.sum(axis=0)
    entropy = -(joint * np.log(joint / p_s)).sum()
    _, error = bayes_error.least_errors(matrix, alpha, n)
    bound = posterior_entropy_bound(entropy, k=3, n=n)
    assert 0.1 * error < bound < error


@pytest.mark.ledger("D-P4.6", "D-D2.2")
@pytest.mark.parametrize("alpha", [0.5, (1, 1), (2, 3)])
def test_two_secrets_in_closed_form(alpha, rng):
    a = np.broadcast_to(alpha, 2)
    for eps in (0.1, 1.0, 4.0):
        for n in (1, 2, 10, 37):
            exact = bayes_error.binary_inversion_errors(eps, tuple(a), n)
            assert binary_response_mse(eps, n=n, alpha=alpha) == pytest.approx(exact, rel=1e-9)
            assert binary_response_mse(eps, n=n, alpha=alpha) >= bayes_error.least_errors(
                naive.k_rr(2, eps), a, n
            )
    # the definition: over prior, secrets and reports, summed over the alphabet
    n, eps, mechanism = 10, 1.0, ik.RandomizedResponse(2, 1.0)
    errors = []
    for p in rng.dirichlet(a, 4000):
        secrets = rng.multinomial(n, p)
        v = ik.inv(mechanism.simulate(secrets, rng), post="none").distribution
        errors.append([((v - p) ** 2).sum(), ((v - secrets / n) ** 2).sum()])
    errors = np.array(errors)
    spread = errors.std(axis=0) / math.sqrt(len(errors))
    expected = np.array(binary_response_mse(eps, n=n, alpha=alpha))
    assert (np.abs(errors.mean(axis=0) - expected) < 5 * spread).all()
    # a mean over the alphabet in the place of the sum would be seen
    assert (np.abs(errors.mean(axis=0) - expected / 2) > 5 * spread).all()


@pytest.mark.ledger("D-P4.6")
def test_the_numbers_for_ten_users():
    assert binary_response_mse(1.0, n=10, alpha=0.5) == pytest.approx((0.20913, 0.18413), abs=5e-6)


@pytest.mark.ledger("D-D2.3")
def test_the_worst_case_is_never_below_the_average(rng):
    n, eps = 10, 1.0
    p = np.linspace(0, 1, 201)
    noise = math.exp(eps) / (math.exp(eps) - 1) ** 2
    for_each = 2 / n * (noise + p * (1 - p))  # of the distribution, at fixed p
    # which is the exact error of inversion at that distribution
    for at in (0, 40, 100):
        exact = ik.theory.inv_squared_error(ik.RandomizedResponse(2, eps), [p[at], 1 - p[at]]) / n
        assert for_each[at] == pytest.approx(exact, rel=1e-12)
    for alpha in (0.5, 1.0, (2, 3)):
        assert for_each.max() >= binary_response_mse(eps, n=n, alpha=alpha)[0] > for_each.min()


@pytest.mark.ledger("D-C4.7")
@pytest.mark.parametrize("alpha", [0.5, 1.0, (2, 3)])
def test_two_secrets_attain_the_bounds_for_small_epsilon(alpha):
    a = np.broadcast_to(alpha, 2)
    product = a[0] * a[1] / (a.sum() * (a.sum() + 1))
    n = 10**6
    for eps in (1e-3, 1e-2, 0.1):
        mse, paper = n * np.array(binary_response_mse(eps, n=n, alpha=alpha)), ldp_bounds(2, eps)
        ratios = mse / [paper.distribution, paper.frequencies]
        gain = math.exp(eps) - 1
        assert ratios == pytest.approx(
            [math.exp(eps) + gain**2 * product, math.exp(3 * eps)], rel=1e-9
        )
        assert mse[0] / least_asymptotic_mse(2, eps) == pytest.approx(1, abs=eps)
    at = n * np.array(binary_response_mse(0.01, n=n, alpha=0.5))
    bounds = [ldp_bounds(2, 0.01).distribution, ldp_bounds(2, 0.01).frequencies]
    assert at / bounds == pytest.approx([1.0101, 1.0305], abs=5e-5)
    assert at[0] / least_asymptotic_mse(2, 0.01) == pytest.approx(1.0050, abs=5e-5)


def test_bad_input():
    with pytest.raises(ValueError, match="k must be at least 2, got 1"):
        least_asymptotic_mse(1, 1.0)
    with pytest.raises(ValueError, match="epsilon must be a finite number above 0, got 0"):
        ldp_bounds(3, 0)
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match="theta must have one probability for each of the 3 elements",
    ):
        least_asymptotic_mse(3, 1.0, [0.5, 0.5])
    for entropy in (math.inf, math.nan):
        with pytest.raises(ValueError, match="entropy must be a number of nats below inf"):
            posterior_entropy_bound(entropy, k=3)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        posterior_entropy_bound(0.0, k=3, n=0)
    with pytest.raises(ValueError, match="alpha must be finite and above 0, got -1"):
        binary_response_mse(1.0, n=10, alpha=(1, -1))
    assert posterior_entropy_bound(-math.inf, k=3) == 0
    assert posterior_entropy_bound(-math.inf, k=3, n=5) == 0
