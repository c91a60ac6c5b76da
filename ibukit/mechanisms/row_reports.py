"""Base classes for reports in rows: a number and bits, or indices and signs."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.labels import CountsLike
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.categorical.bit_reports import Bits, BitsInBlocks, WholeRows
from ibukit.tally.tally import Tally

# Number of different reports whose codes fit into 63 bits.
MAX_CODES = 2**62
# Bytes of the number before the bits, in the form that a tally keeps: the most significant first,
# so that rows of bytes sort by this number.
NUMBER_BYTES = 4


class RowReports(WholeRows):
    """Reports that are rows of numbers, and are listed only if the matrix is small enough."""

    report_kind: ClassVar[ReportKind] = ReportKind.ROWS

    @cached_property
    @override
    def _all_reports(self) -> NDArray[Any]:
        self._refuse_large_matrix()
        return self._make_all_reports()

    @override
    def _refuse_large_matrix(self) -> None:
        limits.require_dense(
            f"the {arguments.readable(self.m)} reports for {self.k} secrets are too many to list: "
            "the matrix",
            self.k,
            self.m,
            "use tally(reports)",
        )

    @abstractmethod
    def _make_all_reports(self) -> NDArray[Any]:
        """List all reports, in the form that a tally keeps."""

    @override
    def make_matrix(self) -> Floats:
        # The channel may leave a factor out of each column, so that nothing underflows.
        rows = self._full_channel.rows(np.arange(self.k))
        left_out = self.log_scale(self._all_reports)
        return rows if left_out is None else rows * np.exp(left_out)


class NumberedBits(RowReports, BitsInBlocks):
    """A report is a number from 0 on, followed by a row of bits: shape (n, 1 + bits).

    The tally keeps the distinct rows, packed, after the number's four bytes.
    """

    _numbers_beside: ClassVar[int] = 1

    @property
    @abstractmethod
    def _numbers(self) -> tuple[str, int]:
        """Name of the number for messages, and how many values it has."""

    @property
    @override
    def m(self) -> int:
        return int(self._numbers[1] * 2**self._bits)

    @override
    def check_reports(self, reports: ArrayLike) -> Bits:
        rows = arguments.whole_array("reports", reports)
        name, size = self._numbers
        if rows.ndim != 2 or rows.shape[1] != 1 + self._bits:
            raise AlphabetMismatch(
                f"reports must be rows of a {name} and {self._bits} bits, shape "
                f"(n, {1 + self._bits}), got shape {rows.shape}"
            )
        # Integers of any size are taken as they are; other types must hold whole numbers.
        if rows.dtype.kind not in "iu":
            rows = arguments.integers("reports", rows, ndim=2)
        numbers, bits = rows[:, 0].astype(np.int64), rows[:, 1:]
        unknown = (numbers < 0) | (numbers >= size)
        if unknown.any():
            first = int(np.argmax(unknown))
            raise AlphabetMismatch(
                f"reports must have their {name} from 0 to {size - 1}, got {numbers[first]} at "
                f"index {first}"
            )
        bad = (bits != 0) & (bits != 1)
        if bad.any():
            raise AlphabetMismatch(
                f"reports must have bits 0 and 1 after the {name}, got {bits[bad][0]}"
            )
        return self._packed(numbers, np.packbits(bits.astype(bool), axis=1))

    @staticmethod
    def _packed(numbers: Ints, packed: Bits) -> Bits:
        # Four bytes of the number, then the packed bits: rows of bytes that can be sorted.
        head = numbers.astype(">u4").view(np.uint8).reshape(len(numbers), NUMBER_BYTES)
        return np.hstack([head, packed])

    @staticmethod
    def _split(kept: Bits) -> tuple[Ints, Bits]:
        """Numbers and packed bits, from the form that a tally keeps."""
        head = np.ascontiguousarray(kept[:, :NUMBER_BYTES])
        return head.view(">u4").ravel().astype(np.int64), kept[:, NUMBER_BYTES:]

    def _join(self, numbers: Ints, bits: NDArray[Any]) -> NDArray[Any]:
        """Rows of numbers and bits, of the smallest integer type that holds the numbers."""
        rows = np.empty(
            (len(numbers), 1 + self._bits), dtype=np.min_scalar_type(self._numbers[1] - 1)
        )
        rows[:, 0], rows[:, 1:] = numbers, bits
        return rows

    @override
    def restore_reports(self, kept: NDArray[Any]) -> NDArray[Any]:
        numbers, packed = self._split(kept)
        return self._join(numbers, np.unpackbits(packed, axis=1, count=self._bits))

    @override
    def _make_all_reports(self) -> Bits:
        # All rows of bits, in the order of the binary numbers that they spell, for each number.
        rows = np.arange(2**self._bits)[:, None] >> np.arange(self._bits)[::-1] & 1
        packed = np.packbits(rows.astype(np.uint8), axis=1)
        size = self._numbers[1]
        return self._packed(np.repeat(np.arange(size), len(packed)), np.tile(packed, (size, 1)))


class SignedIndices(RowReports):
    """A report is a row of indices followed by signs, +1 or -1: whole numbers, shape (n, width).

    The tally keeps one code for each row: the indices and signs are its digits, the first index the
    most significant, and + comes before -.
    """

    @property
    @abstractmethod
    def _indices(self) -> tuple[tuple[str, int], ...]:
        """Name of each index for messages, and how many values it has."""

    @property
    @abstractmethod
    def _signs(self) -> int:
        """Number of signs."""

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        # The reports are drawn user by user: a list of all of them may be far too long.
        return Mechanism.simulate(self, secret_counts, rng)

    @property
    def _form(self) -> tuple[tuple[str, int], ...]:
        """Name and size of each column."""
        return (*self._indices, *(("sign", 2),) * self._signs)

    @property
    @override
    def m(self) -> int:
        return math.prod(size for _, size in self._form)

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        rows = arguments.whole_array("reports", reports)
        names = ", ".join(name for name, _ in self._form)
        if rows.ndim != 2 or rows.shape[1] != len(self._form):
            raise AlphabetMismatch(
                f"reports must be rows ({names}), shape (n, {len(self._form)}), got shape "
                f"{rows.shape}"
            )
        rows = arguments.integers("reports", rows, ndim=2)
        codes = np.zeros(len(rows), dtype=np.int64)
        for i, (name, size) in enumerate(self._form):
            values = rows[:, i]
            is_sign = name == "sign"
            bad = (np.abs(values) != 1) if is_sign else (values < 0) | (values >= size)
            if bad.any():
                first = int(np.argmax(bad))
                allowed = "+1 or -1" if is_sign else f"from 0 to {size - 1}"
                raise AlphabetMismatch(
                    f"reports must have their {name} {allowed}, got {values[first]} at "
                    f"index {first}"
                )
            # A number with mixed bases: each column is one more digit.
            codes = codes * size + (values < 0 if is_sign else values)
        return codes

    def _columns(self, codes: Ints) -> Ints:
        """Digits of codes: the indices, and 0 for + and 1 for -, shape (n, width)."""
        # The digits of a number with mixed bases, the last one first.
        columns = np.empty((len(codes), len(self._form)), dtype=np.int64)
        rest = codes
        for i, (_, size) in reversed(list(enumerate(self._form))):
            rest, columns[:, i] = np.divmod(rest, size)
        return columns

    @override
    def restore_reports(self, kept: NDArray[Any]) -> Ints:
        columns = self._columns(kept)
        # 0 becomes +1, and 1 becomes -1.
        signs = columns[:, len(self._indices) :]
        signs[:] = 1 - 2 * signs
        return columns

    @override
    def _make_all_reports(self) -> Ints:
        return np.arange(self.m)
