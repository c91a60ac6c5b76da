"""Two-sided geometric noise on the integers, untruncated and truncated to a line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import LineChannel
from ibukit.channels.line import split_factor
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.labels import in_order
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.epsilon_range import level
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.tally.tally import Tally, make_part


@dataclass(frozen=True)
class LinearGeometric(Mechanism):
    """P(z given x) = (1 - a) / (1 + a) a^|z - x| for every integer z, with a = e^-eps.

    These probabilities satisfy epsilon-d-privacy with d(x, y) = |x - y|, tightly. Reports are
    simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets; reports are any integers (labels of the line continued both ways, not codes).
        The line may be without an end itself: then secrets are labels, too.
    epsilon : float
        Nats per unit of the line.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15, below which a report has the parity of its secret,
        to 36.0, just above which numpy draws no noise other than 0.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, eq. (6).
    .. [ghosh] Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009.

    Examples
    --------
    >>> mechanism = LinearGeometric(Line(0, 9), epsilon=0.5)
    >>> tally = mechanism.tally([-3, 4, 4, 12])
    >>> tally.counts
    array([1, 2, 1])

    If the alphabet is unbounded, the estimate covers only the values between the reports:

    >>> LinearGeometric(Line(0, None), epsilon=0.5).tally([-3, 4, 4, 12]).alphabet
    Line(0, 12)
    """

    alphabet: Line
    epsilon: float
    metric = True

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_line(self.alphabet), epsilon=_noise_level(self.epsilon))

    @property
    def decay(self) -> float:
        """The ratio a = e^-eps of the probabilities of neighbouring reports."""
        return float(np.exp(-self.epsilon))

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        return arguments.integers("reports", reports)

    @override
    def channel(self, reports: NDArray[Any]) -> LineChannel:
        """Forward and adjoint on the given reports, in O(k + s).

        A report beyond an end is that end's, times a factor of its own.
        """
        scale, _ = split_factor(self._log_factor(reports))
        return LineChannel(self.k, self.decay, self._clipped(reports), scale)

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats:
        """What `channel` leaves out for reports far outside the line.

        Their probability would underflow.
        """
        return split_factor(self._log_factor(reports))[1]

    @override
    def as_finite(self) -> FiniteMechanism:
        """The truncated kind, which has the same information.

        The columns beyond an end are multiples of the column at the end.
        """
        if type(self) is not LinearGeometric:  # a class that inherits may have another law
            return super().as_finite()
        if self.k == 1:
            return MatrixMechanism([[1.0]], self.alphabet)
        return TruncatedGeometric(self.alphabet, self.epsilon)

    def _clipped(self, reports: Ints) -> Ints:
        return np.clip(reports, self.alphabet.first, self.alphabet.last) - self.alphabet.first

    def _log_factor(self, reports: Ints) -> Floats:
        beyond = np.maximum(
            np.maximum(reports - self.alphabet.last, self.alphabet.first - reports), 0
        )
        return np.asarray(
            np.log(-np.expm1(-self.epsilon)) - np.log1p(self.decay) - self.epsilon * beyond
        )

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        values = self.alphabet.labels_of(secrets)
        # the difference of two geometric variables has the two-sided law
        noise = rng.geometric(-np.expm1(-self.epsilon), (2, len(values)))
        return np.asarray(values + noise[0] - noise[1])

    def _exactly(self) -> exact.Exact:
        return exact.Exact(self._noisy, lambda: self.epsilon)

    def _noisy(self, secrets: NDArray[Any], source: exact.Source) -> Ints:
        noise = exact.two_sided(Fraction(self.epsilon), len(secrets), source)
        return np.asarray(self.alphabet.labels_of(secrets) + noise)

    @override
    def simulate(self, secret_counts: ArrayLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population in O(k + spread).

        It follows the memoryless steps of the noise.
        """
        rng = arguments.generator(rng)
        counts = in_order("secret_counts", secret_counts, self.alphabet)
        inside, beyond_first, beyond_last = self._spread(counts, rng)
        (above, stopped_above), (below, stopped_below) = (
            self._tail(beyond_last, rng),
            self._tail(beyond_first, rng),
        )
        reports = np.concatenate(
            [self.alphabet.first - below, self.alphabet.values, self.alphabet.last + above]
        )
        return Tally(
            (make_part(self, reports, np.concatenate([stopped_below, inside, stopped_above])),)
        )

    def _spread(self, counts: Ints, rng: Generator) -> tuple[Ints, int, int]:
        """How many report each value of the line, and how many run off its first and its last end."""
        # at first one stays, goes right or goes left: (1 - a)/(1 + a), a/(1 + a), a/(1 + a)
        side = self.decay / (1 + self.decay)
        stay, right, left = rng.multinomial(counts, [1 - 2 * side, side, side]).T
        here, beyond_last = self._walk(right, rng)
        back, beyond_first = self._walk(left[::-1], rng)
        return stay + here + back[::-1], beyond_first, beyond_last

    def _walk(self, leaving: Ints, rng: Generator) -> tuple[Ints, int]:
        """Move along the line: at each step of those on their way a fraction 1 - a stops; also how many run off."""
        arrived = np.zeros(self.k, dtype=np.int64)
        moving = 0
        for position, joining in enumerate(leaving.tolist()):
            if moving:
                arrived[position] = rng.binomial(moving, -np.expm1(-self.epsilon))
            moving += joining - int(arrived[position])
        return arrived, moving

    def _tail(self, moving: int, rng: Generator) -> tuple[Ints, Ints]:
        """How far beyond the end those who ran off it stop, and how many of them at each distance."""
        stop = -np.expm1(-self.epsilon)
        stops = []
        # step by step only while a step stops somebody: at a small epsilon the steps outnumber the
        # users
        while moving * stop > 1:
            stops.append(int(rng.binomial(moving, stop)))
            moving -= stops[-1]
        rest = len(stops) + rng.geometric(stop, size=moving)
        counts = np.concatenate([np.array(stops, dtype=np.int64), np.ones(moving, dtype=np.int64)])
        return np.concatenate([np.arange(1, len(stops) + 1), rest]), counts


