"""What `release` draws: the laws of the classes, the level that is claimed,
labels, and what has no sampler.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import ibukit as ik
from bit_trees import assert_law
from ibukit.errors import AlphabetMismatch, NoExactSampler
from ibukit.exact import OPERATING_SYSTEM
from ibukit.mechanisms import FiniteMechanism

LINE = ik.Line(5, 7)
LISTED = [
    (ik.RandomizedResponse(LINE, 1.0), 10),
    (ik.Rappor(ik.Line(5, 6), 2.0), 9),
    (ik.OptimizedUnaryEncoding(ik.Line(5, 6), 2.0), 9),
    (ik.UnaryEncoding(ik.Line(5, 6), 0.6, 0.2), 9),
    (ik.SubsetSelection(LINE, 1.0, 1), 10),
    (ik.SubsetSelection(LINE, 1.0, 2), 10),
    (ik.TruncatedGeometric(LINE, 2.0), 11),
    (ik.Exponential(LINE, 1.0), 8),
    (ik.TightConstraints(LINE, 1.0), 8),
    (ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]], ik.Line(5, 6)), 8),
]


@pytest.mark.parametrize(("mechanism", "depth"), LISTED, ids=lambda case: str(case)[:30])
def test_the_law_is_the_matrix(mechanism, depth):
    """Each branch of the random bits is followed;
    what is left after `depth` of them bounds the difference.
    """
    codes = {
        str(row.tolist()): z
        for z, row in enumerate(mechanism.restore_reports(mechanism._all_reports))
    }
    for secret in (0, mechanism.k - 1):
        expected = {z: p for z, p in enumerate(mechanism.matrix()[secret]) if p}

        def draw(source, secret=secret):
            report = mechanism._release_from([secret], True, source)
            return codes[str(report[0].tolist())]

        assert_law(draw, expected, 2, depth, most_left=0.35)


def test_the_law_on_a_line_without_an_end():
    mechanism = ik.LinearGeometric(ik.Line(0, None), 2.0)
    a = math.exp(-2.0)
    expected = {z: (1 - a) / (1 + a) * a ** abs(z - 7) for z in range(-20, 40)}
    assert_law(
        lambda source: int(mechanism._release_from([7], False, source)[0]),
        expected,
        2,
        11,
        most_left=0.35,
    )


def test_a_mechanism_of_another_law_is_found():
    other = ik.RandomizedResponse(LINE, 1.5)
    expected = dict(enumerate(ik.RandomizedResponse(LINE, 1.0).matrix()[0]))
    with pytest.raises(AssertionError):
        assert_law(lambda source: int(other._release_from([0], True, source)[0]), expected, 2, 10)


@pytest.mark.parametrize(
    "mechanism",
    [
        *(mechanism for mechanism, _ in LISTED),
        ik.LinearLaplace(LINE, 1.0),
        ik.LinearLaplace(LINE, 1.0).of_points,
        ik.PlanarLaplace(ik.Grid(2, 3), 1.0).of_points,
        ik.LinearGeometric(LINE, 0.5),
        ik.PlanarGeometric(ik.Grid(2, 3), 1.0),
        ik.TruncatedPlanarGeometric(ik.Grid(2, 3), 1.0),
        ik.PlanarLaplace(ik.Grid(2, 3), 1.0),
        ik.Rappor(ik.Alphabet(["a", "b", "c"]), 1.0),
        ik.RandomizedResponse(ik.Alphabet(["a", "b", "c"]), 1.0),
    ],
    ids=lambda mechanism: str(mechanism)[:40],
)
def test_reports_are_in_the_form_of_randomize(mechanism, rng):
    secrets = mechanism.alphabet.values[[0, 1, 1]]
    released, simulated = mechanism.release(secrets), mechanism.randomize(secrets, rng)
    assert released.shape == simulated.shape
    assert released.dtype == simulated.dtype
    assert mechanism.tally(released).n == 3
    again = mechanism.release([0, 1, 1], codes=True)
    assert again.dtype == mechanism.randomize([0, 1, 1], rng, codes=True).dtype
    assert mechanism.tally(again, codes=True).n == 3
    assert mechanism.release([], codes=True).shape[0] == 0


def test_secrets_are_checked():
    mechanism = ik.RandomizedResponse(ik.Alphabet(["a", "b"]), 1.0)
    assert set(mechanism.release(["a"] * 50)) == {"a", "b"}
    with pytest.raises(AlphabetMismatch, match="secrets"):
        mechanism.release(["c"])
    with pytest.raises(ValueError, match="codes must be False"):
        ik.LinearGeometric(ik.Line(0, None), 1.0).release([3], codes=True)


@pytest.mark.parametrize(
    "mechanism", [mechanism for mechanism, _ in LISTED], ids=lambda case: str(case)[:30]
)
def test_the_level_is_that_of_the_matrix(mechanism):
    level = ik.privacy.epsilon_metric if mechanism.metric else ik.privacy.epsilon_ldp
    assert mechanism.release_epsilon == pytest.approx(level(mechanism), rel=1e-11)
    assert mechanism.release_epsilon <= mechanism.epsilon + 1e-12


def test_the_level_of_given_chances_is_rounded_up():
    p, q = Fraction(0.6), Fraction(0.2)
    level = Fraction(ik.UnaryEncoding(3, 0.6, 0.2).release_epsilon)
    ratio = p * (1 - q) / ((1 - p) * q)
    # e^level from below, by its series: it is not less than the ratio
    term, total = Fraction(1), Fraction(0)
    for n in range(1, 60):
        total, term = total + term, term * level / n
    assert total + Fraction(1, 10**40) >= ratio
    assert float(level) == pytest.approx(math.log(6), rel=1e-14)


def test_the_level_is_infinite_where_a_report_rules_a_secret_out():
    assert ik.MatrixMechanism([[0.5, 0.5], [1.0, 0.0]]).release_epsilon == math.inf


def test_what_doubles_give_away_is_kept():
    """Of geometric noise drawn
    in doubles no report is farther than about 36 / epsilon; here the tail goes on.

    The bits that decide are handed in: noise of 1000 at epsilon 1 needs some 1500 zeros, and there
    they are.
    """

    class Zeros:
        digits = 64

        def __init__(self, n):
            self.left = n

        def draw(self, n, width):
            self.left -= 1
            return np.full(n, 0 if self.left > 0 else 2**width - 1, dtype=np.uint64)

    assert ik.LinearGeometric(2, 1.0)._release_from([0], True, Zeros(1001)).tolist() == [1000]


@dataclass(frozen=True)
class Louder(ik.RandomizedResponse):
    """Another law under a class that has a sampler."""

    def make_matrix(self):
        return np.full((self.k, self.k), 1 / self.k)


@dataclass(frozen=True)
class Shy(FiniteMechanism):
    """All that is known of it is its matrix."""

    alphabet: ik.Alphabet
    epsilon: float = math.inf

    def make_matrix(self):
        return np.array([[1.0, 0.0], [0.25, 0.75]])


def test_a_class_that_inherits_has_no_sampler_of_its_parent():
    with pytest.raises(
        NoExactSampler, match=r"Louder has no sampler without roundings; for one report"
    ):
        Louder(3, 1.0).release([0])
    mechanism = Louder(3, 1.0)
    instead = ik.MatrixMechanism(mechanism.matrix(), mechanism.alphabet, mechanism.report_alphabet)
    assert instead.release_epsilon == 0


def test_a_matrix_is_enough():
    assert set(Shy(2).release([0] * 20)) == {0}
    assert Shy(2).release_epsilon == math.inf


@pytest.mark.parametrize(
    "mechanism",
    [ik.Piecewise(3, 1.0), ik.LocalHashing(3, 1.0), ik.PlanarGaussian(ik.Grid(2, 2), 0.3)],
)
def test_what_has_no_sampler_says_what_to_take(mechanism):
    with pytest.raises(NoExactSampler, match=r"take|release through"):
        mechanism.release([0], codes=True)
    with pytest.raises(NoExactSampler):
        _ = mechanism.release_epsilon


def test_reports_that_get_lost_are_not_released():
    detector = ik.MatrixMechanism([[0.6, 0.2], [0.1, 0.3]], efficiency=True)
    with pytest.raises(NoExactSampler, match=r"take mechanism\.with_null_report"):
        detector.release([0])
    assert detector.with_null_report.release([0, 1]).shape == (2,)


def test_many_reports_at_once():
    """In the mean, from the operating system: 20 000 reports of each bit against its chance."""
    mechanism = ik.Rappor(5, 1.0)
    rows = mechanism.release(np.zeros(20_000, dtype=int), codes=True)
    for bit, p in enumerate([mechanism.p_one] + [mechanism.p_zero] * 4):
        assert abs(rows[:, bit].mean() - p) < 6 * math.sqrt(
            p * (1 - p) / 20_000
        )  # false alarms: 2e-9 each
    assert OPERATING_SYSTEM.digits == 64
