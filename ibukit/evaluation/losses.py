"""Distances of an estimate from the truth."""

from __future__ import annotations

import math

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import (
    Alphabet,
    AlphabetLike,
    Line,
    as_alphabet,
    refuse_bins_without_distances,
)
from ibukit.domain.grid import Grid
from ibukit.domain.vectors import VectorLike, aligned_pair
from ibukit.errors import ConvergenceError

# Number of pairs of cells up to which the network simplex is faster with all pairs than with a few
# of them; and number of cells of the smaller side below which a few pairs are not tried (measured
# by benchmarks/transport.py).
MAX_ALL_PAIRS, MIN_FEW_PAIRS = 500_000, 100


def emd(p: VectorLike, q: VectorLike, alphabet: AlphabetLike, *, strict: bool = True) -> float:
    r"""Earth mover's distance, in the unit of the alphabet.

    .. math:: \min_{T\ge0}\sum_{xy}T_{xy}\,d(x,y)

    where T has row sums p and column sums q. On a line there is a closed form,
    :math:`\sum_x|P(x)-Q(x)|` with the distribution functions P and Q; bins are on a line, at their
    midpoints. On other alphabets the distance is computed exactly, by POT's network simplex. On a
    grid where many cells differ, the simplex runs on a few pairs of cells, and a bound from the
    dual over all pairs proves the distance to a relative 1e-9.

    Parameters
    ----------
    p, q : array_like or labelled, shape (k,)
        Distributions. Labelled ones are aligned by their labels (with each other if no alphabet is
        known); arrays must be in the same order.
    alphabet : Alphabet, sequence of labels or int
        The alphabet whose distances d are the cost; an int k means Line(0, k - 1).
    strict : bool
        Raise if the network simplex ends before the optimum. False returns the cost of the plan
        that it has reached; the distance is at most this cost.

    Returns
    -------
    float
        In the alphabet's unit.

    Raises
    ------
    ConvergenceError
        If `strict` and the optimum was not reached; carries the cost of the plan found as
        ``.estimate``.
    InvalidDistribution
        If p or q is not on the simplex (raw matrix inversion rarely is).
    AlphabetMismatch
        If p or q does not have one probability for each element, or is an estimate over another
        alphabet, or if a bin has no midpoint.

    References
    ----------
    .. [flamary] Flamary et al., "POT: Python Optimal Transport", JMLR 22, 2021.

    Examples
    --------
    >>> import ibukit as ik
    >>> emd([1, 0, 0], [0, 0.5, 0.5], ik.Line(0, 2, unit="year"))  # half a user-year and one
    1.5
    """
    space = as_alphabet(alphabet)
    supply, demand = _pair(p, q, space)
    # On a line with steps of 1, |P(x) - Q(x)| is the mass that crosses from x to x + 1.
    if isinstance(space, Line):
        return float(np.abs(np.cumsum(supply - demand))[:-1].sum())
    if (places := space.places) is not None:
        # Bins are treated in the same way, but their midpoints are at uneven steps.
        order = np.argsort(places)
        crossing = np.abs(np.cumsum((supply - demand)[order])[:-1])
        return float(crossing @ np.diff(places[order]))
    refuse_bins_without_distances(space)
    # Arguments may miss the sum 1 by 1e-9, and the network simplex allows no such difference.
    supply, demand = supply / supply.sum(), demand / demand.sum()
    # Distances that were handed in need not obey the triangle inequality.
    if type(space) is not Grid:
        return _transport(supply, demand, space.distances(), strict)
    # By the triangle inequality the mass that both have in common stays, so far fewer cells are
    # left to be matched.
    surplus = supply - demand
    more, less = np.flatnonzero(surplus > 0), np.flatnonzero(surplus < 0)
    few = min(len(more), len(less))
    if len(more) * len(less) > MAX_ALL_PAIRS and few >= MIN_FEW_PAIRS:
        # This imports modules of scipy that smaller grids do not need.
        from ibukit.evaluation.sparse_transport import certified_cost

        if (cost := certified_cost(space, surplus)) is not None:
            return cost
    return _transport(
        surplus[more],
        -surplus[less],
        space._distances_between(more, less),
        strict,
    )


def _transport(supply: Floats, demand: Floats, distances: Floats, strict: bool) -> float:
    """Return the least cost of moving a supply to a demand of equal sum, up to rounding."""
    # POT takes a second to import.
    import ot

    total = supply.sum()
    # If one side has no mass left, the mass on the other is rounding, because both sum to 1.
    if not (total and demand.sum()):
        return 0.0
    # POT requires equal totals to the last digit. Its dual variables are not used, so they need not
    # be centred.
    quick = {"center_dual": False, "check_marginals": False}
    cost, log = ot.emd2(
        supply / total, demand / demand.sum(), distances, numItermax=10_000_000, log=True, **quick
    )
    cost = float(total * cost)
    if arguments.flag("strict", strict) and log["warning"] is not None:
        raise ConvergenceError(
            f"the optimal transport was not solved, {log['warning']}: the cost is {cost:.6g} or "
            "less; take an alphabet with fewer elements, or strict=False for this cost",
            cost,
        )
    return cost


def total_variation(p: VectorLike, q: VectorLike) -> float:
    r"""Total variation distance between two distributions.

    It is

    .. math:: \max_A|p(A)-q(A)|=\tfrac12\sum_x|p_x-q_x|.

    Parameters
    ----------
    p, q : array_like or labelled, shape (k,)
        Distributions.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InvalidDistribution
        If p or q is not on the simplex.
    AlphabetMismatch
        If the lengths differ, or two estimates are over different alphabets.

    Examples
    --------
    >>> total_variation([1, 0, 0], [0, 0.5, 0.5])
    1.0
    """
    first, second = _pair(p, q)
    return float(np.abs(first - second).sum() / 2)


def squared_l2(p: VectorLike, q: VectorLike) -> float:
    r"""Squared Euclidean distance: :math:`\sum_x(p_x-q_x)^2`.

    Parameters
    ----------
    p, q : array_like or labelled, shape (k,)
        Any vectors of the same length, also those from raw matrix inversion.

    Returns
    -------
    float

    Raises
    ------
    AlphabetMismatch
        If the lengths differ, or two estimates are over different alphabets.

    Examples
    --------
    >>> squared_l2([1, 0, 0], [0, 0.5, 0.5])
    1.5
    """
    first, second = aligned_pair(("p", "q"), (p, q))
    numbers = arguments.numbers("p", first)
    vector = arguments.vector("p", numbers, numbers.size)
    difference = vector - arguments.vector("q", second, vector.size)
    # An overflow is refused below by an error that says more than the warning.
    with np.errstate(over="ignore"):
        distance = float(difference @ difference)
    if not math.isfinite(distance):
        raise ValueError(
            "p and q must not be so far apart that the distance overflows, got "
            f"{abs(difference).max():g}"
        )
    return distance


def _pair(p: VectorLike, q: VectorLike, alphabet: Alphabet | None = None) -> tuple[Floats, Floats]:
    """Return two distributions of the same secrets, validated."""
    first, second = aligned_pair(("p", "q"), (p, q), alphabet)
    first = arguments.distribution("p", first, None if alphabet is None else len(alphabet))
    return first, arguments.distribution("q", second, len(first))
