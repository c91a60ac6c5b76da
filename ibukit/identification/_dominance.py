"""Bounds d(z) >= |log P(z given phi)| for all distributions phi of the secrets, by family.

The theorem of consistency needs E[d(Z)] to be finite (dominance). Bounds come from the formulas,
not from the matrix, whose smallest entries may underflow to 0, as RAPPOR's do for k in the
thousands.
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

# At epsilon = inf these release the truth, so no probability but that of the secret is positive.
TRUTHFUL = (
    Exponential,
    LinearLaplace,
    PlanarLaplace,
    RandomizedResponse,
    TruncatedGeometric,
    TruncatedPlanarGeometric,
)


@dataclass(frozen=True)
class LogLossBound:
    """Bound on E[d(Z)] for any distribution of the secrets, in nats, and its derivation."""

    mean: float
    words: str


def by_formula(mechanism: Mechanism) -> LogLossBound | None:
    """Return the bound of a family whose probabilities are all positive; None for others."""
    # Without noise most probabilities are 0, and the matrix says which.
    if mechanism.epsilon == math.inf:
        return None
    # The exact type is compared: a class that inherits from one of these may have another law.
    if type(mechanism) is LinearGeometric:
        return LogLossBound(
            _line_mean(mechanism),
            "d(z) = eps (|z - a| + l) - log c, a and l the line's first value and length",
        )
    if type(mechanism) is PlanarGeometric:
        words = (
            "d(z) = eps (|z - a| + l) - log lambda, a a corner cell of the grid and l its diagonal"
        )
        return LogLossBound(_plane_mean(mechanism), words)
    smallest = _largest_log_loss(mechanism)
    return (
        None
        if smallest is None
        else LogLossBound(smallest, "d(z) = -log of the smallest entry of M, from its formula")
    )


def _line_mean(mechanism: LinearGeometric) -> float:
    """Largest E[d(Z)], attained if everybody's secret is the far end of the line.

    It is eps (2 l + e^(-eps l) / sinh eps) - log c, because E|Z - a| = E|l + noise| = l + 2 sum_{j
    > l} (j - l) c e^(-eps j) = l + e^(-eps l) / sinh eps.
    """
    epsilon, length = mechanism.epsilon, mechanism.alphabet.last - mechanism.alphabet.first
    over_sinh = 2 * math.exp(-epsilon) / -math.expm1(-2 * epsilon)
    return epsilon * (2 * length + math.exp(-epsilon * length) * over_sinh) + _minus_log_c(
        mechanism
    )


def _plane_mean(mechanism: PlanarGeometric) -> float:
    """Upper bound on E[d(Z)] by the triangle inequality: eps (2 l + E|noise|) - log lambda."""
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


def _largest_log_loss(mechanism: Mechanism) -> float | None:
    """Return -log of the smallest entry of M (in the plane an upper bound); None if unknown."""
    k, epsilon = mechanism.k, mechanism.epsilon
    if type(mechanism) is RandomizedResponse:
        # The least entry is 1 / (k - 1 + e^eps).
        return float(np.logaddexp(math.log(k - 1), epsilon))
    if type(mechanism) is Rappor:
        # Every bit is flipped.
        return k * float(np.logaddexp(0, epsilon / 2))
    if type(mechanism) is OptimizedUnaryEncoding:
        # All bits except the secret's own are set by chance.
        return math.log(2) + (k - 1) * float(np.logaddexp(0, epsilon))
    if is_unary(mechanism):
        # In this report each bit, the secret's own and all others, has its less probable value.
        own, other = mechanism.p_one, mechanism.p_zero
        return -math.log(min(own, mechanism.p_hidden)) - (k - 1) * min(
            math.log(other), math.log1p(-other)
        )
    if type(mechanism) is SubsetSelection:
        # Any set without the secret.
        return math.log(math.comb(k - 1, mechanism.size - 1)) - math.log(mechanism.p_one) + epsilon
    if type(mechanism) is TruncatedGeometric:
        # The least entry is from one end to the other, or to the other's neighbour if 1 - a < a.
        inside = -math.log(-math.expm1(-epsilon)) if k > 2 else 0.0
        return (k - 2) * epsilon + math.log1p(mechanism.decay) + max(epsilon, inside)
    if type(mechanism) is LinearLaplace:
        # The least entry is that of the unbounded cell from k - 3/2 on, or that of the cell before
        # it, which has mass e^(-eps t) (1 - e^-eps) / 2.
        inside = -math.log(-math.expm1(-epsilon)) if k > 2 else 0.0
        return (k - 2) * epsilon + math.log(2) + max(epsilon / 2, inside - epsilon / 2)
    if type(mechanism) is Exponential:
        half = epsilon / 2 * mechanism.alphabet.distances()
        return float((half.max(axis=1) + logsumexp(-half, axis=1)).max())
    # At least lambda e^(-eps d), the report's own cell.
    if type(mechanism) is TruncatedPlanarGeometric:
        return epsilon * _diagonal(mechanism) - math.log(mechanism._table[0, 0])
    # At least the area of a cell times the density at its farthest corner.
    if type(mechanism) is PlanarLaplace:
        height, width = mechanism.alphabet.cell_shape
        corner = _diagonal(mechanism) + math.hypot(height, width) / 2
        return epsilon * corner - 2 * math.log(epsilon) - math.log(height * width / (2 * math.pi))
    return None
