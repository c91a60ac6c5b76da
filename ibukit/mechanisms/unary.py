"""Unary encodings: one bit per secret, each flipped on its own (basic one-time RAPPOR, OUE)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit import _validate
from ibukit._validate import Floats
from ibukit.alphabet import Alphabet, as_alphabet
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.channels import SMALLEST_LOG_FACTOR, BitChannel, split_factor
from ibukit.tally import Tally, make_part

Bits = NDArray[np.uint8]

# 2^16 reports and 16 secrets are a matrix of 8 MB; beyond, listing the reports is not what anyone wants
MOST_LISTED = 16
BITS_AT_ONCE = 2**26
# ratios of probabilities must stay within the range of a double
SMALLEST_FLIP = 1e-300


class UnaryEncoding(FiniteMechanism):
    """Bit x of the report is 1 with probability `p_one`, every other bit with probability `p_zero`.

    The tally keeps only the distinct bit rows seen, packed. The 2^k reports are listed (``m``, ``matrix()``,
    ``forward``, ``tally_counts``) for k <= 16: report code = the row read as a binary number, bit 0 first.
    """

    alphabet: Alphabet
    epsilon: float

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
    def p_hidden(self) -> float:
        """1 - p_one without cancellation: probability that the secret's own bit is reported as 0."""

    @property
    @abstractmethod
    def contrast(self) -> float:
        """p_one - p_zero, above 0 for the smallest epsilon."""

    @property
    def m(self) -> int:
        """Number of possible reports, 2^k."""
        return int(2**self.k)

    def randomize(self, secrets: ArrayLike, rng: Generator) -> Bits:
        """Draw one report for each user: rows of 0 and 1, shape (n, k)."""
        rng = _validate.generator(rng)
        x = _validate.codes("secrets", secrets, self.k)
        rows = (rng.random((len(x), self.k)) < self.p_zero).astype(np.uint8)
        rows[np.arange(len(x)), x] = rng.random(len(x)) < self.p_one
        return rows

    def simulate(self, secret_counts: ArrayLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population: bit rows in blocks, so that memory stays bounded."""
        rng = _validate.generator(rng)
        counts = _validate.counts("secret_counts", secret_counts, self.k)
        secrets = np.repeat(np.arange(self.k), counts)
        step = max(1, BITS_AT_ONCE // self.k)
        blocks = [
            np.packbits(self.randomize(secrets[i : i + step], rng), axis=1)
            for i in range(0, max(len(secrets), 1), step)
        ]
        return Tally((make_part(self, np.concatenate(blocks)),))

    def check_reports(self, reports: ArrayLike) -> Bits:
        """Bit rows (n, k) of bool or of 0 and 1, packed to bytes."""
        rows = np.asarray(reports)
        if rows.ndim != 2 or rows.shape[1] != self.k:
            raise AlphabetMismatch(f"reports must be bit rows of shape (n, {self.k}), got shape {rows.shape}")
        if rows.dtype != bool:
            bad = (rows != 0) & (rows != 1)
            if bad.any():
                raise AlphabetMismatch(f"reports must be rows of 0 and 1, got {rows[bad][0]}")
        return np.packbits(rows.astype(bool), axis=1)

    def channel(self, reports: NDArray[Any]) -> BitChannel:
        """Forward and adjoint on packed bit rows."""
        scale, _ = split_factor(self._log_all_zero(reports))
        one, zero = self.p_one / self.p_zero, self.p_hidden / (1 - self.p_zero)
        return BitChannel(self.k, reports, one, zero, scale)

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """What `channel` leaves out where a report's probability would underflow (k in the thousands)."""
        if self.k * np.log(min(self.p_zero, 1 - self.p_zero)) > SMALLEST_LOG_FACTOR:
            return None  # not even the least probable of all rows underflows
        return split_factor(self._log_all_zero(reports))[1]

    def _log_all_zero(self, reports: Bits) -> Floats:
        """Log-probability of each row if no bit were the secret's."""
        ones = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
        return np.asarray(ones * np.log(self.p_zero) + (self.k - ones) * np.log1p(-self.p_zero))

    def tally_counts(self, counts: ArrayLike) -> Tally:
        """The tally from counts of all 2^k reports (k <= 16)."""
        rows = self._all_rows
        return Tally((make_part(self, rows, _validate.counts("counts", counts, self.m)),))

    @cached_property
    def _all_rows(self) -> Bits:
        if self.k > MOST_LISTED:
            raise ValueError(
                f"the 2^{self.k} reports are not listed (k must be at most {MOST_LISTED}); use tally(rows)"
            )
        codes = np.arange(self.m)[:, None] >> np.arange(self.k)[::-1] & 1
        return np.packbits(codes.astype(np.uint8), axis=1)

    @cached_property
    def _channel(self) -> BitChannel:
        return self.channel(self._all_rows)

    @cached_property
    def _matrix(self) -> Floats:
        bits = np.unpackbits(self._all_rows, axis=1, count=self.k).T
        matrix = np.empty((self.k, self.m))
        for x in range(self.k):
            own = (np.arange(self.k) == x)[:, None]
            one, zero = np.where(own, self.p_one, self.p_zero), np.where(own, self.p_hidden, 1 - self.p_zero)
            matrix[x] = np.where(bits, one, zero).prod(axis=0)
        return matrix

    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        """The estimator of RAPPOR: each bit's frequency, debiased; need not sum to 1."""
        # bits are counted by the kernel of the adjoint with one = 1 and zero = 0
        ones = BitChannel(self.k, reports, 1.0, 0.0, np.ones(len(reports))).adjoint(frequencies)
        return (ones - self.p_zero) / self.contrast


@dataclass(frozen=True)
class Rappor(UnaryEncoding):
    """Basic one-time RAPPOR: each of k bits is kept with probability p = e^(eps/2) / (1 + e^(eps/2)), else flipped.

    P(b given x) = p^k exp(-(1/2 + S(b)/2 - b_x) eps) with S(b) the number of ones. Satisfies epsilon-local
    differential privacy, tightly.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets; reports are rows of k bits.
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0, or there are fewer than two secrets.

    References
    ----------
    .. [rappor] Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014.
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 4.4.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = Rappor(10, epsilon=1.0)
    >>> mechanism.randomize([3, 3], np.random.default_rng(1)).shape
    (2, 10)
    """

    alphabet: Alphabet
    epsilon: float

    def __init__(self, alphabet: Alphabet | int, epsilon: float):
        _set_alphabet_and_epsilon(self, alphabet, epsilon)

    @property
    def p_one(self) -> float:
        """Probability that a bit is kept, e^(eps/2) / (1 + e^(eps/2))."""
        return float(1 / (1 + np.exp(-self.epsilon / 2)))

    @property
    def p_zero(self) -> float:
        """Probability that a bit is flipped, 1 / (1 + e^(eps/2))."""
        return float(np.exp(-self.epsilon / 2) / (1 + np.exp(-self.epsilon / 2)))

    @property
    def p_hidden(self) -> float:
        """A bit is flipped with the same probability whatever it is."""
        return self.p_zero

    @property
    def contrast(self) -> float:
        """p_one - p_zero = tanh(eps/4)."""
        return float(np.tanh(self.epsilon / 4))


@dataclass(frozen=True)
class OptimizedUnaryEncoding(UnaryEncoding):
    """OUE: the secret's bit is 1 with probability 1/2, every other with probability 1 / (e^eps + 1).

    Satisfies epsilon-local differential privacy, tightly.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets; reports are rows of k bits.
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0, or there are fewer than two secrets.

    References
    ----------
    .. [oue] Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation",
       USENIX Security 2017.

    Examples
    --------
    >>> OptimizedUnaryEncoding(2, epsilon=1.0).matrix().sum(axis=1)
    array([1., 1.])
    """

    alphabet: Alphabet
    epsilon: float

    def __init__(self, alphabet: Alphabet | int, epsilon: float):
        _set_alphabet_and_epsilon(self, alphabet, epsilon)

    @property
    def p_one(self) -> float:
        """Probability that the secret's own bit is 1."""
        return 0.5

    @property
    def p_zero(self) -> float:
        """Probability that another bit is 1, 1 / (e^eps + 1)."""
        return float(np.exp(-self.epsilon) / (1 + np.exp(-self.epsilon)))

    @property
    def p_hidden(self) -> float:
        """Probability that the secret's own bit is 0."""
        return 0.5

    @property
    def contrast(self) -> float:
        """p_one - p_zero = tanh(eps/2) / 2."""
        return float(np.tanh(self.epsilon / 2) / 2)


def _set_alphabet_and_epsilon(mechanism: UnaryEncoding, alphabet: Alphabet | int, epsilon: float) -> None:
    object.__setattr__(mechanism, "alphabet", as_alphabet(alphabet))
    object.__setattr__(mechanism, "epsilon", _validate.positive("epsilon", epsilon))
    _validate.whole("number of secrets", len(mechanism.alphabet), 2)
    if mechanism.p_zero < SMALLEST_FLIP:
        raise ValueError(
            f"epsilon must be smaller, got {epsilon}: a bit would be set by chance with probability "
            f"{mechanism.p_zero:.3g}, too small for a double to work with"
        )
