"""Channels with two probabilities: the sign of a Hadamard matrix decides between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels.base import Channel, slices_of
from ibukit.channels.dense import lower_gram
from ibukit.channels.signs import _sign_kernels

# Reports of a group from which a Gram matrix by transforms and one look-up for each pair of secrets
# takes less time than one by BLAS from the entries.
MIN_REPORTS_FOR_TRANSFORM = 30


@dataclass(frozen=True, eq=False)
class HadamardChannel(Channel):
    r"""Hadamard signs by the fast Walsh-Hadamard transform, :math:`O(K\,\log K)`.

    :math:`M_{xz}=\mathrm{scale}_z` times `high` if the sign of secret x in the column of report z
    is the report's own, else `low`. Signs are those of Sylvester's matrix of `order` rows:
    :math:`H_{rc}` is -1 to the power of the number of bits that r and c share. Several such
    matrices may stand on a diagonal: where the secret's row is in another block than the report's
    column, the entry is `low`. In each group of reports (a row of a sketch, say) the secrets have
    rows of their own.

    Parameters
    ----------
    places : ndarray of int32, shape (groups, k)
        For each group, block * order + row of each secret.
    length : int
        Number of places, a multiple of `order`.
    order : int
        Rows of a block, a power of two.
    group : ndarray of int, shape (s,)
        The group of each report.
    column : ndarray of int, shape (s,)
        For each report, block * order + column.
    minus : ndarray of bool, shape (s,)
        Whether the report's own sign is -.
    low, high : float
        Entries where the signs differ, and where they agree, up to the report's scale.
    scale : ndarray, shape (s,)
        A factor for each report.

    Examples
    --------
    Secrets 0 and 1 have the rows + - + - and + + - -, and the reports are the columns 0 and 1:

    >>> import numpy as np
    >>> places, column = np.array([[1, 2]], dtype=np.int32), np.array([0, 1])
    >>> plus = np.zeros(2, dtype=bool)
    >>> group = np.zeros(2, dtype=int)
    >>> channel = HadamardChannel(places, 4, 4, group, column, plus, 0.1, 0.4, np.ones(2))
    >>> channel.rows(np.arange(2))
    array([[0.4, 0.1],
           [0.4, 0.4]])
    """

    places: NDArray[np.int32]
    length: int
    order: int
    group: Ints
    column: Ints
    minus: NDArray[np.bool_]
    low: float
    high: float
    scale: Floats

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return int(self.places.shape[1])

    @property
    @override
    def size(self) -> int:
        return len(self.column)

    @cached_property
    def _layout(self) -> tuple[Any, ...]:
        """Arguments of the kernels: the places, and the reports group by group."""
        # A stable sort keeps the order of the reports within a group, which scatters memory less.
        by_group = np.argsort(self.group, kind="stable")
        ends = np.cumsum(np.bincount(self.group, minlength=len(self.places)))
        return self.places, self.length, self.order, ends, by_group, self.column, self.minus

    @override
    def forward(self, theta: Floats) -> Floats:
        # An entry is low, and high - low more if the signs agree.
        agreeing = _sign_kernels.hadamard_forward(theta, *self._layout)
        return self.scale * (self.low * theta.sum() + (self.high - self.low) * agreeing)

    @override
    def adjoint(self, w: Floats) -> Floats:
        weights = w * self.scale
        agreeing = _sign_kernels.hadamard_adjoint(weights, *self._layout)
        return self.low * weights.sum() + (self.high - self.low) * agreeing

    @property
    @override
    def n_roundings(self) -> float:
        # Nothing is subtracted (see `transform`): secrets or reports that share a place are added
        # up, each round of both transforms adds once, and groups are added to each other.
        groups, rounds = len(self.places), self.order.bit_length()
        return self.k + self.size + groups + 2 * rounds + 8

    @override
    def rows(self, secrets: Ints) -> Floats:
        return _sign_kernels.hadamard_rows(
            secrets,
            self.places,
            self.order,
            self.group,
            self.column,
            self.minus,
            self.low,
            self.high,
            self.scale,
        )

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        # The product of two rows of a Hadamard matrix is a row of it, so two transforms for each
        # group hold the sums for all pairs of secrets. Small groups are faster from their entries.
        if self.size < MIN_REPORTS_FOR_TRANSFORM * len(self.places):
            all_secrets = np.arange(self.k)
            for some in slices_of(self.size):
                total += lower_gram(self.take(some).rows(all_secrets), weights[some])
            return
        # An entry is low + extra [agrees]; its products with another have three terms.
        extra = self.high - self.low
        w = weights * self.scale**2
        agreeing = _sign_kernels.hadamard_adjoint(w, *self._layout)
        total += self.low**2 * w.sum() + self.low * extra * (agreeing[:, None] + agreeing)
        _sign_kernels.hadamard_pairs(total, w, extra**2, *self._layout)

    @override
    def unit_columns(self) -> HadamardChannel:
        # The largest entry is `high`, unless no secret has the report's sign.
        agreed = _sign_kernels.hadamard_agreed(
            self.places, self.order, self.group, self.column, self.minus
        )
        return replace(self, scale=1 / np.where(agreed, self.high, self.low))

    @override
    def scaled(self, factor: Floats) -> HadamardChannel:
        return replace(self, scale=self.scale * factor)

    @override
    def take(self, reports: slice | Ints) -> HadamardChannel:
        return replace(
            self,
            group=self.group[reports],
            column=self.column[reports],
            minus=self.minus[reports],
            scale=self.scale[reports],
        )
