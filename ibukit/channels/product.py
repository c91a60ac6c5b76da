"""Channel of independent reports on several attributes, whose matrix is a Kronecker product."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels.base import Channel
from ibukit.channels.dense import lower_gram

# Entries of the products of pairs of one part's rows, up to which the Gram matrix is made from such
# products.
MAX_PAIRS = 2**24


@dataclass(frozen=True, eq=False)
class ProductChannel(Channel):
    r"""Entries :math:`M_{xz}=\prod_j M^{(j)}_{x_j z_j}` of tuples x of secrets and z of reports.

    A distribution of tuples is a tensor with an axis for each part, and each part's matrix is
    applied along its axis. The matrix of all tuples is never written out.

    Parameters
    ----------
    columns : tuple of ndarray, shape (k_j, s_j)
        A column for each different report of a part.
    at : ndarray of int, shape (s,)
        Place of each tuple of reports among all :math:`\prod_j s_j`, the last part's report
        changing fastest.

    Examples
    --------
    >>> import numpy as np
    >>> parts = (np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.5], [0.2]]))
    >>> ProductChannel(parts, at=np.arange(2)).forward(np.array([1.0, 0.0, 0.0, 0.0]))
    array([0.45, 0.05])
    """

    columns: tuple[Floats, ...]
    at: Ints

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of tuples of secrets."""
        return math.prod(self._secrets)

    @property
    def _secrets(self) -> tuple[int, ...]:
        return tuple(each.shape[0] for each in self.columns)

    @property
    def _reports(self) -> tuple[int, ...]:
        return tuple(each.shape[1] for each in self.columns)

    @property
    @override
    def size(self) -> int:
        return len(self.at)

    @override
    def forward(self, theta: Floats) -> Floats:
        tensor = theta.reshape(self._secrets)
        # The first axis is replaced by one of reports, which becomes the last: after all parts the
        # axes are in order again.
        for each in self.columns:
            tensor = np.tensordot(tensor, each, axes=(0, 0))
        return tensor.ravel()[self.at]

    @override
    def adjoint(self, w: Floats) -> Floats:
        tensor = self._spread(w)
        for each in self.columns:
            tensor = np.tensordot(tensor, each, axes=(0, 1))
        return tensor.ravel()

    def _spread(self, w: Floats) -> Floats:
        """Weights of the reports seen as a tensor over all of them."""
        spread: Floats = np.bincount(self.at, w, math.prod(self._reports)).astype(np.float64)
        return spread.reshape(self._reports)

    @property
    @override
    def n_roundings(self) -> float:
        # The parts follow one after the other, each with a sum over its secrets and later one over
        # its reports. Equal tuples of reports share a place, where their weights are added up.
        return sum(self._secrets) + sum(self._reports) + 2 * len(self.columns) + self._repeats

    @property
    def _repeats(self) -> int:
        return int(np.bincount(self.at).max()) - 1 if len(self.at) else 0

    @override
    def rows(self, secrets: Ints) -> Floats:
        found = np.ones((len(secrets), self.size))
        own = np.unravel_index(secrets, self._secrets)
        seen = np.unravel_index(self.at, self._reports)
        for each, x, z in zip(self.columns, own, seen, strict=True):
            found *= each[x][:, z]
        return found

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        if max(each.size * len(each) for each in self.columns) > MAX_PAIRS:
            total += lower_gram(self.rows(np.arange(self.k)), weights)
            return
        # M diag(w) M^T has the entries sum_z w_z prod_j M_xz M_yz: a product over the parts again,
        # of matrices with a row for each pair (x_j, y_j).
        tensor = self._spread(weights)
        for each in self.columns:
            pairs = each[:, None] * each[None]
            tensor = np.tensordot(tensor, pairs.reshape(-1, each.shape[1]), axes=(0, 1))
        n = len(self.columns)
        axes = [*range(0, 2 * n, 2), *range(1, 2 * n, 2)]
        shape = [size for size in self._secrets for _ in range(2)]
        total += tensor.reshape(shape).transpose(axes).reshape(self.k, self.k)

    @override
    def take(self, reports: slice | Ints) -> ProductChannel:
        return replace(self, at=self.at[reports])

    @override
    def unit_columns(self) -> ProductChannel:
        # The largest entry of a product is the product of the largest ones.
        return replace(self, columns=tuple(each / each.max(axis=0) for each in self.columns))
