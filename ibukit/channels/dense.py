"""The columns of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk

from ibukit._validate import Floats, Ints
from ibukit.channels.base import Channel


@dataclass(frozen=True, eq=False)
class DenseChannel(Channel):
    """The columns of a matrix, written out.

    Parameters
    ----------
    columns : ndarray, shape (k, s)
        M_xz, one column for each report.

    Examples
    --------
    >>> import numpy as np
    >>> channel = DenseChannel(np.array([[0.9, 0.1], [0.3, 0.7]]))
    >>> channel.forward(np.array([0.5, 0.5])), channel.adjoint(np.array([1.0, 0.0]))
    (array([0.6, 0.4]), array([0.9, 0.3]))
    """

    columns: Floats

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return len(self.columns)

    @property
    def size(self) -> int:
        """Number of reports."""
        return int(self.columns.shape[1])

    def forward(self, theta: Floats) -> Floats:
        """Theta C."""
        return np.asarray(theta @ self.columns)

    def adjoint(self, w: Floats) -> Floats:
        """C w."""
        return np.asarray(self.columns @ w)

    def rows(self, secrets: Ints) -> Floats:
        """As they are written."""
        return np.asarray(self.columns[secrets])

    def add_gram(self, total: Floats, weights: Floats) -> None:
        """By the symmetric rank-s update of BLAS."""
        total += lower_gram(self.columns, weights)

    def take(self, reports: slice | Ints) -> DenseChannel:
        """Some of the columns."""
        return DenseChannel(self.columns[:, reports])

    def with_one_more(self, row: Floats) -> DenseChannel:
        """One more row of the matrix."""
        return DenseChannel(np.vstack([self.columns, row]))

    def unit_columns(self) -> DenseChannel:
        """Each column over its largest entry."""
        return DenseChannel(self.columns / self.columns.max(axis=0))

    def scaled(self, factor: Floats) -> DenseChannel:
        """Each column times its factor."""
        return DenseChannel(self.columns * factor)


def lower_gram(columns: Floats, weights: Floats) -> Floats:
    """The lower triangle of M diag(weights) M^T, in Fortran order; above the diagonal is nothing."""
    half = columns * np.sqrt(weights)
    return np.asarray(dsyrk(1.0, half.T, trans=1, lower=1))
