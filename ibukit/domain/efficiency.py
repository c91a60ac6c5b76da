"""Reports that get lost: from all secrets to those that are seen, and back.

Secret x is seen with probability e_x. Of secrets distributed as theta, those seen are distributed
as phi, with phi_x proportional to theta_x e_x; and theta_x is proportional to phi_x / e_x. Solvers
work on phi, where rows sum to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground.arguments import Floats
from ibukit.errors import MechanismMismatch

# differences that are narrower are rounding
WIDTH_OF_A_POINT = 1e-7


class Ranges(Protocol):
    """What is known of all maximisers: the range of any weighted sum."""

    def bounds(self, weights: ArrayLike) -> tuple[float, float]:
        """The least and the greatest value."""


def efficiency_of(mechanism: Any) -> Floats | None:
    """The probability of being seen that a mechanism states, if its reports may get lost."""
    efficiency: Floats | None = getattr(mechanism, "efficiency", None)
    return efficiency


def all_that_is_seen(mechanism: Any) -> Floats:
    """The matrix as an adversary sees it, shape (k, m): where reports get lost, the last is that nothing is seen."""
    return matrix_of(getattr(mechanism, "with_silence", mechanism))


def matrix_of(mechanism: Any) -> Floats:
    """The matrix of what has one."""
    if not callable(getattr(mechanism, "matrix", None)):
        raise TypeError(
            f"mechanism must have a matrix, which takes reports that can be listed, got {mechanism!r}; of an array "
            "make a MatrixMechanism, of noise without an end take the truncated kind"
        )
    matrix: Floats = mechanism.matrix()
    return matrix


def refuse_other_efficiencies(mechanisms: Sequence[Any]) -> None:
    """Reports of one population that are lost in different ways have no common distribution among those seen."""
    first = efficiency_of(mechanisms[0])
    for mechanism in mechanisms:
        own = efficiency_of(mechanism)
        if own is first:
            continue
        if own is None or first is None or not np.allclose(own, first, rtol=1e-9, atol=0):
            raise MechanismMismatch(
                f"tallies add only where reports get lost alike, got {mechanisms[0]} and {mechanism}; if each secret "
                "is sent through one of them with known probabilities, set their matrices, times these, side by side "
                "in one MatrixMechanism with efficiency=True"
            )


def to_seen(theta: Floats, efficiency: Floats | None) -> Floats:
    """The distribution of the secrets among those seen."""
    return theta if efficiency is None else _scaled(theta * efficiency)


def to_all(phi: Floats, efficiency: Floats | None) -> Floats:
    """The distribution of all secrets, from that among those seen."""
    return phi if efficiency is None else _scaled(phi / efficiency)


def slopes(theta: Floats, efficiency: Floats) -> Floats:
    """Derivatives of theta with respect to phi, d theta_x / d phi_y, shape (k, k).

    theta = (phi / e) / S with S = sum_y phi_y / e_y, so d theta_x = (d phi_x / e_x - theta_x sum_y
    d phi_y / e_y) / S.
    """
    inverse = 1 / efficiency
    # with phi_y = theta_y e_y / sum theta e the sum S is the inverse of the mean efficiency
    return np.asarray((theta @ efficiency) * (np.diag(inverse) - np.outer(theta, inverse)))


def determined_among_all(found: Ranges, theta: Floats, efficiency: Floats) -> NDArray[np.bool_]:
    """Which theta_x all maximisers phi among those seen agree on, shape (k,).

    They do if phi_x / e_x = theta_x S for all of them, a linear equation: its two sides differ by 0
    at one of them, and linear programmes give the range of the difference.
    """
    inverse = 1 / efficiency
    known = np.zeros(len(theta), dtype=bool)
    for x in range(len(theta)):
        difference = -theta[x] * inverse
        difference[x] += inverse[x]
        low, high = found.bounds(difference / np.abs(difference).max())
        known[x] = high - low <= WIDTH_OF_A_POINT
    return known


def _scaled(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())
