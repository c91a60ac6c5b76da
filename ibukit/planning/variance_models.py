"""Which way to the least variances a mechanism has: a closed form, symmetry, its matrix, or simulated reports."""

from __future__ import annotations

from typing import Protocol

from numpy.random import Generator

from ibukit._ground.arguments import Floats
from ibukit.mechanisms import FiniteMechanism, Mechanism, RandomizedResponse, TruncatedGeometric
from ibukit.mechanisms.categorical.independent_bits import is_bits
from ibukit.planning.bits import BitModel
from ibukit.planning.closed_forms import OnLine, Response
from ibukit.planning.dense import Dense, refuse_if_too_large
from ibukit.planning.sampled import Sampled
from ibukit.planning.worst_case import Worst


class Model(Protocol):
    """What is asked of each."""

    def near(self, theta: Floats, weights: Floats | None) -> Floats:
        """Least variances of the answers for one report at theta, shape (r,), or (k,) for each probability."""

    def worst(self, weights: Floats | None) -> Worst:
        """The largest of them over all distributions."""


def as_listed(mechanism: Mechanism) -> FiniteMechanism:
    """The mechanism of the same information whose reports can be listed, or are bits.

    A mechanism whose reports cannot be listed may name such a one as its `ideal`: local hashing has
    the law of a unary encoding, or of subset selection, if all hash functions are equally likely.
    """
    ideal: FiniteMechanism | None = getattr(mechanism, "ideal", None)
    return mechanism.as_finite() if ideal is None else ideal


def model_of(mechanism: Mechanism, rng: Generator | None = None) -> Model:
    """The model of the mechanism, or of one of the same information; from simulated reports where there is no other."""
    try:
        listed = as_listed(mechanism)
        # by the exact type: a class that inherits from one of these may have another law
        if type(listed) is RandomizedResponse:
            return Response(listed)
        if type(listed) is TruncatedGeometric:
            return OnLine(listed)
        if is_bits(listed):
            return BitModel(listed)
        refuse_if_too_large(listed.k, listed.m)
    except ValueError as error:
        if rng is not None:
            return Sampled(mechanism, rng)
        if not mechanism.alphabet.bounded:
            raise
        raise type(error)(
            f"{error}; or give near and rng, for a plan from simulated reports"
        ) from error
    return Dense(listed.matrix())
