"""Scores of the columns next to a column of a path: those with one or two of its steps turned, climb for fall.

Turning step i multiplies all that is behind it by exp(-2 l_i), where l_i is its rise. So the score
of every neighbour comes from sums over what is behind i, and from sums of products over what is
behind i and behind j.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_generation import distinct
from ibukit.design.optimal.column_weights import Dual

# scores that are held at a time
SCORES_AT_ONCE = 2**21
# a turned column with less mass than this, as a share of its entries before, is the rounding of
# their difference
MIN_SIZE = 1e-7
# turns until a column has the score wanted, and those after it; after how many of these the column
# is taken each time
MAX_RISES, WANDERINGS, TAKEN_EACH = 60, 6, 2


class Tangent(NamedTuple):
    """The score of a column w = 1 + e is (e^T Q e / (1 + theta e) - n e) / (1 + theta e)."""

    quadratic: Floats
    linear: Floats
    theta: Floats

    @staticmethod
    def of(dual: Dual, basis: Floats, theta: Floats) -> Tangent:
        """That of a bound, on all secrets."""
        return Tangent(basis @ dual.quadratic @ basis.T, basis @ dual.linear, theta)

    def of_turns(self, logs: Floats) -> tuple[Floats, Floats]:
        """Of each column, and of it with the steps i <= j turned, shape (columns, steps, steps); i = j is one step."""
        excess = np.expm1(logs - logs.max(axis=1, keepdims=True))
        column, pulled = 1 + excess, excess @ self.quadratic
        square, line, size = (
            (excess * pulled).sum(axis=1),
            excess @ self.linear,
            1 + excess @ self.theta,
        )
        products = column[:, :, None] * self.quadratic * column[:, None]
        both = np.cumsum(np.cumsum(products[:, :0:-1, :0:-1], axis=1), axis=2)[:, ::-1, ::-1]
        own = np.diagonal(both, axis1=1, axis2=2)
        behind, lines, masses = (
            _behind(column * each) for each in (pulled, self.linear, self.theta)
        )
        # what is behind i changes by `first` times itself, and what is behind j by `again` on top
        # of it
        turn = np.expm1(-2 * np.diff(logs, axis=1))
        first, again = turn[:, :, None], (1 + turn)[:, :, None] * turn[:, None]
        steps = np.arange(turn.shape[1])
        again[:, steps, steps] = 0
        scores = again * (2 * behind[:, None] + 2 * first * both + again * own[:, None])
        scores += first * (2 * behind + turn * own)[:, :, None]
        scores += square[:, None, None]
        sizes = size[:, None, None] + first * masses[:, :, None] + again * masses[:, None]
        lost = sizes < MIN_SIZE
        sizes[lost] = 1
        scores /= sizes
        scores -= line[:, None, None] + first * lines[:, :, None] + again * lines[:, None]
        scores /= sizes
        scores[lost | (steps[:, None] > steps)] = -np.inf
        return (square / size - line) / size, scores


def wandered(logs: Floats, tangent: Tangent, level: float, rng: np.random.Generator) -> Floats:
    """Columns with scores above a level: these are raised by the best turns until they have it, and then wander there.

    The best column alone would say little: a design needs as many that are good as it has moments.
    """
    for _ in range(MAX_RISES):
        turned, moved = _turned(logs, tangent, level, None)
        if not moved.any():
            break
        logs = distinct(np.vstack([logs[~moved], turned[moved]]))
    taken = [logs]
    for i in range(WANDERINGS):
        logs, _ = _turned(logs, tangent, level, rng)
        if i % TAKEN_EACH == TAKEN_EACH - 1:
            taken.append(logs)
    return distinct(np.vstack(taken))


def _turned(
    logs: Floats, tangent: Tangent, level: float, rng: np.random.Generator | None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Columns below the level with their best turn, where it raises them; or all with a random turn that is above."""
    places, moved = np.empty(len(logs), dtype=np.int64), np.empty(len(logs), dtype=np.bool_)
    rows = max(1, SCORES_AT_ONCE // logs.shape[1] ** 2)
    for start in range(0, len(logs), rows):
        part = slice(start, start + rows)
        now, scores = tangent.of_turns(logs[part])
        scores = scores.reshape(len(now), -1)
        if rng is None:
            places[part] = scores.argmax(axis=1)
            moved[part] = (now < level) & (scores.max(axis=1) > now)
        else:
            chances = np.where(scores > level, rng.random(scores.shape), -1)
            places[part] = chances.argmax(axis=1)
            moved[part] = chances.max(axis=1) >= 0
    first, second = np.divmod(places, logs.shape[1] - 1)
    return _with_turns(logs, np.where(moved[:, None], np.column_stack([first, second]), -1)), moved


def _with_turns(logs: Floats, places: Ints) -> Floats:
    """The columns with the steps at their places turned; -1 stands for none."""
    rises = np.diff(logs, axis=1)
    each = np.flatnonzero(places[:, 0] >= 0)
    two = each[places[each, 0] != places[each, 1]]
    rises[each, places[each, 0]] *= -1
    rises[two, places[two, 1]] *= -1
    return np.column_stack([np.zeros(len(logs)), np.cumsum(rises, axis=1)])


def _behind(terms: Floats) -> Floats:
    """Sums over the secrets behind each step."""
    return np.asarray(np.cumsum(terms[:, :0:-1], axis=1)[:, ::-1])
