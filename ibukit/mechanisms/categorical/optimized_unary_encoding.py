"""Optimised unary encoding (OUE)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ibukit import exact
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.mechanisms.categorical.independent_bits import UNARY_FORMS, IndependentBits
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.privacy import closed_forms


@dataclass(frozen=True)
class OptimizedUnaryEncoding(IndependentBits):
    r"""Optimised unary encoding (OUE): one noisy bit for each secret.

    The secret's bit is 1 with probability 1/2, every other bit with probability
    :math:`\frac{1}{e^\varepsilon+1}`. These probabilities satisfy epsilon-local differential
    privacy, tightly. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are rows of k bits.
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.7 (where the probability that another bit is 0
        rounds to 1 in doubles), or if there are fewer than two secrets.

    References
    ----------
    .. [oue] Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency
       estimation", USENIX Security 2017.

    Examples
    --------
    >>> OptimizedUnaryEncoding(2, epsilon=1.0).matrix().sum(axis=1)
    array([1., 1.])
    """

    alphabet: Alphabet
    epsilon: float
    bits_are_independent = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: AlphabetLike, epsilon: float) -> None: ...

    @override
    def _rare_probability(self, epsilon: float) -> float:
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
        # 1/2 - 1 / (e^eps + 1), without cancellation.
        return float(np.tanh(self.epsilon / 2) / 2)


closed_forms.register(OptimizedUnaryEncoding, UNARY_FORMS)


@exact_sampler(OptimizedUnaryEncoding)
def _optimized_unary_encoding_sampler(mechanism: OptimizedUnaryEncoding) -> exact.ExactSampler:
    return mechanism._coins(
        exact.rational(Fraction(1, 2)), exact.odds(1, Fraction(mechanism.epsilon))
    )
