"""Memoised unary encodings: noisy bits that are kept, and fresh noise on them for each round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.errors import NoExactSampler
from ibukit.mechanisms.categorical.bit_reports import Bits
from ibukit.mechanisms.categorical.independent_bits import BitsOfGivenProbabilities
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.longitudinal.chances import Chances, after_round, check_levels, check_round
from ibukit.mechanisms.longitudinal.memoised import Memoised


@dataclass(frozen=True)
class LongitudinalUnaryEncoding(Memoised, BitsOfGivenProbabilities):
    r"""One report of a memoised unary encoding: fresh noise on bits that are kept.

    The first time a user reports, the bits of the one-hot secret are randomised by the *permanent*
    probabilities, and kept. Each round then randomises the kept bits afresh, by the *instantaneous*
    probabilities. With a pair (p, q), a bit becomes 1 with probability p if it was 1, and with
    probability q if it was 0. So in one report alone the secret's own bit is 1 with probability
    :math:`p_1p_2+(1-p_1)\,q_2`, any other bit with probability :math:`q_1p_2+(1-q_1)\,q_2`: this is
    a unary encoding with the tight level `epsilon`. However many rounds there are, they tell no
    more than the kept bits, whose level is `epsilon_inf`. `LinkedRounds` treats all rounds of one
    user as a single report, with the right probabilities. Reports are simulated, see `Mechanism`;
    for real people, `keep` draws the bits once, without roundings, and `release` draws one report
    of them in each round.

    The protocols in use are made by `osue` (L-OSUE), `sue` (L-SUE), `oue` (L-OUE), `soue` (L-SOUE)
    and `rappor` (the two stages of basic RAPPOR), from the levels or the parameters of their
    papers.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are rows of k bits.
    permanent : (float, float)
        The probabilities (p1, q1), with 0 <= q1 < p1 <= 1.
    instantaneous : (float, float)
        The probabilities (p2, q2), with 0 < q2 < p2 < 1.

    Raises
    ------
    ValueError
        If these inequalities do not hold, if one of the report's probabilities is not above
        :math:`2^{-53}` (the least that is drawn in doubles), or if there are fewer than two
        secrets.

    References
    ----------
    .. [rappor] Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014.
    .. [longitudinal] Arcolezi, Couchot, Al Bouna and Xiao, "Improving the utility of locally
       differentially private protocols for longitudinal and multidimensional frequency estimates",
       Digital Commun. Netw. 2022.

    Examples
    --------
    >>> mechanism = LongitudinalUnaryEncoding.osue(10, epsilon=1.0, epsilon_inf=2.0)
    >>> round(mechanism.epsilon, 9), round(mechanism.epsilon_inf, 9)
    (1.0, 2.0)
    >>> mechanism.permanent.p, round(mechanism.instantaneous.p, 4)
    (0.5, 0.8034)
    """

    alphabet: Alphabet
    permanent: Chances
    instantaneous: Chances
    bits_are_independent = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self,
            alphabet: AlphabetLike,
            permanent: tuple[float, float],
            instantaneous: tuple[float, float],
        ) -> None: ...

    @override
    def _check_probabilities(self) -> None:
        self._keep(
            permanent=check_round("permanent", self.permanent, "[]"),
            instantaneous=check_round("instantaneous", self.instantaneous, "()"),
        )

    @classmethod
    def osue(
        cls, alphabet: AlphabetLike, epsilon: float, epsilon_inf: float
    ) -> LongitudinalUnaryEncoding:
        """L-OSUE: OUE once, then SUE each round; one report is that of OUE at `epsilon`."""
        first, permanent = check_levels(epsilon, epsilon_inf)
        return cls(alphabet, _oue_round(permanent), _symmetric_round(first, permanent))

    @classmethod
    def sue(
        cls, alphabet: AlphabetLike, epsilon: float, epsilon_inf: float
    ) -> LongitudinalUnaryEncoding:
        """L-SUE: SUE once, then SUE each round; one report is that of RAPPOR at `epsilon`."""
        first, permanent = check_levels(epsilon, epsilon_inf)
        return cls(alphabet, _sue_round(permanent), _symmetric_round(first / 2, permanent / 2))

    @classmethod
    def oue(
        cls, alphabet: AlphabetLike, epsilon: float, epsilon_inf: float
    ) -> LongitudinalUnaryEncoding:
        """L-OUE: OUE once, then rounds with p2 = 1/2 and the q2 that gives `epsilon`."""
        first, permanent = check_levels(epsilon, epsilon_inf)
        return cls(alphabet, _oue_round(permanent), _half_round(_oue_round(permanent), first))

    @classmethod
    def soue(
        cls, alphabet: AlphabetLike, epsilon: float, epsilon_inf: float
    ) -> LongitudinalUnaryEncoding:
        """L-SOUE: SUE once, then rounds with p2 = 1/2 and the q2 that gives `epsilon`."""
        first, permanent = check_levels(epsilon, epsilon_inf)
        return cls(alphabet, _sue_round(permanent), _half_round(_sue_round(permanent), first))

    @classmethod
    def rappor(
        cls, alphabet: AlphabetLike, f: float, p: float, q: float
    ) -> LongitudinalUnaryEncoding:
        """Basic RAPPOR of two stages, one bit for each secret, by its paper's f, p and q.

        With probability f, a bit is replaced by a fair coin, for ever. Each round reports 1 with
        probability q if the kept bit is 1, else with probability p.
        """
        lost = arguments.fraction("f", f, "[)")
        q, p = arguments.fraction("q", q, "()"), arguments.fraction("p", p, "()")
        if not p < q:
            raise ValueError(
                f"q must be larger than p, got q={q} and p={p}: a kept bit 1 must be reported as "
                "1 more often than a kept bit 0"
            )
        return cls(alphabet, (1 - lost / 2, lost / 2), (q, p))

    @property
    def epsilon_inf(self) -> float:
        """The tight level of the kept bits, and so of any number of rounds.

        It is inf if a 1 is always kept as 1, or a 0 always as 0.
        """
        return self.permanent.log_odds

    @property
    @override
    def p_one(self) -> float:
        return after_round(self.permanent.p, self.instantaneous)

    @property
    @override
    def p_zero(self) -> float:
        return after_round(self.permanent.q, self.instantaneous)

    @property
    @override
    def p_hidden(self) -> float:
        # The secret's bit is kept as 1 and reported as 0, or kept as 0 and reported as 0.
        p, q = self.instantaneous
        return self.permanent.p * (1 - p) + (1 - self.permanent.p) * (1 - q)

    @property
    @override
    def contrast(self) -> float:
        # p_one - p_zero: the contrasts of the two rounds multiply.
        return (self.permanent.p - self.permanent.q) * (self.instantaneous.p - self.instantaneous.q)

    def memoise(self, secrets: NDArray[Any], rng: Generator) -> Bits:
        """Simulate the bits that users keep, shape (n, k); for real people take `keep`."""
        rows = (rng.random((len(secrets), self.k)) < self.permanent.q).astype(np.uint8)
        rows[np.arange(len(secrets)), secrets] = rng.random(len(secrets)) < self.permanent.p
        return rows

    def respond(self, kept: Bits, rng: Generator) -> Bits:
        """Simulate the reports of one round from the kept bits, shape (n, k)."""
        return (rng.random(kept.shape) < np.where(kept, *self.instantaneous)).astype(np.uint8)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Bits:
        return self.respond(self.memoise(secrets, rng), rng)

    @override
    def _respond_exactly(self, answers: NDArray[Any], random_bits: exact.RandomBits) -> Bits:
        reports = np.zeros(answers.shape, dtype=np.uint8)
        for bit, probability in zip((1, 0), self.instantaneous, strict=True):
            chosen = answers == bit
            reports[chosen] = exact.flip(
                exact.rational(Fraction(probability)), int(chosen.sum()), random_bits
            )
        return reports


@exact_sampler(LongitudinalUnaryEncoding)
def _kept_bits_sampler(mechanism: LongitudinalUnaryEncoding) -> exact.ExactSampler:
    p, q = (Fraction(probability) for probability in mechanism.permanent)
    if p == 1 or q == 0:
        raise NoExactSampler(
            f"permanent must be two probabilities (p1, q1), p1 below 1 and q1 above 0, got "
            f"{tuple(mechanism.permanent)}: the kept bits would rule secrets out, and so would "
            "enough reports; take permanent=(0.75, 0.25) or another pair between 0 and 1"
        )
    drawn = mechanism._coins(exact.rational(p), exact.rational(q))
    return drawn._replace(epsilon=lambda: exact.log_rounded_up(p * (1 - q) / ((1 - p) * q)))


def _sue_round(epsilon: float) -> Chances:
    """The round of SUE, with p = 1 - q."""
    return Chances(
        1 / (1 + math.exp(-epsilon / 2)), math.exp(-epsilon / 2) / (1 + math.exp(-epsilon / 2))
    )


def _oue_round(epsilon: float) -> Chances:
    """The round of OUE, with p = 1/2."""
    return Chances(0.5, math.exp(-epsilon) / (1 + math.exp(-epsilon)))


def _symmetric_round(epsilon: float, epsilon_inf: float) -> Chances:
    """The symmetric second round, p2 = 1 - q2, that gives one report the level `epsilon`."""
    # The contrasts p - q of the two rounds multiply, and that of OUE is tanh(eps / 2) / 2. So
    # 2 p2 - 1 = tanh(epsilon / 2) / tanh(epsilon_inf / 2), which solved for q2 is
    #     (1 - e^(epsilon - epsilon_inf)) / ((1 - e^-epsilon_inf) (e^epsilon + 1)).
    # SUE has the contrast tanh(eps / 4), and calls this with half the levels.
    lost = math.expm1(epsilon - epsilon_inf) / math.expm1(-epsilon_inf) / (math.exp(epsilon) + 1)
    return Chances(1 - lost, lost)


def _half_round(permanent: Chances, epsilon: float) -> Chances:
    """The second round with p2 = 1/2 that gives one report the level `epsilon`."""
    # With x = q2 a report has the probabilities p_s = a + b x and q_s = c + d x, and its level is
    # epsilon if p_s (1 - q_s) = e^eps (1 - p_s) q_s. That is the quadratic equation
    #     p_s - q_s - (e^eps - 1) (1 - p_s) q_s = constant + linear x + square x^2 = 0,
    # of which the smaller root is wanted, in the form that does not cancel.
    p, q = permanent
    a, b, c, d = p / 2, 1 - p, q / 2, 1 - q
    more = math.expm1(epsilon)
    constant = (a - c) - more * (1 - a) * c
    if not constant > 0:
        most = Chances(a, c).log_odds
        raise ValueError(
            f"epsilon must be below {most:.4g} for a second round with p2 = 1/2, got {epsilon!r}"
        )
    linear = (b - d) - more * ((1 - a) * d - b * c)
    square = more * b * d
    return Chances(
        0.5, 2 * constant / (-linear + math.sqrt(linear * linear - 4 * square * constant))
    )
