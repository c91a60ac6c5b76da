"""Merging of points that are close together into their mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.row_table import row_table

# Halvings of the side of the squares in which points are merged: 1, 1/2, 1/4, ..., 1/64.
MAX_HALVINGS = 6
# Length of the table of all squares, for each point, above which the squares are sorted instead.
MAX_PLACES_PER_POINT = 4


class Merged(NamedTuple):
    """Means of the points of each square, and the distances of the points from them."""

    points: Floats
    counts: NDArray[Any]
    group: Ints
    """Square of each of the original points."""
    apart: Floats
    """Distance of each point from the mean of its square."""


def merge(points: Floats, counts: Floats | Ints, side: float) -> Merged:
    """Merge the points, shape (n, d), in each square of a grid of squares of the given side."""
    group, first = _groups(np.floor(points / side))
    total = np.bincount(group, counts)
    # Means are taken of differences from one point of the square: means of points far from 0 would
    # lose digits.
    origin = points[first]
    offsets = points - origin[group]
    means = np.stack([np.bincount(group, counts * offset) / total for offset in offsets.T], axis=1)
    apart = np.sqrt(((offsets - means[group]) ** 2).sum(axis=1))
    return Merged(origin + means, np.asarray(total, dtype=counts.dtype), group, apart)


def _groups(squares: Floats) -> tuple[Ints, Ints]:
    """Return the number of each row among the distinct rows, and where each of these is first."""
    group = np.empty(len(squares), dtype=np.int64)
    table = row_table(squares, MAX_PLACES_PER_POINT * len(squares))
    if table is None:
        # Equal rows follow each other after sorting.
        order = np.lexsort(squares.T[::-1])
        differs = (squares[order][1:] != squares[order][:-1]).any(axis=1)
        group[order] = np.r_[0, np.cumsum(differs)]
        return group, order[np.r_[True, differs]]
    # Squares close together are looked up in a table of all of them, without sorting.
    places = table.places(squares)
    number = np.zeros(table.size, dtype=np.int64)
    number[places] = 1
    number = np.cumsum(number) - 1
    group[:] = number[places]
    # The last of several assignments stays, which is the first point.
    first = np.empty(number[-1] + 1, dtype=np.int64)
    first[group[::-1]] = np.arange(len(squares))[::-1]
    return group, first


def merge_until_few(points: Floats, counts: Floats | Ints, side: float, most: int) -> Merged:
    """Merge in the smallest squares, of 1 to 1/64 of the side, that leave at most `most` points."""
    finest = side
    for halvings in range(1, MAX_HALVINGS + 1):
        # At first squares are only counted: means and distances are needed for one size only.
        _, first = _groups(np.floor(points / (side / 2**halvings)))
        if len(first) > most:
            break
        finest = side / 2**halvings
    return merge(points, counts, finest)
