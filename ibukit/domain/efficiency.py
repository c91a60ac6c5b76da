r"""Reports that get lost: convert between all secrets and the secrets that are seen.

Secret x is seen with probability e_x, its efficiency. If all secrets are distributed as theta,
those seen are distributed as phi with :math:`\varphi_x \propto \theta_x e_x`, and
:math:`\theta_x \propto \varphi_x / e_x`. Solvers work on phi, for which the rows of the matrix sum
to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground.arguments import Floats
from ibukit.errors import MechanismMismatch

# A range of a probability narrower than this is one point: its width is a programme's rounding.
POINT_TOLERANCE = 1e-7
# If the largest efficiency is below this, all are divided by it: squares of larger ones, times
# those of small probabilities, are doubles.
TINY_EFFICIENCY = 1e-30


class Ranges(Protocol):
    """The set of all maximisers, which knows the range of any weighted sum."""

    def bounds(self, weights: ArrayLike) -> tuple[float, float]:
        """Return the least and the greatest value of weights @ phi."""


def efficiency_of(mechanism: Any) -> Floats | None:
    """Return the probability that each secret is seen, or None if no report gets lost."""
    return getattr(mechanism, "efficiency", None)


def observable_matrix(mechanism: Any) -> Floats:
    """Return the matrix as an adversary sees it, shape (k, m).

    If reports get lost, the last column is the event that nothing is seen.
    """
    return matrix_of(getattr(mechanism, "with_null_report", mechanism))


def matrix_of(mechanism: Any) -> Floats:
    """Return the matrix of a mechanism whose reports can be listed; TypeError for others."""
    if not callable(getattr(mechanism, "matrix", None)):
        raise TypeError(
            "mechanism must have a matrix, which takes reports that can be listed, got "
            f"{mechanism!r}; pass an array as a MatrixMechanism, and for noise without an end the "
            "truncated kind, with reports beyond its ends moved to the ends"
        )
    return mechanism.matrix()


def refuse_other_efficiencies(mechanisms: Sequence[Any]) -> None:
    """Raise MechanismMismatch if mechanisms differ in their efficiencies.

    Pooled reports need one distribution phi of the secrets seen, which depends on the efficiencies.
    """
    first = efficiency_of(mechanisms[0])
    for mechanism in mechanisms:
        own = efficiency_of(mechanism)
        # The common case is the same array, or None for both.
        if own is first:
            continue
        if own is None or first is None or not np.allclose(own, first, rtol=1e-9, atol=0):
            raise MechanismMismatch(
                f"tallies can be added only if both mechanisms lose reports alike, got "
                f"{mechanisms[0]} and {mechanism}; if each secret is sent through one of them with "
                "known probabilities, multiply each matrix by its probability, set the products "
                "side by side, and pass them to one MatrixMechanism with efficiency=True"
            )


def relative(efficiency: Floats) -> Floats:
    """Return efficiencies up to a common factor, on which no likelihood depends.

    If all are tiny, the factor keeps the squares of probabilities among the doubles.
    """
    largest = efficiency.max()
    return efficiency if largest >= TINY_EFFICIENCY else efficiency / largest


def to_seen(theta: Floats, efficiency: Floats | None) -> Floats:
    """Convert the distribution theta of all secrets to phi, that of the secrets seen."""
    return theta if efficiency is None else _scaled(theta * efficiency)


def to_all(phi: Floats, efficiency: Floats | None) -> Floats:
    """Convert the distribution phi of the secrets seen to theta, that of all secrets."""
    return phi if efficiency is None else _scaled(phi / efficiency)


def jacobian_of_all(theta: Floats, efficiency: Floats) -> Floats:
    """Return the derivatives of theta with respect to phi, d theta_x / d phi_y, shape (k, k)."""
    # theta = (phi / e) / S with S = sum_y phi_y / e_y, so that
    # d theta_x = (d phi_x / e_x - theta_x sum_y d phi_y / e_y) / S.
    # With phi_y = theta_y e_y / sum theta e, S is the inverse of the mean efficiency theta @ e.
    inverse = 1 / efficiency
    return (theta @ efficiency) * (np.diag(inverse) - np.outer(theta, inverse))


def determined_among_all(
    maximisers: Ranges, theta: Floats, efficiency: Floats
) -> NDArray[np.bool_]:
    """Return whether all maximisers agree on theta_x, for each secret x, shape (k,)."""
    # All maximisers phi have the same theta_x if phi_x / e_x - theta_x S = 0 for each of them. The
    # left side is linear in phi and 0 at one of them; linear programmes give its range.
    inverse = 1 / efficiency
    known = np.zeros(len(theta), dtype=bool)
    for x in range(len(theta)):
        difference = -theta[x] * inverse
        difference[x] += inverse[x]
        low, high = maximisers.bounds(difference / np.abs(difference).max())
        known[x] = high - low <= POINT_TOLERANCE
    return known


def _scaled(weights: Floats) -> Floats:
    return weights / weights.sum()
