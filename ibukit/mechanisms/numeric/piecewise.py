"""Mechanisms for the mean of numbers from -1 to 1: Duchi's two points, the piecewise mechanism, and both mixed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.epsilon_range import MIN_CHANCE, level
from ibukit.mechanisms.numeric.geometric import as_line
from ibukit.mechanisms.numeric.windows import NARROWEST, RealReports, WindowReports, Windows
from ibukit.mechanisms.points.real_numbers import real_numbers

# up to this level, 0.6094, the hybrid mechanism is Duchi's alone
HYBRID_FROM = math.log(
    (-5 + 2 * math.cbrt(6353 - 405 * math.sqrt(241)) + 2 * math.cbrt(6353 + 405 * math.sqrt(241)))
    / 27
)
# Other programs round Duchi's two points otherwise; a piecewise report is this near to one with a
# chance of 1e-14.
ULPS = 8


class _Numbers(RealReports):
    """The values of a line as numbers t from -1 to 1, and reports whose expectation is t."""

    alphabet: Line
    epsilon: float

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_line(self.alphabet), epsilon=level(self.epsilon, self._least_chance))
        arguments.whole("number of secrets", len(self.alphabet), 2)

    @staticmethod
    def _least_chance(epsilon: float) -> float:
        return 1 / (math.exp(epsilon) + 1)

    @property
    def numbers(self) -> Floats:
        """The secrets as numbers from -1 to 1, shape (k,)."""
        return np.linspace(-1, 1, self.k)

    def estimate_mean(self, reports: ArrayLike) -> float:
        """The mean of the secrets by the average of the reports, without bias.

        Parameters
        ----------
        reports : array_like, shape (n,)
            Real numbers as `randomize` draws them.

        Returns
        -------
        float
            In the line's units. It may lie outside the line.
        """
        average = float(np.mean(self._checked(reports)))
        return self.alphabet.first + (self.k - 1) * (average + 1) / 2

    def _checked(self, reports: ArrayLike) -> Floats:
        """Reports that the mechanism can make, as they are; there is at least one."""
        numbers = real_numbers("reports", reports)
        if not len(numbers):
            raise ValueError("reports must hold at least one report, there is none")
        self.check_reports(numbers)
        return numbers

    def report_variance(self) -> Floats:
        """Variance of a report given each secret, shape (k,), in units of half the line."""
        raise NotImplementedError


def two_points(epsilon: float) -> float:
    """Duchi's C = (e^eps + 1) / (e^eps - 1): reports are C and -C."""
    return 1 / math.tanh(epsilon / 2)


@dataclass(frozen=True)
class Duchi(_Numbers):
    """Duchi's mechanism for a mean: one of two numbers is reported.

    The values of the line are the numbers t from -1 to 1, equally spaced. The report is C with
    probability 1/2 + t / (2C), else -C. C = (e^eps + 1) / (e^eps - 1), so its expectation is t. Its
    variance is C^2 - t^2. Two reports say no more than the mean: the matrix has rank 2, and all
    distributions with the same mean are equally likely. These probabilities satisfy epsilon-local
    differential privacy, tightly. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two. Reports are the real numbers -C and C, to some units in the
        last place.
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.7, where the probability of one report rounds
        to 1 in doubles, or there are fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [duchi2018] Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", JASA
       113(521), 2018.

    Examples
    --------
    >>> mechanism = Duchi(Line(0, 4), epsilon=1.0)
    >>> mechanism.matrix().round(4)
    array([[0.7311, 0.2689],
           [0.6155, 0.3845],
           [0.5   , 0.5   ],
           [0.3845, 0.6155],
           [0.2689, 0.7311]])
    >>> import ibukit as ik
    >>> ik.theory.identifiable(mechanism).rank
    2
    """

    alphabet: Line
    epsilon: float

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    @property
    @override
    def m(self) -> int:
        return 2

    @property
    @override
    def report_alphabet(self) -> Alphabet:
        return Alphabet([-two_points(self.epsilon), two_points(self.epsilon)])

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        numbers, c = real_numbers("reports", reports), two_points(self.epsilon)
        bad = ~_is_point(numbers, c)
        if bad.any():
            first = int(np.argmax(bad))
            raise AlphabetMismatch(
                f"reports must be {-c!r} or {c!r}, got {numbers[first]} at index {first}"
            )
        return (numbers > 0).astype(np.int64)

    @override
    def restore_reports(self, kept: NDArray[Any]) -> Floats:
        return np.asarray(np.where(kept == 1, 1.0, -1.0) * two_points(self.epsilon))

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        return self.restore_reports(super().draw(secrets, rng))

    @override
    def make_matrix(self) -> Floats:
        less = math.exp(-self.epsilon)
        up = np.arange(self.k) / (self.k - 1)
        # both in the form that has no difference: from 1 / (e^eps + 1) to e^eps / (e^eps + 1)
        return np.stack([(1 - up + up * less), (up + (1 - up) * less)], axis=1) / (1 + less)

    @override
    def report_variance(self) -> Floats:
        return two_points(self.epsilon) ** 2 - self.numbers**2


