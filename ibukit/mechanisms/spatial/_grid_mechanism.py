"""Base classes of mechanisms on a grid: convolutions in place of a large matrix."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel, DenseChannel, offset_masses
from ibukit.channels.plane import MAX_MATRIX_ENTRIES, PlaneChannel, is_fourier_faster, remapped
from ibukit.domain.alphabet import require_bounded
from ibukit.domain.grid import Grid
from ibukit.domain.labels import CountsLike, aligned_counts
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.epsilon_range import check_epsilon, finite_epsilon, is_infinite
from ibukit.tally.tally import Tally

# Cells that a multinomial visits in the time in which one report is drawn by itself: reports of
# fewer than m / 16 users of a secret are drawn one by one.
USERS_PER_ROW = 16
# Users whose reports are drawn at a time, so that memory stays bounded.
USERS_AT_ONCE = 2**20


class GridMechanism(FiniteMechanism):
    """A mechanism whose probabilities depend on offsets if its alphabet is a grid.

    On a large grid its channel is a convolution. Other alphabets use the matrix.
    """

    @abstractmethod
    def _plane_channel(self, reports: Ints) -> PlaneChannel:
        """Columns of the given reports as convolutions; called for grids only."""

    @property
    def _is_large_grid(self) -> bool:
        return isinstance(self.alphabet, Grid) and self.k * self.m > MAX_MATRIX_ENTRIES

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        """Forward and adjoint on the given reports.

        They are the matrix's columns, or convolutions on a large grid.
        """
        if isinstance(self.alphabet, Grid) and is_fourier_faster(self.k, len(reports)):
            return self._plane_channel(reports)
        if self._is_large_grid:
            return DenseChannel(self._plane_channel(reports).matrix())
        return super().channel(reports)

    @override
    def _row(self, secret: int) -> Floats:
        return self._full_channel.rows(np.array([secret]))[0]

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population.

        There is one multinomial per secret; on a large grid, users of secrets that few share are
        drawn one by one.
        """
        if not self._is_large_grid:
            return super().simulate(secret_counts, rng)
        rng = arguments.generator(rng)
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        # Secrets of many users take one multinomial each, over a row that is computed for it. The
        # users of the others are drawn singly, in blocks.
        drawn = np.zeros(self.m, dtype=np.int64)
        has_many_users = counts > self.m // USERS_PER_ROW
        for secret in np.flatnonzero(has_many_users).tolist():
            row = self._row(secret)
            drawn += rng.multinomial(counts[secret], row / row.sum())
        single_users = np.repeat(np.arange(self.k), np.where(has_many_users, 0, counts))
        for start in range(0, len(single_users), USERS_AT_ONCE):
            drawn += np.bincount(
                self.draw(single_users[start : start + USERS_AT_ONCE], rng), minlength=self.m
            )
        return self.tally_counts(drawn)


def nearest_cell(grid: Grid, cells: Ints) -> Ints:
    """Codes of the grid's cells nearest to (row, column) pairs of the infinite grid."""
    return grid.codes(grid.nearest(cells))


class RemappedNoise(GridMechanism):
    """Noise on the cells of a plane, moved to the nearest cell of the grid."""

    alphabet: Grid

    @property
    @abstractmethod
    def _table(self) -> Floats:
        """Mass of each offset (i, j), i, j >= 0."""

    @override
    def make_matrix(self) -> Floats:
        return offset_masses.remapped_matrix(self.alphabet, self._table)

    @override
    def _plane_channel(self, reports: Ints) -> PlaneChannel:
        return remapped(self.alphabet, self._table, reports)


def check_grid_epsilon(
    alphabet: Any,
    epsilon: Any,
    escape: Callable[[Grid, float], float],
    *,
    bounded: bool = True,
) -> float:
    """Return the epsilon of noise over cells; TypeError if the alphabet is not a grid.

    Parameters
    ----------
    alphabet : Grid
    epsilon : float
    escape : callable
        Function that takes the grid and an epsilon, and returns the probability that the noise
        leaves its own cell.
    bounded : bool
        Whether to refuse a grid without an end, which has no border to whose cells noise can be
        moved.
    """
    if not isinstance(alphabet, Grid):
        raise TypeError(
            "alphabet must be a Grid, because the noise moves over cells of a plane; got "
            f"{alphabet!r}"
        )
    if bounded:
        require_bounded(alphabet)
    if bounded and is_infinite(epsilon):
        return math.inf
    # `reach` refuses an epsilon so small that the noise spreads over too many cells.
    offset_masses.reach(alphabet, finite_epsilon(epsilon))
    return check_epsilon(epsilon, lambda eps: escape(alphabet, eps), smallest=0.0)
