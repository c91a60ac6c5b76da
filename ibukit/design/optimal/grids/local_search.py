"""From one extremal column to others that score more: sets of secrets are raised or lowered until a bound is attained.

Where w_x is as large as w_y allows, x can only be raised together with y. Those with which x must
rise are found in one look, as bounds that are attained one after another are attained at once.
Along such a move, scaled to mean 1, a score is convex over linear: where it climbs at first it
climbs to the end, and the end may be higher even where it does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.extremal_columns import TIE_OF_PATHS
from ibukit.design.optimal.path_neighbours import Tangent

# pairs of secrets that are looked at for a column, which says how many moves have their ends scored
PAIRS_LOOKED_AT = 80_000
MAX_MOVES = 200
# entries of the matrices between secrets that are held at a time: few enough for a cache
BETWEEN_AT_ONCE = 2**18
# a score that is higher by less than this share is not
MIN_HIGHER = 1e-9
# columns are the same where their logs differ by less, as a share of the largest distance
SAME_LOGS = 1e-7


def scores(logs: Floats, tangent: Tangent) -> Floats:
    """Q(r) - nu r of each column."""
    points, _ = deviations(logs, tangent.theta)
    return np.asarray(((points @ tangent.quadratic) * points).sum(axis=1) - points @ tangent.linear)


def risen(logs: Floats, distances: Floats, tangent: Tangent, rng: np.random.Generator) -> Floats:
    """Extremal columns that none of the moves tried raises, from private ones, by random moves and then by good ones.

    Where all took the best move, most would meet, and a design needs as many that are good as it
    has moments.
    """
    for tried, luck in ((1, rng), (max(1, PAIRS_LOOKED_AT // distances.size), None)):
        live, done = logs, []
        for _ in range(MAX_MOVES):
            moved = [
                _best_move(part, distances, tangent, tried, luck)
                for part in _parts(live, distances)
            ]
            rose = np.concatenate([each for _, each in moved])
            after = np.vstack([each for each, _ in moved])
            done.append(after[~rose])
            live = unlike(after[rose], distances)
            if not len(live):
                break
        logs = np.vstack([*done, live])
    tied = [_connected(part, distances, tangent) for part in _parts(logs, distances)]
    return unlike(np.vstack(tied), distances)


def unlike(logs: Floats, distances: Floats, images: Ints | None = None) -> Floats:
    """Each column once; of those that are images of one another, with their secrets from there, one."""
    unit, images = (
        SAME_LOGS * distances.max(),
        np.arange(logs.shape[1])[None] if images is None else images,
    )
    # each image by its own first secret: differences of what is rounded are off by one
    heights = [np.rint((logs[:, image] - logs[:, image[:1]]) / unit) for image in images]
    each, first = np.arange(len(logs)), heights[0]
    for other in heights[1:]:
        apart = other - first
        lower = apart[each, (apart != 0).argmax(axis=1)] < 0
        first = np.where(lower[:, None], other, first)
    return logs[np.sort(np.unique(first, axis=0, return_index=True)[1])]


def within_bounds(logs: Floats, distances: Floats) -> Floats:
    """The highest private columns that are nowhere above the given ones."""
    return np.asarray(
        np.vstack([(part[:, None, :] + distances).min(axis=2) for part in _parts(logs, distances)])
    )


def _parts(logs: Floats, distances: Floats) -> list[Floats]:
    at_once = max(1, BETWEEN_AT_ONCE // distances.size)
    return np.array_split(logs, max(1, -(-len(logs) // at_once)))


def _best_move(
    logs: Floats, distances: Floats, tangent: Tangent, tried: int, luck: np.random.Generator | None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Each column after the best of the moves tried, and whether it scores more."""
    n, k = logs.shape
    each = np.arange(n)
    room = _room(logs, distances)
    joint = room <= TIE_OF_PATHS * distances.max()
    joint[:, np.arange(k), np.arange(k)] = True
    points, _ = deviations(logs, tangent.theta)
    pulled = points @ tangent.quadratic
    slopes, now = (
        2 * pulled - tangent.linear,
        (pulled * points).sum(axis=1) - points @ tangent.linear,
    )
    # what a little more of each secret adds to the score
    pulls = (1 + points) * (slopes - tangent.theta * (slopes * points).sum(axis=1)[:, None])
    sets = joint.astype(np.float64)
    gains = np.hstack([(sets @ pulls[:, :, None])[:, :, 0], -(pulls[:, None] @ sets)[:, 0]])
    if luck is not None:
        gains *= np.sqrt(luck.random(gains.shape))
    candidates = np.argsort(-gains, axis=1, kind="stable")[:, :tried]
    best, ends = now + MIN_HIGHER * np.abs(now), logs.copy()
    rose = np.zeros(n, dtype=np.bool_)
    for column in candidates.T:
        up, x = column < k, column % k
        inside = np.where(up[:, None], joint[each, x], joint[each, :, x])
        end = _moved(logs, distances, inside, up)
        reached = scores(end, tangent)
        higher = reached > best
        ends[higher], best[higher] = end[higher], reached[higher]
        rose |= higher
    return ends, rose


def _connected(logs: Floats, distances: Floats, tangent: Tangent) -> Floats:
    """Columns with no loose part: each is moved either way to where it is tied, whichever scores more."""
    k = len(distances)
    logs = logs.copy()
    for _ in range(k):
        room = _room(logs, distances)
        tied = np.minimum(room, room.transpose(0, 2, 1)) <= TIE_OF_PATHS * distances.max()
        tied[:, np.arange(k), np.arange(k)] = True
        inside = tied[:, 0]
        tied = tied.astype(np.float64)
        for _ in range(k):
            more = (inside[:, None].astype(np.float64) @ tied)[:, 0] > 0
            if (more == inside).all():
                break
            inside = more
        loose = np.flatnonzero(~inside.all(axis=1))
        if not len(loose):
            break
        ends = [
            _moved(logs[loose], distances, inside[loose], np.full(len(loose), way, dtype=np.bool_))
            for way in (True, False)
        ]
        above = scores(ends[0], tangent) >= scores(ends[1], tangent)
        logs[loose] = np.where(above[:, None], *ends)
    return logs


def _room(logs: Floats, distances: Floats) -> Floats:
    """How far each secret may rise while each other stays, shape (columns, secret, other)."""
    room = logs[:, None, :] - logs[:, :, None]
    room += distances
    return np.asarray(room)


def _moved(
    logs: Floats, distances: Floats, inside: NDArray[np.bool_], up: NDArray[np.bool_]
) -> Floats:
    """The columns with the sets raised, or lowered, until the first bound."""
    ways = np.where(up, 1.0, -1.0)[:, None]
    heights = ways * logs
    # up to where each secret lets all of the set rise
    reached = distances - np.where(inside, heights, -np.inf)[:, None, :]
    far = np.where(inside, np.inf, heights + reached.min(axis=2)).min(axis=1)
    # all secrets together are the same column; and rounding lowers nothing that is to rise
    far = np.where(np.isfinite(far), np.maximum(far, 0.0), 0.0)
    return np.asarray(logs + np.where(inside, ways * far[:, None], 0.0))
