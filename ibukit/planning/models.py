"""Which way to the least variances a mechanism has: a closed form, symmetry, or its matrix."""

from __future__ import annotations

from typing import Protocol

from ibukit._validate import Floats
from ibukit.mechanisms import Mechanism, RandomizedResponse, TruncatedGeometric
from ibukit.mechanisms.unary import is_bits
from ibukit.planning.bits import BitModel
from ibukit.planning.closed_forms import OnLine, Response
from ibukit.planning.dense import Dense, refuse_if_too_large
from ibukit.planning.saddle import Worst


class Model(Protocol):
    """What is asked of each."""

    def near(self, theta: Floats, weights: Floats | None) -> Floats:
        """Least variances of the answers for one report at theta, shape (r,), or (k,) for each probability."""

    def worst(self, weights: Floats | None) -> Worst:
        """The largest of them over all distributions."""


def model_of(mechanism: Mechanism) -> Model:
    """The model of the mechanism, or of one of the same information whose reports can be listed."""
    listed = mechanism.as_finite()
    # by the exact type: a class that inherits from one of these may have another law
    if type(listed) is RandomizedResponse:
        return Response(listed)
    if type(listed) is TruncatedGeometric:
        return OnLine(listed)
    if is_bits(listed):
        return BitModel(listed)
    refuse_if_too_large(listed.k, listed.m)
    return Dense(listed.matrix())
