"""Levels that doubles cannot draw are refused:
the largest that are taken still lie, the smallest do not leak a parity.

A simulator is not private in the strict sense at any level; what is tested here is that it is not
plainly open.
"""

import math
import re

import numpy as np
import pytest

import ibukit as ik
from ibukit.mechanisms import epsilon_range
from instances import unchecked
from mechanism_cases import OBLONG, TRIANGLE

LINE, SQUARE = ik.Line(0, 3), ik.Grid(3, 3, cell_size=0.5)
TAKEN = [
    (ik.RandomizedResponse, 2),
    (ik.RandomizedResponse, 100),
    (ik.Rappor, 4),
    (ik.OptimizedUnaryEncoding, 4),
    (ik.SubsetSelection, 4),
    (ik.LinearGeometric, LINE),
    (ik.TruncatedGeometric, LINE),
    (ik.LinearLaplace, LINE),
    (ik.PlanarGeometric, OBLONG),
    (ik.TruncatedPlanarGeometric, SQUARE),
    (ik.PlanarLaplace, SQUARE),
    (ik.PlanarLaplace, OBLONG),
    (ik.Exponential, LINE),
    (ik.Exponential, SQUARE),
    (ik.Exponential, TRIANGLE),
    (ik.TightConstraints, OBLONG),
]
kinds = pytest.mark.parametrize(
    ("kind", "alphabet"), TAKEN, ids=lambda value: getattr(value, "__name__", None)
)


def largest(kind, alphabet):
    """The largest level that is taken, as the error message has it."""
    with pytest.raises(
        ValueError, match=r"^epsilon must be at most [\d.]+, got 1234\.5: "
    ) as refused:
        kind(alphabet, 1234.5)
    return float(re.search(r"at most ([\d.]+)", str(refused.value)).group(1))


def of_the_truth(mechanism):
    """The probabilities of what says the truth: a bit that is kept, or the secret itself."""
    if isinstance(mechanism, ik.OptimizedUnaryEncoding):
        return np.array([1 - mechanism.p_zero])
    if isinstance(mechanism, (ik.Rappor, ik.SubsetSelection)):
        return np.array([mechanism.p_one])
    if isinstance(mechanism, (ik.LinearGeometric, ik.PlanarGeometric)):
        (part,) = mechanism.tally(mechanism.alphabet.values).parts
        return np.diag(
            part.channel.rows(np.arange(mechanism.k))
        )  # as they are, not as an operator gives them
    return np.diag(mechanism.matrix())


@kinds
def test_the_largest_level_is_named_and_taken_and_lies(kind, alphabet):
    top = largest(kind, alphabet)
    assert of_the_truth(kind(alphabet, top)).min() < 1
    with pytest.raises(
        ValueError,
        match=rf"epsilon must be at most {top:.4g}, got {top * 1.001!r}: .*truth rounds to 1",
    ):
        kind(alphabet, top * 1.001)


@kinds
def test_beyond_it_the_truth_rounds_to_one(kind, alphabet):
    """The negative control: without the check, a tenth above."""
    if kind is not ik.SubsetSelection and kind is not ik.TightConstraints:  # these have more fields
        assert (of_the_truth(unchecked(kind, alphabet, 1.1 * largest(kind, alphabet))) == 1).all()


@pytest.mark.parametrize(
    "kind", [ik.RandomizedResponse, ik.Rappor, ik.OptimizedUnaryEncoding, ik.SubsetSelection]
)
def test_the_smallest_level_in_nats(kind):
    matrix = kind(4, 5e-15).matrix()
    assert (np.ptp(matrix, axis=0) > 0).any()
    with pytest.raises(ValueError, match=r"epsilon must be at least 5e-15, got 4\.9e-15"):
        kind(4, 4.9e-15)
    if kind is not ik.SubsetSelection:  # the negative control: rows that are equal
        assert (np.ptp(unchecked(kind, 4, 1e-17).matrix(), axis=0) == 0).all()


@pytest.mark.parametrize(
    "alphabet", [ik.Line(0, 10), ik.Grid(1, 11), ik.Alphabet([0, 1], [[0, 10], [10, 0]])]
)
def test_the_smallest_level_by_distance(alphabet):
    assert ik.Exponential(alphabet, 5e-16).k == len(alphabet)
    with pytest.raises(ValueError, match=r"epsilon must be at least 5e-16, got 4\.9e-16"):
        ik.Exponential(alphabet, 4.9e-16)


