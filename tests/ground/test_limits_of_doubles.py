"""Numbers at the limits of doubles:
a result or a named error, never an OverflowError on the way.
"""

from fractions import Fraction

import numpy as np
import pytest

import ibukit as ik
from hard_cases import FAMILIES, draw
from ibukit._ground import arguments
from ibukit.solvers import bits
from ibukit.solvers.interior_point import maximise
from instances import unchecked

HUGE = 10**400


@pytest.mark.parametrize(
    "family", FAMILIES, ids=lambda family: getattr(family, "__name__", str(family))
)
def test_a_tolerance_below_what_doubles_can_tell_is_missed_quietly(family, rng):
    """Steps go on where slack times mass has vanished,
    and a quotient of two such products has no bounds.
    """
    for _ in range(8):
        matrix, counts = draw(family, rng)
        keep = counts > 0
        theta, _ = maximise(
            np.ascontiguousarray(matrix[:, keep]), counts[keep] / counts.sum(), -1.0
        )
        assert theta.sum() == pytest.approx(1)
        assert (theta >= 0).all()


def test_bits_that_are_set_by_chance_once_in_1e282_reports():
    """The ratio of the probabilities of two rows has a square that is beyond the doubles."""
    mechanism = unchecked(ik.Rappor, 8, 1300.0)
    tally = mechanism.tally(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1))
    channel = tally.parts[0].channel
    assert channel.one > 1e280
    hessian = bits.BitReports(channel, tally.counts, tally.n).hessian(np.full(8, 1 / 8), 1)
    rows = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).T
    # next to a ratio of 1e282 the bits that are not set do not count, but where none is set
    seen = rows[:, rows.any(axis=0)]
    expected = seen @ np.diag(64.0 / seen.sum(axis=0) ** 2) @ seen.T / 256 + 1 / 256
    np.testing.assert_allclose(hessian, expected, rtol=1e-6)
    assert ik.mle(tally, method="bits").gap <= 1e-9


@pytest.mark.parametrize("value", [HUGE, -HUGE, Fraction(HUGE, 3)])
def test_numbers_too_large_for_a_double_are_named(value):
    assert abs(arguments.as_float(value)) == np.inf
    with pytest.raises(ValueError, match="epsilon must be a finite number above 0, got "):
        ik.RandomizedResponse(3, value)
    with pytest.raises(ik.errors.InvalidDistribution, match="p must be an array of numbers"):
        ik.check_distribution([value, 1 - value])
    with pytest.raises(
        ik.errors.InvalidDistribution, match="matrix must be a rectangular array of numbers"
    ):
        ik.MatrixMechanism([[value, 1 - value]])


def test_readable():
    assert [arguments.readable(n) for n in (7, 123, 1234567, HUGE)] == [
        "7",
        "123",
        "1.23e+6",
        "1.00e+400",
    ]
    with pytest.raises(OverflowError):
        f"{HUGE:.3g}"


def test_counts_that_signed_integers_do_not_hold_are_named():
    """They would wrap round to negative ones."""
    mechanism = ik.RandomizedResponse(3, 1.0)
    for number in (2**63, 2**64 - 1):
        counts = np.array([number, 0, 1], dtype=np.uint64)
        with pytest.raises(ValueError, match=f"must fit in 64 signed bits, got {number}"):
            mechanism.tally_counts(counts)
    small = np.array([2**62, 0, 1], dtype=np.uint64)
    assert mechanism.tally_counts(small).n == 2**62 + 1


def test_a_number_from_zero_on_may_be_zero():
    found = [arguments.from_zero("threshold", number) for number in (0, 0.0, 2.5)]
    assert found == [0.0, 0.0, 2.5]
    for number in (-1e-300, np.nan, False, "0"):
        with pytest.raises(ValueError, match=r"threshold must be a (finite number of 0|number)"):
            arguments.from_zero("threshold", number)
