"""Few different probabilities: a byte for each report and secret says which."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ibukit._validate import Floats, Ints
from ibukit.channels import _sign_kernels
from ibukit.channels.base import Channel, Score, slices_of, sum_of
from ibukit.channels.dense import lower_gram


@dataclass(frozen=True, eq=False)
class LevelChannel(Channel):
    """Entries out of a short table, one byte a report and secret.

    M_xz = scale_z table[level_zx]. An eighth of the memory of a matrix.

    Parameters
    ----------
    levels : ndarray of uint8, shape (s, k)
        Place of each entry in the table.
    table : ndarray, shape (at most 256,)
        The different entries, up to the report's scale.
    scale : ndarray, shape (s,)
        A factor for each report.

    Examples
    --------
    >>> import numpy as np
    >>> levels = np.array([[0, 1], [2, 0]], dtype=np.uint8)
    >>> LevelChannel(levels, np.array([0.1, 0.2, 0.4]), np.ones(2)).forward(np.array([0.5, 0.5]))
    array([0.15, 0.25])
    """

    levels: NDArray[np.uint8]
    table: Floats
    scale: Floats

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return int(self.levels.shape[1])

    @property
    def size(self) -> int:
        """Number of reports."""
        return len(self.levels)

    def forward(self, theta: Floats) -> Floats:
        """A look-up for each report and secret."""
        return np.asarray(_sign_kernels.levels_forward(self.levels, self.table, theta) * self.scale)

    def adjoint(self, w: Floats) -> Floats:
        """The same look-ups."""
        return _sign_kernels.levels_adjoint(self.levels, self.table, w * self.scale)

    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        """In stretches: there may be as many rows as users."""
        return sum_of(Channel.score(self.take(rows), theta, counts[rows]) for rows in slices_of(self.size))

    def rows(self, secrets: Ints) -> Floats:
        """As they are looked up."""
        return np.asarray(self.table[self.levels[:, secrets]].T * self.scale)

    def add_gram(self, total: Floats, weights: Floats) -> None:
        """Some thousand reports at a time, written out."""
        everyone = np.arange(self.k)
        for some in slices_of(self.size):
            total += lower_gram(self.take(some).rows(everyone), weights[some])

    def unit_columns(self) -> LevelChannel:
        """Over the largest entry of each report."""
        largest = np.concatenate([self.table[self.levels[some]].max(axis=1) for some in slices_of(self.size)])
        return replace(self, scale=1 / largest)

    def scaled(self, factor: Floats) -> LevelChannel:
        """With the factors in the scale."""
        return replace(self, scale=self.scale * factor)

    def take(self, reports: slice | Ints) -> LevelChannel:
        """Some of the reports."""
        return replace(self, levels=self.levels[reports], scale=self.scale[reports])
