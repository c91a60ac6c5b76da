"""Choose how least variances are computed: closed form, symmetry, matrix or simulation."""

from __future__ import annotations

from typing import Protocol

from numpy.random import Generator

from ibukit._ground.arguments import Floats
from ibukit.mechanisms import FiniteMechanism, Mechanism, RandomizedResponse, TruncatedGeometric
from ibukit.mechanisms.categorical.independent_bits import is_bits
from ibukit.planning.bits import BitVariances
from ibukit.planning.closed_forms import LineVariances, ResponseVariances
from ibukit.planning.dense import DenseVariances, check_matrix_size
from ibukit.planning.sampled import SimulatedVariances
from ibukit.planning.worst_case import Worst


class VarianceModel(Protocol):
    """Least variances of answers from one report of a mechanism."""

    def variances(self, theta: Floats, weights: Floats | None) -> Floats:
        """Return the variances at theta, shape (r,), or (k,) if `weights` is None.

        None asks for each single probability.
        """

    def worst_case(self, weights: Floats | None) -> Worst:
        """Return the largest variance over all questions and distributions."""


def as_listed(mechanism: Mechanism) -> FiniteMechanism:
    """Return a mechanism with the same information whose reports are bits or can be listed.

    A mechanism whose reports cannot be listed may have such a mechanism as its attribute `ideal`:
    local hashing has the law of a unary encoding, or of subset selection, if all hash functions are
    equally likely.
    """
    ideal: FiniteMechanism | None = getattr(mechanism, "ideal", None)
    return mechanism.as_finite() if ideal is None else ideal


def model_of(mechanism: Mechanism, rng: Generator | None = None) -> VarianceModel:
    """Return the fastest model of a mechanism; simulation only if there is no other."""
    try:
        listed = as_listed(mechanism)
        # The exact type is compared, because a subclass may have another law.
        if type(listed) is RandomizedResponse:
            return ResponseVariances(listed)
        if type(listed) is TruncatedGeometric:
            return LineVariances(listed)
        if is_bits(listed):
            return BitVariances(listed)
        check_matrix_size(listed.k, listed.m)
    except ValueError as error:
        if rng is not None:
            return SimulatedVariances(mechanism, rng)
        if not mechanism.alphabet.bounded:
            raise
        raise type(error)(
            f"{error}; or give near and rng, for a plan from simulated reports"
        ) from error
    return DenseVariances(listed.matrix())