@dataclass(frozen=True)
class TruncatedGeometric(FiniteMechanism):
    """Geometric noise, then the nearest element of the line.

    P(z given x) = c_z a^|z - x|, a = e^-eps. c_z = (1 - a) / (1 + a) inside and 1 / (1 + a) at the
    two ends. These probabilities satisfy epsilon-d-privacy with d(x, y) = |x - y|, tightly; reports
    are simulated, see `Mechanism`. The inverse of the matrix is tridiagonal, so `inv` takes O(k).

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two, which are also the reports (as codes 0..k-1).
    epsilon : float
        Nats per unit of the line.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.0, as for `LinearGeometric`, or there are
        fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, eqs (7)-(11).
    .. [kacem] Kacem and Palamidessi, "Geometric noise for locally private counting queries", PLAS 2018, eq. (5).

    Examples
    --------
    >>> TruncatedGeometric(Line(0, 2), epsilon=1.0).matrix().round(4)
    array([[0.7311, 0.17  , 0.0989],
           [0.2689, 0.4621, 0.2689],
           [0.0989, 0.17  , 0.7311]])
    """

    alphabet: Line
    epsilon: float
    metric = True

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_line(self.alphabet), epsilon=_noise_level(self.epsilon))
        arguments.whole("number of secrets", len(self.alphabet), 2)

    @property
    def decay(self) -> float:
        """The ratio a = e^-eps of the probabilities of neighbouring reports."""
        return float(np.exp(-self.epsilon))

    @cached_property
    def _factors(self) -> Floats:
        """The papers' c_z, shape (k,)."""
        c = np.full(self.k, -np.expm1(-self.epsilon) / (1 + self.decay))
        c[[0, -1]] = 1 / (1 + self.decay)
        return c

    @override
    def make_matrix(self) -> Floats:
        return np.asarray(self._factors * np.exp(-self.epsilon * self.alphabet.distances()))

    @override
    def channel(self, reports: NDArray[Any]) -> LineChannel:
        return LineChannel(self.k, self.decay, reports, self._factors[reports])

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        return self._truncated(LinearGeometric(self.alphabet, self.epsilon).draw(secrets, rng))

    def _exactly(self) -> exact.Exact:
        noisy = LinearGeometric(self.alphabet, self.epsilon)._noisy
        return exact.Exact(
            lambda secrets, source: self._truncated(noisy(secrets, source)), lambda: self.epsilon
        )

    def _truncated(self, reports: Ints) -> Ints:
        return np.clip(reports, self.alphabet.first, self.alphabet.last) - self.alphabet.first

    @override
    def simulate(self, secret_counts: ArrayLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population in O(k).

        What runs off an end is reported there.
        """
        rng = arguments.generator(rng)
        counts = in_order("secret_counts", secret_counts, self.alphabet)
        seen, beyond_first, beyond_last = LinearGeometric(self.alphabet, self.epsilon)._spread(
            counts, rng
        )
        seen[-1] += beyond_last
        seen[0] += beyond_first
        return self.tally_counts(seen)

    @override
    def _solve(self, q: Floats) -> Floats:
        if (
            type(self) is not TruncatedGeometric
        ):  # an inverse has no certificate: a class that inherits has its own
            return super()._solve(q)
        # M = K diag(c), K_xz = a^|x - z|; (1 - a^2) K^-1 is tridiagonal: 1 + a^2 inside, 1 at the
        # ends, -a beside
        a = self.decay
        u = q / self._factors
        v = (1 + a * a) * u
        v[[0, -1]] = u[[0, -1]]
        v[1:] -= a * u[:-1]
        v[:-1] -= a * u[1:]
        return np.asarray(v / -np.expm1(-2 * self.epsilon))


def as_line(alphabet: Alphabet | int) -> Line:
    """The line itself; an int k means Line(0, k - 1)."""
    if isinstance(alphabet, Line):
        return alphabet
    if isinstance(alphabet, Alphabet):
        raise TypeError(
            f"alphabet must be a Line, because the noise adds to integers; got {alphabet!r}"
        )
    return Line(0, arguments.whole("alphabet", alphabet, 1) - 1)


def _noise_level(epsilon: float) -> float:
    # the noise is a difference of two geometric variables; numpy draws another one than 1 from a
    # uniform number above 1 - e^-eps, of which there is none unless e^-eps is two units of 2^-53
    return level(epsilon, lambda eps: math.exp(-eps) / 2)
