"""The error of inverting an average:
brute force, the papers' bounds and what they leave out, and simulation.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import ibukit as ik
from ibukit.theory import compound_squared_error, inv_squared_error
from instances import distributions
from oracles import free_will, naive

LEVELS = st.sampled_from([0.1, 0.5, 1.0, 3.0, 8.0]) | st.floats(0.05, 9.0)


@st.composite
def mixtures(draw, least=1, most=4):
    levels = draw(st.lists(LEVELS, min_size=least, max_size=most))
    return np.array(levels), draw(distributions(len(levels)))


def rappor_bits(epsilon):
    half = np.exp(epsilon / 2)
    return half / (1 + half), 1 / (1 + half)


def variance(values, weights):
    mean = weights @ values
    return weights @ (values - mean) ** 2


def printed_krr(k, level, theta):
    """The bound of section 5.2, times n."""
    e = np.exp(level)
    return 1 - (theta**2).sum() + (k - 1) * (k + 2 * (e - 1)) / (e - 1) ** 2


def printed_rappor(k, level, theta):
    """The bound of section 5.4, times n."""
    half = np.exp(level / 2)
    return 1 - (theta**2).sum() + k * half / (half - 1) ** 2


K = 5
LINE, GRID = ik.Line(0, K - 1), ik.Grid(1, K)
FIXED = np.random.default_rng(14)
SQUARE, WIDE, OTHER_WIDE = (FIXED.dirichlet(np.full(m, 0.3), K) for m in (K, K + 3, K + 3))
MIXES = {
    "k-RR": [(ik.RandomizedResponse(LINE, e), naive.k_rr(K, e)) for e in (0.2, 1.0, 6.0)],
    "geometric": [
        (ik.TruncatedGeometric(LINE, e), naive.truncated_geometric(K, e)) for e in (0.1, 0.5, 3.0)
    ],
    "k-RR, geometric, exponential, matrix": [
        (ik.RandomizedResponse(LINE, 2.0), naive.k_rr(K, 2.0)),
        (ik.TruncatedGeometric(LINE, 0.3), naive.truncated_geometric(K, 0.3)),
        (ik.Exponential(LINE, 1.0), naive.exponential(naive.line_distances(K), 1.0)),
        (ik.MatrixMechanism(SQUARE, LINE), SQUARE),
    ],
    "plane and k-RR": [
        (
            ik.TruncatedPlanarGeometric(GRID, 1.0),
            naive.truncated_planar_geometric(1, K, 1.0, 1.0, 1.0),
        ),
        (ik.RandomizedResponse(GRID, 1.0), naive.k_rr(K, 1.0)),
    ],
    "one of which alone is singular": [
        (ik.MatrixMechanism(np.full((K, K), 1 / K), LINE), np.full((K, K), 1 / K)),
        (ik.RandomizedResponse(LINE, 3.0), naive.k_rr(K, 3.0)),
    ],
    "more reports than secrets": [(ik.MatrixMechanism(m, LINE), m) for m in (WIDE, OTHER_WIDE)],
}
mixes = pytest.mark.parametrize("name", MIXES)


def weighted(name, rng):
    mechanisms, matrices = zip(*MIXES[name], strict=True)
    return mechanisms, matrices, rng.dirichlet(np.ones(len(mechanisms)))


@mixes
def test_it_is_the_covariance_carried_through_the_inverse(name, rng):
    for _ in range(20):
        mechanisms, matrices, weights = weighted(name, rng)
        theta = rng.dirichlet(np.full(K, 0.5))
        inverse = np.linalg.pinv(free_will.average(matrices, weights))
        exact = free_will.compound_error(matrices, weights, theta, inverse)
        assert compound_squared_error(mechanisms, theta, weights) == pytest.approx(exact, rel=1e-9)
        # negative control: the error that all users would make who share the average
        assert inv_squared_error(ik.average_mechanism(mechanisms, weights), theta) != pytest.approx(
            exact, rel=1e-4
        )


@pytest.mark.parametrize("encoding", ["RAPPOR", "OUE", "subset selection"])
def test_of_bits_it_is_the_sum_of_their_variances(encoding, rng):
    for _ in range(20):
        levels, weights = rng.uniform(0.1, 6, 3), rng.dirichlet(np.ones(3))
        theta = rng.dirichlet(np.full(K, 0.5))
        if encoding == "RAPPOR":
            mechanisms, pairs = (
                [ik.Rappor(LINE, e) for e in levels],
                [rappor_bits(e) for e in levels],
            )
        elif encoding == "OUE":
            mechanisms = [ik.OptimizedUnaryEncoding(LINE, e) for e in levels]
            pairs = [(0.5, 1 / (1 + np.exp(e))) for e in levels]
        else:
            mechanisms = [ik.SubsetSelection(LINE, e, 2) for e in levels]
            own = [2 * np.exp(e) / (2 * np.exp(e) + K - 2) for e in levels]
            pairs = [(p, (2 - p) / (K - 1)) for p in own]
        exact = free_will.compound_bit_error(pairs, weights, theta)
        assert compound_squared_error(mechanisms, theta, weights) == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
@mixes
def test_it_is_the_error_of_simulated_estimates(name, rng):
    """To five of its own standard errors, and an error of a quarter would be seen.
    The groups have fixed sizes.
    """
    mechanisms, _, _ = weighted(name, rng)
    sizes = rng.integers(10, 40, len(mechanisms))
    n, theta = sizes.sum(), rng.dirichlet(np.ones(K))
    errors = []
    for _ in range(750):
        groups = [
            a.simulate(rng.multinomial(size, theta), rng)
            for a, size in zip(mechanisms, sizes, strict=True)
        ]
        v = ik.combine_mechanisms(sum(groups), post="none").distribution
        errors.append(n * ik.squared_l2(v, theta))
    exact, spread = (
        compound_squared_error(mechanisms, theta, sizes / n),
        np.std(errors) / np.sqrt(len(errors)),
    )
    assert abs(np.mean(errors) - exact) < 5 * spread
    assert abs(np.mean(errors) - 1.25 * exact) > 5 * spread


@pytest.mark.ledger("C-P3")
def test_so_it_is_for_rappors(rng):
    mechanisms, sizes, theta = (
        [ik.Rappor(4, 0.5), ik.Rappor(4, 5.0)],
        np.array([30, 20]),
        np.array([0.7, 0.1, 0.1, 0.1]),
    )
    errors = []
    for _ in range(1500):
        groups = [
            a.simulate(rng.multinomial(size, theta), rng)
            for a, size in zip(mechanisms, sizes, strict=True)
        ]
        errors.append(
            50 * ik.squared_l2(ik.combine_mechanisms(sum(groups), post="none").distribution, theta)
        )
    exact, spread = (
        compound_squared_error(mechanisms, theta, sizes / 50),
        np.std(errors) / np.sqrt(len(errors)),
    )
    assert abs(np.mean(errors) - exact) < 5 * spread
    assert abs(np.mean(errors) - 1.25 * exact) > 5 * spread


@pytest.mark.ledger("C-P2")
@pytest.mark.erratum("C2")
@given(st.integers(2, 7), mixtures(), st.data())
def test_what_the_bound_for_k_rrs_leaves_out(k, mixture, data):
    levels, weights = mixture
    theta = data.draw(distributions(k))
    mechanisms = [ik.RandomizedResponse(k, e) for e in levels]
    average = ik.average_mechanism(mechanisms, weights).epsilon
    bound = printed_krr(k, average, theta)
    assert inv_squared_error(ik.RandomizedResponse(k, average), theta) == pytest.approx(
        bound, rel=1e-9
    )
    a = (np.exp(average) + k - 1) / (np.exp(average) - 1)
    deficit = (
        a**2 * k * (k * (theta**2).sum() - 1) * variance(1 / (k - 1 + np.exp(levels)), weights)
    )
    exact = compound_squared_error(mechanisms, theta, weights)
    assert exact == pytest.approx(bound - deficit, rel=1e-9, abs=1e-9)
    assert exact <= bound * (1 + 1e-12)
    # brute force agrees
    matrices = [naive.k_rr(k, e) for e in levels]
    assert exact == pytest.approx(
        free_will.compound_error(matrices, weights, theta), rel=1e-7, abs=1e-9
    )


@pytest.mark.ledger("C-P3")
@pytest.mark.erratum("C2")
@given(st.integers(2, 7), mixtures(), st.data())
def test_what_the_bound_for_rappors_leaves_out(k, mixture, data):
    levels, weights = mixture
    theta = data.draw(distributions(k))
    mechanisms = [ik.Rappor(k, e) for e in levels]
    average = ik.average_mechanism(mechanisms, weights).epsilon
    bound = printed_rappor(k, average, theta)
    assert inv_squared_error(ik.Rappor(k, average), theta) == pytest.approx(bound, rel=1e-9)
    b = (np.exp(average / 2) + 1) / (np.exp(average / 2) - 1)
    deficit = (
        b**2 * (k - 4 + 4 * (theta**2).sum()) * variance(1 / (1 + np.exp(levels / 2)), weights)
    )
    exact = compound_squared_error(mechanisms, theta, weights)
    assert exact == pytest.approx(bound - deficit, rel=1e-9, abs=1e-9)
    assert exact <= bound * (1 + 1e-12)
    pairs = [rappor_bits(e) for e in levels]
    assert exact == pytest.approx(free_will.compound_bit_error(pairs, weights, theta), rel=1e-9)


@pytest.mark.ledger("C-P2", "C-P3")
@pytest.mark.erratum("C2")
def test_where_the_bounds_are_equalities():
    levels = [0.2, 1.0, 5.0]
    point, lopsided = np.eye(6)[0], np.array([0.5, 0.3, 0.1, 0.1, 0, 0])

    def bound_over_exact(kind, k, levels, theta):
        mechanisms = [kind(k, e) for e in levels]
        bound = inv_squared_error(ik.average_mechanism(mechanisms), theta)
        return bound / compound_squared_error(mechanisms, theta)

    for kind in (ik.RandomizedResponse, ik.Rappor):
        for theta in (ik.uniform(6), lopsided, point):
            assert bound_over_exact(kind, 6, [0.7] * 3, theta) == pytest.approx(
                1, abs=1e-13
            )  # as the paper has it
    # and where the levels differ
    for k in (2, 6):
        assert bound_over_exact(ik.RandomizedResponse, k, levels, ik.uniform(k)) == pytest.approx(
            1, abs=1e-12
        )
    assert bound_over_exact(ik.Rappor, 2, levels, ik.uniform(2)) == pytest.approx(1, abs=1e-12)
    # nowhere else
    assert bound_over_exact(ik.RandomizedResponse, 6, levels, lopsided) > 1.03
    assert bound_over_exact(ik.Rappor, 6, levels, ik.uniform(6)) > 1.05
    assert bound_over_exact(ik.Rappor, 2, levels, np.array([0.6, 0.4])) > 1.001


@pytest.mark.ledger("C-R1")
def test_close_to_the_error_on_clean_data_from_e_to_the_level_k_on():
    theta = ik.normalize(np.arange(1, 101))
    clean = 1 - theta @ theta
    excess = inv_squared_error(ik.RandomizedResponse(100, np.log(100)), theta) - clean
    assert excess == pytest.approx(3 + 1 / 99, rel=1e-12)
    assert round(excess, 4) == 3.0101
    for level in np.log([101.0, 150.0, 1e4]):
        assert inv_squared_error(ik.RandomizedResponse(100, level), theta) - clean < excess
    assert inv_squared_error(ik.RandomizedResponse(100, np.log(99)), theta) - clean > excess
    # so for any mix of that average level
    wide = [ik.RandomizedResponse(100, e) for e in (4.0, 5.5)]
    assert ik.average_mechanism(wide).epsilon > np.log(90)
    assert (
        compound_squared_error(wide, theta) - clean
        < inv_squared_error(ik.average_mechanism(wide), theta) - clean
    )


@st.composite
def any_mix(draw):
    """Two to four random matrices with the same reports, which may be more than the secrets."""
    k = draw(st.integers(2, 5))
    m = draw(st.integers(k, k + 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    concentration = draw(st.sampled_from([0.1, 1.0, 10.0]))
    many = draw(st.integers(2, 4))
    return [rng.dirichlet(np.full(m, concentration), k) for _ in range(many)], draw(
        distributions(many)
    )


@given(any_mix(), st.data())
def test_the_bound_holds_for_every_mix_with_an_invertible_average(mix, data):
    matrices, weights = mix
    mechanisms = [ik.MatrixMechanism(matrix) for matrix in matrices]
    average = ik.average_mechanism(mechanisms, weights)
    assume(np.linalg.cond(average.matrix()) < 1e5)
    theta = data.draw(distributions(average.k))
    exact, bound = (
        compound_squared_error(mechanisms, theta, weights),
        inv_squared_error(average, theta),
    )
    assert exact <= bound + 1e-12 * abs(bound)
    # the difference is a variance: that of what the inverse makes of each mechanism's expected
    # reports
    inverse = np.linalg.pinv(average.matrix())
    shifts = np.array([theta @ matrix @ inverse - theta for matrix in matrices])
    assert np.abs(weights @ shifts).max() <= 1e-8, "theirs is the truth on average"
    assert bound - exact == pytest.approx(
        weights @ (shifts**2).sum(axis=1), rel=1e-6, abs=1e-8 * bound
    )


def test_one_mechanism_makes_its_own_error(rng):
    theta = rng.dirichlet(np.ones(K))
    for mechanism in (
        ik.RandomizedResponse(LINE, 1.0),
        ik.Rappor(LINE, 1.0),
        ik.MatrixMechanism(WIDE, LINE),
    ):
        own = pytest.approx(inv_squared_error(mechanism, theta), rel=1e-12)
        assert compound_squared_error([mechanism], theta) == own
        assert compound_squared_error([mechanism] * 3, theta, [0.1, 0.2, 0.7]) == own


def test_weights_are_even_unless_given(rng):
    mechanisms, _, _ = weighted("k-RR", rng)
    theta = rng.dirichlet(np.ones(K))
    even = compound_squared_error(mechanisms, theta)
    assert even == compound_squared_error(mechanisms, theta, [1 / 3] * 3)
    assert even != pytest.approx(
        compound_squared_error(mechanisms, theta, [0.2, 0.2, 0.6]), rel=1e-3
    )


def test_thousands_of_levels_need_no_matrix():
    line = ik.Line(0, 9999)
    mechanisms = [ik.RandomizedResponse(line, e) for e in np.linspace(3, 8, 300)]
    theta = ik.normalize(np.arange(1, 10_001))
    exact = compound_squared_error(mechanisms, theta)
    assert exact < printed_krr(10_000, ik.average_mechanism(mechanisms).epsilon, theta)


@pytest.mark.parametrize(
    ("mechanisms", "theta", "weights", "error", "said"),
    [
        ([], [0.5, 0.5], None, ValueError, "mechanisms must hold at least one"),
        (
            [ik.RandomizedResponse(2, 1.0)],
            [0.5, 0.6],
            None,
            ik.errors.InvalidDistribution,
            "theta must sum to 1",
        ),
        (
            [ik.RandomizedResponse(2, 1.0)],
            [1.0],
            None,
            ik.errors.AlphabetMismatch,
            "theta must have one .* the 2 .*got 1",
        ),
        (
            [ik.RandomizedResponse(2, 1.0)],
            [0.5, 0.5],
            [0.9],
            ik.errors.InvalidDistribution,
            "weights must sum to 1",
        ),
        (
            [ik.RandomizedResponse(2, 1.0)],
            [0.5, 0.5],
            [0.5, 0.5],
            ik.errors.AlphabetMismatch,
            "weights must have one .*got 2",
        ),
        (
            [ik.RandomizedResponse(2, 1.0), ik.Rappor(2, 1.0)],
            [0.5, 0.5],
            None,
            ik.errors.AlphabetMismatch,
            "the same reports",
        ),
        (
            [ik.LinearGeometric(2, 1.0)],
            [0.5, 0.5],
            None,
            ik.errors.AlphabetMismatch,
            "can be listed",
        ),
        (
            [ik.MatrixMechanism([[0.5, 0.5]] * 2)],
            [0.5, 0.5],
            None,
            ik.errors.NotInvertible,
            "rank 1 for 2 secrets",
        ),
        (
            [
                ik.MatrixMechanism([[0.75, 0.25], [0.25, 0.75]]),
                ik.MatrixMechanism([[0.25, 0.75], [0.75, 0.25]]),
            ],
            *([0.5, 0.5], None, ik.errors.NotInvertible, "rank 1 for 2 secrets"),
        ),
    ],
)
def test_bad_input_is_named(mechanisms, theta, weights, error, said):
    with pytest.raises(error, match=said):
        compound_squared_error(mechanisms, theta, weights)
