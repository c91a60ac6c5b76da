"""Local search on extremal columns: sets of secrets move up or down until a bound is attained.

If w_x is as large as w_y allows, x can be raised only together with y. The secrets with which x
must rise are read off at once, because distances are a metric: bounds that are attained one after
another are attained at once. Along such a move, with the column scaled to mean 1, the score is
convex over linear: if it rises at first it rises to the end of the move, and the end may be higher
even if it does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.extremal_columns import TIE_TOLERANCE
from ibukit.design.optimal.path_neighbours import Tangent

# The number of moves whose ends are scored for a column is this budget over the k^2 pairs.
MOVES_BUDGET = 80_000
MAX_MOVES = 200
# Entries of matrices between secrets held at a time: few enough for a processor's cache.
ENTRIES_AT_ONCE = 2**18
# A score that is higher by less than this share does not count as higher.
MIN_RELATIVE_GAIN = 1e-9
# Columns are the same if their logs differ by less than this share of the largest distance.
LOGS_TOLERANCE = 1e-7


def scores(logs: Floats, tangent: Tangent) -> Floats:
    """Scores q(r) - nu r of the columns."""
    points, _ = deviations(logs, tangent.theta)
    return ((points @ tangent.quadratic) * points).sum(axis=1) - points @ tangent.linear


def hill_climb(
    logs: Floats, distances: Floats, tangent: Tangent, rng: np.random.Generator
) -> Floats:
    """Hill climbing from private columns to extremal ones that no move tried improves.

    Random uphill moves come first, then best ones: if all columns took the best move at once, most
    would meet, and a design needs as many good columns as it has moments.
    """
    # First one random move at a time, then the best of many.
    for tried, weights in ((1, rng), (max(1, MOVES_BUDGET // distances.size), None)):
        climbing, finished = logs, []
        for _ in range(MAX_MOVES):
            moved = [
                _best_move(part, distances, tangent, tried, weights)
                for part in _chunks(climbing, distances)
            ]
            has_risen = np.concatenate([each for _, each in moved])
            after = np.vstack([each for each, _ in moved])
            finished.append(after[~has_risen])
            climbing = unique_up_to_symmetry(after[has_risen], distances)
            if not len(climbing):
                break
        logs = np.vstack([*finished, climbing])
    tied = [_connect(part, distances, tangent) for part in _chunks(logs, distances)]
    return unique_up_to_symmetry(np.vstack(tied), distances)


def unique_up_to_symmetry(logs: Floats, distances: Floats, images: Ints | None = None) -> Floats:
    """Distinct columns, with only one of those that are images of one another.

    `images` has a row for each image, which says from where the image takes its secrets.
    """
    unit, images = (
        LOGS_TOLERANCE * distances.max(),
        np.arange(logs.shape[1])[None] if images is None else images,
    )
    # Each image is measured from its own first secret, so that differences of rounded logs are
    # equal up to one unit. The lexicographically least image stands for the column.
    heights = [np.rint((logs[:, image] - logs[:, image[:1]]) / unit) for image in images]
    each, first = np.arange(len(logs)), heights[0]
    for other in heights[1:]:
        apart = other - first
        lower = apart[each, (apart != 0).argmax(axis=1)] < 0
        first = np.where(lower[:, None], other, first)
    return logs[np.sort(np.unique(first, axis=0, return_index=True)[1])]


def within_bounds(logs: Floats, distances: Floats) -> Floats:
    """Highest private columns that are nowhere above the given ones."""
    return np.asarray(
        np.vstack([(part[:, None, :] + distances).min(axis=2) for part in _chunks(logs, distances)])
    )


def _chunks(logs: Floats, distances: Floats) -> list[Floats]:
    at_once = max(1, ENTRIES_AT_ONCE // distances.size)
    return np.array_split(logs, max(1, -(-len(logs) // at_once)))


def _best_move(
    logs: Floats, distances: Floats, tangent: Tangent, tried: int, rng: np.random.Generator | None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Each column after the best of the moves tried, and whether its score rose."""
    n, k = logs.shape
    each = np.arange(n)
    # Row x of `moves_along` is the set that rises with x; column x the set that falls with x.
    slack = _slack(logs, distances)
    moves_along = slack <= TIE_TOLERANCE * distances.max()
    moves_along[:, np.arange(k), np.arange(k)] = True
    points, _ = deviations(logs, tangent.theta)
    images = points @ tangent.quadratic
    slopes, current = (
        2 * images - tangent.linear,
        (images * points).sum(axis=1) - points @ tangent.linear,
    )
    # Derivative of the score by the log of each entry, and its sum over each set.
    derivatives = (1 + points) * (slopes - tangent.theta * (slopes * points).sum(axis=1)[:, None])
    sets = moves_along.astype(np.float64)
    gains = np.hstack(
        [(sets @ derivatives[:, :, None])[:, :, 0], -(derivatives[:, None] @ sets)[:, 0]]
    )
    # sqrt(uniform) draws a random uphill move that prefers steep ones.
    if rng is not None:
        gains *= np.sqrt(rng.random(gains.shape))
    candidates = np.argsort(-gains, axis=1, kind="stable")[:, :tried]
    best, ends = current + MIN_RELATIVE_GAIN * np.abs(current), logs.copy()
    has_risen = np.zeros(n, dtype=np.bool_)
    for column in candidates.T:
        up, x = column < k, column % k
        members = np.where(up[:, None], moves_along[each, x], moves_along[each, :, x])
        end = _shift_sets(logs, distances, members, up)
        end_scores = scores(end, tangent)
        higher = end_scores > best
        ends[higher], best[higher] = end[higher], end_scores[higher]
        has_risen |= higher
    return ends, has_risen


