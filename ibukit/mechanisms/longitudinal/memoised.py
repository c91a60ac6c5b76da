"""Memoised protocols: a noisy answer that is kept for ever, and a noisier one of it for each round.

What is new in them is what several reports of one user tell, which is in `linked`. One report alone
has the law of a protocol without memory: a unary encoding, or k-RR.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel
from ibukit.domain.alphabet import Alphabet, as_alphabet
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.categorical.bit_reports import Bits
from ibukit.mechanisms.categorical.randomized_response import RandomizedResponse
from ibukit.mechanisms.categorical.unary import BitsOfGivenChances
from ibukit.mechanisms.epsilon_range import level


class Chances(NamedTuple):
    """The chances that a bit is 1 after a round: of one that was 1 before, and of one that was 0."""

    p: float
    q: float

    @property
    def log_odds(self) -> float:
        """The tight level of a unary encoding with these chances, ln p (1 - q) / ((1 - p) q)."""
        if self.p == 1 or self.q == 0:
            return math.inf
        return math.log1p((self.p - self.q) / self.q) + math.log1p((self.p - self.q) / (1 - self.p))


def check_round(name: str, given: Any, ends: str) -> Chances:
    """Two chances p > q of one round; `ends` says whether p may be 1 and q may be 0."""
    pair = np.asarray(given, dtype=object)
    if isinstance(given, str) or pair.shape != (2,):
        raise ValueError(f"{name} must be two chances (p, q), got {given!r}")
    p = arguments.fraction(f"{name}[0]", given[0], f"({ends[1]}")
    q = arguments.fraction(f"{name}[1]", given[1], f"{ends[0]})")
    if not q < p:
        raise ValueError(
            f"{name} must be (p, q) with p larger than q, got {given!r}: a bit that was 1 is 1 more often"
        )
    return Chances(p, q)


@dataclass(frozen=True)
class LongitudinalUnaryEncoding(BitsOfGivenChances):
    """One report of a memoised unary encoding: fresh noise on bits that are kept.

    The first time a user reports, the bits of the one-hot secret are randomised by the *permanent*
    chances, and kept. Each round then randomises the kept bits afresh, by the *instantaneous*
    chances. A chance pair (p, q) makes a 1 of a 1 with probability p, and of a 0 with probability
    q. So of one report alone the secret's own bit is 1 with probability p1 p2 + (1 - p1) q2, any
    other with probability q1 p2 + (1 - q1) q2: a unary encoding, with tight level `epsilon`.
    However many rounds there are, they tell no more than the kept bits, whose level is
    `epsilon_inf`. `LinkedRounds` has the law of several rounds of one user. Reports are simulated,
    see `Mechanism`.

    The protocols in use are made by `osue` (L-OSUE), `sue` (L-SUE), `oue` (L-OUE), `soue` (L-SOUE)
    and `rappor` (the two stages of basic RAPPOR), from the levels or the parameters of their
    papers.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets; reports are rows of k bits.
    permanent : (float, float)
        The chances (p1, q1), with 0 <= q1 < p1 <= 1.
    instantaneous : (float, float)
        The chances (p2, q2), with 0 < q2 < p2 < 1.

    Raises
    ------
    ValueError
        If chances are not so, one of the report's is not above 2^-53, the least that is drawn in
        doubles, or there are fewer than two secrets.

    References
    ----------
    .. [rappor] Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014.
    .. [longitudinal] Arcolezi, Couchot, Al Bouna and Xiao, "Improving the utility of locally differentially private
       protocols for longitudinal and multidimensional frequency estimates", Digital Commun. Netw.
       2022.

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

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(
            self,
            alphabet: Alphabet | int,
            permanent: tuple[float, float],
            instantaneous: tuple[float, float],
        ) -> None: ...

    @override
    def _check_chances(self) -> None:
        self._keep(
            permanent=check_round("permanent", self.permanent, "[]"),
            instantaneous=check_round("instantaneous", self.instantaneous, "()"),
        )

    @classmethod
    def osue(
        cls, alphabet: Alphabet | int, epsilon: float, epsilon_inf: float
    ) -> LongitudinalUnaryEncoding:
        """L-OSUE: OUE once, then SUE each round; one report is OUE's at `epsilon`."""
        first, forever = _levels(epsilon, epsilon_inf)
        return cls(alphabet, _optimised(forever), _flip(first, forever))

    @classmethod
    def sue(
        cls, alphabet: Alphabet | int, epsilon: float, epsilon_inf: float
    ) -> LongitudinalUnaryEncoding:
        """L-SUE: SUE once, then SUE each round; one report is RAPPOR's at `epsilon`."""
        first, forever = _levels(epsilon, epsilon_inf)
        return cls(alphabet, _symmetric(forever), _flip(first / 2, forever / 2))

    @classmethod
    def oue(
        cls, alphabet: Alphabet | int, epsilon: float, epsilon_inf: float
    ) -> LongitudinalUnaryEncoding:
        """L-OUE: OUE once, then each round with p2 = 1/2 and the q2 that gives `epsilon`."""
        first, forever = _levels(epsilon, epsilon_inf)
        return cls(alphabet, _optimised(forever), _half(_optimised(forever), first))

    @classmethod
    def soue(
        cls, alphabet: Alphabet | int, epsilon: float, epsilon_inf: float
    ) -> LongitudinalUnaryEncoding:
        """L-SOUE: SUE once, then each round with p2 = 1/2 and the q2 that gives `epsilon`."""
        first, forever = _levels(epsilon, epsilon_inf)
        return cls(alphabet, _symmetric(forever), _half(_symmetric(forever), first))

    @classmethod
    def rappor(
        cls, alphabet: Alphabet | int, f: float, p: float, q: float
    ) -> LongitudinalUnaryEncoding:
        """Basic RAPPOR of two stages, one bit a secret, by its paper's f, p and q.

        A bit is replaced by a fair coin with probability f, for ever. Each round reports 1 with
        probability q where the kept bit is 1, else with probability p.
        """
        lost = arguments.fraction("f", f, "[)")
        q, p = arguments.fraction("q", q, "()"), arguments.fraction("p", p, "()")
        if not p < q:
            raise ValueError(
                f"q must be larger than p, got q={q} and p={p}: a bit that was 1 is 1 more often"
            )
        return cls(alphabet, (1 - lost / 2, lost / 2), (q, p))

    @property
    def epsilon_inf(self) -> float:
        """The tight level of the kept bits, and so of any number of rounds.

        It is inf where the kept bits are the truth.
        """
        return self.permanent.log_odds

    @property
    @override
    def p_one(self) -> float:
        return _after(self.permanent.p, self.instantaneous)

    @property
    @override
    def p_zero(self) -> float:
        return _after(self.permanent.q, self.instantaneous)

    @property
    @override
    def p_hidden(self) -> float:
        p, q = self.instantaneous
        return self.permanent.p * (1 - p) + (1 - self.permanent.p) * (1 - q)

    @property
    @override
    def contrast(self) -> float:
        return (self.permanent.p - self.permanent.q) * (self.instantaneous.p - self.instantaneous.q)

    def memoise(self, secrets: NDArray[Any], rng: Generator) -> Bits:
        """What each user keeps: rows of 0 and 1, shape (n, k); secrets are codes."""
        rows = (rng.random((len(secrets), self.k)) < self.permanent.q).astype(np.uint8)
        rows[np.arange(len(secrets)), secrets] = rng.random(len(secrets)) < self.permanent.p
        return rows

    def respond(self, kept: Bits, rng: Generator) -> Bits:
        """The reports of one round from what users keep: rows of 0 and 1, shape (n, k)."""
        return (rng.random(kept.shape) < np.where(kept, *self.instantaneous)).astype(np.uint8)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Bits:
        return self.respond(self.memoise(secrets, rng), rng)