def test_a_single_secret_has_nothing_to_hide():
    for alphabet in (1, ik.Grid(1, 1), ik.Alphabet(["a"])):
        assert ik.Exponential(alphabet, 1e300).matrix().tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("alphabet", "extent"),
    [
        (ik.Line(-4, 3), (1, 7)),
        (ik.Grid(3, 4, cell_size=(1.0, 0.5)), (0.5, 2.5)),
        (ik.Grid(1, 4, cell_size=(0.1, 2.0)), (2.0, 6.0)),
        (ik.Alphabet(list("abc")), (1, 1)),
        (TRIANGLE, (1, 2)),
    ],
)
def test_the_extent_of_an_alphabet(alphabet, extent):
    off = alphabet.distances()[~np.eye(len(alphabet), dtype=bool)]
    assert epsilon_range.distance_range(alphabet) == pytest.approx(extent)
    assert (off.min(), off.max()) == pytest.approx(extent)


def generator_of(word):
    """A generator of numpy whose next 624 words of 32 bits are all this one:
    its most extreme uniform numbers.
    """
    y = word  # undo the tempering of the Mersenne twister, step by step from the last
    y ^= y >> 18
    y ^= (y << 15) & 0xEFC60000
    x = y
    for _ in range(5):  # y = x ^ (x << 7 & mask): each turn gets seven more bits right
        x = y ^ ((x << 7) & 0x9D2C5680)
    top = x
    for _ in range(3):
        top = x ^ (top >> 11)
    rng = np.random.Generator(np.random.MT19937(0))
    key = np.full(624, top & 0xFFFFFFFF, dtype=np.uint32)
    rng.bit_generator.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 0}}
    return rng


def test_the_most_extreme_uniform_number():
    assert generator_of(0xFFFFFFFF).random() == 1 - 2.0**-53
    assert generator_of(0).random() == 0


def test_what_it_draws_at_the_largest_levels_and_beyond():
    """Just below the largest level that number is a lie; beyond, no number is."""
    for kind, level, beyond in (
        (ik.RandomizedResponse, 36.73, 36.75),
        (ik.LinearLaplace, 72.08, 73.5),
    ):
        assert kind(2, level).randomize([0], generator_of(0xFFFFFFFF)).tolist() == [1]
        assert unchecked(kind, 2, beyond).randomize([0], generator_of(0xFFFFFFFF)).tolist() == [0]
    assert ik.Rappor(2, 73.4).randomize([0], generator_of(0xFFFFFFFF)).tolist() == [[0, 0]]
    assert unchecked(ik.Rappor, 2, 73.5).randomize([0], generator_of(0xFFFFFFFF)).tolist() == [
        [1, 0]
    ]
    assert generator_of(0xFFFFFFFF).geometric(-math.expm1(-36.04)) == 2
    assert generator_of(0xFFFFFFFF).geometric(-math.expm1(-36.4)) == 1


def test_no_report_farther_than_the_last_number():
    """Laplace noise ends at 53 log 2 / eps:
    some reports are impossible, and rule secrets out, as the docstring says.

    Its negative numbers end one binary digit earlier, which is why no level above 104 log 2 = 72.09
    is taken.
    """
    far = ik.LinearLaplace(100, 1.0)
    assert far.randomize([0], generator_of(0xFFFFFFFF)).tolist() == [37]
    assert far.matrix()[0, 38] > 0


def test_draws_below_the_smallest_level_have_the_parity_of_the_secret():
    largest_draw = 7.69711747013105 + 53 * math.log(
        2
    )  # numpy's exponential: where its tail begins, and its last number
    assert largest_draw / epsilon_range.MIN_EPSILON < 2**53 < largest_draw / 4.9e-15
    rng, n = np.random.default_rng(1), 100_000
    even = {}
    for epsilon in (5e-15, 1e-17):
        reports = unchecked(ik.LinearGeometric, 4, epsilon).randomize(np.full(n, 2), rng)
        even[epsilon] = np.mean(reports % 2 == 0)
    # five standard errors; at 1e-17 both draws are beyond 2^53 with probability exp(-2 * 0.0901)
    assert even[5e-15] == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(n))
    both = math.exp(-2 * 2**53 * 1e-17)
    assert even[1e-17] == pytest.approx((1 + both) / 2, abs=5 * 0.28 / math.sqrt(n))
    assert even[1e-17] > 0.9
