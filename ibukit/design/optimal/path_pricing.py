"""Which extremal column of a path scores most on a tangent: all 2^(k-1) of them, met in the middle.

Cut between two neighbours, a column is a left part and a right part, scaled so that the secret at
the cut has 1. With w = 1 + e its score is (e^T Q e - (n e) (1 + theta e)) / (1 + theta e)^2, where
Q 1 = 0 and n 1 = 0. Each of the sums is one of the left part and one of the right part, and for Q a
product of both: two matrices with 2^(k/2) rows each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints

# pairs of parts whose scores are held at a time
PAIRS_AT_ONCE = 2**20
# of how many candidates each column is chosen that is handed out
CHOICE = 4
# logs of either part, beyond which the squares of its entries are no doubles
MAX_LOG = 300.0


@dataclass(frozen=True, eq=False)
class Half:
    """All parts of columns on one side of the cut: logs and w - 1, shape (parts, secrets)."""

    logs: Floats
    excess: Floats
    secrets: slice
    mass: Floats
    """Theta e, shape (parts,)."""

    @staticmethod
    def of(logs: Floats, secrets: slice, theta: Floats) -> Half:
        """With what is needed of theta."""
        if np.abs(logs).max(initial=0.0) > MAX_LOG:
            raise ValueError(
                f"epsilon times the distances must be at most {MAX_LOG:g} from the middle of the line to its ends, "
                f"got {np.abs(logs).max():g}; take fewer secrets or a smaller epsilon"
            )
        excess = np.expm1(logs)
        return Half(logs, excess, secrets, excess @ theta[secrets])

    def alone(self, quadratic: Floats, linear: Floats) -> tuple[Floats, Floats]:
        """E^T Q e and n e."""
        turned = self.excess @ quadratic[self.secrets, self.secrets]
        return np.einsum("ij,ij->i", turned, self.excess), self.excess @ linear[self.secrets]


class Path:
    """The extremal columns of a path with given steps, shape (k - 1,), none of which is ever listed."""

    def __init__(self, steps: Floats, theta: Floats) -> None:
        cut = len(steps) // 2
        # the secret at the cut, whose log is 0, belongs to the left
        left = np.cumsum((_signs(cut) * steps[:cut])[:, ::-1], axis=1)[:, ::-1]
        right = np.cumsum(_signs(len(steps) - cut) * steps[cut:], axis=1)
        self.left = Half.of(np.column_stack([left, np.zeros(len(left))]), slice(0, cut + 1), theta)
        self.right = Half.of(right, slice(cut + 1, len(theta)), theta)

    def best(self, quadratic: Floats, linear: Floats, many: int) -> tuple[float, Floats]:
        """The highest score of all columns, and the logs of up to `many` of those with high ones, the best first.

        They are the best for a left part or for a right part, and as unlike each other as there is
        choice: the second best column is mostly the best with one step turned, and says little that
        is new.
        """
        left, right = self.left, self.right
        across = 2 * left.excess @ quadratic[left.secrets, right.secrets]
        square, line = left.alone(quadratic, linear)
        other_square, other_line = right.alone(quadratic, linear)
        tops, partners = np.empty(len(across)), np.empty(len(across), dtype=np.int64)
        other_tops, other_partners = (
            np.full(len(right.logs), -np.inf),
            np.zeros(len(right.logs), dtype=np.int64),
        )
        rows = max(1, PAIRS_AT_ONCE // len(other_tops))
        for first in range(0, len(across), rows):
            part = slice(first, first + rows)
            sizes = 1 + left.mass[part, None] + right.mass
            scores = across[part] @ right.excess.T
            scores += square[part, None] + other_square
            scores /= sizes
            scores -= line[part, None] + other_line
            scores /= sizes
            partners[part], tops[part] = scores.argmax(axis=1), scores.max(axis=1)
            best = scores.argmax(axis=0)
            above = scores[best, np.arange(len(other_tops))]
            better = above > other_tops
            other_tops[better], other_partners[better] = above[better], first + best[better]
        order = np.argsort(-np.append(tops, other_tops), kind="stable")[: CHOICE * many]
        pairs: Ints = np.append(np.arange(len(tops)), other_partners)[order]
        with_those: Ints = np.append(partners, np.arange(len(other_tops)))[order]
        logs = np.column_stack([left.logs[pairs], right.logs[with_those]])
        return float(tops.max()), logs[_unlike(np.diff(logs, axis=1) > 0, many)]


def _unlike(ups: NDArray[np.bool_], many: int) -> list[int]:
    """The first rows that differ from all taken in three places, then in two, then in one."""
    taken: list[int] = []
    for least in (3, 2, 1):
        for i in range(len(ups)):
            if len(taken) == many:
                return taken
            if not taken or (ups[taken] != ups[i]).sum(axis=1).min() >= least:
                taken.append(i)
    return taken


def _signs(n: int) -> Floats:
    """Every choice of 1 or -1, shape (2^n, n)."""
    return np.asarray(1 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1), dtype=np.float64)
