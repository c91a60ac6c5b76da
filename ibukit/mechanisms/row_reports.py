"""Forms of reports: a number and a row of bits, and indices with signs."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch, TooLarge
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.categorical.bit_reports import Bits, BitsInBlocks, WholeRows
from ibukit.tally.tally import Tally

# entries of a matrix that is worth listing: half a gigabyte
MAX_LISTED_ENTRIES = 2**26
# reports that are counted in 63 bits
MAX_CODES = 2**62
# the number before the bits is kept in so many bytes, the most significant first
NUMBER_BYTES = 4


class RowReports(WholeRows):
    """Reports that are rows of numbers; those in one list are written out where they are few enough."""

    report_kind: ClassVar[ReportKind] = ReportKind.ROWS

    @cached_property
    @override
    def _all_reports(self) -> NDArray[Any]:
        if self.k * self.m > MAX_LISTED_ENTRIES:
            raise TooLarge(
                f"the {arguments.readable(self.m)} reports for {self.k} secrets are not listed (the matrix may have "
                f"at most {MAX_LISTED_ENTRIES} entries); use tally(reports)"
            )
        return self._make_all_reports()

    @abstractmethod
    def _make_all_reports(self) -> NDArray[Any]:
        """What `_all_reports` keeps."""

    @override
    def make_matrix(self) -> Floats:
        rows = self._full_channel.rows(np.arange(self.k))
        left_out = self.log_scale(self._all_reports)
        return rows if left_out is None else rows * np.exp(left_out)


class NumberedBits(RowReports, BitsInBlocks):
    """A report is a number from 0 on, and a row of bits: shape (n, 1 + bits), the number first.

    The tally keeps the distinct rows, packed, after the number's four bytes.
    """

    @property
    @abstractmethod
    def _numbers(self) -> tuple[str, int]:
        """What the number is called, and how many there are."""

    @property
    @override
    def m(self) -> int:
        return int(self._numbers[1] * 2**self._bits)

    @override
    def check_reports(self, reports: ArrayLike) -> Bits:
        rows = arguments.whole_array("reports", reports)
        name, many = self._numbers
        if rows.ndim != 2 or rows.shape[1] != 1 + self._bits:
            raise AlphabetMismatch(
                f"reports must be rows of a {name} and {self._bits} bits, shape (n, {1 + self._bits}), got shape "
                f"{rows.shape}"
            )
        if rows.dtype.kind not in "iu":
            rows = arguments.integers("reports", rows, ndim=2)
        numbers, bits = rows[:, 0].astype(np.int64), rows[:, 1:]
        if ((numbers < 0) | (numbers >= many)).any():
            first = int(np.argmax((numbers < 0) | (numbers >= many)))
            raise AlphabetMismatch(
                f"reports must have their {name} from 0 to {many - 1}, got {numbers[first]} at index {first}"
            )
        bad = (bits != 0) & (bits != 1)
        if bad.any():
            raise AlphabetMismatch(
                f"reports must have bits 0 and 1 after the {name}, got {bits[bad][0]}"
            )
        return self._packed(numbers, np.packbits(bits.astype(bool), axis=1))

    @staticmethod
    def _packed(numbers: Ints, packed: Bits) -> Bits:
        head = numbers.astype(">u4").view(np.uint8).reshape(len(numbers), NUMBER_BYTES)
        return np.hstack([head, packed])

    @staticmethod
    def _split(kept: Bits) -> tuple[Ints, Bits]:
        """The numbers and the packed bits of what a tally keeps."""
        head = np.ascontiguousarray(kept[:, :NUMBER_BYTES])
        return head.view(">u4").ravel().astype(np.int64), kept[:, NUMBER_BYTES:]

    def _join(self, numbers: Ints, bits: NDArray[Any]) -> NDArray[Any]:
        """Reports as they are handed out, in as few bytes as the number needs."""
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
        rows = np.arange(2**self._bits)[:, None] >> np.arange(self._bits)[::-1] & 1
        packed = np.packbits(rows.astype(np.uint8), axis=1)
        many = self._numbers[1]
        return self._packed(np.repeat(np.arange(many), len(packed)), np.tile(packed, (many, 1)))


class SignedIndices(RowReports):
    """A report is some indices, and then as many signs, +1 or -1, as `_signs` says: whole numbers, shape (n, width).

    The tally keeps one code for each, in which the first index is the most significant and + comes
    before -.
    """

    @property
    @abstractmethod
    def _indices(self) -> tuple[tuple[str, int], ...]:
        """What each index is called, and how many there are."""

    @property
    @abstractmethod
    def _signs(self) -> int:
        """Number of signs."""

    @override
    def simulate(self, secret_counts: ArrayLike, rng: Generator) -> Tally:
        return Mechanism.simulate(self, secret_counts, rng)

    @property
    def _form(self) -> tuple[tuple[str, int], ...]:
        return (*self._indices, *(("sign", 2),) * self._signs)

    @property
    @override
    def m(self) -> int:
        product = 1
        for _, size in self._form:
            product *= size
        return product

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        rows = arguments.whole_array("reports", reports)
        names = ", ".join(name for name, _ in self._form)
        if rows.ndim != 2 or rows.shape[1] != len(self._form):
            raise AlphabetMismatch(
                f"reports must be rows ({names}), shape (n, {len(self._form)}), got shape {rows.shape}"
            )
        rows = arguments.integers("reports", rows, ndim=2)
        codes = np.zeros(len(rows), dtype=np.int64)
        for i, (name, size) in enumerate(self._form):
            values = rows[:, i]
            bad = (np.abs(values) != 1) if name == "sign" else (values < 0) | (values >= size)
            if bad.any():
                first, allowed = (
                    int(np.argmax(bad)),
                    "+1 or -1" if name == "sign" else f"from 0 to {size - 1}",
                )
                raise AlphabetMismatch(
                    f"reports must have their {name} {allowed}, got {values[first]} at index {first}"
                )
            codes = codes * size + (values < 0 if name == "sign" else values)
        return codes

    def _columns(self, codes: Ints) -> Ints:
        """Indices, and 0 for + and 1 for -: shape (n, width)."""
        columns = np.empty((len(codes), len(self._form)), dtype=np.int64)
        rest = codes
        for i, (_, size) in reversed(list(enumerate(self._form))):
            rest, columns[:, i] = np.divmod(rest, size)
        return columns

    @override
    def restore_reports(self, kept: NDArray[Any]) -> Ints:
        columns = self._columns(kept)
        signs = columns[:, len(self._indices) :]
        signs[:] = 1 - 2 * signs
        return columns

    @override
    def _make_all_reports(self) -> Ints:
        return np.arange(self.m)