@dataclass(frozen=True)
class LongitudinalResponse(FiniteMechanism):
    """One report of memoised k-RR (L-GRR): k-RR is kept, and each round is k-RR on it.

    The first round is k-RR at `epsilon_inf`. The second is k-RR at the level at which one report is
    k-RR at `epsilon`, tightly: e^eps2 = 1 + c (A + k) / (A - c) with A = e^epsilon_inf - 1 and c =
    e^epsilon - 1. (The formula of the paper that proposed L-GRR is this one for k = 2 only; for
    more secrets it leaves out the k - 2 other ways, and the reports are more private and less
    useful than asked for.) Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Alphabet or int
        The k secrets, which are also the reports.
    epsilon : float
        The level of one report, nats, for all pairs of secrets.
    epsilon_inf : float
        The level of what is kept, and so of any number of reports; above `epsilon`.

    Raises
    ------
    ValueError
        If `epsilon` is not below `epsilon_inf`, one of them is not a level of `RandomizedResponse`,
        or there are fewer than two secrets.

    References
    ----------
    .. [longitudinal] Arcolezi, Couchot, Al Bouna and Xiao, "Improving the utility of locally differentially private
       protocols for longitudinal and multidimensional frequency estimates", Digital Commun. Netw.
       2022.

    Examples
    --------
    >>> mechanism = LongitudinalResponse(20, epsilon=1.0, epsilon_inf=2.0)
    >>> round(mechanism.second.epsilon, 4)
    2.371
    >>> bool(np.allclose(mechanism.kept.matrix() @ mechanism.second.matrix(), mechanism.matrix()))
    True
    """

    alphabet: Alphabet
    epsilon: float
    epsilon_inf: float

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(
            self, alphabet: Alphabet | int, epsilon: float, epsilon_inf: float
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        first, forever = _levels(self.epsilon, self.epsilon_inf)
        self._keep(epsilon=first, epsilon_inf=forever)
        self._keep(epsilon=self.once.epsilon, epsilon_inf=self.kept.epsilon)
        try:
            self.second  # noqa: B018
        except ValueError:
            raise ValueError(
                f"epsilon_inf must be farther above epsilon, got {forever!r} and {first!r}: the second round would lie "
                "with a probability that rounds to 0 in doubles"
            ) from None

    @cached_property
    def once(self) -> RandomizedResponse:
        """k-RR with the law of one report."""
        return RandomizedResponse(self.alphabet, self.epsilon)

    @cached_property
    def kept(self) -> RandomizedResponse:
        """The first round, whose answer is kept."""
        return RandomizedResponse(self.alphabet, self.epsilon_inf)

    @cached_property
    def second(self) -> RandomizedResponse:
        """What each round does to the kept answer."""
        a, c = math.expm1(self.epsilon_inf), math.expm1(self.epsilon)
        # A - c without cancellation
        between = math.exp(self.epsilon) * math.expm1(self.epsilon_inf - self.epsilon)
        return RandomizedResponse(self.alphabet, math.log1p(c * (a + self.k) / between))

    @override
    def make_matrix(self) -> Floats:
        return self.once.make_matrix()

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        return self.once.channel(reports)

    @override
    def as_finite(self) -> FiniteMechanism:
        return (
            self.once if type(self) is LongitudinalResponse else self
        )  # a class that inherits may have another law

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        return np.asarray(self.second.draw(self.kept.draw(secrets, rng), rng))


def _levels(epsilon: Any, epsilon_inf: Any) -> tuple[float, float]:
    """The levels of one report and of what is kept."""
    first = level(epsilon, lambda eps: math.exp(-eps / 2))
    forever = arguments.positive("epsilon_inf", epsilon_inf)
    if not first < forever:
        raise ValueError(
            f"epsilon must be below epsilon_inf, got {epsilon!r} and {epsilon_inf!r}: one report tells less than what "
            "is kept"
        )
    return first, forever


def _symmetric(epsilon: float) -> Chances:
    """SUE's chances, p = 1 - q."""
    return Chances(
        1 / (1 + math.exp(-epsilon / 2)), math.exp(-epsilon / 2) / (1 + math.exp(-epsilon / 2))
    )


def _optimised(epsilon: float) -> Chances:
    """OUE's chances, p = 1/2."""
    return Chances(0.5, math.exp(-epsilon) / (1 + math.exp(-epsilon)))


def _flip(epsilon: float, epsilon_inf: float) -> Chances:
    """The p2 = 1 - q2 with 2 p2 - 1 = tanh(epsilon / 2) / tanh(epsilon_inf / 2), the ratio of two contrasts."""
    lost = math.expm1(epsilon - epsilon_inf) / math.expm1(-epsilon_inf) / (math.exp(epsilon) + 1)
    return Chances(1 - lost, lost)


def _half(permanent: Chances, epsilon: float) -> Chances:
    """p2 = 1/2 and the q2 with which one report has the level: the root in (0, 1/2) of a quadratic equation.

    The chances of the report are a + b x and c + d x, and their odds p_s (1 - q_s) = e^eps (1 -
    p_s) q_s.
    """
    p, q = permanent
    a, b, c, d = p / 2, 1 - p, q / 2, 1 - q
    more = math.expm1(epsilon)
    # p_s - q_s - more (1 - p_s) q_s
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


def _after(chance: float, then: Chances) -> float:
    return chance * then.p + (1 - chance) * then.q
