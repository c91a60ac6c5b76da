"""Few different probabilities: as many of them share a byte as fit into it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import _bit_kernels
from ibukit.channels.base import Channel, Score, slices_of, sum_scores
from ibukit.channels.dense import lower_gram

# what a byte can tell apart
MAX_LEVELS = 256


def levels_per_byte(many: int) -> int:
    """How many levels, each one of `many`, fit into a byte: 5 of three, 3 of five or six, 1 from seventeen on.

    Examples
    --------
    >>> [levels_per_byte(many) for many in (1, 2, 3, 6, 16, 17, 256)]
    [8, 8, 5, 3, 2, 1, 1]
    """
    found = 8
    while max(many, 2) ** found > MAX_LEVELS:
        found -= 1
    return found


def pack_levels(levels: NDArray[Any], many: int) -> NDArray[np.uint8]:
    """Rows of levels as bytes, in which the first secret is the most significant.

    Levels are 0..many - 1, shape (s, k).

    Examples
    --------
    >>> import numpy as np
    >>> pack_levels(np.array([[0, 1, 2, 3]]), many=6)
    array([[  8, 108]], dtype=uint8)
    """
    each = levels_per_byte(many)
    s, k = levels.shape
    packed = np.zeros((s, -(-k // each)), dtype=np.uint8)
    for i in range(each):
        here = levels[:, i::each].astype(np.uint8)
        if i:
            packed *= np.uint8(many)
        packed[:, : here.shape[1]] += here
    return packed


@dataclass(frozen=True, eq=False)
class LookupChannel(Channel):
    """Entries out of a short table, packed, one look-up a byte.

    :math:`M_{xz}` = scale_z table[level_zx]. With three to six different entries a report takes k/3
    bytes, or fewer.

    Parameters
    ----------
    k : int
        Number of secrets.
    packed : ndarray of uint8, shape (s, ceil(k / levels_per_byte(len(table))))
        Place of each entry in the table, as `pack_levels` writes them.
    table : ndarray, shape (at most 256,)
        The different entries, up to the report's scale.
    scale : ndarray, shape (s,)
        A factor for each report.

    Examples
    --------
    >>> import numpy as np
    >>> packed = pack_levels(np.array([[0, 1], [2, 0]]), many=3)
    >>> LookupChannel(2, packed, np.array([0.1, 0.2, 0.4]), np.ones(2)).forward(np.array([0.5, 0.5]))
    array([0.15, 0.25])
    """

    k: int
    packed: NDArray[np.uint8]
    table: Floats
    scale: Floats

    @property
    @override
    def size(self) -> int:
        return len(self.packed)

    @property
    def each(self) -> int:
        """Levels in a byte."""
        return levels_per_byte(len(self.table))

    @cached_property
    def _entries(self) -> Floats:
        """The entries that each byte stands for, shape (256, each); some bytes do not occur."""
        bytes_, powers = np.arange(MAX_LEVELS), len(self.table) ** np.arange(self.each)[::-1]
        return np.asarray(self.table[bytes_[:, None] // powers % len(self.table)])

    def _written(self) -> Floats:
        """All entries without the scale, report by report: shape (s, k)."""
        s, n_bytes = self.packed.shape
        return np.asarray(self._entries[self.packed].reshape(s, n_bytes * self.each)[:, : self.k])

    @override
    def forward(self, theta: Floats) -> Floats:
        return np.asarray(
            _bit_kernels.levels_forward(self.packed, self.table, self.each, theta) * self.scale
        )

    @override
    def adjoint(self, w: Floats) -> Floats:
        return _bit_kernels.levels_adjoint(
            self.packed, self.table, self.each, w * self.scale, self.k
        )

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return sum_scores(
            Channel.score(self.take(rows), theta, counts[rows]) for rows in slices_of(self.size)
        )

    @override
    def rows(self, secrets: Ints) -> Floats:
        entries = self._entries[self.packed[:, secrets // self.each], secrets % self.each]
        return np.ascontiguousarray(entries.T) * self.scale

    def in_single(self, factor: Floats) -> NDArray[np.float32]:
        """The entries of each report times its factor, in single precision: shape (s, k)."""
        return (self._written() * (factor * self.scale)[:, None]).astype(np.float32)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        for some in slices_of(self.size):
            piece = self.take(some)
            total += lower_gram(piece._written().T, weights[some] * piece.scale**2)

    @override
    def unit_columns(self) -> LookupChannel:
        largest = np.concatenate(
            [self.take(some)._written().max(axis=1) for some in slices_of(self.size)]
        )
        return replace(self, scale=1 / largest)

    @override
    def scaled(self, factor: Floats) -> LookupChannel:
        return replace(self, scale=self.scale * factor)

    @override
    def take(self, reports: slice | Ints) -> LookupChannel:
        return replace(self, packed=self.packed[reports], scale=self.scale[reports])
