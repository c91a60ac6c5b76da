"""Count mean sketch (CMS)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels import BitChannel
from ibukit.channels.line import split_factor
from ibukit.domain.alphabet import AlphabetLike
from ibukit.mechanisms.epsilon_range import check_epsilon
from ibukit.mechanisms.row_reports import NumberedBits
from ibukit.mechanisms.sketches import _sketch_kernels
from ibukit.mechanisms.sketches.sketch import Sketch


@dataclass(frozen=True)
class CountMeanSketch(Sketch, NumberedBits):
    r"""Count mean sketch (CMS): the bits of a hashed secret's bucket vector.

    Each user draws one of `rows` hash functions :math:`h_{j}`, sets bit :math:`h_{j}(x)` of `width`
    bits, and keeps each bit with probability :math:`\frac{e^{\varepsilon/2}}{1+e^{\varepsilon/2}}`,
    else flips it. So :math:`P(j,b\mid
    x)=p^{\mathrm{width}}\,e^{-(1/2+S(b)/2-b_{h_j(x)})\,\varepsilon}/\mathrm{rows}` where S(b) is
    the number of ones and p the probability that a bit is kept. These probabilities satisfy
    epsilon-local differential privacy, tightly. Reports are simulated, see `Mechanism`.

    The hash functions are public and known: given them, the likelihood is exact, whichever secrets
    collide. The published estimator allows for collisions only on average. Reports with another
    program's hash functions look the same and are not refused, but the estimate is then
    meaningless, which `Estimate.fit_test` need not notice. For such reports, tell `UnaryEncoding`
    which secrets each of them supports, as the page *Protocols of other libraries* of the book
    shows.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are the row j and the bits, shape :math:`(n, 1 + \mathrm{width})`.
        Secrets are hashed by their places in the alphabet.
    epsilon : float
        Nats, for all pairs of secrets.
    rows : int
        Number of hash functions.
    width : int
        Number of buckets of each hash function, at least 2.
    seed : int
        Which functions of the family (version 1, uint64 arithmetic, the same on every machine) are
        taken.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 73.4 (where the probability that a bit is kept
        rounds to 1 in doubles), if there are fewer than two secrets, if `rows`, `width` or `seed`
        is not a whole number or is too small, or if all functions send all secrets to one bucket.

    Notes
    -----
    `inv` gives the published estimate. With :math:`m = \mathrm{width}`, it is m / (m - 1) times the
    mean of c b / 2 + 1/2 - 1/m over the reports, where b = +1 or -1 is the bit of the secret's
    bucket and :math:`c = (e^{\varepsilon / 2} + 1) / (e^{\varepsilon / 2} - 1)`. It is unbiased on
    average over random hash functions. If each report had a function of its own, n times its
    variance given the secrets would be
    :math:`\bigl(\frac m{m-1}\bigr)^2\frac{c^2-1}4+\frac{1-\theta_x}{m-1}`. For given functions it
    has a bias that no number of reports removes:
    :math:`\frac m{m-1}\sum_{y\ne x}\theta_y\,(c_{xy}-\frac1m)` where :math:`c_{xy}` is the share of
    the rows in which x and y collide. Over random hash functions, the root mean square of this bias
    is at most :math:`\lVert\theta\rVert/\sqrt{(m-1)\,\mathrm{rows}}`. The maximum likelihood
    estimate has no such bias.

    References
    ----------
    .. [apple2017] Differential Privacy Team, Apple, "Learning with privacy at scale", Apple Machine
       Learning Journal 1(8), 2017.

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

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self, alphabet: AlphabetLike, epsilon: float, rows: int, width: int, seed: int = 0
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        super().__post_init__()
        self._keep(epsilon=check_epsilon(self.epsilon, lambda eps: math.exp(-eps / 2)))

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
        # Given secret x, the probability of a report is that for a filter without a set bit, times
        # e^(eps/2) if the bit of x's bucket is 1, and e^(-eps/2) if it is 0.
        scale, _ = split_factor(self._log_no_secret(reports))
        bits, half = self._bits_of_secrets(reports), self.epsilon / 2
        return BitChannel(self.k, bits, math.exp(half), math.exp(-half), scale)

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Logarithm of what `channel` leaves out where a probability would underflow.

        This happens with a width in the hundreds.
        """
        return split_factor(self._log_no_secret(reports))[1]

    def _bits_of_secrets(self, reports: NDArray[Any]) -> NDArray[np.uint8]:
        """Bit of each secret's bucket in each report, packed, shape (s, ceil(k / 8))."""
        rows, packed = self._split(reports)
        return _sketch_kernels.bits_of_secrets(rows, packed, self.k, self.width, self.seed)

    def _log_no_secret(self, reports: NDArray[Any]) -> Floats:
        """Log-probability of each report if no bit was set before the noise, shape (s,)."""
        ones = np.bitwise_count(self._split(reports)[1]).sum(axis=1, dtype=np.int64)
        return self.width * math.log(self._kept) - ones * self.epsilon / 2 - math.log(self.rows)

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        bits = BitChannel(self.k, self._bits_of_secrets(reports), 1.0, -1.0, np.ones(len(reports)))
        # The mean of the bits' signs, debiased: c undoes the noise; m / (m - 1) and -1/m together
        # undo the collisions of a random hash function.
        c, m = 1 / math.tanh(self.epsilon / 4), self.width
        return (
            m / (m - 1) * (c / 2 * bits.adjoint(frequencies) + (1 / 2 - 1 / m) * frequencies.sum())
        )
