"""Channels with few different entries: several entries are packed into a byte and looked up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import _bit_kernels
from ibukit.channels.base import Channel, Score, score_in_slices, slices_of, summed_in_slices
from ibukit.channels.dense import lower_gram

# A byte has this number of values, so a table has no more entries.
MAX_LEVELS = 256


def levels_per_byte(n_levels: int) -> int:
    """Number of digits in base `n_levels` that fit into a byte: 5 in base 3, one above base 16.

    Examples
    --------
    >>> [levels_per_byte(n_levels) for n_levels in (1, 2, 3, 6, 16, 17, 256)]
    [8, 8, 5, 3, 2, 1, 1]
    """
    digits = 8
    while max(n_levels, 2) ** digits > MAX_LEVELS:
        digits -= 1
    return digits


def pack_levels(levels: NDArray[Any], n_levels: int) -> NDArray[np.uint8]:
    """Pack rows of levels into bytes, in which the first secret is the most significant digit.

    Levels are 0..n_levels - 1, shape (s, k).

    Examples
    --------
    >>> import numpy as np
    >>> pack_levels(np.array([[0, 1, 2, 3]]), n_levels=6)
    array([[  8, 108]], dtype=uint8)
    """
    per_byte = levels_per_byte(n_levels)
    s, k = levels.shape
    packed = np.zeros((s, -(-k // per_byte)), dtype=np.uint8)
    # Horner's scheme, one digit of all bytes at a time.
    for i in range(per_byte):
        digit = levels[:, i::per_byte].astype(np.uint8)
        if i:
            packed *= np.uint8(n_levels)
        packed[:, : digit.shape[1]] += digit
    return packed


@dataclass(frozen=True, eq=False)
class LookupChannel(Channel):
    r"""Entries from a short table, several packed into a byte.

    :math:`M_{xz}=\mathrm{scale}_z\,\mathrm{table}[\mathrm{level}_{zx}]`. With three to six
    different entries a report takes k/3 bytes, or fewer.

    Parameters
    ----------
    k : int
        Number of secrets.
    packed : ndarray of uint8, shape (s, ceil(k / levels_per_byte(len(table))))
        Index of each entry in the table, as `pack_levels` packs them.
    table : ndarray, shape (at most 256,)
        The different entries, up to the report's scale.
    scale : ndarray, shape (s,)
        A factor for each report.

    Examples
    --------
    >>> import numpy as np
    >>> packed = pack_levels(np.array([[0, 1], [2, 0]]), n_levels=3)
    >>> table = np.array([0.1, 0.2, 0.4])
    >>> LookupChannel(2, packed, table, np.ones(2)).forward(np.array([0.5, 0.5]))
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
    def per_byte(self) -> int:
        """Entries in a byte."""
        return levels_per_byte(len(self.table))

    @cached_property
    def _entries(self) -> Floats:
        """Entries that each byte stands for, shape (256, per_byte); not every byte occurs."""
        # Digit i of a byte in base n is byte // n^(digits after i) mod n.
        bytes_, powers = np.arange(MAX_LEVELS), len(self.table) ** np.arange(self.per_byte)[::-1]
        return self.table[bytes_[:, None] // powers % len(self.table)]

    def _unpacked(self) -> Floats:
        """All entries without the scale, shape (s, k)."""
        s, n_bytes = self.packed.shape
        return self._entries[self.packed].reshape(s, n_bytes * self.per_byte)[:, : self.k]

    @override
    def forward(self, theta: Floats) -> Floats:
        return (
            _bit_kernels.levels_forward(self.packed, self.table, self.per_byte, theta) * self.scale
        )

    @override
    def adjoint(self, w: Floats) -> Floats:
        return _bit_kernels.levels_adjoint(
            self.packed, self.table, self.per_byte, w * self.scale, self.k
        )

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return score_in_slices(self, theta, counts)

    @property
    @override
    def n_roundings(self) -> float:
        # A table is filled by a product and a sum for each level of a byte, and folded by at most
        # MAX_LEVELS sums before and after its product.
        tables = 8 + 2 * MAX_LEVELS + 2
        return self.packed.shape[1] + tables + 2 + summed_in_slices(self.size)

    @override
    def rows(self, secrets: Ints) -> Floats:
        # Secret x is digit x % per_byte of byte x // per_byte.
        entries = self._entries[self.packed[:, secrets // self.per_byte], secrets % self.per_byte]
        return np.ascontiguousarray(entries.T) * self.scale

    def in_single(self, factor: Floats) -> NDArray[np.float32]:
        """Entries times a factor of each report, in single precision, shape (s, k)."""
        return (self._unpacked() * (factor * self.scale)[:, None]).astype(np.float32)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        # A slice of rows is written out at a time, so that BLAS can multiply them.
        for rows in slices_of(self.size):
            piece = self.take(rows)
            total += lower_gram(piece._unpacked().T, weights[rows] * piece.scale**2)

    @override
    def unit_columns(self) -> LookupChannel:
        largest = np.concatenate(
            [self.take(rows)._unpacked().max(axis=1) for rows in slices_of(self.size)]
        )
        return replace(self, scale=1 / largest)

    @override
    def scaled(self, factor: Floats) -> LookupChannel:
        return replace(self, scale=self.scale * factor)

    @override
    def take(self, reports: slice | Ints) -> LookupChannel:
        return replace(self, packed=self.packed[reports], scale=self.scale[reports])
