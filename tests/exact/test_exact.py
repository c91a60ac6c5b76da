"""Draws without roundings:
digits of chances against series of fractions, and laws by following every bit.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from bit_trees import Scripted, assert_law, law
from ibukit import exact
from ibukit.errors import TooLarge
from ibukit.exact import acceptance_bounds, samplers
from ibukit.exact import rational_matrix as tables
from source_rules import SOURCES, name_of


def exp_minus(exponent, digits):
    """The first binary digits of e^-exponent by Taylor's series in fractions, as a reference."""
    halves = max(0, exponent.numerator // exponent.denominator + 1).bit_length()
    x, term, total, n = exponent / 2**halves, Fraction(1), Fraction(0), 0
    while term > Fraction(1, 2 ** (digits + 80)) or n < 4:
        total += (-1) ** n * term
        n += 1
        term *= x / n
    return math.floor(total ** (2**halves) * 2**digits)


@pytest.mark.parametrize(
    "exponent", [Fraction(1), Fraction(0.1), Fraction(5e-15), Fraction(73.25), Fraction(1, 3)]
)
@pytest.mark.parametrize("digits", [1, 64, 200])
def test_digits_of_the_exponential_are_those_of_its_series(exponent, digits):
    assert exact.exponential(exponent).floor(digits) == exp_minus(exponent, digits)


@pytest.mark.parametrize(
    "chance",
    [
        exact.odds(9, Fraction(0.5)),
        exact.odds(Fraction(3, 2), -Fraction(2)),
        exact.rational(Fraction(0.1)),
        exact.distance_excess(Fraction(0.3), Fraction(1), Fraction(2), Fraction(7, 10)),
    ],
    ids=["odds", "likely", "fraction", "distance"],
)
def test_more_digits_go_on_from_fewer(chance):
    long = chance.floor(300)
    assert [chance.floor(digits) for digits in (1, 7, 64, 128)] == [
        long >> 300 - d for d in (1, 7, 64, 128)
    ]


def test_chances_are_what_they_are_called():
    near = {
        exact.odds(9, Fraction(0.5)): 9 / (9 + math.exp(0.5)),
        exact.odds(1, -Fraction(2)): 1 / (1 + math.exp(-2)),
        exact.rational(Fraction(0.1)): 0.1,
        exact.distance_excess(Fraction(0.3), Fraction(3), Fraction(4), Fraction(7, 10)): math.exp(
            -0.3 * 0.1
        ),
    }
    for chance, value in near.items():
        assert chance.floor(60) / 2**60 == pytest.approx(value, rel=1e-14)
    with pytest.raises(ValueError, match=r"number must be from 0 to 1"):
        exact.rational(Fraction(1))


@pytest.mark.parametrize(
    "number", [Fraction(3, 2), Fraction(2**200, 3), 1 + Fraction(1, 2**80), Fraction(1)]
)
def test_a_logarithm_is_rounded_up(number):
    above = exact.log_rounded_up(number)
    # e^-log is at most 1 / number, and one double less would be too little
    if number == 1:
        assert above == 0
        return
    bits = 400
    assert exp_minus(Fraction(above), bits) <= math.floor(2**bits / number)
    assert exp_minus(Fraction(math.nextafter(above, 0)), bits) > math.floor(2**bits / number)


COINS = {
    "third": (Fraction(1, 3), 1 / 3),
    "dyadic": (Fraction(3, 8), 0.375),
    "small": (Fraction(1, 100), 0.01),
}


@pytest.mark.parametrize("name", COINS)
@pytest.mark.parametrize("digits", [1, 3])
def test_a_coin_falls_with_its_chance(name, digits):
    number, p = COINS[name]
    coin = exact.rational(number)
    assert_law(lambda source: bool(exact.flip(coin, 1, source)[0]), {True: p, False: 1 - p}, digits)


def test_a_coin_that_stops_after_some_digits_is_found():
    class Short(exact.ExactProbability):
        def floor(self, digits):
            return super().floor(3) << digits >> 3

    coin = Short(lambda _: (Fraction(1, 3), Fraction(1, 3)))
    with pytest.raises(AssertionError):
        assert_law(
            lambda source: bool(exact.flip(coin, 1, source)[0]),
            {True: 1 / 3, False: 2 / 3},
            most_left=1,
        )


def test_whole_numbers_are_alike():
    found, left = law(lambda source: int(exact.uniform_below(5, 1, source)[0]), depth=12)
    assert len(set(found.values())) == 1
    assert sum(found.values()) + left == 1
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert exact.uniform_below(1, 3, exact.OPERATING_SYSTEM).tolist() == [0, 0, 0]


@pytest.mark.parametrize("exponent", [Fraction(2), Fraction(1, 2)], ids=["steps", "digits"])
def test_geometric_numbers(exponent):
    stop = 1 - math.exp(-exponent)
    expected = {n: stop * math.exp(-exponent * n) for n in range(40)}
    assert_law(
        lambda source: int(exact.geometric(exponent, 1, source)[0]), expected, most_left=0.15
    )


def test_noise_on_both_sides():
    a = math.exp(-1.5)
    expected = {z: (1 - a) / (1 + a) * a ** abs(z) for z in range(-20, 21)}
    assert_law(
        lambda source: int(exact.two_sided_geometric(Fraction(3, 2), 1, source)[0]),
        expected,
        3,
        11,
        most_left=0.3,
    )


def test_noise_on_the_plane_has_the_law_of_its_distance():
    """By its moments: the tree of its bits is too deep."""
    epsilon, (height, width), n = 0.9, (1.0, 0.5), 40_000
    drawn = exact.planar_geometric(
        Fraction(epsilon), Fraction(height), Fraction(width), n, exact.OPERATING_SYSTEM
    )
    rows, cols = np.meshgrid(np.arange(-60, 61), np.arange(-120, 121), indexing="ij")
    masses = np.exp(-epsilon * np.hypot(rows * height, cols * width))
    masses /= masses.sum()
    functions = [
        lambda i, j: np.abs(i),
        lambda i, j: np.abs(j),
        lambda i, j: np.abs(i * j),
        lambda i, j: (i == 0) & (j == 0),
        lambda i, j: (i == 1) & (j == -1),
        lambda i, j: np.hypot(i * height, j * width) > 4,
    ]
    for function in functions:
        values = function(rows, cols).astype(float)
        mean = (masses * values).sum()
        deviation = math.sqrt(((masses * values**2).sum() - mean**2) / n)
        assert abs(function(*drawn.T).mean() - mean) < 6 * deviation  # false alarms: 2e-9 each


def test_a_table_is_drawn_as_it_is():
    matrix = np.array([[0.5, 0.25, 0.25, 0.0], [0.1, 0.2, 0.0, 0.7]])
    table = exact.RationalMatrix(matrix)
    for x, row in enumerate(matrix):
        assert sum(table.weights(x)) == 2**table.bits
        assert [weight / 2**table.bits for weight in table.weights(x)] == pytest.approx(
            row, rel=1e-15, abs=0
        )
        expected = {z: p for z, p in enumerate(row) if p}
        assert_law(lambda source, x=x: int(table.draw(np.array([x]), source)[0]), expected, 3, 9)


def test_a_table_follows_all_its_digits():
    """With few of them the tree has an end,
    and every probability is that of the weights: none is left.
    """
    table = exact.RationalMatrix(np.array([[0.3, 0.0, 0.7]]))
    table.bits, table.weights = 6, lambda _: [19, 0, 45]
    found, left = law(lambda source: int(table.draw(np.array([0]), source)[0]), digits=4, depth=20)
    assert left == 0
    assert found == {0: Fraction(19, 64), 2: Fraction(45, 64)}


def test_tiny_entries_stay_above_0():
    matrix = np.array([[1.0, 5e-324, 1e-30], [1.0, 1e-300, 1e-30]])
    table = exact.RationalMatrix(matrix)
    assert all(all(table.weights(x)) for x in range(2))
    assert table.epsilon() == pytest.approx(math.log(1e-300 / 5e-324), rel=1e-12)


def test_the_level_of_a_table():
    table = exact.RationalMatrix(np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]))
    assert table.epsilon() == exact.log_rounded_up(Fraction(3))  # the last column is of no secret
    assert exact.RationalMatrix(np.array([[0.5, 0.5], [1.0, 0.0]])).epsilon() == math.inf
    per_distance = table.epsilon_per_distance(np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    assert math.log(2) <= per_distance < math.log(2) + 1e-12


def test_a_table_too_large_for_its_level_is_refused(monkeypatch):
    monkeypatch.setattr(tables, "MAX_INTEGERS", 3)
    with pytest.raises(TooLarge, match=r"the matrix has 4 entries.* at most 3: merge"):
        exact.RationalMatrix(np.eye(2)).epsilon()


def test_the_operating_systems_bits_fill_their_width():
    words = exact.OPERATING_SYSTEM.draw(4000, 3)
    counts = np.bincount(words.astype(int), minlength=8)
    assert len(counts) == 8
    assert ((counts - 500) ** 2 / 500).sum() < 60  # chi-squared with 7 degrees of freedom: 1.5e-10
    assert exact.OPERATING_SYSTEM.draw(0, 64).shape == (0,)
    assert exact.OPERATING_SYSTEM.draw(50, 64).max() > 2**60


def test_one_file_alone_asks_the_operating_system():
    """What is drawn in experiments has a seed;
    the architecture's test does not know this source of bits.
    """
    assert [name_of(path) for path in SOURCES if "urandom" in path.read_text("utf8")] == [
        "ibukit.exact.random_bits"
    ]


RATES = [
    (Fraction(1), Fraction(1, 3)),
    (Fraction(1, 2**20), Fraction(0.7) / 2**20),
    (Fraction(60), Fraction(1, 2**50)),
]


def offsets_of(rates, rng):
    """Along both sides: uniform up to what is computed, a few nats,
    a step or none, and the last ones.
    """
    columns = []
    for rate in rates:
        most = min(acceptance_bounds.MAX_STEPS, int(acceptance_bounds.MAX_NATS / rate))
        near = rng.integers(0, min(most, int(8 / rate)) + 1, 60)
        columns.append(
            np.concatenate(
                [rng.integers(0, most + 1, 60), near, [0, 0, 1, 1, most, most, most - 1]]
            )
        )
    sizes = np.column_stack([columns[0], rng.permutation(columns[1])])
    return sizes[sizes.any(axis=1)]


def sure(rates, sizes):
    """For each offset, whether the bounds in whole numbers hold its chance, as its digits say."""
    low, high = acceptance_bounds.acceptance_bounds(rates, sizes)
    digits = []
    for i, j in sizes.tolist():
        chance = exact.distance_excess(
            Fraction(1), i * rates[0], j * rates[1], acceptance_bounds.MIN_SLOPE
        )
        digits.append(chance.floor(acceptance_bounds.PROBABILITY_DIGITS))
    digits = np.array(digits)
    assert (high - low <= 2 * acceptance_bounds.ROUNDING_SLACK).all()
    return (low <= digits) & (digits < high)


@pytest.mark.parametrize("rates", RATES, ids=["coarse", "fine", "both"])
def test_bounds_in_whole_numbers_hold_the_chance(rates, rng):
    assert sure(rates, offsets_of(rates, rng)).all()


def test_the_slack_is_no_less_than_all_roundings_together():
    """Of a length less than 2 units of its last digit are lost, one for the rate and one for the
    product; of the distance of two sides, and of their sum, less than 4; of their difference,
    rounded down again, less than 5. The derivative of e^-r is at most 1.
    """
    unit = 2 ** (acceptance_bounds.PROBABILITY_DIGITS - acceptance_bounds.LENGTH_DIGITS)
    # Three factors and two products with the first lose less than one each of a probability.
    assert 5 * unit + 5 <= acceptance_bounds.ROUNDING_SLACK


def test_bounds_that_are_too_near_are_found(rng, monkeypatch):
    sizes = offsets_of(RATES[1], rng)
    monkeypatch.setattr(acceptance_bounds, "ROUNDING_SLACK", acceptance_bounds.ROUNDING_SLACK // 16)
    assert not sure(RATES[1], sizes).all()


def test_what_is_too_large_for_64_bits_is_left_to_the_digits():
    rates = (Fraction(1), Fraction(1, 2**40))
    low, high = acceptance_bounds.acceptance_bounds(
        rates, np.array([[65, 0], [0, 2**32 + 1], [10**18, 10**18], [64, 2**32]])
    )
    assert low[:3].tolist() == [0, 0, 0]
    assert high[:3].tolist() == [2**31] * 3
    assert high[3] < 2**31


def test_roots_and_exponentials_of_whole_numbers(rng):
    roots = np.concatenate(
        [np.arange(1, 40), 2**31 - np.arange(1, 40), rng.integers(0, 2**31, 200)]
    )
    assert (acceptance_bounds.integer_sqrt(roots**2) == roots).all()
    assert (acceptance_bounds.integer_sqrt(roots**2 - 1) == roots - 1).all()
    assert (acceptance_bounds.integer_sqrt(roots**2 + 2 * roots) == roots).all()
    exponents = np.concatenate([[0, 1, 1023, 1024, 2**20, 2**30 - 1], rng.integers(0, 2**27, 100)])
    found = acceptance_bounds.exp_minus_fixed_point(exponents)
    assert found[0] == 2**31
    for exponent, number in list(zip(exponents.tolist(), found.tolist(), strict=True))[1:]:
        assert 0 <= exp_minus(Fraction(exponent, 2**24), 31) - number <= 5


@pytest.mark.parametrize("digits", [4, 31, 64])
def test_an_offset_is_kept_by_all_digits_of_its_chance(digits):
    """The word before that of the chance keeps it, the next one does not,
    and its own is followed by more.
    """
    rate, sizes = Fraction(1, 2**10), np.array([[500, 900]])
    chance = exact.distance_excess(Fraction(1), 500 * rate, 300 * rate, acceptance_bounds.MIN_SLOPE)
    head, more = chance.floor(digits), chance.floor(2 * digits) & 2**digits - 1
    for words, expected in (
        ([head - 1], True),
        ([head + 1], False),
        ([head, more - 1], True),
        ([head, more + 1], False),
    ):
        kept = samplers._accepted(sizes, Fraction(1), rate, rate / 3, Scripted(words, digits))
        assert kept.tolist() == [expected]
