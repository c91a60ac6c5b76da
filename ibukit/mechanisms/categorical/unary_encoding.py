"""Unary encoding with any two probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.mechanisms.categorical.independent_bits import UNARY_FORMS, BitsOfGivenProbabilities
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.privacy import closed_forms


@dataclass(frozen=True)
class UnaryEncoding(BitsOfGivenProbabilities):
    r"""Unary encoding with any two probabilities: one noisy bit for each secret.

    The secret's own bit is 1 with probability p, every other bit with probability q, all
    independently. These probabilities satisfy epsilon-local differential privacy, tightly, with
    :math:`\varepsilon = \ln p\,(1 - q) / ((1 - p)\,q)`. `Rappor` is the case p = 1 - q,
    `OptimizedUnaryEncoding` the case p = 1/2. Local hashing with g buckets has this law with
    q = 1/g if all hash functions are equally likely. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are rows of k bits.
    p : float
        Probability that the secret's own bit is 1, below 1.
    q : float
        Probability that any other bit is 1, above 0 and below `p`.

    Raises
    ------
    ValueError
        If 0 < q < p < 1 does not hold, if `q` or 1 - `p` is not above :math:`2^{-53}` (the least
        probability that is drawn in doubles), or if there are fewer than two secrets.

    References
    ----------
    .. [oue] Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency
       estimation", USENIX Security 2017, section 4.2.

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

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: AlphabetLike, p: float, q: float) -> None: ...

    @override
    def _check_probabilities(self) -> None:
        p, q = (arguments.fraction(name, getattr(self, name), "()") for name in ("p", "q"))
        if not q < p:
            raise ValueError(
                f"p must be larger than q, got p={p:g} and q={q:g}: the secret's own bit is the "
                "likelier one"
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


closed_forms.register(UnaryEncoding, UNARY_FORMS)


@exact_sampler(UnaryEncoding)
def _unary_encoding_sampler(mechanism: UnaryEncoding) -> exact.ExactSampler:
    # p and q are exactly the fractions that their doubles stand for, so the level is computed from
    # fractions.
    p, q = Fraction(mechanism.p), Fraction(mechanism.q)
    drawn = mechanism._coins(exact.rational(p), exact.rational(q))
    return drawn._replace(epsilon=lambda: exact.log_rounded_up(p * (1 - q) / ((1 - p) * q)))
