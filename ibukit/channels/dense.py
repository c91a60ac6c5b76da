"""Channels that are matrices, with a column for each report or with a row for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.rounding import gamma
from ibukit._ground.typing import override
from ibukit.channels._gram_kernels import mirror
from ibukit.channels._score_kernels import score_rows
from ibukit.channels.base import Channel, Score, slices_of, sum_scores, summed_in_slices

# Reports of a matrix that a certificate adds up in one product.
MAX_REPORTS_TOGETHER = 2**13
# Entries that are written out together for a Gram matrix: 32 MB.
MAX_ENTRIES_TOGETHER = 2**22
# An entry that is smaller than its report's largest by this factor is 0 for the solvers of matrices
# (the certificate has it in full). Products of such entries, and of weights down to 1e-28, are
# subnormal numbers, whose arithmetic is many times slower.
NEGLIGIBLE_RATIO = 1e-140


@dataclass(frozen=True, eq=False)
class DenseChannel(Channel):
    """A matrix with one column for each report.

    Parameters
    ----------
    columns : ndarray, shape (k, s)
        :math:`M_{xz}`, one column for each report.

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
    @override
    def size(self) -> int:
        return int(self.columns.shape[1])

    @override
    def forward(self, theta: Floats) -> Floats:
        return theta @ self.columns

    @override
    def adjoint(self, w: Floats) -> Floats:
        return self.columns @ w

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        if self.size <= MAX_REPORTS_TOGETHER:
            return super().upper_score(theta, counts)
        # Sums over many reports are taken in slices, so that a term goes through fewer additions.
        slices = list(slices_of(self.size))
        scores = (self.take(each).upper_score(theta, counts[each]) for each in slices)
        return sum_scores(scores).raised(gamma(len(slices)))

    @override
    def rows(self, secrets: Ints) -> Floats:
        return self.columns[secrets]

    @override
    def gram(self, weights: Floats) -> Floats:
        total = lower_gram(self.columns, weights)
        mirror(total)
        return total

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        # A solver factorises this sum. Negligible entries would make a difference to its time only.
        total += lower_gram(self._without_negligible, weights)

    @cached_property
    def _without_negligible(self) -> Floats:
        return without_negligible(self.columns, self.columns.max(axis=0))

    @override
    def take(self, reports: slice | Ints) -> DenseChannel:
        return DenseChannel(self.columns[:, reports])

    @override
    def with_one_more(self, row: Floats) -> DenseChannel:
        return DenseChannel(np.vstack([self.columns, row]))

    @override
    def unit_columns(self) -> DenseChannel:
        return DenseChannel(self.columns / self.columns.max(axis=0))

    @override
    def scaled(self, factor: Floats) -> DenseChannel:
        return DenseChannel(self.columns * factor)


def without_negligible(columns: Floats, largest: Floats | float) -> Floats:
    """The entries, with 0 for those that are negligible beside their report's largest."""
    negligible = columns < NEGLIGIBLE_RATIO * largest
    return np.where(negligible, 0.0, columns) if negligible.any() else columns


def lower_gram(columns: Floats, weights: Floats) -> Floats:
    """Lower triangle of M diag(weights) M^T, in Fortran order; the rest is 0.

    With R = M diag(weights)^1/2 it is the product R R^T, for which BLAS has a routine that computes
    one triangle only.
    """
    root = columns * np.sqrt(weights)
    # BLAS reads Fortran order: a matrix in C order is handed over as its transpose, without a copy.
    if root.flags.f_contiguous:
        return dsyrk(1.0, root, lower=1)
    return dsyrk(1.0, root.T, trans=1, lower=1)


def add_gram_of_entries(channel: Channel, total: Floats, weights: Floats) -> None:
    """Add the lower triangle of a channel's Gram matrix, written out some reports at a time.

    This is for channels whose entries are quickly written out and whose reports can be taken apart.
    """
    step = max(1, MAX_ENTRIES_TOGETHER // channel.k)
    for start in range(0, channel.size, step):
        some = slice(start, start + step)
        total += lower_gram(channel.take(some).rows(np.arange(channel.k)), weights[some])


@dataclass(frozen=True, eq=False)
class RowMajorChannel(Channel):
    r"""A matrix with one row for each report: the layout for many reports.

    Its entries are :math:`M_{xz}=\mathrm{numbers}_{zx}`, with :math:`M_{xz}` as in a
    `DenseChannel`. It serves continuous reports, of which there may be as many as users. It works
    best if the entries of a report differ by a factor of at most some :math:`e^{\varepsilon}`,
    because then few passes find the maximum. Each pass reads memory once.

    Parameters
    ----------
    numbers : ndarray, shape (s, k)
        :math:`M_{xz}`, one row for each report.

    Examples
    --------
    >>> import numpy as np
    >>> RowMajorChannel(np.array([[0.9, 0.3], [0.1, 0.7]])).forward(np.array([0.5, 0.5]))
    array([0.6, 0.4])
    """

    numbers: Floats

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return int(self.numbers.shape[1])

    @property
    @override
    def size(self) -> int:
        return len(self.numbers)

    @override
    def forward(self, theta: Floats) -> Floats:
        return self.numbers @ theta

    @override
    def adjoint(self, w: Floats) -> Floats:
        return w @ self.numbers

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return sum_scores(self._score_of(rows, theta, counts) for rows in slices_of(self.size))

    @property
    @override
    def n_roundings(self) -> float:
        return self.k + summed_in_slices(self.size)

    def _score_of(self, rows: slice, theta: Floats, counts: Floats | Ints) -> Score:
        # The kernel is compiled for contiguous doubles; a slice that is contiguous is not copied.
        own = np.ascontiguousarray(counts[rows], dtype=np.float64)
        p, g = np.empty(len(own)), np.zeros(self.k)
        score_rows(np.ascontiguousarray(self.numbers[rows]), theta, own, p, g)
        least = float(p.min())
        return Score(float(own @ np.log(p)), g, least) if least > 0 else Score(-math.inf, g, 0.0)

    @override
    def rows(self, secrets: Ints) -> Floats:
        return np.ascontiguousarray(self.numbers.T[secrets])

    def in_single(self, factor: Floats) -> NDArray[np.float32]:
        """Entries times a factor of each report, in single precision, shape (s, k)."""
        # The factor itself may be beyond the range of single precision; the product is not.
        return (self.numbers * factor[:, None]).astype(np.float32)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        for rows in slices_of(self.size):
            total += lower_gram(self.numbers[rows].T, weights[rows])

    @override
    def unit_columns(self) -> RowMajorChannel:
        return RowMajorChannel(self.numbers / self.numbers.max(axis=1, keepdims=True))

    @override
    def scaled(self, factor: Floats) -> RowMajorChannel:
        return RowMajorChannel(self.numbers * factor[:, None])

    @override
    def take(self, reports: slice | Ints) -> RowMajorChannel:
        return RowMajorChannel(self.numbers[reports])
