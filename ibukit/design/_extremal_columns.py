"""The columns of which every epsilon-d-private channel is a mixture.

Privacy bounds each column of a channel by itself: w_x <= exp(eps d(x, y)) w_y for all x, y. These columns are a cone,
and every one of them is a sum of those on its extreme rays. On a ray so many bounds are attained that they connect all
secrets: the bounds attained contain a spanning tree, and log w climbs or falls by eps d along each of its edges.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, shortest_path

from ibukit._validate import Floats
from ibukit.errors import TooLarge

MOST_COLUMNS = 2**16
# partial columns over equally many secrets that are kept at a time
MOST_PARTS = 2**18
TIE = 1e-9


def extremal_logs(distances: Floats) -> Floats:
    """Logarithms of one column of each extreme ray for epsilon = 1, the first entry 0, shape (columns, k).

    For any other epsilon they are this times epsilon.
    """
    # a bound longer than the way through other secrets says nothing
    shortest = shortest_path(distances)
    through_others = np.array([_through_others(shortest, x) for x in range(len(shortest))])
    needed = np.where(shortest < through_others - TIE * shortest.max(), shortest, 0)
    if np.count_nonzero(needed) == 2 * (len(needed) - 1):
        return _of_a_tree(needed)
    return _of_any(shortest, needed)


def _through_others(shortest: Floats, x: int) -> Floats:
    """Length of the shortest way from x to each y that visits a third secret."""
    legs = shortest[x][:, None] + shortest
    np.fill_diagonal(legs, np.inf)
    legs[x] = np.inf
    return np.asarray(legs.min(axis=0))


def _of_a_tree(edges: Floats) -> Floats:
    """Every choice of up or down along the edges, which on a line are the steps between neighbours."""
    k = len(edges)
    if 2 ** (k - 1) > MOST_COLUMNS:
        raise TooLarge(
            f"alphabet of {k} secrets has 2^{k - 1} extremal columns, and at most {MOST_COLUMNS} are gone through (17 "
            "secrets on a line): merge neighbouring secrets"
        )
    order, before = breadth_first_order(edges, 0)
    signs = 1.0 - 2.0 * (np.arange(2 ** (k - 1))[:, None] >> np.arange(k - 1) & 1)
    logs = np.zeros((len(signs), k))
    for step, x in enumerate(order[1:]):
        logs[:, x] = logs[:, before[x]] + signs[:, step] * edges[x, before[x]]
    return logs


def _of_any(shortest: Floats, edges: Floats) -> Floats:
    """Grow columns from the first secret: one more at a time, tied to one of those before, if it keeps all bounds."""
    k = len(shortest)
    slack = TIE * shortest.max()
    # by the secrets that are in, as bits
    level = {1: np.zeros((1, k))}
    for _ in range(k - 1):
        grown: dict[int, list[Floats]] = {}
        for inside, logs in level.items():
            members = [x for x in range(k) if inside >> x & 1]
            for new in set(range(k)).difference(members):
                tied = [x for x in members if edges[x, new]]
                kept = [_tied(logs, x, new, sign * edges[x, new]) for x in tied for sign in (1, -1)]
                for columns in kept:
                    gaps = np.abs(columns[:, [new]] - columns[:, members])
                    fine = columns[(gaps <= shortest[new, members] + slack).all(axis=1)]
                    grown.setdefault(inside | 1 << new, []).append(fine)
        level = {inside: _distinct(np.concatenate(parts), slack) for inside, parts in grown.items()}
        size = sum(map(len, level.values()))
        if size > MOST_PARTS:
            raise TooLarge(
                f"alphabet of {k} secrets has too many extremal columns for these distances, more than {MOST_PARTS} on "
                "the way there; up to 10 secrets are possible whatever the distances, more on a line"
            )
    return level[2**k - 1]


def _tied(logs: Floats, to: int, new: int, step: float) -> Floats:
    columns = logs.copy()
    columns[:, new] = logs[:, to] + step
    return columns


def _distinct(logs: Floats, slack: float) -> Floats:
    # a double that falls on either side of a rounding boundary is kept twice, which does no harm
    _, first = np.unique(np.rint(logs / (8 * slack)), axis=0, return_index=True)
    return logs[first]
