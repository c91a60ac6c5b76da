"""Gaussian noise: the cost of merging reports, and the masses of bins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ibukit._ground.arguments import Floats
from ibukit.mechanisms.points.merging import Merged
from ibukit.mechanisms.points.real_numbers import real_numbers


def square_side(diameter: float, sigma: float) -> float:
    """Side of the squares in which reports are merged first.

    The bound of `gaussian_bound` is about 1 there, and near 1e-4 for a 64th of this side, which is
    the smallest in which reports are merged.
    """
    return min(sigma, 8 * sigma**2 / diameter) if diameter else sigma


def gaussian_bound(merged: Merged, diameter: float, sigma: float) -> Floats:
    """Bound on the log-likelihood that merging costs each of the original points, in nats."""
    # Up to a factor that depends on z alone, the density is a mean over x of e^(z . x / sigma^2). A
    # point at t from the mean of its square changes z . x / sigma^2 by numbers in an interval of
    # length |t| diameter / sigma^2. By Hoeffding's lemma the logarithm of the mean changes by at
    # most length^2 / 8, up to a term linear in t; these terms sum to 0 over a square.
    return (merged.apart * diameter / sigma**2) ** 2 / 8


def ascending_edges(name: str, edges: ArrayLike) -> Floats:
    """Return edges as an array; ValueError unless they ascend."""
    numbers = real_numbers(name, edges)
    if not len(numbers) or (np.diff(numbers) <= 0).any():
        raise ValueError(f"{name} must be ascending numbers, at least one, got {edges!r}")
    return numbers


def masses_between(values: NDArray[Any], edges: Floats, sigma: float) -> Floats:
    """Mass of each bin around each value, shape (len(values), len(edges) + 1).

    The first and the last bin have no end.
    """
    z = np.pad(
        (edges - values[:, None]) / sigma,
        ((0, 0), (1, 1)),
        constant_values=((0, 0), (-np.inf, np.inf)),
    )
    low, high = z[:, :-1], z[:, 1:]
    # To the right of a value the upper tails are subtracted: both are small there, so that the
    # difference keeps its digits.
    right = low > 0
    return np.where(right, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
