"""Merging of reports under Gaussian noise, and its masses between edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ibukit._ground.arguments import Floats
from ibukit.mechanisms.points.merging import Merged
from ibukit.mechanisms.points.real_numbers import real_numbers


def square_side(diameter: float, sigma: float) -> float:
    """Where the bound below is about 1: a 64th of it, as fine as reports are merged, has a bound near 1e-4."""
    return min(sigma, 8 * sigma**2 / diameter) if diameter else sigma


def gaussian_bound(merged: Merged, diameter: float, sigma: float) -> Floats:
    """By Hoeffding's lemma: but for a factor that depends on z alone the density is a mean of e^(z x / sigma^2).

    A point apart from the mean of its square by t changes z x / sigma^2 by numbers in an interval
    of length |t| diameter / sigma^2; terms linear in t sum to 0 over a square.
    """
    return (merged.apart * diameter / sigma**2) ** 2 / 8


def ascending_edges(name: str, edges: ArrayLike) -> Floats:
    """Return edges as an array; ValueError unless they ascend."""
    at = real_numbers(name, edges)
    if not len(at) or (np.diff(at) <= 0).any():
        raise ValueError(f"{name} must be ascending numbers, at least one, got {edges!r}")
    return at


def masses_between(values: NDArray[Any], edges: Floats, sigma: float) -> Floats:
    """Mass between the edges, the first and last bin without end, shape (len(values), len(edges) + 1)."""
    z = np.pad(
        (edges - values[:, None]) / sigma,
        ((0, 0), (1, 1)),
        constant_values=((0, 0), (-np.inf, np.inf)),
    )
    low, high = z[:, :-1], z[:, 1:]
    # on the right of the secret the tails are subtracted, which are small there
    right = low > 0
    return np.where(right, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
