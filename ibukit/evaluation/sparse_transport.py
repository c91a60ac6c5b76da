"""Optimal transport between many cells of a grid, by a few pairs and a bound over all pairs.

A plan uses fewer pairs of cells than there are cells, and a network simplex on the right pairs
finds the best plan. Column generation looks for these pairs: the dual variables of a plan on some
pairs show which of the others would make it cheaper, and give a lower bound that holds over all
pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.spatial.distance import cdist

from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.grid import Grid

# The first version of POT whose network simplex takes sparse costs.
OLDEST_POT = (0, 9, 7)
# Largest difference between the cost of the plan and the lower bound, relative to the cost.
TOLERANCE = 1e-9
# The potentials of blocks of cells only say with which pairs to begin, so less accuracy is enough.
BLOCK_TOLERANCE = 1e-6
# Reduced costs that are rounding, in units of the largest distance.
ROUNDING = 1e-14
# Blocks of cells grow, each four times as large as the last, until at most this many are left.
MAX_BLOCKS = 150
# Pairs of each cell to begin with, and those that a round adds. More pairs make the simplex slower,
# fewer take more rounds.
FIRST_PAIRS, MORE_PAIRS = 24, 8
# Most instances need 2 to 7 rounds; where many plans share the least cost, 20 have been seen.
MAX_ROUNDS = 60
MAX_PIVOTS = 10_000_000
# Distances that are computed at once; they stay in the cache.
MAX_DISTANCES = 2**16


class Potential(NamedTuple):
    """Value of a unit of mass at every place, which changes no faster than the distance.

    It is the least such function through the values at some places, times the sign.
    """

    places: Floats
    values: Floats
    sign: int

    def at(self, places: Floats) -> Floats:
        """Return the value at each of some places."""
        least = _cheaper_pairs(places, self.places, np.zeros(len(places)), self.values, 0).least
        return -self.sign * least


class CheaperPairs(NamedTuple):
    """The least reduced cost of each row, and the pairs with reduced costs below a limit."""

    least: Floats
    rows: Ints
    columns: Ints


def certified_cost(grid: Grid, surplus: Floats) -> float | None:
    """Return the least cost of carrying the surplus of some cells to the others, or None.

    Parameters
    ----------
    grid : Grid
    surplus : ndarray, shape (k,)
        Mass that leaves each cell, negative where it arrives; the sum is 0 up to rounding.

    Returns
    -------
    float or None
        The cost of a plan, which exceeds the least cost by at most a relative `TOLERANCE`. None if
        the lower bound does not prove this, or if POT is older than 0.9.7.
    """
    if not has_sparse_simplex():
        return None
    rows, columns = np.divmod(np.arange(len(grid)), grid.n_cols)
    side, potential = 1, None
    while -(-grid.n_rows // side) * -(-grid.n_cols // side) > MAX_BLOCKS:
        side *= 2
    # The potential of large blocks is near that of the small ones inside them.
    while side > 1:
        width = -(-grid.n_cols // side)
        block = rows // side * width + columns // side
        in_blocks = np.bincount(block, surplus).astype(np.float64)
        corners = np.stack(np.divmod(np.arange(len(in_blocks)), width), axis=1)
        centers = (corners + 0.5) * side * grid.cell_shape
        _, potential = _plan(centers, in_blocks, potential, BLOCK_TOLERANCE)
        side //= 2
    return _plan(grid.centers(), surplus, potential, TOLERANCE)[0]


def has_sparse_simplex() -> bool:
    """True if POT's network simplex takes some of the pairs only, which older versions do not."""
    # POT takes a second to import.
    import ot

    return tuple(int(part) for part in ot.__version__.split(".")[:3]) >= OLDEST_POT


