"""Merging of points that are close together into their mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints

# Halvings of the side of the squares in which points are merged: 1, 1/2, 1/4, ..., 1/64.
MAX_HALVINGS = 6


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
    # Points of one square follow each other after sorting by the square's coordinates.
    squares = np.floor(points / side)
    order = np.lexsort(squares.T[::-1])
    differs = (squares[order][1:] != squares[order][:-1]).any(axis=1)
    group = np.empty(len(points), dtype=np.int64)
    group[order] = np.r_[0, np.cumsum(differs)]
    total = np.bincount(group, counts)
    # Means are taken of differences from one point of the square: far from 0 they would lose
    # digits.
    origin = points[order[np.r_[True, differs]]]
    offsets = points - origin[group]
    means = np.stack([np.bincount(group, counts * offset) / total for offset in offsets.T], axis=1)
    apart = np.sqrt(((offsets - means[group]) ** 2).sum(axis=1))
    return Merged(origin + means, np.asarray(total, dtype=counts.dtype), group, apart)


def merge_until_few(points: Floats, counts: Floats | Ints, side: float, most: int) -> Merged:
    """Merge in the smallest squares, of 1 to 1/64 of the side, that leave at most `most` points."""
    merged = merge(points, counts, side)
    for halvings in range(1, MAX_HALVINGS + 1):
        finer = merge(points, counts, side / 2**halvings)
        if len(finer.points) > most:
            break
        merged = finer
    return merged
