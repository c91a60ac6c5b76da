"""Count mean sketches: the secret is hashed to a bucket by one of many functions, and that is reported noisily."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import BitChannel, HadamardChannel
from ibukit.channels.line import split_factor
from ibukit.domain.alphabet import Alphabet
from ibukit.mechanisms.epsilon_range import level
from ibukit.mechanisms.row_reports import NumberedBits, RowReports, SignedIndices
from ibukit.mechanisms.sketches import _sketch_kernels

# so that buckets and rows fit into 32 bits
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Sketch(RowReports):
    """What the two sketches share: the fields, and the hash functions that they name."""

    alphabet: Alphabet
    epsilon: float
    rows: int
    width: int
    seed: int = 0

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(
            self, alphabet: Alphabet | int, epsilon: float, rows: int, width: int, seed: int = 0
        ) -> None: ...

    def __post_init__(self) -> None:
        """Whole numbers in range, and hash functions that tell some secrets apart."""
        super().__post_init__()
        arguments.whole("number of secrets", self.k, 2)
        for name, least in (("rows", 1), ("width", 2), ("seed", 0)):
            value = arguments.whole(name, getattr(self, name), least)
            if value > LARGEST:
                raise ValueError(f"{name} must be at most 2^31 - 1, got {value}")
            self._keep(**{name: value})
        if not any(
            (own != own[0]).any()
            for row in range(self.rows)
            for own in self._buckets_of(np.array([row]))
        ):
            raise ValueError(
                f"rows and width must tell secrets apart, got {self.rows} and {self.width}: all {self.k} secrets share "
                "a bucket in each row; take more of either, or another seed"
            )

    @cached_property
    def buckets(self) -> NDArray[np.int32]:
        """The buckets h_j(x) of all secrets under all functions, shape (rows, k)."""
        return arguments.frozen(self._buckets_of(np.arange(self.rows)))

    def _buckets_of(self, rows: Ints) -> NDArray[np.int32]:
        return _sketch_kernels.buckets(rows, self.k, self.width, self.seed)

    def _own_buckets(self, rows: Ints, secrets: Ints) -> NDArray[np.int32]:
        """The bucket of each user's secret under the function that the user drew."""
        return _sketch_kernels.buckets_of(rows, secrets, self.width, self.seed)


@dataclass(frozen=True)
class CountMeanSketch(Sketch, NumberedBits):
    """Count mean sketch (CMS): the bits of a hashed secret's bucket vector.

    Each user draws one of `rows` hash functions h_j, sets bit h_j(x) of `width` bits, and keeps
    each bit with probability e^(eps/2) / (1 + e^(eps/2)), else flips it. P(j, b given x) = p^width
    exp(-(1/2 + S(b)/2 - b_(h_j(x))) eps) / rows with S(b) the number of ones and p the probability
    that a bit is kept. These probabilities satisfy epsilon-local differential privacy, tightly.
    Reports are simulated, see `Mechanism`.

    The hash functions are public and known: given them, the likelihood is exact, whatever secrets
    collide. The published estimator knows them only on average.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets; reports are the row j and the bits, shape (n, 1 + width). Secrets are hashed
        by their places in the alphabet.
    epsilon : float
        Nats, for all pairs of secrets.
    rows : int
        Number of hash functions.
    width : int
        Number of buckets of each, at least 2.
    seed : int
        Which functions of the family (version 1, uint64 arithmetic, the same on every machine) are
        taken.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 73.4, where a bit is kept with a probability that
        rounds to 1 in doubles, there are fewer than two secrets, `rows`, `width` or `seed` is no
        whole number or too small, or all functions send all secrets to one bucket.

    Notes
    -----
    `inv` gives the published estimate. With m = width, it is m / (m - 1) times the mean of c b / 2 + 1/2 - 1/m over the
    reports, where b = +1 or -1 is the bit of the secret's bucket and c = (e^(eps/2) + 1) / (e^(eps/2) - 1). It is
    unbiased on average over random hash functions. If each report had a function of its own, n times its variance given
    the secrets would be (m / (m - 1))^2 (c^2 - 1) / 4 + (1 - theta_x) / (m - 1). For given functions it has a bias that
    no number of reports removes: m / (m - 1) sum_(y != x) theta_y (share of the rows where x and y collide - 1/m), of
    which the root mean square over hash functions is at most ||theta|| / sqrt((m - 1) rows). The maximum likelihood
    estimate has none.

    References
    ----------
    .. [apple2017] Differential Privacy Team, Apple, "Learning with privacy at scale", Apple Machine Learning Journal
       1(8), 2017.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = CountMeanSketch(100, epsilon=2.0, rows=8, width=4)
    >>> mechanism.buckets[:2, :6]
    array([[2, 2, 1, 2, 3, 0],
           [1, 0, 3, 0, 1, 2]], dtype=int32)
    >>> mechanism.randomize([7, 7], np.random.default_rng(1))
    array([[3, 0, 1, 0, 1],
           [4, 1, 0, 0, 0]], dtype=uint8)
    """

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        super().__post_init__()
        self._keep(epsilon=level(self.epsilon, lambda eps: math.exp(-eps / 2)))

    @property
    @override
    def _numbers(self) -> tuple[str, int]:
        return "row", self.rows

    @property
    @override
    def _bits(self) -> int:
        return self.width

    @property
    def _kept(self) -> float:
        """Probability that a bit is kept."""
        return 1 / (1 + math.exp(-self.epsilon / 2))

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> NDArray[Any]:
        n = len(secrets)
        rows = rng.integers(0, self.rows, n)
        flipped = rng.random((n, self.width)) < self._kept * math.exp(-self.epsilon / 2)
        flipped[np.arange(n), self._own_buckets(rows, secrets)] ^= True
        return self._join(rows, flipped)

    @override
    def channel(self, reports: NDArray[Any]) -> BitChannel:
        scale, _ = split_factor(self._log_all_zero(reports))
        bits, half = self._bits_of_secrets(reports), self.epsilon / 2
        return BitChannel(self.k, bits, math.exp(half), math.exp(-half), scale)

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """What `channel` leaves out where a probability would underflow.

        This happens with a width in the hundreds.
        """
        return split_factor(self._log_all_zero(reports))[1]

    def _bits_of_secrets(self, reports: NDArray[Any]) -> NDArray[np.uint8]:
        rows, packed = self._split(reports)
        return _sketch_kernels.bits_of_secrets(rows, packed, self.k, self.width, self.seed)

    def _log_all_zero(self, reports: NDArray[Any]) -> Floats:
        """Log-probability of each report if no bit were set before the noise."""
        ones = np.bitwise_count(self._split(reports)[1]).sum(axis=1, dtype=np.int64)
        return np.asarray(
            self.width * math.log(self._kept) - ones * self.epsilon / 2 - math.log(self.rows)
        )

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        bits = BitChannel(self.k, self._bits_of_secrets(reports), 1.0, -1.0, np.ones(len(reports)))
        c, m = 1 / math.tanh(self.epsilon / 4), self.width
        return np.asarray(
            m / (m - 1) * (c / 2 * bits.adjoint(frequencies) + (1 / 2 - 1 / m) * frequencies.sum())
        )


