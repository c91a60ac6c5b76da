"""Hadamard response: reports for which the secret's row has the sign + are more probable."""

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
from ibukit.channels import HadamardChannel
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.domain.labels import CountsLike
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.epsilon_range import check_epsilon, level_of_equal_pairs
from ibukit.privacy import closed_forms
from ibukit.tally.tally import Tally


@dataclass(frozen=True)
class HadamardResponse(FiniteMechanism):
    r"""Hadamard response: reports are columns; those with the sign + are more probable.

    There are B blocks of :math:`b = 2^{j}` columns each, so in total K = B b reports. Each secret x
    has a block and one of the rows 1..b-1 of Sylvester's Hadamard matrix, whose entry
    :math:`H_{rc}` is -1 to the power of the number of bits that r and c share. The set
    :math:`S_{x}` holds the b/2 columns of the secret's block where its row is +.

    .. math::

        P(z\mid x)=\frac{e^\varepsilon\text{ if }z\in S_x,\text{ else }1}{\frac
        b2\,(e^\varepsilon+2B-1)}.

    These probabilities satisfy epsilon-local differential privacy, tightly. Reports are simulated,
    see `Mechanism`.

    With :math:`c=2B-1+e^\varepsilon`, the estimate of each secret is unbiased, and n times its
    variance is
    :math:`\frac{c\,\bigl(2+(e^\varepsilon-1)\,\theta_{\mathrm{block}}\bigr)}{(e^\varepsilon-1)^2}-\theta_x^2`,
    where :math:`\theta_{\mathrm{block}}` is the probability of the secret's block. Hence it is good
    to have few secrets in a block, and few blocks; the blocks should have equally many secrets.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are codes 0..K-1: b times the number of the block, plus the column.
    epsilon : float
        Nats, for all pairs of secrets.
    blocks : int, optional
        B, from 1 to k. By default the power of two that minimises
        :math:`4\,B + (e^{\varepsilon} - 1)^{2} / B`. Up to factors and small terms, this is n times
        the sum of the variances if all blocks have equally many secrets. Secret x goes to block x
        mod B.
    published : bool
        Whether to take the paper's B, which is the power of two that is at least
        :math:`\min(e^\varepsilon,2k)/2` but less than twice that, and to fill one block after the
        other.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to about :math:`36.7+\log(2B-1)` (where the
        probability that the sign is + rounds to 1 in doubles), if there are fewer than two secrets,
        if `blocks` is not a whole number from 1 to k, or if `blocks` is given together with
        `published` and is not the paper's.

    Notes
    -----
    `inv` gives the published estimate: the fast Walsh-Hadamard transform of the frequencies, times
    :math:`c / (e^{\varepsilon} - 1)`. This estimate need not sum to 1.

    References
    ----------
    .. [acharya2019] Acharya, Sun and Zhang, "Hadamard response: estimating distributions privately,
       efficiently, and with little communication", AISTATS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = HadamardResponse(5, epsilon=2.0)
    >>> mechanism.blocks, mechanism.order, mechanism.m
    (4, 4, 16)
    >>> mechanism.matrix()[0].round(3)[:6]
    array([0.257, 0.035, 0.257, 0.035, 0.035, 0.035])
    >>> HadamardResponse(5, epsilon=2.0, published=True).randomize([0, 4], np.random.default_rng(1))
    array([0, 3])
    """

    alphabet: Alphabet
    epsilon: float
    blocks: int = None  # type: ignore[assignment]  # until it is made
    published: bool = False

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self,
            alphabet: AlphabetLike,
            epsilon: float,
            blocks: int | None = None,
            published: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields; choose the number of blocks if none is given."""
        super().__post_init__()
        arguments.whole("number of secrets", self.k, 2)
        blocks = self.blocks
        self._keep(published=arguments.flag("published", self.published))
        self._keep(
            epsilon=check_epsilon(
                self.epsilon, lambda eps: (2 * self._blocks_at(eps) - 1) * math.exp(-eps)
            )
        )
        self._keep(blocks=self._blocks_at(self.epsilon))
        if self.published and blocks not in (None, self.blocks):
            raise ValueError(
                f"blocks must be left out where published is True, got {blocks}: the paper chooses "
                "them"
            )

    def _blocks_at(self, epsilon: float) -> int:
        if self.published:
            return published_blocks(self.k, epsilon)
        if self.blocks is None:
            return best_blocks(self.k, epsilon)  # type: ignore[unreachable]
        if arguments.whole("blocks", self.blocks, 1) > self.k:
            raise ValueError(f"blocks must be at most the {self.k} secrets, got {self.blocks}")
        return int(self.blocks)

    @cached_property
    def order(self) -> int:
        """Number b of columns of a block, a power of two above the number of its secrets."""
        return 1 << (-(-self.k // self.blocks)).bit_length()

    @property
    @override
    def m(self) -> int:
        return self.blocks * self.order

    @cached_property
    def _rows(self) -> Ints:
        """Row of each secret, counted over all blocks: block times b, plus the row in the block.

        Row 0 of a block is + everywhere, so no secret has it.
        """
        secrets = np.arange(self.k)
        if self.published:
            return secrets // (self.order - 1) * self.order + secrets % (self.order - 1) + 1
        return secrets % self.blocks * self.order + secrets // self.blocks + 1

    @property
    def _false_odds(self) -> float:
        """(2B - 1) e^-eps, the odds that a report is not in the secret's set."""
        return (2 * self.blocks - 1) * math.exp(-self.epsilon)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        n, b = len(secrets), self.order
        rows, uniform, column = self._rows[secrets], rng.random(n), rng.integers(0, b, n)
        row, block = rows & (b - 1), rows // b
        # One uniform number decides between a column of the secret's set, a column of its block
        # with the other sign, and (`away`) any column of another block. The column is drawn
        # uniformly. If its sign is wrong, flipping its bit at the place of the row's lowest 1 gives
        # a uniform column of the other sign.
        wants_minus = uniform >= 1 / (1 + self._false_odds)
        wrong = (np.bitwise_count(row & column) % 2 == 1) != wants_minus
        column = np.where(wrong, column ^ (row & -row), column)
        away = uniform >= (1 + math.exp(-self.epsilon)) / (1 + self._false_odds)
        if self.blocks > 1:
            users = np.flatnonzero(away)
            block[users] = (block[users] + rng.integers(1, self.blocks, len(users))) % self.blocks
            column[users] = rng.integers(0, b, len(users))
        return block * b + column

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        return Mechanism.simulate(self, secret_counts, rng)

    @override
    def channel(self, reports: NDArray[Any]) -> HadamardChannel:
        s, high = len(reports), 1 / (self.order // 2 * (1 + self._false_odds))
        rows = self._rows.astype(np.int32)[None]
        group, minus = np.zeros(s, dtype=np.int64), np.zeros(s, dtype=bool)
        low = high * math.exp(-self.epsilon)
        return HadamardChannel(
            rows, self.m, self.order, group, reports, minus, low, high, np.ones(s)
        )

    @override
    def make_matrix(self) -> Floats:
        return self._full_channel.rows(np.arange(self.k))

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        # Twice the frequency of the set S_x, less the frequency of the block, is the mean of x's
        # signs in the block. Rows of a Hadamard matrix are orthogonal, so the expectation of this
        # mean is 0 under every other secret, and (e^eps - 1) / c under x itself.
        signs = replace(self.channel(reports), low=0.0, high=1.0)
        in_block = np.bincount(reports // self.order, frequencies, self.blocks)[
            self._rows // self.order
        ]
        scale = (1 + self._false_odds) / -math.expm1(-self.epsilon)
        return scale * (2 * signs.adjoint(frequencies) - in_block)


def _information(mechanism: HadamardResponse, prior: Floats) -> float:
    channel = mechanism.channel(np.arange(mechanism.m))
    share = replace(channel, low=0.0, high=1.0).forward(prior)
    return closed_forms.two_valued_information(channel.high, channel.low, share)


# Each of two sets has reports that the other lacks.
closed_forms.register(
    HadamardResponse, closed_forms.ClosedForms(level_of_equal_pairs, _information)
)


def best_blocks(k: int, epsilon: float) -> int:
    r"""The smallest power of two B <= k with the least :math:`4B+(e^\varepsilon-1)^2/B`."""
    # Both terms are multiplied by e^(-2 eps), so that a large epsilon does not overflow.
    powers = [1 << j for j in range(k.bit_length())]
    return min(powers, key=lambda b: 4 * b * math.exp(-2 * epsilon) + math.expm1(-epsilon) ** 2 / b)


def published_blocks(k: int, epsilon: float) -> int:
    r"""The paper's number of blocks, :math:`2^{\lceil\log_2\min(e^\varepsilon,2k)\rceil-1}`."""
    doubled = min(epsilon / math.log(2), math.log2(2 * k))
    return 1 << (max(math.ceil(doubled), 1) - 1)
