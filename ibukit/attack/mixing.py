"""A defence against poisoning: mix the estimate with a coarse public map."""

from __future__ import annotations

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.distributions import normalize
from ibukit.domain.grid import Grid
from ibukit.domain.vectors import VectorLike, aligned_pair, vector_over


def coarse_map(weights: VectorLike, grid: Grid, block: int) -> Floats:
    """Average a distribution over blocks of cells.

    Each cell gets the mean over its block. Blocks are `block` x `block` cells, counted from the
    south-west corner; blocks at the north and east edges are cut where the grid ends.

    Parameters
    ----------
    weights : array_like or labelled, shape (k,)
        A distribution or counts: finite, not negative, not all 0. They are divided by their sum.
    grid : Grid
    block : int
        The number of cells along a side of a block, at least 1.

    Returns
    -------
    ndarray, shape (k,)
        A distribution that is constant on each block. Each block keeps its mass.

    Raises
    ------
    AlphabetMismatch
        If there is not one weight for each cell.
    TypeError
        If `grid` is not a `Grid`.
    InvalidDistribution
        If a weight is negative or not finite, or all are 0.
    ValueError
        If `block` is not a whole number of at least 1.

    Examples
    --------
    >>> import ibukit as ik
    >>> grid = ik.Grid(2, 4)
    >>> ik.attack.coarse_map([8, 0, 0, 0, 0, 0, 4, 4], grid, block=2).reshape(2, 4)
    array([[0.125, 0.125, 0.125, 0.125],
           [0.125, 0.125, 0.125, 0.125]])
    """
    if not isinstance(grid, Grid):
        raise TypeError(
            f"grid must be a Grid, whose cells have rows and columns, got {type(grid).__name__}"
        )
    side = arguments.whole("block", block, 1)
    shares = normalize(vector_over("weights", weights, grid))
    # A block as large as the grid is the whole grid, and so is any larger one.
    rows, cols = (grid.values - grid.first).T // min(side, len(grid))
    # Blocks are numbered row by row.
    blocks = rows * (cols.max() + 1) + cols
    means: Floats = np.bincount(blocks, weights=shares) / np.maximum(np.bincount(blocks), 1)
    return means[blocks]


def mix_with_public(distribution: VectorLike, public: VectorLike, weight: float) -> Floats:
    r"""Mix the estimate with a public distribution, to design for the mixture.

    The prior of the design is :math:`\lambda\,\theta + (1 - \lambda)\,\mathrm{public}` instead of
    the estimate :math:`\theta`.

    A fraction f of adversaries has the weight :math:`\lambda\,f` in the mixture, and the crowd
    around a place keeps at least the share :math:`(1 - \lambda)` of what `public` gives it. So the
    mixture helps where :math:`\lambda` is small, but the mechanism is then designed mostly for the
    public map.

    Parameters
    ----------
    distribution : array_like or labelled, shape (k,)
        The estimate :math:`\theta`.
    public : array_like or labelled, shape (k,)
        A map that does not depend on any report, such as a census; see `coarse_map`.
    weight : float
        The share :math:`\lambda` of the estimate, from 0 to 1.

    Returns
    -------
    ndarray, shape (k,)
        In the order of `distribution`; labels that only `public` has come last.

    Raises
    ------
    InvalidDistribution
        If `distribution` or `public` is not a distribution.
    AlphabetMismatch
        If the two differ in length.
    ValueError
        If `weight` is not between 0 and 1.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.attack.mix_with_public([0.0, 0.0, 1.0], public=ik.uniform(3), weight=0.7)
    array([0.1, 0.1, 0.8])
    """
    first, second = aligned_pair(("distribution", "public"), (distribution, public))
    theta = arguments.distribution("distribution", first)
    known = arguments.distribution("public", second, len(theta))
    own = arguments.fraction("weight", weight, "[]")
    return own * theta + (1 - own) * known
