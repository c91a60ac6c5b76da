"""Base class of Gaussian noise whose reports are points, and the masses of bins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.mechanisms.numeric.gaussian_noise import GaussianNoise
from ibukit.mechanisms.points.merging import Merged
from ibukit.mechanisms.points.point_reports import PointReports
from ibukit.mechanisms.points.real_numbers import real_numbers


class GaussianPoints(GaussianNoise, PointReports):
    """Gaussian noise whose reports are points or real numbers."""

    @property
    @override
    def side(self) -> float:
        # For squares of this side the bound below is about 1. For a 64th of it, the smallest side
        # in which reports are merged, it is near 1e-4.
        if not self.diameter:
            return self.sigma
        return min(self.sigma, 8 * self.sigma**2 / self.diameter)

    @override
    def merging_bound(self, means: Floats, merged: Merged) -> Floats:
        # Up to a factor that depends on z alone, the density is a mean over x of
        # e^(z . x / sigma^2). A point at t from the mean of its square changes z . x / sigma^2 by
        # numbers in an interval of length |t| diameter / sigma^2. By Hoeffding's lemma the
        # logarithm of the mean changes by at most length^2 / 8, up to a term linear in t; these
        # terms sum to 0 over a square.
        return (merged.apart * self.diameter / self.sigma**2) ** 2 / 8


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