def _connect(logs: Floats, distances: Floats, tangent: Tangent) -> Floats:
    """Columns whose attained bounds connect all secrets: extremal ones.

    The part tied to the first secret is moved up or down until another bound is attained, whichever
    scores more; after at most k - 1 moves all secrets are connected.
    """
    k = len(distances)
    logs = logs.copy()
    for _ in range(k):
        slack = _slack(logs, distances)
        tied = np.minimum(slack, slack.transpose(0, 2, 1)) <= TIE_TOLERANCE * distances.max()
        tied[:, np.arange(k), np.arange(k)] = True
        members = tied[:, 0]
        tied = tied.astype(np.float64)
        for _ in range(k):
            more = (members[:, None].astype(np.float64) @ tied)[:, 0] > 0
            if (more == members).all():
                break
            members = more
        loose = np.flatnonzero(~members.all(axis=1))
        if not len(loose):
            break
        ends = [
            _shift_sets(
                logs[loose], distances, members[loose], np.full(len(loose), way, dtype=np.bool_)
            )
            for way in (True, False)
        ]
        above = scores(ends[0], tangent) >= scores(ends[1], tangent)
        logs[loose] = np.where(above[:, None], *ends)
    return logs


def _slack(logs: Floats, distances: Floats) -> Floats:
    """Distance by which each secret may rise while each other stays, (columns, secret, other)."""
    slack = logs[:, None, :] - logs[:, :, None]
    slack += distances
    return slack


def _shift_sets(
    logs: Floats, distances: Floats, members: NDArray[np.bool_], up: NDArray[np.bool_]
) -> Floats:
    """Columns with their sets raised or lowered until the first bound is attained."""
    signs = np.where(up, 1.0, -1.0)[:, None]
    heights = signs * logs
    # A secret outside the set bounds how far each member may rise.
    reachable = distances - np.where(members, heights, -np.inf)[:, None, :]
    distance = np.where(members, np.inf, heights + reachable.min(axis=2)).min(axis=1)
    # Moving all secrets changes nothing; rounding must not turn a rise into a fall.
    distance = np.where(np.isfinite(distance), np.maximum(distance, 0.0), 0.0)
    return logs + np.where(members, signs * distance[:, None], 0.0)
