"""Extremal columns: every epsilon-d-private channel is a mixture of them.

Privacy bounds each column of a channel by itself: w_x <= exp(eps d(x, y)) w_y for all x, y. These
columns are a cone, and each of them is a sum of columns on its extreme rays. A column is on an
extreme ray if the bounds that it attains connect all secrets: then it is determined up to a factor.
The bounds attained contain a spanning tree, and log w rises or falls by eps d along each of its
edges.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, shortest_path

from ibukit._ground.arguments import Floats, Ints
from ibukit.errors import TooLarge

# Largest alphabets whose columns are listed. Each limit stands for about 2^16 columns: 2^(k-1) on a
# tree, 2^k - 2 for equal distances, and at most (2k-2 choose k-1) for any other metric.
MAX_K_TREE, MAX_K_EQUAL_DISTANCES, MAX_K_GENERAL = 17, 16, 10
# On a path columns are priced instead of listed, exactly in two halves of 2^12 each, or guessed
# beyond that.
MAX_K_EXACT_PRICING, MAX_K_PATH = 25, 100
# For any other metric columns are found by hill climbing, and the bound is looser.
MAX_K_OFF_PATHS = 100
TIE_TOLERANCE = 1e-9


def extremal_logs(distances: Floats) -> Floats:
    """Logarithms of one column on each extreme ray for epsilon = 1, shape (columns, k).

    For any other epsilon they are these logarithms times epsilon.
    """
    k = len(distances)
    if not can_be_listed(distances):
        raise TooLarge(_too_many_columns_message(k))
    shortest, needed = _irredundant_bounds(distances)
    if _is_a_tree(needed):
        return _tree_logs(needed)
    if _are_all_equal(shortest) and k <= MAX_K_EQUAL_DISTANCES:
        # With equal distances each column has two heights: any set of secrets and the others.
        return shortest[0, 1] * _binary_rows(k)[1:-1]
    return _general_logs(shortest, needed)


def can_be_listed(distances: Floats) -> bool:
    """Return True if there are few enough columns to list them."""
    k = len(distances)
    if k <= MAX_K_GENERAL or k > MAX_K_TREE:
        return k <= MAX_K_GENERAL
    shortest, needed = _irredundant_bounds(distances)
    return _is_a_tree(needed) or (k <= MAX_K_EQUAL_DISTANCES and _are_all_equal(shortest))


def _is_a_tree(needed: Floats) -> bool:
    return bool(np.count_nonzero(needed) == 2 * (len(needed) - 1))


def _are_all_equal(shortest: Floats) -> bool:
    others = shortest[~np.eye(len(shortest), dtype=bool)]
    return bool((np.abs(others - shortest[0, 1]) <= TIE_TOLERANCE * shortest[0, 1]).all())


def path_of(distances: Floats) -> tuple[Ints, Floats] | None:
    """Order of the secrets along a path and the lengths of its steps; None for any other metric.

    It is called for alphabets that are too large for a list.
    """
    k = len(distances)
    if k > MAX_K_PATH:
        raise TooLarge(_too_many_columns_message(k))
    _, edges = _irredundant_bounds(distances)
    neighbours = np.count_nonzero(edges, axis=1)
    if neighbours.max(initial=0) > 2 or neighbours.sum() != 2 * (k - 1):
        return None
    order = breadth_first_order(
        edges, int(np.argmin(neighbours)), return_predecessors=False
    ).astype(np.int64)
    return order, np.asarray(edges[order[:-1], order[1:]])


def _irredundant_bounds(distances: Floats) -> tuple[Floats, Floats]:
    """Lengths of the shortest ways, and of the bounds that are not implied by others.

    A bound as long as a way through a third secret follows from the bounds along that way; it is 0
    in the second matrix.
    """
    shortest = np.asarray(shortest_path(distances))
    through_a_third = np.array([_through_a_third(shortest, x) for x in range(len(shortest))])
    return shortest, np.where(
        shortest < through_a_third - TIE_TOLERANCE * shortest.max(), shortest, 0
    )


def _through_a_third(shortest: Floats, x: int) -> Floats:
    """Length of the shortest way from x to each y that visits a third secret."""
    legs = shortest[x][:, None] + shortest
    np.fill_diagonal(legs, np.inf)
    legs[x] = np.inf
    return legs.min(axis=0)


def _tree_logs(edges: Floats) -> Floats:
    """Columns of a tree: every choice of up or down along its edges."""
    k = len(edges)
    signs = 1 - 2 * _binary_rows(k - 1)
    order, before = breadth_first_order(edges, 0)
    logs = np.zeros((len(signs), k))
    for step, x in enumerate(order[1:]):
        logs[:, x] = logs[:, before[x]] + signs[:, step] * edges[x, before[x]]
    return logs


def _binary_rows(n: int) -> Floats:
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)


def _too_many_columns_message(k: int) -> str:
    return (
        f"alphabet of {k} secrets has too many extremal columns: possible are up to "
        f"{MAX_K_GENERAL} secrets, {MAX_K_EQUAL_DISTANCES} with equal distances, {MAX_K_TREE} on a "
        f"tree and {MAX_K_PATH} on a line, and with a gap of hundredths {MAX_K_OFF_PATHS} "
        "anywhere; merge secrets"
    )


def _general_logs(shortest: Floats, edges: Floats) -> Floats:
    """Columns of any metric, grown from the first secret.

    Secrets are attached one at a time, each to one of the earlier ones by a bound that it attains,
    up or down. Only columns that keep all bounds are grown further. Every spanning tree can be
    grown in this way, so every extremal column is found.
    """
    k = len(shortest)
    slack = TIE_TOLERANCE * shortest.max()
    # The keys are sets of secrets as bits: the columns on just these secrets.
    columns_on = {1: np.zeros((1, k))}
    for _ in range(k - 1):
        larger: dict[int, list[Floats]] = {}
        for inside, logs in columns_on.items():
            connected = [x for x in range(k) if inside >> x & 1]
            for new in set(range(k)).difference(connected):
                neighbours = [x for x in connected if edges[x, new]]
                for columns in [
                    _attached(logs, x, new, sign * edges[x, new])
                    for x in neighbours
                    for sign in (1, -1)
                ]:
                    gaps = np.abs(columns[:, [new]] - columns[:, connected])
                    private = columns[(gaps <= shortest[new, connected] + slack).all(axis=1)]
                    larger.setdefault(inside | 1 << new, []).append(private)
        columns_on = {
            inside: _distinct(np.concatenate(parts), slack) for inside, parts in larger.items()
        }
    return columns_on[2**k - 1]


def _attached(logs: Floats, to: int, new: int, step: float) -> Floats:
    # The new secret's bound to a neighbour is attained: log w differs by exactly its length.
    columns = logs.copy()
    columns[:, new] = logs[:, to] + step
    return columns


def _distinct(logs: Floats, slack: float) -> Floats:
    # A double on a rounding boundary may be kept twice, which does no harm.
    _, first = np.unique(np.rint(logs / (8 * slack)), axis=0, return_index=True)
    return logs[first]
