"""The Hadamard mechanism: randomized response on signs of the secret's row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import BitChannel, Channel, HadamardChannel
from ibukit.channels.base import slices_of
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.errors import TooLarge
from ibukit.mechanisms.epsilon_range import check_epsilon
from ibukit.mechanisms.row_reports import MAX_CODES, SignedIndices


@dataclass(frozen=True)
class HadamardMechanism(SignedIndices):
    r"""Hadamard mechanism: t random columns, and the signs of the secret's row in them.

    Columns :math:`j_{1} \ldots j_{t}` are drawn uniformly with replacement from 0..K-1, where K =
    :math:`2^{\lceil\log_2 k\rceil}`. The secret's signs in these columns, the entries
    :math:`H_{jx}` of Sylvester's Hadamard matrix, go through :math:`2^{t}`-ary randomized response.

    .. math::

        P(j,\text{signs}\mid x)=K^{-t}\,\frac{e^\varepsilon\text{ if all signs are
        }H_{jx},\text{ else }1}{e^\varepsilon+2^t-1}.

    These probabilities satisfy epsilon-local differential privacy, tightly. Reports are simulated,
    see `Mechanism`. With t = 1 this is the 1-bit Hadamard response: the law of `HadamardResponse`
    with one block of 2K columns, restricted to the secrets in odd rows.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are t indices, then t signs (+1 or -1): shape (n, 2t).
    epsilon : float
        Nats, for all pairs of secrets.
    bits : int
        Number t of signs, at least 1.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to about :math:`36.7 + \log (2^{t} - 1)` (where the
        probability that the signs are the true ones rounds to 1 in doubles), if there are fewer
        than two secrets, or if `bits` is not a whole number above 0.
    TooLarge
        If the number of reports, (2K)^t, is above :math:`2^{62}`.

    Notes
    -----
    `inv` gives the published estimate: the mean of the signs times :math:`H_{jx}`, divided by
    2p - 1, where :math:`p = (e^{\varepsilon} + 2^{t - 1} - 1) / (e^{\varepsilon} + 2^{t} - 1)` is
    the probability that a sign is right. With t = 1, n times its variance is
    :math:`c^{2} - \theta_{x}^{2}`, where :math:`c = (e^{\varepsilon} + 1) / (e^{\varepsilon} - 1)`.

    References
    ----------
    .. [cormode2021] Cormode, Maddock and Maple, "Frequency estimation under local differential
       privacy", PVLDB 14(11), 2021.
    .. [acharya2019comm] Acharya and Sun, "Communication complexity in locally private distribution
       estimation and heavy hitters", ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = HadamardMechanism(5, epsilon=1.0)
    >>> mechanism.order, mechanism.m
    (8, 16)
    >>> mechanism.randomize([0, 0, 4], np.random.default_rng(1))
    array([[ 3,  1],
           [ 4, -1],
           [ 6, -1]])
    """

    alphabet: Alphabet
    epsilon: float
    bits: int = 1

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: AlphabetLike, epsilon: float, bits: int = 1) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        super().__post_init__()
        arguments.whole("number of secrets", self.k, 2)
        t = arguments.whole("bits", self.bits, 1)
        if t > math.log2(MAX_CODES) / math.log2(2 * self.order):
            shown = arguments.shown(t)
            raise TooLarge(
                f"bits must leave at most 2^62 reports, got {shown}: with {self.k} secrets there "
                f"are (2 * {self.order})^{shown}"
            )
        self._keep(
            bits=t, epsilon=check_epsilon(self.epsilon, lambda eps: (2**t - 1) * math.exp(-eps))
        )

    @property
    def order(self) -> int:
        """Number K of columns, the smallest power of two that is at least k."""
        return 1 << (self.k - 1).bit_length()

    @property
    @override
    def _indices(self) -> tuple[tuple[str, int], ...]:
        return (("index", self.order),) * self.bits

    @property
    @override
    def _signs(self) -> int:
        return self.bits

    @property
    def _false_odds(self) -> float:
        """(2^t - 1) e^-eps, the odds that the signs are not all true."""
        return ((1 << self.bits) - 1) * math.exp(-self.epsilon)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        n, t = len(secrets), self.bits
        indices = rng.integers(0, self.order, (n, t))
        # H_jx is -1 if j and x share an odd number of bits.
        minus = np.bitwise_count(indices & secrets[:, None]) % 2
        lies = np.flatnonzero(rng.random(n) >= 1 / (1 + self._false_odds))
        # A lie is one of the 2^t - 1 other patterns of signs: at least one sign is flipped.
        flipped = rng.integers(1, 2**t, len(lies))[:, None] >> np.arange(t) & 1
        minus[lies] ^= flipped.astype(minus.dtype)
        return np.hstack([indices, 1 - 2 * minus.astype(np.int64)])

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        columns = self._columns(reports)
        indices, minus = columns[:, : self.bits], columns[:, self.bits :] == 1
        high = float(self.order) ** -self.bits / (1 + self._false_odds)
        low = high * math.exp(-self.epsilon)
        if self.bits > 1:
            # Each report has a row of bits: the bit of secret x is 1 if x has all the signs that
            # were reported.
            packed = agreeing_signs(indices, minus, self.k)
            return BitChannel(
                self.k, packed, 1.0, math.exp(-self.epsilon), np.full(len(reports), high)
            )
        # With one sign a report the sums over reports are a fast Walsh-Hadamard transform.
        rows = np.arange(self.k, dtype=np.int32)[None]
        group, scale = np.zeros(len(reports), dtype=np.int64), np.ones(len(reports))
        column = np.ascontiguousarray(indices[:, 0])
        return HadamardChannel(
            rows, self.order, self.order, group, column, minus[:, 0].copy(), low, high, scale
        )

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        # The mean over the report's signs of sign times H_jx, each the transform of a mechanism
        # with one sign. It is divided by 2 p - 1 = (1 - e^-eps) / (1 + (2^t - 1) e^-eps).
        one = replace(self, bits=1)
        columns, total = self._columns(reports), np.zeros(self.k)
        for i in range(self.bits):
            channel = one.channel(2 * columns[:, i] + columns[:, self.bits + i])
            signs = replace(channel, low=-1.0, high=1.0)  # type: ignore[type-var]
            total += signs.adjoint(frequencies)
        return total / self.bits * (1 + self._false_odds) / -math.expm1(-self.epsilon)


def agreeing_signs(indices: Ints, minus: NDArray[np.bool_], k: int) -> NDArray[np.uint8]:
    """Packed bits, shape (s, ceil(k / 8)): 1 if the secret has all the signs of the report.

    Both arrays have shape (s, t).
    """
    packed = np.empty((len(indices), -(-k // 8)), dtype=np.uint8)
    # Small integers make the bit counts faster.
    dtype = np.min_scalar_type(max(k - 1, int(indices.max(initial=0))))
    indices, secrets = indices.astype(dtype), np.arange(k, dtype=dtype)
    for block in slices_of(len(indices)):
        agree = np.ones((len(indices[block]), k), dtype=bool)
        for column, sign in zip(indices[block].T, minus[block].T, strict=True):
            agree &= (np.bitwise_count(column[:, None] & secrets) & 1) == sign[:, None]
        packed[block] = np.packbits(agree, axis=1)
    return packed