@dataclass(frozen=True)
class Piecewise(WindowReports, _Numbers):
    """The piecewise mechanism for a mean.

    The values of the line are the numbers t from -1 to 1, equally spaced. Reports are real numbers
    from -C to C, C = (e^(eps/2) + 1) / (e^(eps/2) - 1): with density p = (e^eps - e^(eps/2)) / (2
    e^(eps/2) + 2) from (C+1) t / 2 - (C-1) / 2 on for a length of C - 1, and p e^-eps elsewhere.
    The expectation of a report is t. With k secrets at most 2k - 1 intervals of reports say all.
    These probabilities satisfy epsilon-local differential privacy, tightly. Reports are simulated,
    see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two. Reports are numbers in the scale in which the line is [-1, 1].
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to about 55, where the window is narrower than
        doubles tell apart, or there are fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [wang2019] Wang et al., "Collecting and analyzing multidimensional data with local differential privacy",
       ICDE 2019, section III-B.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = Piecewise(Line(0, 4), epsilon=1.0)
    >>> reports = mechanism.randomize([0, 1, 4] * 1000, np.random.default_rng(1))
    >>> bool(abs(mechanism.estimate_mean(reports) - 5 / 3) < 0.3)
    True
    """

    alphabet: Line
    epsilon: float

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    @staticmethod
    @override
    def _least_chance(epsilon: float) -> float:
        # a window is the part (C - 1) / 2C = 1 / (e^(eps/2) + 1) of the support, and missed with
        # the same probability
        return 1 / (math.exp(epsilon / 2) + 1) * MIN_CHANCE / NARROWEST

    @property
    def largest(self) -> float:
        """The largest report C, coth(eps / 4)."""
        return 1 / math.tanh(self.epsilon / 4)

    @property
    @override
    def windows(self) -> Windows:
        width = 2 / math.expm1(self.epsilon / 2)
        return Windows(
            -self.largest, (2 + width) / (self.k - 1), width, np.arange(self.k), self.k - 1
        )

    @property
    @override
    def inside(self) -> float:
        return 1 / (1 + math.exp(-self.epsilon / 2))

    @property
    @override
    def outside(self) -> float:
        return math.exp(-self.epsilon / 2) * math.tanh(self.epsilon / 4) / 2

    @override
    def report_variance(self) -> Floats:
        less, half = math.expm1(self.epsilon / 2), math.exp(self.epsilon / 2)
        return np.asarray(self.numbers**2 / less + (half + 3) / (3 * less**2))


@dataclass(frozen=True)
class HybridMechanism(_Numbers):
    """The hybrid mechanism for a mean: the piecewise mechanism or Duchi's, by chance.

    Up to eps = 0.6094 it is `Duchi`. Above, the report is made by `Piecewise` with probability 1 -
    e^(-eps/2), else by `Duchi`, both at the whole level; its variance is then the same for all
    secrets. Duchi's two points lie inside the range of the other, where no continuous report falls:
    so a report tells which way it was made, and the likelihood uses that, which the average of the
    reports does not. These probabilities satisfy epsilon-local differential privacy, tightly.
    Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two. Reports are numbers in the scale in which the line is [-1, 1].
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.7, or there are fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    Notes
    -----
    Codes of reports are those of the piecewise intervals, then -C and C of Duchi. A continuous report within eight
    units in the last place of one of these counts as the point: that has a probability of about 1e-14.

    References
    ----------
    .. [wang2019] Wang et al., "Collecting and analyzing multidimensional data with local differential privacy",
       ICDE 2019, section III-C.

    Examples
    --------
    >>> mechanism = HybridMechanism(Line(0, 4), epsilon=2.0)
    >>> mechanism.report_variance().round(4)
    array([1.0423, 1.0423, 1.0423, 1.0423, 1.0423])
    """

    alphabet: Line
    epsilon: float

    if TYPE_CHECKING:  # the fields are what these become

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    @property
    def piecewise_share(self) -> float:
        """Probability that a report is made by the piecewise mechanism."""
        return -math.expm1(-self.epsilon / 2) if self.epsilon > HYBRID_FROM else 0.0

    @cached_property
    def _arms(self) -> tuple[Piecewise, Duchi]:
        return Piecewise(self.alphabet, self.epsilon), Duchi(self.alphabet, self.epsilon)

    @property
    def _intervals(self) -> int:
        return self._arms[0].m if self.piecewise_share else 0

    @property
    @override
    def m(self) -> int:
        return self._intervals + 2

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        numbers = real_numbers("reports", reports)
        piecewise, duchi = self._arms
        if not self._intervals:
            return duchi.check_reports(numbers)
        points = _is_point(numbers, two_points(self.epsilon))
        return np.where(points, self._intervals + (numbers > 0), piecewise.check_reports(numbers))

    @override
    def restore_reports(self, kept: NDArray[Any]) -> Floats:
        piecewise, duchi = self._arms
        point = kept >= self._intervals
        numbers = np.empty(len(kept))
        numbers[point] = duchi.restore_reports(kept[point] - self._intervals)
        numbers[~point] = piecewise.restore_reports(kept[~point])
        return numbers

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        piecewise, duchi = self._arms
        wide = rng.random(len(secrets)) < self.piecewise_share
        reports = np.empty(len(secrets))
        reports[wide] = piecewise.draw(secrets[wide], rng)
        reports[~wide] = duchi.draw(secrets[~wide], rng)
        return reports

    @override
    def make_matrix(self) -> Floats:
        piecewise, duchi = self._arms
        if not self._intervals:
            return duchi.make_matrix()
        share = self.piecewise_share
        rest = math.exp(-self.epsilon / 2)
        return np.hstack([share * piecewise.make_matrix(), rest * duchi.make_matrix()])

    @override
    def report_variance(self) -> Floats:
        share = self.piecewise_share
        wide, narrow = (arm.report_variance() for arm in self._arms)
        return share * wide + (1 - share) * narrow


def _is_point(numbers: Floats, c: float) -> NDArray[np.bool_]:
    """Whether a number is c or -c but for rounding."""
    return np.asarray(np.abs(np.abs(numbers) - c) <= ULPS * np.spacing(c))
