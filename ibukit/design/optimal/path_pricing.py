"""Pricing on a path: the highest score of all 2^(k-1) extremal columns, met in the middle.

Cut between two neighbours, a column is a left part and a right part, scaled so that the secret at
the cut has entry 1. With w = 1 + e its score is (e^T Q e - (n e) (1 + theta e)) / (1 + theta e)^2,
where Q 1 = 0 and n 1 = 0. Each sum is that over the left part plus that over the right part, and
e^T Q e also has a product of both parts. So two matrices with 2^(k/2) rows each give all scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints

# Number of pairs of parts whose scores are held in memory at a time.
PAIRS_AT_ONCE = 2**20
# Each column returned is chosen among this number of candidates.
CHOICE = 4
# Largest log in either part; the squares of larger entries overflow.
MAX_LOG = 300.0


@dataclass(frozen=True, eq=False)
class Half:
    """All parts of columns on one side of the cut.

    Logs and w - 1 have shape (parts, secrets).
    """

    logs: Floats
    excess: Floats
    secrets: slice
    mass: Floats
    """Theta e, shape (parts,)."""

    @staticmethod
    def of(logs: Floats, secrets: slice, theta: Floats) -> Half:
        """Parts with their excess over 1 and their mass."""
        if np.abs(logs).max(initial=0.0) > MAX_LOG:
            raise ValueError(
                f"epsilon times the distances must be at most {MAX_LOG:g} from the middle of the "
                f"line to its ends, got {np.abs(logs).max():g}; take fewer secrets or a smaller "
                "epsilon"
            )
        excess = np.expm1(logs)
        return Half(logs, excess, secrets, excess @ theta[secrets])

    def own_terms(self, quadratic: Floats, linear: Floats) -> tuple[Floats, Floats]:
        """The sums of the part alone: e^T Q e and n e."""
        turned = self.excess @ quadratic[self.secrets, self.secrets]
        return np.einsum("ij,ij->i", turned, self.excess), self.excess @ linear[self.secrets]


class Path:
    """The extremal columns of a path with steps of shape (k - 1,), without a list of them."""

    def __init__(self, steps: Floats, theta: Floats) -> None:
        cut = len(steps) // 2
        # The secret at the cut, whose log is 0, belongs to the left part.
        left = np.cumsum((_signs(cut) * steps[:cut])[:, ::-1], axis=1)[:, ::-1]
        right = np.cumsum(_signs(len(steps) - cut) * steps[cut:], axis=1)
        self.left = Half.of(np.column_stack([left, np.zeros(len(left))]), slice(0, cut + 1), theta)
        self.right = Half.of(right, slice(cut + 1, len(theta)), theta)

    def best(self, quadratic: Floats, linear: Floats, count: int) -> tuple[float, Floats]:
        """Highest score of all columns, and logs of up to `count` columns with high scores.

        The best column is first. Each is the best column with some left or some right part, and
        they are as different as the candidates allow, because the second best column is mostly the
        best one with one step flipped, which adds little to a design.
        """
        left, right = self.left, self.right
        # e^T Q e of a joined column: that of the left part, that of the right part, and twice the
        # product across the cut, which is a matrix product over all pairs.
        across = 2 * left.excess @ quadratic[left.secrets, right.secrets]
        square, line = left.own_terms(quadratic, linear)
        other_square, other_line = right.own_terms(quadratic, linear)
        tops, partners = np.empty(len(across)), np.empty(len(across), dtype=np.int64)
        other_tops, other_partners = (
            np.full(len(right.logs), -np.inf),
            np.zeros(len(right.logs), dtype=np.int64),
        )
        rows = max(1, PAIRS_AT_ONCE // len(other_tops))
        for first in range(0, len(across), rows):
            part = slice(first, first + rows)
            sizes = 1 + left.mass[part, None] + right.mass
            # Score of every pair of parts in the block: (square / size - line) / size.
            scores = across[part] @ right.excess.T
            scores += square[part, None] + other_square
            scores /= sizes
            scores -= line[part, None] + other_line
            scores /= sizes
            partners[part], tops[part] = scores.argmax(axis=1), scores.max(axis=1)
            # Update also the best partner of each right part.
            best = scores.argmax(axis=0)
            above = scores[best, np.arange(len(other_tops))]
            better = above > other_tops
            other_tops[better], other_partners[better] = above[better], first + best[better]
        order = np.argsort(-np.append(tops, other_tops), kind="stable")[: CHOICE * count]
        pairs: Ints = np.append(np.arange(len(tops)), other_partners)[order]
        with_those: Ints = np.append(partners, np.arange(len(other_tops)))[order]
        logs = np.column_stack([left.logs[pairs], right.logs[with_those]])
        return float(tops.max()), logs[_diverse_rows(np.diff(logs, axis=1) > 0, count)]


def _diverse_rows(ups: NDArray[np.bool_], count: int) -> list[int]:
    """The first rows that differ from all taken in three places, then in two, then in one."""
    taken: list[int] = []
    for differences in (3, 2, 1):
        for i in range(len(ups)):
            if len(taken) == count:
                return taken
            if not taken or (ups[taken] != ups[i]).sum(axis=1).min() >= differences:
                taken.append(i)
    return taken


def _signs(n: int) -> Floats:
    """Every choice of 1 or -1, shape (2^n, n)."""
    return np.asarray(1 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1), dtype=np.float64)
