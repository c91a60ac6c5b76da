"""Unary encodings: one bit per secret, each flipped on its own (basic one-time RAPPOR, OUE)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._validate import Floats
from ibukit.alphabet import Alphabet
from ibukit.channels import BitChannel
from ibukit.channels.line import SMALLEST_LOG_FACTOR, split_factor
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.bit_reports import BitReports, Bits
from ibukit.mechanisms.subset_selection import SubsetSelection

# 2^16 reports and 16 secrets are a matrix of 8 MB; beyond, listing the reports is not what anyone wants
MOST_LISTED = 16


class UnaryEncoding(BitReports):
    """Bit x of the report is 1 with probability `p_one`, every other bit with probability `p_zero`.

    The tally keeps only the distinct bit rows seen, packed. The 2^k reports are listed (``m``, ``matrix()``,
    ``forward``, ``tally_counts``) for k <= 16: report code = the row read as a binary number, bit 0 first.
    """

    @property
    @abstractmethod
    def p_hidden(self) -> float:
        """1 - p_one without cancellation: probability that the secret's own bit is reported as 0."""

    @property
    def m(self) -> int:
        """Number of possible reports, 2^k."""
        return int(2**self.k)

    def draw(self, secrets: NDArray[Any], rng: Generator) -> Bits:
        """One report for each user: rows of 0 and 1, shape (n, k)."""
        rows = (rng.random((len(secrets), self.k)) < self.p_zero).astype(np.uint8)
        rows[np.arange(len(secrets)), secrets] = rng.random(len(secrets)) < self.p_one
        return rows

    def channel(self, reports: NDArray[Any]) -> BitChannel:
        """Forward and adjoint on packed bit rows."""
        scale, _ = split_factor(self._log_all_zero(reports))
        one, zero = self.p_one / self.p_zero, self.p_hidden / (1 - self.p_zero)
        return BitChannel(self.k, reports, one, zero, scale)

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """What `channel` leaves out where a probability would underflow.

        This happens with k in the thousands.
        """
        if self.k * np.log(min(self.p_zero, 1 - self.p_zero)) > SMALLEST_LOG_FACTOR:
            return None  # not even the least probable of all rows underflows
        return split_factor(self._log_all_zero(reports))[1]

    def _log_all_zero(self, reports: Bits) -> Floats:
        """Log-probability of each row if no bit were the secret's."""
        ones = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
        return np.asarray(ones * np.log(self.p_zero) + (self.k - ones) * np.log1p(-self.p_zero))

    @cached_property
    def _all_rows(self) -> Bits:
        if self.k > MOST_LISTED:
            raise ValueError(
                f"the 2^{self.k} reports are not listed (k must be at most {MOST_LISTED}); use tally(rows)"
            )
        codes = np.arange(self.m)[:, None] >> np.arange(self.k)[::-1] & 1
        return np.packbits(codes.astype(np.uint8), axis=1)

    def make_matrix(self) -> Floats:
        """The probabilities of all reports, shape (k, m)."""
        bits = np.unpackbits(self._all_rows, axis=1, count=self.k).T
        matrix = np.empty((self.k, self.m))
        for x in range(self.k):
            own = (np.arange(self.k) == x)[:, None]
            one, zero = np.where(own, self.p_one, self.p_zero), np.where(own, self.p_hidden, 1 - self.p_zero)
            matrix[x] = np.where(bits, one, zero).prod(axis=0)
        return matrix


@dataclass(frozen=True)
class Rappor(UnaryEncoding):
    """Basic one-time RAPPOR: one noisy bit for each secret.

    Each of k bits is kept with probability p = e^(eps/2) / (1 + e^(eps/2)), else flipped. P(b given x) = p^k exp(-(1/2
    + S(b)/2 - b_x) eps) with S(b) the number of ones. These probabilities satisfy epsilon-local differential privacy,
    tightly. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets; reports are rows of k bits.
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 73.4, where p rounds to 1 in doubles, or there are fewer than two
        secrets.

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

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Alphabet | int, epsilon: float) -> None: ...

    def _lie(self, epsilon: float) -> float:
        return math.exp(-epsilon / 2)

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
    """Optimised unary encoding (OUE): one noisy bit for each secret.

    The secret's bit is 1 with probability 1/2, every other with probability 1 / (e^eps + 1). These probabilities
    satisfy epsilon-local differential privacy, tightly. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets; reports are rows of k bits.
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.7, where the other bits are 0 with a probability that rounds to 1
        in doubles, or there are fewer than two secrets.

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

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Alphabet | int, epsilon: float) -> None: ...

    def _lie(self, epsilon: float) -> float:
        return math.exp(-epsilon)

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


def is_unary(mechanism: Mechanism) -> TypeGuard[UnaryEncoding]:
    """Whether its law is that of one of the two above, for proofs: a class that inherits from one may have another."""
    return type(mechanism) is Rappor or type(mechanism) is OptimizedUnaryEncoding


def is_bits(mechanism: Mechanism) -> TypeGuard[UnaryEncoding | SubsetSelection]:
    """The same with subset selection, whose reports are rows of bits, too."""
    return is_unary(mechanism) or type(mechanism) is SubsetSelection
