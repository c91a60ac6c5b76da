"""Unary encodings: one bit per secret, each flipped on its own (any two chances, basic one-time RAPPOR, OUE)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels import BitChannel
from ibukit.channels.line import MIN_LOG_FACTOR, split_factor
from ibukit.domain.alphabet import Alphabet
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.categorical.bit_reports import BitReports, Bits
from ibukit.mechanisms.categorical.subset_selection import SubsetSelection
from ibukit.mechanisms.epsilon_range import MIN_CHANCE

# 2^16 reports and 16 secrets are a matrix of 8 MB; beyond, listing the reports is not what anyone
# wants
MAX_LISTED = 16


class IndependentBits(BitReports):
    """Bit x of the report is 1 with probability `p_one`, every other bit with probability `p_zero`.

    The tally keeps only the distinct bit rows seen, packed. The 2^k reports are listed (``m``,
    ``matrix()``, ``forward``, ``tally_counts``) for k <= 16: report code = the row read as a binary
    number, bit 0 first.

    A class of which this is all sets `bits_are_independent` in its own body. What is proved of
    unary encodings is then said of it, and not of the classes that inherit from it, which may have
    another law.
    """

    bits_are_independent: ClassVar[bool] = False
    """Whether the bits are independent with these chances, asked of the exact class only (see `is_unary`)."""

    @property
    @abstractmethod
    def p_hidden(self) -> float:
        """1 - p_one without cancellation: probability that the secret's own bit is reported as 0."""

    @property
    @override
    def m(self) -> int:
        return int(2**self.k)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Bits:
        rows = (rng.random((len(secrets), self.k)) < self.p_zero).astype(np.uint8)
        rows[np.arange(len(secrets)), secrets] = rng.random(len(secrets)) < self.p_one
        return rows

    def _coins(self, own: exact.Chance, other: exact.Chance) -> exact.Exact:
        """The same from the chances as they are, of which `epsilon` is the level."""
        return exact.Exact(
            lambda secrets, source: exact.bits(secrets, self.k, own, other, source),
            lambda: self.epsilon,
        )

    @override
    def channel(self, reports: NDArray[Any]) -> BitChannel:
        scale, _ = split_factor(self._log_all_zero(reports))
        one, zero = self.p_one / self.p_zero, self.p_hidden / (1 - self.p_zero)
        return BitChannel(self.k, reports, one, zero, scale)

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """What `channel` leaves out where a probability would underflow.

        This happens with k in the thousands.
        """
        if self.k * np.log(min(self.p_zero, 1 - self.p_zero)) > MIN_LOG_FACTOR:
            return None  # not even the least probable of all rows underflows
        return split_factor(self._log_all_zero(reports))[1]

    def _log_all_zero(self, reports: Bits) -> Floats:
        """Log-probability of each row if no bit were the secret's."""
        ones = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
        return np.asarray(ones * np.log(self.p_zero) + (self.k - ones) * np.log1p(-self.p_zero))

    @cached_property
    @override
    def _all_rows(self) -> Bits:
        if self.k > MAX_LISTED:
            raise ValueError(
                f"the 2^{self.k} reports are not listed (k must be at most {MAX_LISTED}); use tally(rows)"
            )
        codes = np.arange(self.m)[:, None] >> np.arange(self.k)[::-1] & 1
        return np.packbits(codes.astype(np.uint8), axis=1)

    @override
    def make_matrix(self) -> Floats:
        bits = np.unpackbits(self._all_rows, axis=1, count=self.k).T
        matrix = np.empty((self.k, self.m))
        for x in range(self.k):
            own = (np.arange(self.k) == x)[:, None]
            one, zero = (
                np.where(own, self.p_one, self.p_zero),
                np.where(own, self.p_hidden, 1 - self.p_zero),
            )
            matrix[x] = np.where(bits, one, zero).prod(axis=0)
        return matrix


class BitsOfGivenChances(IndependentBits):
    """Independent bits of which the chances are given, or follow from what is given; the level follows from them."""

    @override
    def _check_level(self) -> None:
        self._check_chances()
        least = min(self.p_zero, self.p_hidden)
        if not least > MIN_CHANCE:
            which = (
                "another bit is 1" if self.p_zero <= self.p_hidden else "the secret's own bit is 0"
            )
            raise ValueError(
                f"the chance that {which} must be above 2^-53, got {least:g} for {self._given}: in doubles it is drawn "
                "as never, and such a report would rule secrets out"
            )
        if not self.contrast > 0:
            raise ValueError(
                f"the secret's own bit must be 1 more often than another, got {self.p_one:g} and {self.p_zero:g} for "
                f"{self._given}"
            )

    @abstractmethod
    def _check_chances(self) -> None:
        """Check and convert the fields that the chances come from."""

    @property
    def _given(self) -> str:
        """These fields, for messages."""
        own = [field.name for field in fields(self) if field.name != "alphabet"]  # type: ignore[arg-type]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in own)

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """The tight level ln p (1 - q) / ((1 - p) q), in nats, for all pairs of secrets."""
        # p/q = 1 + (p - q) / q and (1 - q) / (1 - p) = 1 + (p - q) / (1 - p), without cancellation
        return math.log1p(self.contrast / self.p_zero) + math.log1p(self.contrast / self.p_hidden)


