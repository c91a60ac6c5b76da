"""Several rounds of a memoised unary encoding, known to come from the same user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp, xlog1py, xlogy

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel, LookupChannel, RowMajorChannel
from ibukit.channels.line import MIN_LOG_FACTOR, split_factor
from ibukit.channels.lookup import MAX_LEVELS, pack_levels
from ibukit.domain.alphabet import Alphabet, AlphabetLike, as_alphabet
from ibukit.errors import AlphabetMismatch, NoExactSampler
from ibukit.exact import ExactSampler
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.longitudinal.chances import Chances
from ibukit.mechanisms.longitudinal.longitudinal_unary_encoding import LongitudinalUnaryEncoding
from ibukit.mechanisms.matrix import MatrixMechanism

# Entries of the largest matrix of all reports, 8 MB.
MAX_MATRIX_ENTRIES = 2**20


@dataclass(frozen=True)
class LinkedRounds(Mechanism):
    r"""T rounds of a memoised unary encoding, known to come from the same user.

    The user keeps bits randomised by the permanent probabilities (p1, q1), and reports them T
    times, each time randomised afresh by the instantaneous probabilities (p2, q2), as in
    `LongitudinalUnaryEncoding`. A report here says how often each bit was 1: it is a row of k
    counts from 0 to T. The order of the rounds tells nothing more. The secret's own bit is 1 in s
    rounds with probability

    .. math::
       P_1(s)=\binom Ts\bigl(p_1\,p_2^s(1-p_2)^{T-s}+(1-p_1)\,q_2^s(1-q_2)^{T-s}\bigr),

    any other bit with probability :math:`P_0(s)`, which has :math:`q_1` in the place of
    :math:`p_1`. So :math:`P(s\mid x)=P_1(s_x)\prod_{y\ne x}P_0(s_y)`, and with :math:`L=P_1/P_0`,
    which grows with s, the tight level is `epsilon` :math:`=\ln L(T)/L(0)`. This level grows with T
    towards `epsilon_inf`, the level of the kept bits. Reports are simulated, see `Mechanism`.

    Rounds of one user that are pooled as if they were of different users still give a consistent
    estimate, but one with a larger variance than this likelihood's, and with standard errors that
    are too small.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are rows of k counts.
    permanent : (float, float)
        The probabilities (p1, q1), with 0 <= q1 < p1 <= 1.
    instantaneous : (float, float)
        The probabilities (p2, q2), with 0 < q2 < p2 < 1.
    rounds : int
        The number T of rounds, at least 1.

    Raises
    ------
    ValueError
        If these inequalities do not hold, if `rounds` is not a whole number from 1 to 65535, or if
        there are fewer than two secrets.

    Notes
    -----
    The channel packs several counts into a byte, for example five counts if there are two rounds,
    and three if there are five; with 256 rounds or more it writes out a number for each secret and
    distinct report. The estimate of `inv` is the published one: it averages the rounds.

    References
    ----------
    .. [rappor] Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014: what is kept bounds what all
       rounds tell.

    Examples
    --------
    >>> protocol = LongitudinalUnaryEncoding.osue(10, epsilon=1.0, epsilon_inf=2.0)
    >>> [round(LinkedRounds.of(protocol, rounds).epsilon, 3) for rounds in (1, 2, 5, 50)]
    [1.0, 1.642, 1.994, 2.0]
    """

    alphabet: Alphabet
    permanent: Chances
    instantaneous: Chances
    rounds: int

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self,
            alphabet: AlphabetLike,
            permanent: tuple[float, float],
            instantaneous: tuple[float, float],
            rounds: int,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        arguments.whole("number of secrets", len(self.alphabet), 2)
        rounds = arguments.whole("rounds", self.rounds, 1)
        if rounds > np.iinfo(np.uint16).max:
            raise ValueError(f"rounds must be at most {np.iinfo(np.uint16).max}, got {rounds}")
        one = LongitudinalUnaryEncoding(self.alphabet, self.permanent, self.instantaneous)
        self._keep(permanent=one.permanent, instantaneous=one.instantaneous, rounds=rounds)

    @classmethod
    def of(cls, protocol: LongitudinalUnaryEncoding, rounds: int) -> LinkedRounds:
        """Link a number of rounds of a protocol."""
        if not isinstance(protocol, LongitudinalUnaryEncoding):
            raise TypeError(f"protocol must be a LongitudinalUnaryEncoding, got {protocol!r}")
        return cls(protocol.alphabet, protocol.permanent, protocol.instantaneous, rounds)

    @cached_property
    def one_round(self) -> LongitudinalUnaryEncoding:
        """The protocol with the law of a single round."""
        return LongitudinalUnaryEncoding(self.alphabet, self.permanent, self.instantaneous)

    @property
    def epsilon_inf(self) -> float:
        """The tight level of the kept bits, and so of any number of rounds.

        It is inf if a 1 is always kept as 1, or a 0 always as 0.
        """
        return self.permanent.log_odds

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        r"""The tight level of all rounds together, :math:`\ln L(T) / L(0)`.

        It is in nats, and holds for all pairs of secrets.
        """
        # L grows with s, so the probabilities under two secrets differ most for a report in which
        # one secret's bit has T ones and the other's has none.
        own, other = self._log_laws
        return float(own[-1] - other[-1] - (own[0] - other[0]))

    @cached_property
    def _log_laws(self) -> tuple[Floats, Floats]:
        """Logarithms of P1(s) and P0(s), s = 0..T."""
        # These are mixtures of two binomial laws, for a kept 1 and for a kept 0, summed in
        # logarithms.
        t, s = self.rounds, np.arange(self.rounds + 1)
        choices = gammaln(t + 1) - gammaln(s + 1) - gammaln(t - s + 1)
        kept = np.array([xlogy(s, p) + xlog1py(t - s, -p) for p in self.instantaneous])
        with np.errstate(divide="ignore"):  # a permanent probability may be 0 or 1
            weights = [np.log([[p], [1 - p]]) for p in self.permanent]
        own, other = (np.asarray(choices + logsumexp(kept + weight, axis=0)) for weight in weights)
        return own, other

    @property
    def level_ratios(self) -> Floats:
        """L(s) = P1(s) / P0(s) for s = 0..T, shape (T + 1,).

        The secret's own bit is 1 in s rounds L(s) times as often as another bit.
        """
        own, other = self._log_laws
        return np.exp(own - other)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        # Given the kept bits, the number of ones of each bit in T rounds is binomial.
        kept = self.one_round.memoise(secrets, rng)
        return rng.binomial(self.rounds, np.where(kept, *self.instantaneous))

    @override
    def _default_exact_sampler(self) -> ExactSampler:
        raise NoExactSampler(
            f"{type(self).__name__} has no sampler for release, because a second call would draw "
            "other kept bits: call kept = mechanism.one_round.keep(secrets) once for each person, "
            "and mechanism.one_round.release(kept) in each of the rounds; the sum of a person's "
            "rows is the report"
        )

    @override
    def check_reports(self, reports: ArrayLike) -> NDArray[np.uint16]:
        rows = arguments.integers("reports", reports, ndim=2)
        if rows.shape[1] != self.k:
            raise AlphabetMismatch(
                f"reports must be rows of {self.k} counts, got shape {rows.shape}"
            )
        bad = (rows < 0) | (rows > self.rounds)
        if bad.any():
            raise AlphabetMismatch(
                f"reports must count the ones of {self.rounds} rounds, got {rows[bad][0]}"
            )
        return rows.astype(np.uint16)

    @override
    def restore_reports(self, kept: NDArray[Any]) -> Ints:
        return kept.astype(np.int64)

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        """L of each secret's count, times the probability of the row without a secret.

        The counts are packed if they fit into a byte.
        """
        scale, _ = split_factor(self._log_no_secret(reports))
        # P(row | x) is the probability of a row in which no bit is the secret's, times L of the
        # count of x.
        if self.rounds < MAX_LEVELS:
            return LookupChannel(
                self.k, pack_levels(reports, self.rounds + 1), self.level_ratios, scale
            )
        return RowMajorChannel(self.level_ratios[reports] * scale[:, None])

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        # Not even the least probable row underflows.
        if self.k * self._log_laws[1].min() > MIN_LOG_FACTOR:
            return None
        return split_factor(self._log_no_secret(reports))[1]

    def _log_no_secret(self, reports: NDArray[Any]) -> Floats:
        """Log-probability of each row if no bit is the secret's, shape (s,)."""
        return self._log_laws[1][reports].sum(axis=1)

    @override
    def as_finite(self) -> FiniteMechanism:
        n_reports = (self.rounds + 1) ** self.k
        if n_reports * self.k > MAX_MATRIX_ENTRIES:
            raise ValueError(
                f"mechanism must have reports that can be listed, got {self}, which has "
                f"{self.rounds + 1}^{self.k} (the matrix may have at most {MAX_MATRIX_ENTRIES} "
                "entries): ask about fewer secrets or rounds"
            )
        reports = np.array(list(product(range(self.rounds + 1), repeat=self.k)), dtype=np.uint16)
        matrix = self.channel(reports).rows(np.arange(self.k))
        if (rest := self.log_scale(reports)) is not None:
            matrix = matrix * np.exp(rest)
        return MatrixMechanism(matrix, self.alphabet)

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        """The published estimator: it averages the rounds and debiases the bits' shares.

        It need not sum to 1.
        """
        # The mean share of rounds in which a bit was 1 is p_zero + contrast theta_y.
        ones = frequencies @ reports / self.rounds
        return (ones - self.one_round.p_zero) / self.one_round.contrast
