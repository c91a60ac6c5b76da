"""Bounds d(z) >= |log P(z given phi)| that hold for all distributions phi of the secrets, family by family.

Read from the formulas, not from the matrix: there the smallest entries may be 0 by underflow, as
RAPPOR's are for k in the thousands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ibukit.channels.offset_masses import multiplicity
from ibukit.mechanisms import (
    Exponential,
    LinearGeometric,
    LinearLaplace,
    Mechanism,
    OptimizedUnaryEncoding,
    PlanarGeometric,
    PlanarLaplace,
    RandomizedResponse,
    Rappor,
    SubsetSelection,
    TruncatedGeometric,
    TruncatedPlanarGeometric,
)
from ibukit.mechanisms.categorical.independent_bits import is_unary


@dataclass(frozen=True)
class Bound:
    """A number that E[d(Z)] does not exceed, whatever the secrets' distribution, in nats; and where it comes from."""

    mean: float
    words: str


def by_formula(mechanism: Mechanism) -> Bound | None:
    """The bound of a family whose probabilities are all positive; None for any other mechanism."""
    if (
        type(mechanism) is LinearGeometric
    ):  # exactly: a class that inherits from it may have another law
        return Bound(
            _line_mean(mechanism),
            "d(z) = eps (|z - a| + l) - log c, a and l the line's first value and length",
        )
    if type(mechanism) is PlanarGeometric:
        words = (
            "d(z) = eps (|z - a| + l) - log lambda, a a corner cell of the grid and l its diagonal"
        )
        return Bound(_plane_mean(mechanism), words)
    smallest = _smallest(mechanism)
    return (
        None
        if smallest is None
        else Bound(smallest, "d(z) = -log of the smallest entry of M, from its formula")
    )


def _line_mean(mechanism: LinearGeometric) -> float:
    """The largest E[d(Z)], attained with all secrets at the far end: eps (2 l + e^(-eps l) / sinh eps) - log c.

    There E|Z - a| = E|l + noise| = l + 2 sum_{j > l} (j - l) c e^(-eps j) = l + e^(-eps l) / sinh
    eps.
    """
    epsilon, length = mechanism.epsilon, mechanism.alphabet.last - mechanism.alphabet.first
    over_sinh = 2 * math.exp(-epsilon) / -math.expm1(-2 * epsilon)
    return epsilon * (2 * length + math.exp(-epsilon * length) * over_sinh) + _minus_log_c(
        mechanism
    )


def _plane_mean(mechanism: PlanarGeometric) -> float:
    """At least E[d(Z)] by the triangle inequality: eps (2 l + E|noise|) - log lambda."""
    table = mechanism._table
    height, width = mechanism.alphabet.cell_shape
    away = np.hypot(np.arange(table.shape[0])[:, None] * height, np.arange(table.shape[1]) * width)
    noise = float((table * multiplicity(table.shape) * away).sum())
    return mechanism.epsilon * (2 * _diagonal(mechanism) + noise) - math.log(table[0, 0])


def _minus_log_c(mechanism: LinearGeometric) -> float:
    return math.log1p(mechanism.decay) - math.log(-math.expm1(-mechanism.epsilon))


def _diagonal(mechanism: PlanarGeometric | TruncatedPlanarGeometric | PlanarLaplace) -> float:
    grid = mechanism.alphabet
    height, width = grid.cell_shape
    return math.hypot((grid.n_rows - 1) * height, (grid.n_cols - 1) * width)


def _smallest(mechanism: Mechanism) -> float | None:
    """-log of the smallest entry; in the plane a number that it does not exceed."""
    k, epsilon = mechanism.k, mechanism.epsilon
    if type(mechanism) is RandomizedResponse:  # 1 / (k - 1 + e^eps)
        return float(np.logaddexp(math.log(k - 1), epsilon))
    if type(mechanism) is Rappor:  # every bit flipped
        return k * float(np.logaddexp(0, epsilon / 2))
    if type(mechanism) is OptimizedUnaryEncoding:  # all bits but the secret's own set by chance
        return math.log(2) + (k - 1) * float(np.logaddexp(0, epsilon))
    if is_unary(mechanism):  # each bit as it is least probable, the secret's own and all others
        own, other = mechanism.p_one, mechanism.p_zero
        return -math.log(min(own, mechanism.p_hidden)) - (k - 1) * min(
            math.log(other), math.log1p(-other)
        )
    if type(mechanism) is SubsetSelection:  # any set without the secret
        return math.log(math.comb(k - 1, mechanism.size - 1)) - math.log(mechanism.p_one) + epsilon
    if type(mechanism) is TruncatedGeometric:
        # from one end to the other, or next to the other where 1 - a is smaller than a
        inside = -math.log(-math.expm1(-epsilon)) if k > 2 else 0.0
        return (k - 2) * epsilon + math.log1p(mechanism.decay) + max(epsilon, inside)
    if type(mechanism) is LinearLaplace:
        # the cell that begins at k - 3/2 and has no end, or the one before it, of mass e^(-eps t)
        # (1 - e^-eps) / 2
        inside = -math.log(-math.expm1(-epsilon)) if k > 2 else 0.0
        return (k - 2) * epsilon + math.log(2) + max(epsilon / 2, inside - epsilon / 2)
    if type(mechanism) is Exponential:
        half = epsilon / 2 * mechanism.alphabet.distances()
        return float((half.max(axis=1) + logsumexp(-half, axis=1)).max())
    if (
        type(mechanism) is TruncatedPlanarGeometric
    ):  # at least lambda e^(-eps d), the report's own cell
        return epsilon * _diagonal(mechanism) - math.log(mechanism._table[0, 0])
    if (
        type(mechanism) is PlanarLaplace
    ):  # at least the area of a cell times the density at its farthest corner
        height, width = mechanism.alphabet.cell_shape
        corner = _diagonal(mechanism) + math.hypot(height, width) / 2
        return epsilon * corner - 2 * math.log(epsilon) - math.log(height * width / (2 * math.pi))
    return None