def _plan(
    places: Floats, surplus: Floats, guess: Potential | None, tolerance: float
) -> tuple[float | None, Potential | None]:
    """Return the cost of a plan if it is proved to be the least one, and the potential."""
    # The side with more places has the rows, each of which is given pairs. Distances are symmetric.
    sign = 1 if np.sum(surplus > 0) >= np.sum(surplus < 0) else -1
    sources, sinks = np.flatnonzero(sign * surplus > 0), np.flatnonzero(sign * surplus < 0)
    if not len(sources) or not len(sinks):
        return None, guess
    supply, demand = np.abs(surplus[sources]), np.abs(surplus[sinks])
    total = supply.sum()
    supply, demand = supply / total, demand / demand.sum()
    start, end = places[sources], places[sinks]
    # POT takes a second to import.
    import ot

    longest = float(np.hypot(*np.ptp(places, axis=0)))

    values, prices = np.zeros(len(start)), np.zeros(len(end))
    if guess is not None:
        values, prices = sign * guess.at(start), -sign * guess.at(end)
    near = _cheaper_pairs(start, end, values, prices, FIRST_PAIRS)
    # These pairs alone may not allow a plan, so the pairs of some plan are added.
    first = _some_plan(supply, demand)
    pairs = _merged(len(end), first, (near.rows, near.columns))
    for _ in range(MAX_ROUNDS):
        rows, columns = np.divmod(pairs, len(end))
        distances = np.hypot(*(start[rows] - end[columns]).T)
        plan, log = ot.emd(
            supply,
            demand,
            coo_array((distances, (rows, columns)), shape=(len(start), len(end))),
            numItermax=MAX_PIVOTS,
            log=True,
            center_dual=False,
            check_marginals=False,
        )
        if log["warning"] is not None:
            return None, guess
        values, prices = log["u"], log["v"]
        cheaper = _cheaper_pairs(start, end, values, prices, MORE_PAIRS, -ROUNDING * longest)
        # Once lowered by the least reduced costs, the dual variables are feasible for all pairs.
        bound = supply @ (values + cheaper.least) + demand @ prices
        # Mass that rounding leaves out of the plan travels no farther than the largest distance.
        lost = np.abs(plan.sum(axis=1) - supply).sum() + np.abs(plan.sum(axis=0) - demand).sum()
        if log["cost"] - bound + lost * longest <= tolerance * log["cost"]:
            return float(total * log["cost"]), Potential(start, values + cheaper.least, sign)
        grown = _merged(len(end), (rows, columns), (cheaper.rows, cheaper.columns))
        if len(grown) == len(pairs):
            break
        pairs = grown
    return None, guess


def _cheaper_pairs(
    start: Floats,
    end: Floats,
    values: Floats,
    prices: Floats,
    most: int,
    limit: float = np.inf,
) -> CheaperPairs:
    """Return pairs with reduced costs below a limit: in each row at most `most`, the lowest."""
    least, rows, columns = np.empty(len(start)), [], []
    most, step = min(most, len(end)), max(1, MAX_DISTANCES // len(end))
    for first in range(0, len(start), step):
        some = slice(first, first + step)
        costs = cdist(start[some], end)
        costs -= prices
        least[some] = costs.min(axis=1) - values[some]
        if not most:
            continue
        near = np.flatnonzero(least[some] < limit)
        costs = costs[near]
        best = np.argpartition(costs, most - 1, axis=1)[:, :most]
        row, place = np.nonzero(
            np.take_along_axis(costs, best, axis=1) - values[some][near, None] < limit
        )
        rows.append(first + near[row])
        columns.append(best[row, place])
    if not rows:
        return CheaperPairs(least, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    return CheaperPairs(least, np.concatenate(rows), np.concatenate(columns))


def _some_plan(supply: Floats, demand: Floats) -> tuple[Ints, Ints]:
    """Return pairs that carry all mass, each supply in turn to the next demand."""
    sent, received = np.cumsum(supply)[:-1], np.cumsum(demand)[:-1]
    steps = np.sort(np.concatenate([[0.0], sent, received]))
    rows, columns = np.searchsorted(sent, steps, "right"), np.searchsorted(received, steps, "right")
    # Rounding may take the last of a cell's mass to one of the neighbours.
    more_rows, more_columns = (
        np.minimum(rows + 1, len(sent)),
        np.minimum(columns + 1, len(received)),
    )
    return np.concatenate([rows, more_rows, rows]), np.concatenate([columns, columns, more_columns])


def _merged(width: int, some: tuple[Ints, Ints], more: tuple[Ints, Ints]) -> Ints:
    """Return the numbers of all pairs, each once, in order."""
    return np.unique(np.concatenate([some[0] * width + some[1], more[0] * width + more[1]]))
