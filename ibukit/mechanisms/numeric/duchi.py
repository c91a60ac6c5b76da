"""Duchi's mechanism for a mean: one of two numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.numeric.unbiased_numbers import UnbiasedNumbers
from ibukit.mechanisms.points.real_numbers import real_numbers

# A number counts as one of the two points if it is this near, in units in the last place: other
# programs round the points differently. A piecewise report comes this near to one of the points
# with a probability of 1e-14.
MAX_ULPS = 8


@dataclass(frozen=True)
class Duchi(UnbiasedNumbers):
    r"""Duchi's mechanism for a mean: one of two numbers is reported.

    The values of the line stand for equally spaced numbers t from -1 to 1. The report is C with
    probability 1/2 + t / (2C), else -C, with :math:`C=\frac{e^\varepsilon+1}{e^\varepsilon-1}`. So
    its expectation is t, and its variance is :math:`C^{2} - t^{2}`. The two possible reports tell
    nothing but the mean: the matrix has rank 2, and all distributions with the same mean are
    equally likely. These probabilities satisfy epsilon-local differential privacy, tightly. Reports
    are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two. Reports are the real numbers -C and C, give or take some units
        in the last place.
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.7 (above it, the probability of one report
        rounds to 1 in doubles), or if there are fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [duchi2018] Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private
       estimation", JASA 113(521), 2018.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = Duchi(ik.Line(0, 4), epsilon=1.0)
    >>> mechanism.matrix().round(4)
    array([[0.7311, 0.2689],
           [0.6155, 0.3845],
           [0.5   , 0.5   ],
           [0.3845, 0.6155],
           [0.2689, 0.7311]])
    >>> ik.theory.identifiable(mechanism).rank
    2
    """

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    every_report_is_possible: ClassVar[bool] = True

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
        bad = ~is_point(numbers, c)
        if bad.any():
            first = int(np.argmax(bad))
            raise AlphabetMismatch(
                f"reports must be {-c!r} or {c!r}, got {numbers[first]} at index {first}"
            )
        return (numbers > 0).astype(np.int64)

    @override
    def restore_reports(self, kept: NDArray[Any]) -> Floats:
        return np.where(kept == 1, 1.0, -1.0) * two_points(self.epsilon)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        upper = self.matrix()[:, 1]
        return self.restore_reports((rng.random(len(secrets)) < upper[secrets]).astype(np.int64))

    @override
    def _columns(self, codes: Ints) -> Floats:
        less = math.exp(-self.epsilon)
        up = np.arange(self.k) / (self.k - 1)
        # The probabilities of both points go from 1 / (e^eps + 1) to e^eps / (e^eps + 1), linearly
        # in t. They are written as sums, without differences that would cancel.
        both = np.stack([(1 - up + up * less), (up + (1 - up) * less)], axis=1) / (1 + less)
        return both[:, codes]

    @override
    def report_variance(self) -> Floats:
        # The square of a report is always C^2, and its expectation is t.
        return two_points(self.epsilon) ** 2 - self.numbers**2


def two_points(epsilon: float) -> float:
    """Duchi's C = (e^eps + 1) / (e^eps - 1): reports are C and -C."""
    return 1 / math.tanh(epsilon / 2)


def is_point(numbers: Floats, c: float) -> NDArray[np.bool_]:
    """True if numbers are c or -c up to rounding."""
    return np.abs(np.abs(numbers) - c) <= MAX_ULPS * np.spacing(c)
