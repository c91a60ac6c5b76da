"""The bounds on RAPPOR's strict concavity: in exact arithmetic, and against simulated reports."""

from decimal import Decimal, localcontext
from functools import partial
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit.theory.rappor import rappor_concavity_bound

by_product = partial(rappor_concavity_bound, by="product")
BOTH = {"sets": rappor_concavity_bound, "product": by_product}
both = pytest.mark.parametrize("by", BOTH)


def by_decimals(n, k, epsilon):
    """The product with sixty digits, factor by factor; every double is a decimal."""
    with localcontext() as context:
        context.prec, context.Emin = 60, -(10**9)
        half = (Decimal(epsilon) / 2).exp()
        stays = (half / (1 + half)) ** n
        product = Decimal(1)
        for j in range(1, k + 1):
            product *= max(Decimal(0), 1 - stays * 2 ** (j - 1))
        return product


def by_decimals_over_sets(n, k, epsilon, sizes=None):
    """One minus the sum over the even sets with eighty digits, at least 0."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 80, -(10**9), 10**9
        half = (Decimal(epsilon) / 2).exp()
        c = (half - 1) / (half + 1)
        sizes = range(2, k + 1, 2) if sizes is None else sizes
        return max(Decimal(0), 1 - sum(comb(k, s) * ((1 + c**s) / 2) ** n for s in sizes))


@pytest.mark.ledger("A-T2", "A-F4")
@pytest.mark.parametrize(
    ("n", "epsilon", "printed"), [(25, 1.0, 0.9927), (20, 0.5, 0.9899), (30, 2.0, 0.9176)]
)
def test_values_of_the_figure(n, epsilon, printed):
    assert round(by_product(10, epsilon, n=n), 4) == printed


@pytest.mark.ledger("A-F4")
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_bound_rises_to_almost_one_within_tens_of_users(epsilon):
    bounds = by_product(10, epsilon, n=np.arange(101))
    assert (np.diff(bounds) >= 0).all()
    assert bounds[9] == 0
    assert bounds[50] > 0.999


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("k", [1, 2, 3, 10, 63, 64, 65, 200])
def test_agrees_with_exact_arithmetic(k, epsilon):
    # from where the bound leaves 0 to where it is almost 1
    leaves = int(np.ceil((k - 1) * np.log(2) / np.log1p(np.exp(-epsilon / 2))))
    users = np.unique(np.clip(leaves + np.array([-5, -1, 0, 1, 2, 5, 20, 100]), 0, None))
    exact = [float(by_decimals(int(n), k, epsilon)) for n in users]
    # next to where a factor vanishes its relative error is that of the logarithms over its size
    np.testing.assert_allclose(by_product(k, epsilon, n=users), exact, rtol=1e-11, atol=1e-13)
    assert 0 < max(exact) <= 1


def test_the_exact_product_would_see_a_factor_too_few():
    assert abs(float(by_decimals(12, 9, 0.5)) - by_product(10, 0.5, n=12)) > 1e-3


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 2.0, 7.0, 40.0])
@pytest.mark.parametrize("k", [2, 3, 10, 63, 64, 65, 200])
def test_over_sets_it_agrees_with_exact_arithmetic(k, epsilon):
    # from where the bound leaves 0: next to there its relative error is that of the logarithms over
    # its size
    leaves = 1
    while rappor_concavity_bound(k, epsilon, n=leaves) == 0:
        leaves = int(1.05 * leaves) + 1
    users = np.unique(np.clip(leaves + np.array([-5, -1, 0, 1, 2, 5, 20, 100]), 0, None))
    exact = [float(by_decimals_over_sets(int(n), k, epsilon)) for n in users]
    np.testing.assert_allclose(
        rappor_concavity_bound(k, epsilon, n=users), exact, rtol=1e-10, atol=1e-12
    )
    assert 0 < max(exact) <= 1


def test_exact_arithmetic_would_see_a_size_too_few():
    assert (
        abs(
            float(by_decimals_over_sets(12, 10, 0.5, range(4, 11, 2)))
            - rappor_concavity_bound(10, 0.5, n=12)
        )
        > 1e-3
    )


@given(k=st.integers(1, 400), epsilon=st.floats(0.01, 30.0), n=st.integers(0, 5000))
def test_over_sets_it_is_never_below_the_product(k, epsilon, n):
    assert rappor_concavity_bound(k, epsilon, n=n) >= by_product(k, epsilon, n=n) - 1e-12


@given(k=st.integers(2, 400), epsilon=st.floats(0.01, 30.0), n=st.integers(0, 5000))
def test_the_steps_of_the_proof_that_it_is_not(k, epsilon, n):
    c, p = np.tanh(epsilon / 4), 1 / (1 + np.exp(-epsilon / 2))
    assert all(
        (1 + c**s) / 2 <= p**2 + (1 - p) ** 2 + 1e-15 <= p + 1e-14 for s in range(2, k + 1, 2)
    )
    assert sum(comb(k, s) for s in range(2, k + 1, 2)) == 2 ** (k - 1) - 1
    last = 1 - 2.0 ** (k - 1) * p**n
    assert (
        by_product(k, epsilon, n=n)
        <= max(0, last) + 1e-12
        <= rappor_concavity_bound(k, epsilon, n=n) + 1e-11
    )


def test_over_sets_it_says_something_where_the_product_says_nothing():
    assert by_product(10, 3.0, n=20) == 0
    assert rappor_concavity_bound(10, 3.0, n=20) == pytest.approx(0.95743, abs=5e-6)


@pytest.mark.parametrize(("k", "epsilon"), [(4001, 1.0), (10**5, 3.0)])
def test_many_secrets_are_counted_as_if_sets_were_small(k, epsilon):
    # between the union bound's first term alone and the product
    users = (np.linspace(0.5, 3, 60) * k).astype(int)
    bound = rappor_concavity_bound(k, epsilon, n=users)
    pairs = comb(k, 2) * np.exp(users * np.log1p(np.tanh(epsilon / 4) ** 2) - users * np.log(2))
    assert (by_product(k, epsilon, n=users) - 1e-9 <= bound).all()
    assert (bound <= np.maximum(0, 1 - pairs) + 1e-9).all()
    assert 0 == bound[0] < bound[-1] <= 1


@pytest.mark.parametrize(
    ("n", "k", "epsilon"), [(3000, 2000, 0.5), (2990, 2000, 1.0), (2930, 2000, 1.0)]
)
def test_thousands_of_bits_do_not_overflow(n, k, epsilon):
    assert by_product(k, epsilon, n=n) == pytest.approx(float(by_decimals(n, k, epsilon)), rel=1e-9)


@pytest.mark.parametrize(
    ("n", "k", "epsilon", "limit"),
    [
        (10**15, 10**6, 1e-3, 1.0),
        (10**6, 10**6, 1e-3, 0.0),
        (10**18, 2, 5000.0, 0.0),  # p is 1 to a double: no bit is ever flipped
        (0, 1, 1.0, 0.0),
        (2**62, 10**9, 1.0, 1.0),
    ],
)
def test_extremes_are_limits(n, k, epsilon, limit):
    assert by_product(k, epsilon, n=n) == limit


@pytest.mark.parametrize(
    ("n", "k", "epsilon", "limit"),
    [
        (10**15, 10**6, 1e-3, 1.0),
        (10**6 // 2, 10**6, 1e-3, 0.0),
        (10**18, 2, 5000.0, 0.0),
        (0, 1, 1.0, 1.0),  # one secret, one distribution: nothing to tell apart
        (0, 2, 1.0, 0.0),
        (2**62, 10**9, 1.0, 1.0),
    ],
)
def test_extremes_over_sets_are_limits(n, k, epsilon, limit):
    assert rappor_concavity_bound(k, epsilon, n=n) == limit


@pytest.mark.parametrize("k", [2, 5, 40])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 9.0])
def test_fewer_users_than_secrets_are_promised_nothing(k, epsilon):
    assert (by_product(k, epsilon, n=np.arange(k)) == 0).all()
    assert rappor_concavity_bound(k, epsilon, n=np.arange(k - 1)) == pytest.approx(
        0
    )  # k - 1 can be enough


@both
def test_one_number_for_one_n_and_an_array_for_an_array(by):
    one = BOTH[by](10, 1.0, n=25)
    assert type(one) is float
    assert type(BOTH[by](10, 1.0, n=np.int64(25))) is float
    many = BOTH[by](10, 1.0, n=[[25, 5], [30.0, 25]])
    assert many.shape == (2, 2)
    assert many[0, 0] == many[1, 1] == one
    assert BOTH[by](10, 1.0, n=[]).shape == (0,)
    assert type(BOTH[by](1, 1.0, n=3)) is float


# Monte Carlo: with k users' bits B (k, n), L is strictly concave exactly when no w with sum 0 has w
# B = 0, that is, when the matrix [1, B] of shape (k, n + 1) has rank k over the reals.

DRAWS = 2000
LAYOUTS = {
    "all the same": lambda n, k, rng: np.zeros(n, dtype=int),
    "uniform": lambda n, k, rng: np.arange(n) % k,
    "skewed": lambda n, k, rng: np.minimum(rng.geometric(0.5, n) - 1, k - 1),
}
SIZES = [
    (4, 3, 0.5),
    (6, 3, 1.0),
    (6, 4, 1.0),
    (8, 5, 1.0),
    (8, 5, 0.2),
    (8, 3, 3.0),
    (15, 10, 1.0),
    (20, 4, 4.0),
]


def concave_draws(n, k, epsilon, layout, rng):
    """How many of DRAWS runs
    of RAPPOR on the same secrets leave the likelihood strictly concave.
    """
    secrets = np.tile(LAYOUTS[layout](n, k, rng), DRAWS)
    bits = ik.Rappor(k, epsilon).randomize(secrets, rng).reshape(DRAWS, n, k)
    rows = np.concatenate([np.ones((DRAWS, 1, k)), bits], axis=1)
    return int((np.linalg.matrix_rank(rows) == k).sum())


def is_a_lower_bound(bound, concave):
    """Whether so many concave draws are compatible with a probability of
    at least `bound`: 4 standard errors.
    """
    return concave / DRAWS >= bound - 4 * np.sqrt(bound * (1 - bound) / DRAWS)


@pytest.mark.ledger("A-T2")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("n", "k", "epsilon"), SIZES)
def test_the_likelihood_is_strictly_concave_at_least_so_often(n, k, epsilon, layout, rng):
    bounds = [bound(k, epsilon, n=n) for bound in BOTH.values()]
    assert 0.05 < min(bounds) < 0.95, "where the bound is trivial, nothing is tested"
    concave = concave_draws(n, k, epsilon, layout, rng)
    assert all(is_a_lower_bound(bound, concave) for bound in bounds)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("n", "k", "epsilon"), [(6, 6, 0.5), (10, 8, 2.0), (14, 10, 2.0), (20, 10, 3.0)]
)
def test_and_so_often_where_only_the_sets_say_something(n, k, epsilon, layout, rng):
    bound = rappor_concavity_bound(k, epsilon, n=n)
    assert by_product(k, epsilon, n=n) < 0.01 < 0.1 < bound < 0.96
    assert is_a_lower_bound(bound, concave_draws(n, k, epsilon, layout, rng))


@both
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("n", "k", "epsilon"), SIZES[:3])
def test_a_bound_that_is_too_high_is_found_wanting(n, k, epsilon, layout, by, rng):
    assert not is_a_lower_bound(
        BOTH[by](k, epsilon, n=3 * n), concave_draws(n, k, epsilon, layout, rng)
    )


# The lemma on binary matrices: full rank over the field with two elements is full rank over the
# reals.


def rank_of_two(matrix):
    """Rank over the field with two elements, by elimination."""
    rows, rank = matrix.astype(bool).copy(), 0
    for column in range(rows.shape[1]):
        pivots = np.flatnonzero(rows[rank:, column])
        if len(pivots):
            pivot = rank + pivots[0]
            rows[[rank, pivot]] = rows[[pivot, rank]]
            others = rows[:, column].copy()
            others[rank] = False
            rows[others] ^= rows[rank]
            rank += 1
            if rank == len(rows):
                break
    return rank


@pytest.mark.ledger("A-L3")
def test_full_rank_over_two_elements_is_full_rank_over_the_reals(rng):
    full = only_real = 0
    for _ in range(3000):
        shape = rng.integers(1, 9, 2)
        matrix = rng.random(shape) < rng.choice([0.2, 0.5, 0.8])
        of_two, real = rank_of_two(matrix), np.linalg.matrix_rank(matrix.astype(float))
        assert of_two <= real
        if of_two == shape.min():
            full += 1
            assert real == shape.min()
        only_real += of_two < shape.min() == real
    # the lemma was put to the test, and its converse is false for some of them
    assert full > 500
    assert only_real > 20


@pytest.mark.ledger("A-L3")
def test_the_converse_fails():
    # the sum of the three rows is even in every column, and the determinant is 2
    matrix = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    assert rank_of_two(matrix) == 2
    assert np.linalg.matrix_rank(matrix) == 3
    assert round(np.linalg.det(matrix)) == 2


BAD = [
    ({"n": -1}, r"n must be at least 0, got -1"),
    ({"n": [3, -2, 5]}, r"n must be at least 0, got -2"),
    ({"n": 2.5}, r"n must be a whole number, got 2\.5"),
    ({"n": [1.0, 2.5]}, r"n must be whole numbers, got 2\.5 at index 1"),
    ({"n": True}, r"n must be a whole number, got True"),
    ({"n": "ten"}, r"n must be a whole number, got 'ten'"),
    ({"n": [np.nan]}, r"n must be whole numbers, got nan"),
    ({"k": 0}, r"k must be at least 1, got 0"),
    ({"k": 2.0}, r"k must be a whole number, got 2\.0"),
    ({"epsilon": 0}, r"epsilon must be a finite number above 0, got 0"),
    ({"epsilon": -1.0}, r"epsilon must be a finite number above 0, got -1\.0"),
    ({"epsilon": np.inf}, r"epsilon must be a finite number above 0, got inf"),
    ({"epsilon": "1"}, r"epsilon must be a number, got '1'"),
    ({"by": "paper"}, r'by must be "sets" or "product", got \'paper\''),
]


@pytest.mark.parametrize(
    ("change", "message"), BAD, ids=lambda value: str(value) if isinstance(value, dict) else ""
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        rappor_concavity_bound(**{"n": 10, "k": 3, "epsilon": 1.0, **change})
