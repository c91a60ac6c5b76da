"""The columns of which every epsilon-d-private channel is a mixture.

Privacy bounds each column of a channel by itself: w_x <= exp(eps d(x, y)) w_y for all x, y. These
columns are a cone, and every one of them is a sum of those on its extreme rays. On a ray so many
bounds are attained that they connect all secrets: the bounds attained contain a spanning tree, and
log w climbs or falls by eps d along each of its edges.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, shortest_path

from ibukit._ground.arguments import Floats, Ints
from ibukit.errors import TooLarge

# all of them have at most 2^16 extremal columns: 2^(k-1), 2^k - 2, and at most (2k-2 choose k-1)
# where nothing helps
MAX_ON_A_TREE, MAX_EQUAL, MAX_OTHERWISE = 17, 16, 10
# of a path they need no list, and are looked through in two halves of 2^12; beyond that they are
# guessed
MAX_LOOKED_THROUGH, MAX_ON_A_PATH = 25, 100
# elsewhere columns climb, and the bound is loose
MAX_OFF_LINES = 100
TIE_OF_PATHS = 1e-9


def extremal_logs(distances: Floats) -> Floats:
    """Logarithms of one column of each extreme ray for epsilon = 1, shape (columns, k).

    For any other epsilon they are this times epsilon.
    """
    k = len(distances)
    if not listable(distances):
        raise TooLarge(_too_many_columns_message(k))
    shortest, needed = _needed_bounds(distances)
    if _is_a_tree(needed):
        return _of_a_tree(needed)
    if _are_equal(shortest) and k <= MAX_EQUAL:
        # every set of secrets at one height and the others at another
        return np.asarray(shortest[0, 1] * _bits(k)[1:-1])
    return _of_any(shortest, needed)


def listable(distances: Floats) -> bool:
    """Whether there are few enough columns for a list."""
    k = len(distances)
    if k <= MAX_OTHERWISE or k > MAX_ON_A_TREE:
        return k <= MAX_OTHERWISE
    shortest, needed = _needed_bounds(distances)
    return _is_a_tree(needed) or (k <= MAX_EQUAL and _are_equal(shortest))


def _is_a_tree(needed: Floats) -> bool:
    return bool(np.count_nonzero(needed) == 2 * (len(needed) - 1))


def _are_equal(shortest: Floats) -> bool:
    others = shortest[~np.eye(len(shortest), dtype=bool)]
    return bool((np.abs(others - shortest[0, 1]) <= TIE_OF_PATHS * shortest[0, 1]).all())


def path_of(distances: Floats) -> tuple[Ints, Floats] | None:
    """The secrets in their order along a path and the lengths of its steps; None where the bounds are no path.

    It is asked of alphabets that are too large for a list.
    """
    k = len(distances)
    if k > MAX_ON_A_PATH:
        raise TooLarge(_too_many_columns_message(k))
    _, edges = _needed_bounds(distances)
    neighbours = np.count_nonzero(edges, axis=1)
    if neighbours.max(initial=0) > 2 or neighbours.sum() != 2 * (k - 1):
        return None
    order = breadth_first_order(
        edges, int(np.argmin(neighbours)), return_predecessors=False
    ).astype(np.int64)
    return order, np.asarray(edges[order[:-1], order[1:]])


def _needed_bounds(distances: Floats) -> tuple[Floats, Floats]:
    """Lengths of the shortest ways, and of the edges: a bound as long as a way through others says nothing."""
    shortest = np.asarray(shortest_path(distances))
    through_others = np.array([_through_others(shortest, x) for x in range(len(shortest))])
    return shortest, np.where(
        shortest < through_others - TIE_OF_PATHS * shortest.max(), shortest, 0
    )


def _through_others(shortest: Floats, x: int) -> Floats:
    """Length of the shortest way from x to each y that visits a third secret."""
    legs = shortest[x][:, None] + shortest
    np.fill_diagonal(legs, np.inf)
    legs[x] = np.inf
    return np.asarray(legs.min(axis=0))


def _of_a_tree(edges: Floats) -> Floats:
    """Every choice of up or down along the edges, which on a line are the steps between neighbours."""
    k = len(edges)
    signs = 1 - 2 * _bits(k - 1)
    order, before = breadth_first_order(edges, 0)
    logs = np.zeros((len(signs), k))
    for step, x in enumerate(order[1:]):
        logs[:, x] = logs[:, before[x]] + signs[:, step] * edges[x, before[x]]
    return logs


def _bits(n: int) -> Floats:
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)


def _too_many_columns_message(k: int) -> str:
    return (
        f"alphabet of {k} secrets has too many extremal columns: possible are up to {MAX_OTHERWISE} secrets, "
        f"{MAX_EQUAL} with equal distances, {MAX_ON_A_TREE} on a tree and {MAX_ON_A_PATH} on a line, and with a gap "
        f"of hundredths {MAX_OFF_LINES} anywhere; merge secrets"
    )


def _of_any(shortest: Floats, edges: Floats) -> Floats:
    """Grow columns from the first secret: one more at a time, tied to one of those before, if it keeps all bounds."""
    k = len(shortest)
    slack = TIE_OF_PATHS * shortest.max()
    # by the secrets that are in, as bits
    level = {1: np.zeros((1, k))}
    for _ in range(k - 1):
        grown: dict[int, list[Floats]] = {}
        for inside, logs in level.items():
            members = [x for x in range(k) if inside >> x & 1]
            for new in set(range(k)).difference(members):
                tied = [x for x in members if edges[x, new]]
                for columns in [
                    _tied(logs, x, new, sign * edges[x, new]) for x in tied for sign in (1, -1)
                ]:
                    gaps = np.abs(columns[:, [new]] - columns[:, members])
                    fine = columns[(gaps <= shortest[new, members] + slack).all(axis=1)]
                    grown.setdefault(inside | 1 << new, []).append(fine)
        level = {inside: _distinct(np.concatenate(parts), slack) for inside, parts in grown.items()}
    return level[2**k - 1]


def _tied(logs: Floats, to: int, new: int, step: float) -> Floats:
    columns = logs.copy()
    columns[:, new] = logs[:, to] + step
    return columns


def _distinct(logs: Floats, slack: float) -> Floats:
    # a double that falls on either side of a rounding boundary is kept twice, which does no harm
    _, first = np.unique(np.rint(logs / (8 * slack)), axis=0, return_index=True)
    return logs[first]
