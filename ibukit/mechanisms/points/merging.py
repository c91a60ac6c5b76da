"""Points that lie close together as one point, their mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints

# Neighbours are merged in squares of 1, 1/2, 1/4, ... 1/64 of a side until they would be too many.
MAX_HALVINGS = 6


class Merged(NamedTuple):
    """Means of the points of each square, and where the points are relative to them."""

    points: Floats
    counts: NDArray[Any]
    group: Ints
    """The square of each point given."""
    apart: Floats
    """Distance of each point from the mean of its square."""


def merge(points: Floats, counts: Floats | Ints, side: float) -> Merged:
    """Merge the points, shape (n, d), in each square of a grid of squares of the given side."""
    squares = np.floor(points / side)
    order = np.lexsort(squares.T[::-1])
    differs = (squares[order][1:] != squares[order][:-1]).any(axis=1)
    group = np.empty(len(points), dtype=np.int64)
    group[order] = np.r_[0, np.cumsum(differs)]
    total = np.bincount(group, counts)
    origin = points[
        order[np.r_[True, differs]]
    ]  # sums of differences: far from 0 the means would lose digits
    offsets = points - origin[group]
    means = np.stack([np.bincount(group, counts * offset) / total for offset in offsets.T], axis=1)
    apart = np.sqrt(((offsets - means[group]) ** 2).sum(axis=1))
    return Merged(origin + means, np.asarray(total, dtype=counts.dtype), group, apart)


def merge_until_few(points: Floats, counts: Floats | Ints, side: float, most: int) -> Merged:
    """Merge in the smallest squares, parts of the given side, that leave at most so many points; else in whole ones."""
    merged = merge(points, counts, side)
    for halvings in range(1, MAX_HALVINGS + 1):
        finer = merge(points, counts, side / 2**halvings)
        if len(finer.points) > most:
            break
        merged = finer
    return merged