@dataclass(frozen=True)
class UnaryEncoding(BitsOfGivenChances):
    """Unary encoding with any two chances: one noisy bit for each secret.

    The secret's own bit is 1 with probability p, every other with probability q, each on its own.
    These probabilities satisfy epsilon-local differential privacy, tightly, with epsilon = ln p (1
    - q) / ((1 - p) q). `Rappor` is p = 1 - q, `OptimizedUnaryEncoding` is p = 1/2. Local hashing
    with g buckets has the law of q = 1/g where all hash functions are equally likely. Reports are
    simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets; reports are rows of k bits.
    p : float
        Probability that the secret's own bit is 1, below 1.
    q : float
        Probability that any other bit is 1, above 0 and below `p`.

    Raises
    ------
    ValueError
        If not 0 < q < p < 1, `q` or 1 - `p` is not above 2^-53, the least chance that is drawn in
        doubles, or there are fewer than two secrets.

    References
    ----------
    .. [oue] Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation",
       USENIX Security 2017, section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = UnaryEncoding(4, p=0.6, q=0.2)
    >>> round(mechanism.epsilon, 4)  # ln 6
    1.7918
    >>> mechanism.randomize([0, 0, 3], np.random.default_rng(1)).shape
    (3, 4)
    """

    alphabet: Alphabet
    p: float
    q: float
    bits_are_independent = True

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Alphabet | int, p: float, q: float) -> None: ...

    @override
    def _check_chances(self) -> None:
        p, q = (arguments.fraction(name, getattr(self, name), "()") for name in ("p", "q"))
        if not q < p:
            raise ValueError(
                f"p must be larger than q, got p={p:g} and q={q:g}: the secret's own bit is the likelier one"
            )
        self._keep(p=p, q=q)

    @property
    @override
    def p_one(self) -> float:
        return self.p

    @property
    @override
    def p_zero(self) -> float:
        return self.q

    @property
    @override
    def p_hidden(self) -> float:
        return 1 - self.p

    @property
    @override
    def contrast(self) -> float:
        return self.p - self.q

    def _exactly(self) -> exact.Exact:
        p, q = Fraction(self.p), Fraction(self.q)
        drawn = self._coins(exact.ratio(p), exact.ratio(q))
        return drawn._replace(level=lambda: exact.log_up(p * (1 - q) / ((1 - p) * q)))


@dataclass(frozen=True)
class Rappor(IndependentBits):
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
        If `epsilon` is not a number from 5e-15 to 73.4, where p rounds to 1 in doubles, or there
        are fewer than two secrets.

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
    bits_are_independent = True

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Alphabet | int, epsilon: float) -> None: ...

    @override
    def _lie(self, epsilon: float) -> float:
        return math.exp(-epsilon / 2)

    @property
    @override
    def p_one(self) -> float:
        return float(1 / (1 + np.exp(-self.epsilon / 2)))

    @property
    @override
    def p_zero(self) -> float:
        return float(np.exp(-self.epsilon / 2) / (1 + np.exp(-self.epsilon / 2)))

    @property
    @override
    def p_hidden(self) -> float:
        return self.p_zero

    @property
    @override
    def contrast(self) -> float:
        return float(np.tanh(self.epsilon / 4))

    def _exactly(self) -> exact.Exact:
        half = Fraction(self.epsilon) / 2
        return self._coins(exact.odds(1, -half), exact.odds(1, half))


@dataclass(frozen=True)
class OptimizedUnaryEncoding(IndependentBits):
    """Optimised unary encoding (OUE): one noisy bit for each secret.

    The secret's bit is 1 with probability 1/2, every other with probability 1 / (e^eps + 1). These
    probabilities satisfy epsilon-local differential privacy, tightly. Reports are simulated, see
    `Mechanism`.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets; reports are rows of k bits.
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.7, where the other bits are 0 with a
        probability that rounds to 1 in doubles, or there are fewer than two secrets.

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
    bits_are_independent = True

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Alphabet | int, epsilon: float) -> None: ...

    @override
    def _lie(self, epsilon: float) -> float:
        return math.exp(-epsilon)

    @property
    @override
    def p_one(self) -> float:
        return 0.5

    @property
    @override
    def p_zero(self) -> float:
        return float(np.exp(-self.epsilon) / (1 + np.exp(-self.epsilon)))

    @property
    @override
    def p_hidden(self) -> float:
        return 0.5

    @property
    @override
    def contrast(self) -> float:
        return float(np.tanh(self.epsilon / 2) / 2)

    def _exactly(self) -> exact.Exact:
        return self._coins(exact.ratio(Fraction(1, 2)), exact.odds(1, Fraction(self.epsilon)))


def is_unary(mechanism: Mechanism) -> TypeGuard[IndependentBits]:
    """Whether its class itself says that its bits are independent: a class that inherits from it may have another law.

    It is asked for proofs.
    """
    return isinstance(mechanism, IndependentBits) and bool(
        vars(type(mechanism)).get("bits_are_independent")
    )


def is_bits(mechanism: Mechanism) -> TypeGuard[IndependentBits | SubsetSelection]:
    """The same with subset selection, whose reports are rows of bits, too."""
    return is_unary(mechanism) or type(mechanism) is SubsetSelection