@dataclass(frozen=True)
class HadamardCountMeanSketch(Sketch, SignedIndices):
    """Hadamard count mean sketch (HCMS): one noisy sign of a hashed secret.

    Each user draws one of `rows` hash functions h_j and a column l of the Hadamard matrix of
    `width` rows, and reports the sign H_(h_j(x), l), flipped with probability 1 / (e^eps + 1). P(j,
    l, sign given x) = (e^eps if the sign is that of x, else 1) / (rows width (e^eps + 1)). These
    probabilities satisfy epsilon-local differential privacy, tightly. Reports are simulated, see
    `Mechanism`. The hash functions are those of `CountMeanSketch`, public and known, so that the
    likelihood is exact.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets; reports are (row, index, sign), with signs +1 or -1, shape (n, 3). Secrets
        are hashed by their places in the alphabet.
    epsilon : float
        Nats, for all pairs of secrets.
    rows : int
        Number of hash functions.
    width : int
        Number of buckets of each, a power of two from 2 on.
    seed : int
        Which functions of the family (version 1, uint64 arithmetic, the same on every machine) are
        taken.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.7, where a sign is true with a probability
        that rounds to 1 in doubles, there are fewer than two secrets, `rows`, `width` or `seed` is
        no whole number or too small, `width` is no power of two, or all functions send all secrets
        to one bucket.

    Notes
    -----
    `inv` gives the published estimate: m / (m - 1) times the mean of c sign H_(h_j(x), l) - 1/m, with m = width and c =
    (e^eps + 1) / (e^eps - 1). It is unbiased on average over random hash functions; a report of x itself
    brings the variance (m / (m - 1))^2 (c^2 - 1), any other (m / (m - 1))^2 (c^2 - 1/m^2). For given functions it has
    the bias of `CountMeanSketch`; the maximum likelihood estimate has none.

    References
    ----------
    .. [apple2017h] Differential Privacy Team, Apple, "Learning with privacy at scale", Apple Machine Learning Journal
       1(8), 2017.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = HadamardCountMeanSketch(100, epsilon=2.0, rows=8, width=4)
    >>> mechanism.randomize([7, 7], np.random.default_rng(1))
    array([[ 3,  3,  1],
           [ 4,  3, -1]])
    """

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        super().__post_init__()
        if self.width & (self.width - 1):
            raise ValueError(
                f"width must be a power of two for a Hadamard sketch, got {self.width}"
            )
        self._keep(epsilon=level(self.epsilon, lambda eps: math.exp(-eps)))

    @property
    @override
    def _indices(self) -> tuple[tuple[str, int], ...]:
        return ("row", self.rows), ("index", self.width)

    @property
    @override
    def _signs(self) -> int:
        return 1

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        n = len(secrets)
        rows, indices = rng.integers(0, self.rows, n), rng.integers(0, self.width, n)
        own = self._own_buckets(rows, secrets)
        minus = (np.bitwise_count(own & indices) % 2 == 1) ^ (
            rng.random(n) >= 1 / (1 + math.exp(-self.epsilon))
        )
        return np.column_stack([rows, indices, 1 - 2 * minus.astype(np.int64)])

    @override
    def channel(self, reports: NDArray[Any]) -> HadamardChannel:
        columns, s = self._columns(reports), len(reports)
        rows, group = np.unique(columns[:, 0], return_inverse=True)
        places = self._buckets_of(rows)
        high = 1 / (self.rows * self.width * (1 + math.exp(-self.epsilon)))
        index, minus, low = columns[:, 1].copy(), columns[:, 2] == 1, high * math.exp(-self.epsilon)
        return HadamardChannel(
            places, self.width, self.width, group, index, minus, low, high, np.ones(s)
        )

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        signs = replace(self.channel(reports), low=-1.0, high=1.0)
        c, m = 1 / math.tanh(self.epsilon / 2), self.width
        return np.asarray(m / (m - 1) * (c * signs.adjoint(frequencies) - frequencies.sum() / m))
