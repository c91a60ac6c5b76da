"""Scores of the neighbours of a column on a path, and random walks among columns that score high.

A neighbour has one or two of the column's steps flipped, a rise for a fall. Flipping step i
multiplies all entries behind it by exp(-2 l_i), where l_i is the step's rise. So the scores of all
neighbours come from sums over the entries behind i, and from sums of products over those behind i
and those behind j.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_generation import distinct
from ibukit.design.optimal.column_weights import Dual

# Number of scores held in memory at a time.
SCORES_AT_ONCE = 2**21
# If a flipped column has less mass than this share of its largest entry before the flip, it is
# mostly rounding of a difference.
MIN_SIZE = 1e-7
# Largest number of flips until a column scores enough, number of random flips after that, and
# number of random flips from one recorded column to the next.
MAX_ASCENT_STEPS, WALK_STEPS, THINNING = 60, 6, 2


class Tangent(NamedTuple):
    """Tangent of the criterion in coordinates of the secrets.

    A column w = 1 + e scores (e^T Q e / (1 + theta e) - n e) / (1 + theta e).
    """

    quadratic: Floats
    linear: Floats
    theta: Floats

    @staticmethod
    def of(dual: Dual, basis: Floats, theta: Floats) -> Tangent:
        """Tangent on all secrets for a dual in the coordinates of a basis."""
        return Tangent(basis @ dual.quadratic @ basis.T, basis @ dual.linear, theta)

    def flip_scores(self, logs: Floats) -> tuple[Floats, Floats]:
        """Scores of each column, and of it after a flip of steps i <= j, (columns, steps, steps).

        The diagonal i = j has one step flipped.
        """
        excess = np.expm1(logs - logs.max(axis=1, keepdims=True))
        column, pulled = 1 + excess, excess @ self.quadratic
        square, line, size = (
            (excess * pulled).sum(axis=1),
            excess @ self.linear,
            1 + excess @ self.theta,
        )
        # `both` holds sums of w_x Q_xy w_y over x behind i and y behind j, by cumulative sums from
        # the end.
        products = column[:, :, None] * self.quadratic * column[:, None]
        both = np.cumsum(np.cumsum(products[:, :0:-1, :0:-1], axis=1), axis=2)[:, ::-1, ::-1]
        own = np.diagonal(both, axis1=1, axis2=2)
        suffix_pulls, lines, masses = (
            _suffix_sums(column * each) for each in (pulled, self.linear, self.theta)
        )
        # All entries behind i change by `first` times themselves, and those behind j by `again`
        # times themselves as well. So e^T Q e grows by 2 first (sum behind i of w Q e) + first^2
        # (sum of products behind i), and so on; theta e and n e change linearly.
        turn = np.expm1(-2 * np.diff(logs, axis=1))
        first, again = turn[:, :, None], (1 + turn)[:, :, None] * turn[:, None]
        steps = np.arange(turn.shape[1])
        again[:, steps, steps] = 0
        scores = again * (2 * suffix_pulls[:, None] + 2 * first * both + again * own[:, None])
        scores += first * (2 * suffix_pulls + turn * own)[:, :, None]
        scores += square[:, None, None]
        sizes = size[:, None, None] + first * masses[:, :, None] + again * masses[:, None]
        vanishing = sizes < MIN_SIZE
        sizes[vanishing] = 1
        scores /= sizes
        scores -= line[:, None, None] + first * lines[:, :, None] + again * lines[:, None]
        scores /= sizes
        scores[vanishing | (steps[:, None] > steps)] = -np.inf
        return (square / size - line) / size, scores


def random_walk_above(
    logs: Floats, tangent: Tangent, level: float, rng: np.random.Generator
) -> Floats:
    """Columns with scores above a level, by steepest ascent and then a random walk above the level.

    The best column alone would not help: a design needs as many good columns as it has moments.
    """
    # Steepest ascent until every column is above the level or stuck below it.
    for _ in range(MAX_ASCENT_STEPS):
        flipped, is_flipped = _flip(logs, tangent, level, None)
        if not is_flipped.any():
            break
        logs = distinct(np.vstack([logs[~is_flipped], flipped[is_flipped]]))
    walks = [logs]
    for i in range(WALK_STEPS):
        logs, _ = _flip(logs, tangent, level, rng)
        if i % THINNING == THINNING - 1:
            walks.append(logs)
    return distinct(np.vstack(walks))


def _flip(
    logs: Floats, tangent: Tangent, level: float, rng: np.random.Generator | None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Flip steps: the best flip of each column below the level, or a random one that stays above.

    With `rng` every column takes a random flip. Return the columns and which of them changed.
    """
    places, is_flipped = np.empty(len(logs), dtype=np.int64), np.empty(len(logs), dtype=np.bool_)
    rows = max(1, SCORES_AT_ONCE // logs.shape[1] ** 2)
    for start in range(0, len(logs), rows):
        part = slice(start, start + rows)
        current, scores = tangent.flip_scores(logs[part])
        scores = scores.reshape(len(current), -1)
        if rng is None:
            places[part] = scores.argmax(axis=1)
            is_flipped[part] = (current < level) & (scores.max(axis=1) > current)
        else:
            lottery = np.where(scores > level, rng.random(scores.shape), -1)
            places[part] = lottery.argmax(axis=1)
            is_flipped[part] = lottery.max(axis=1) >= 0
    first, second = np.divmod(places, logs.shape[1] - 1)
    return _with_flips(
        logs, np.where(is_flipped[:, None], np.column_stack([first, second]), -1)
    ), is_flipped


def _with_flips(logs: Floats, places: Ints) -> Floats:
    """Columns with the steps at two places flipped; -1 stands for none."""
    rises = np.diff(logs, axis=1)
    each = np.flatnonzero(places[:, 0] >= 0)
    two = each[places[each, 0] != places[each, 1]]
    rises[each, places[each, 0]] *= -1
    rises[two, places[two, 1]] *= -1
    return np.column_stack([np.zeros(len(logs)), np.cumsum(rises, axis=1)])


def _suffix_sums(terms: Floats) -> Floats:
    """Sums over the entries behind each step."""
    return np.cumsum(terms[:, :0:-1], axis=1)[:, ::-1]
