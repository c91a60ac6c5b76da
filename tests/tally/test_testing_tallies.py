"""Negative controls: each check of a tally must be seen to fail on a tally
that is broken in one place.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import DenseChannel
from ibukit.tally.tally import Tally, TallyPart
from ibukit.testing import check_tally
from instances import TransposedAdjoint, TransposedForward

MATRIX = np.array([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])


class Quadratic(DenseChannel):
    def forward(self, theta):
        return (theta @ self.columns) ** 2


class Doubled(DenseChannel):
    def forward(self, theta):
        return 2 * (theta @ self.columns)


class Blind(DenseChannel):
    def forward(self, theta):
        return (theta @ self.columns) * np.array([1.0, 1.0, 0.0])


@dataclass(frozen=True, eq=False)
class Stub:
    """As much of a mechanism as a tally needs, around any class of channels."""

    channel_class: type
    alphabet: ik.Line = ik.Line(0, 2)  # noqa: RUF009 (immutable)

    def channel(self, reports):
        return self.channel_class(MATRIX[:, reports])

    def log_scale(self, reports):
        return None


def tally_of(channel_class, counts=(3, 4, 5)):
    return Tally((TallyPart(Stub(channel_class), np.arange(3), np.array(counts)),))


def test_the_stub_is_sound(rng):
    tally = tally_of(DenseChannel)
    for theta in np.eye(3):
        np.testing.assert_allclose(tally.forward(theta), theta @ MATRIX, rtol=1e-14)


@pytest.mark.parametrize(
    ("tally", "message"),
    [
        (tally_of(Quadratic), "forward is not linear: relative error"),
        (tally_of(TransposedAdjoint), "adjoint is not the transpose of forward"),
        (tally_of(TransposedForward), "adjoint is not the transpose of forward"),
        (tally_of(Doubled), r"forward gives a probability of 1\.|adjoint is not the transpose"),
        (
            tally_of(Blind),
            "forward of a full-support distribution has 1 entries that are not positive",
        ),
        (tally_of(DenseChannel, (3, 0, 5)), "counts must be of reports that were seen"),
    ],
    ids=["not linear", "adjoint", "forward", "doubled", "zero", "count of zero"],
)
def test_broken_tallies_are_caught(tally, message, rng):
    with pytest.raises(AssertionError, match=message):
        check_tally(tally, rng=rng)


@dataclass(frozen=True)
class Forgetful(ik.MatrixMechanism):
    """Depends on something that does not travel with it."""

    def __init__(self, matrix):
        super().__init__(matrix)
        object.__setattr__(self, "here", True)

    def channel(self, reports):
        columns = self.matrix()[:, reports]
        return DenseChannel(columns if hasattr(self, "here") else columns[::-1])


def test_a_tally_that_changes_by_pickling_is_caught(rng):
    with pytest.raises(AssertionError, match="forward changed by pickling"):
        check_tally(Forgetful(MATRIX).tally([0, 1, 2]), rng=rng)


def test_a_tally_that_does_not_add_is_caught(rng):
    class Careless(Tally):
        def __add__(self, other):
            return self

    # pickled by reference, which a class inside a function is not
    Careless.__reduce__ = lambda self: (Tally, (self.parts,))
    parts = ik.MatrixMechanism(MATRIX).tally([0, 1, 1]).parts
    with pytest.raises(AssertionError, match="does not double the counts"):
        check_tally(Careless(parts), rng=rng)
