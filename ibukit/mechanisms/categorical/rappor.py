"""Basic one-time RAPPOR: the symmetric unary encoding."""

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
class Rappor(IndependentBits):
    r"""Basic one-time RAPPOR: one noisy bit for each secret.

    Each of the k bits of the secret's one-hot row is kept with probability
    :math:`p=\frac{e^{\varepsilon/2}}{1+e^{\varepsilon/2}}`, else flipped.

    .. math:: P(b\mid x)=p^k\,e^{-(1/2+S(b)/2-b_x)\,\varepsilon}

    where S(b) is the number of ones. These probabilities satisfy epsilon-local differential
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
        If `epsilon` is not a number from 5e-15 to 73.4 (where p rounds to 1 in doubles), or if
        there are fewer than two secrets.

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

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: AlphabetLike, epsilon: float) -> None: ...

    @override
    def _rare_probability(self, epsilon: float) -> float:
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
        # (e^(eps/2) - 1) / (e^(eps/2) + 1), without cancellation.
        return float(np.tanh(self.epsilon / 4))


closed_forms.register(Rappor, UNARY_FORMS)


@exact_sampler(Rappor)
def _rappor_sampler(mechanism: Rappor) -> exact.ExactSampler:
    # A bit is 1 with the odds e^(eps/2) if it is the secret's, and e^(-eps/2) if not.
    half = Fraction(mechanism.epsilon) / 2
    return mechanism._coins(exact.odds(1, -half), exact.odds(1, half))
