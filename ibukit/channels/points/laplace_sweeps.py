"""Laplace noise on a line with real numbers as reports: two sweeps and two terms a report."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels.base import Channel
from ibukit.channels.line import most_at_a_place
from ibukit.channels.points import _laplace_kernels


@dataclass(frozen=True, eq=False)
class LaplaceChannel(Channel):
    """Reports between two neighbours of a line, O(k + s).

    M_xz = low_z decay^(below_z - x) for the secrets x <= below_z, and high_z decay^(x - below_z -
    1) for the secrets above.

    Parameters
    ----------
    k : int
        Number of secrets, 0..k-1 on the line.
    decay : float
        Ratio of the entries of neighbouring secrets on one side of a report, above 0 and at most 1.
    below : ndarray of int, shape (s,)
        The last secret that is not above the report, -1..k-1.
    low, high : ndarray, shape (s,)
        Entries of the two neighbours, `below` and the next.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = np.array([0.8]), np.array([0.6])
    >>> channel = LaplaceChannel(3, 0.5, below=np.array([0]), low=low, high=high)
    >>> channel.rows(np.arange(3)).ravel()
    array([0.8, 0.6, 0.3])
    """

    k: int
    decay: float
    below: Ints
    low: Floats
    high: Floats

    @property
    @override
    def size(self) -> int:
        return len(self.below)

    @override
    def forward(self, theta: Floats) -> Floats:
        # The sums over the secrets below a report and above it are taken at its two neighbours. A
        # report below all secrets has `below` = -1, and so the index 0.
        rising, falling = np.zeros(self.k + 1), np.zeros(self.k + 1)
        rising[1:] = _laplace_kernels.from_below(theta, self.decay)
        falling[:-1] = _laplace_kernels.from_above(theta, self.decay)
        p = self.low * rising[self.below + 1]
        p += self.high * falling[self.below + 1]
        return p

    @override
    def adjoint(self, w: Floats) -> Floats:
        # Weights are scattered to the two neighbours of each report, and swept away from it.
        low, high = (
            np.bincount(self.below + 1, each * w, self.k + 1).astype(np.float64)
            for each in (self.low, self.high)
        )
        falling = _laplace_kernels.from_above(low[1:], self.decay)
        return falling + _laplace_kernels.from_below(high[:-1], self.decay)

    @property
    @override
    def n_roundings(self) -> float:
        # As on a line: two sweeps of k steps that multiply and add, and a factor before each.
        return 4 * self.k + 4 + most_at_a_place(self.below + 1, self.k + 1)

    @override
    def rows(self, secrets: Ints) -> Floats:
        # A secret at or below the report is distance >= 0 from its lower neighbour, one above it
        # -distance - 1 from its upper one.
        powers = self.decay ** np.arange(self.k)
        distance = self.below - secrets[:, None]
        low, high = (
            self.low * powers[np.maximum(distance, 0)],
            self.high * powers[np.maximum(-distance - 1, 0)],
        )
        return np.where(distance >= 0, low, high)

    @override
    def take(self, reports: slice | Ints) -> LaplaceChannel:
        return replace(
            self, below=self.below[reports], low=self.low[reports], high=self.high[reports]
        )

    @override
    def unit_columns(self) -> LaplaceChannel:
        # A report outside the line has a neighbour on one side only.
        low, high = (
            np.where(self.below < 0, 0, self.low),
            np.where(self.below == self.k - 1, 0, self.high),
        )
        return self.scaled(1 / np.maximum(low, high))

    @override
    def scaled(self, factor: Floats) -> LaplaceChannel:
        return replace(self, low=self.low * factor, high=self.high * factor)
