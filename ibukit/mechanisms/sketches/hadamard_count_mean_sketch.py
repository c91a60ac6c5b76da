"""Hadamard count mean sketch (HCMS)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import HadamardChannel
from ibukit.domain.alphabet import AlphabetLike
from ibukit.mechanisms.epsilon_range import check_epsilon
from ibukit.mechanisms.row_reports import SignedIndices
from ibukit.mechanisms.sketches.sketch import Sketch


@dataclass(frozen=True)
class HadamardCountMeanSketch(Sketch, SignedIndices):
    r"""Hadamard count mean sketch (HCMS): one noisy sign of a hashed secret.

    Each user draws one of `rows` hash functions :math:`h_{j}` and a column l of the Hadamard matrix
    of `width` rows, and reports the sign :math:`H_{h_{j}(x), l}`, flipped with probability
    :math:`\frac{1}{e^\varepsilon+1}`. :math:`P(j,l,\mathrm{sign}\mid x)` is :math:`e^\varepsilon`
    if the sign is that of x, else 1, divided by
    :math:`\mathrm{rows}\cdot\mathrm{width}\cdot(e^\varepsilon+1)`. These probabilities satisfy
    epsilon-local differential privacy, tightly. Reports are simulated, see `Mechanism`. The hash
    functions are those of `CountMeanSketch`, public and known, so that the likelihood is exact.
    Reports with another program's hash functions are not refused, and give a meaningless estimate:
    what to do with them is said there.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are (row, index, sign), with signs +1 or -1, shape (n, 3). Secrets
        are hashed by their places in the alphabet.
    epsilon : float
        Nats, for all pairs of secrets.
    rows : int
        Number of hash functions.
    width : int
        Number of buckets of each hash function: a power of two, at least 2.
    seed : int
        Which functions of the family (version 1, uint64 arithmetic, the same on every machine) are
        taken.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.7 (where the probability that a sign is true
        rounds to 1 in doubles), if there are fewer than two secrets, if `rows`, `width` or `seed`
        is not a whole number or is too small, if `width` is not a power of two, or if all functions
        send all secrets to one bucket.

    Notes
    -----
    `inv` gives the published estimate: m / (m - 1) times the mean of c sign
    :math:`H_{h_{j}(x), l} - 1 / m`, with :math:`m = \mathrm{width}` and
    :math:`c = (e^{\varepsilon} + 1) / (e^{\varepsilon} - 1)`. It is unbiased on average over random
    hash functions; a report of x itself contributes the variance
    :math:`(m / (m - 1))^{2}\,(c^{2} - 1)`, any other report
    :math:`(m / (m - 1))^{2}\,(c^{2} - 1 / m^{2})`. For given functions it has the same bias as in
    `CountMeanSketch`; the maximum likelihood estimate has no such bias.

    References
    ----------
    .. [apple2017h] Differential Privacy Team, Apple, "Learning with privacy at scale", Apple
       Machine Learning Journal 1(8), 2017.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = HadamardCountMeanSketch(100, epsilon=2.0, rows=8, width=4)
    >>> mechanism.randomize([7, 7], np.random.default_rng(1))
    array([[ 3,  3,  1],
           [ 4,  3, -1]])
    """

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self, alphabet: AlphabetLike, epsilon: float, rows: int, width: int, seed: int = 0
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        super().__post_init__()
        if self.width & (self.width - 1):
            raise ValueError(
                f"width must be a power of two for a Hadamard sketch, got {self.width}"
            )
        self._keep(epsilon=check_epsilon(self.epsilon, lambda eps: math.exp(-eps)))

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
        # The sign H_hl is -1 if h and l share an odd number of bits.
        own = self._own_buckets(rows, secrets)
        minus = (np.bitwise_count(own & indices) % 2 == 1) ^ (
            rng.random(n) >= 1 / (1 + math.exp(-self.epsilon))
        )
        return np.column_stack([rows, indices, 1 - 2 * minus.astype(np.int64)])

    @override
    def channel(self, reports: NDArray[Any]) -> HadamardChannel:
        # Reports of one row share a hash function: their sums are one Walsh-Hadamard transform.
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
        # The mean of sign times H, debiased as for `CountMeanSketch`.
        c, m = 1 / math.tanh(self.epsilon / 2), self.width
        return m / (m - 1) * (c * signs.adjoint(frequencies) - frequencies.sum() / m)
