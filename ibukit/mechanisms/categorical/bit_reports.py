"""Base classes for reports that are rows of bits, which a tally keeps packed."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels import BitChannel
from ibukit.domain.alphabet import Alphabet, Line, as_alphabet
from ibukit.domain.bit_texts import bits_in_texts
from ibukit.domain.labels import CountsLike, LabelsLike, aligned_counts
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.draws import secrets_of_users
from ibukit.mechanisms.epsilon_range import check_epsilon
from ibukit.tally.tally import Tally, make_tally_part

Bits = NDArray[np.uint8]

# Bits that are drawn at a time: 64 MB as bytes, 512 MB as the uniform numbers that they come from.
BITS_AT_ONCE = 2**26


class WholeRows(FiniteMechanism):
    """Reports that are rows and stand for themselves, without labels.

    The list of all reports is usually too long; only `tally_counts` and `matrix` need it.
    """

    @property
    @override
    def report_alphabet(self) -> Alphabet:
        return Line(0, self.m - 1)

    @override
    def code_reports(self, reports: LabelsLike) -> NDArray[Any]:
        return arguments.whole_array("reports", reports)

    @override
    def label_reports(self, reports: NDArray[Any]) -> NDArray[Any]:
        return reports


class BitsInBlocks(WholeRows):
    """Rows with bits in them, which take an eighth of the memory when they are packed."""

    @property
    @abstractmethod
    def _bits(self) -> int:
        """Number of bits of a report."""

    @override
    def code_reports(self, reports: LabelsLike) -> NDArray[Any]:
        values = super().code_reports(reports)
        # In files the bits of a report are a text, alone or beside a number.
        if values.dtype.kind in "OUT" and values.ndim in (1, 2) and len(values):
            return self._read_texts(values)
        return values

    def _read_texts(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return rows of numbers for reports that are strings of bits, and others unchanged."""
        texts = values if values.ndim == 1 else values[:, -1]
        beside = 0 if values.ndim == 1 else values.shape[1] - 1
        if beside != self._numbers_beside or not all(isinstance(text, str) for text in texts):
            return values
        bits, known = bits_in_texts(texts.tolist(), self._bits)
        if not known.all():
            raise AlphabetMismatch(
                f"reports must be strings of {self._bits} bits 0 and 1, or hexadecimal ones that "
                f'begin with "0x", got {str(texts[np.argmin(known)])!r} at index '
                f"{np.argmin(known)}"
            )
        return bits if not beside else np.column_stack([values[:, :-1].astype(np.int64), bits])

    _numbers_beside: ClassVar[int] = 0
    """The count of numbers that a report has before its bits."""

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population.

        Bit rows are drawn in blocks, so that memory stays bounded.
        """
        rng = arguments.generator(rng)
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        secrets = secrets_of_users(counts, self)
        # Each block is packed before the next one is drawn.
        step = max(1, BITS_AT_ONCE // self._bits)
        starts = range(0, max(len(secrets), 1), step)
        blocks = [self.check_reports(self.draw(secrets[i : i + step], rng)) for i in starts]
        return Tally((make_tally_part(self, np.concatenate(blocks)),))


class BitReports(BitsInBlocks):
    """A report is a row of k bits; bit x is 1 more often if x is the secret.

    The tally keeps only the distinct rows seen, packed.
    """

    alphabet: Alphabet
    epsilon: float

    report_kind: ClassVar[ReportKind] = ReportKind.BITS

    def __post_init__(self) -> None:
        """Check and convert the fields that all these mechanisms have."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        arguments.whole("number of secrets", len(self.alphabet), 2)
        self._check_level()

    def _check_level(self) -> None:
        """Check and convert the fields that determine the privacy: by default `epsilon`."""
        self._keep(epsilon=check_epsilon(self.epsilon, self._rare_probability))

    def _rare_probability(self, epsilon: float) -> float:
        """Probability or odds of the rare event that must be drawn, see `check_epsilon`."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say how private it is: define _rare_probability or "
            "_check_level"
        )

    @property
    @abstractmethod
    def p_one(self) -> float:
        """Probability that the secret's own bit is reported as 1."""

    @property
    @abstractmethod
    def p_zero(self) -> float:
        """Probability that any other bit is reported as 1."""

    @property
    @abstractmethod
    def contrast(self) -> float:
        r""":math:`p_{\mathrm{one}} - p_{\mathrm{zero}}`, above 0 for the smallest epsilon."""

    @cached_property
    @abstractmethod
    def _all_reports(self) -> Bits:
        """All possible reports, packed, in ascending order; ValueError if they are too many."""

    @property
    @override
    def _bits(self) -> int:
        return self.k

    @override
    def check_reports(self, reports: ArrayLike) -> Bits:
        rows = arguments.whole_array("reports", reports)
        if rows.ndim != 2 or rows.shape[1] != self.k:
            raise AlphabetMismatch(
                f"reports must be bit rows of shape (n, {self.k}), got shape {rows.shape}"
            )
        if rows.dtype != bool:
            if rows.dtype.kind == "O":
                # Each entry is judged by itself: pandas.NA is neither equal nor unequal to 0.
                bad = np.array(
                    [arguments.is_missing(bit) or bit not in (0, 1) for bit in rows.ravel()],
                    dtype=bool,
                )
                bad = bad.reshape(rows.shape)
            else:
                bad = (rows != 0) & (rows != 1)
            if bad.any():
                raise AlphabetMismatch(f"reports must be rows of 0 and 1, got {rows[bad][0]}")
        return np.packbits(rows.astype(bool), axis=1)

    @override
    def restore_reports(self, kept: NDArray[Any]) -> Bits:
        return np.unpackbits(kept, axis=1, count=self.k)

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        """The estimator of RAPPOR: each bit's frequency, debiased.

        For unary encodings it need not sum to 1.
        """
        # Bit y is 1 with probability p_zero + contrast theta_y. The bits are counted by the kernel
        # of the adjoint, with weight 1 for a bit that is 1, and 0 for one that is 0.
        ones = BitChannel(self.k, reports, 1.0, 0.0, np.ones(len(reports))).adjoint(frequencies)
        return (ones - self.p_zero) / self.contrast
