"""Base class of mechanisms for the mean of numbers from -1 to 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Line
from ibukit.mechanisms.epsilon_range import check_epsilon
from ibukit.mechanisms.numeric.line_alphabet import as_real_line
from ibukit.mechanisms.numeric.windows import RealReports
from ibukit.mechanisms.points.real_numbers import real_numbers


@dataclass(frozen=True)
class UnbiasedNumbers(RealReports):
    """Mechanism that takes the values of a line as numbers t in [-1, 1] and reports t on average.

    So the average of the reports estimates the mean of the secrets without bias, whatever their
    distribution; `estimate_mean` scales it back to the line.
    """

    alphabet: Line
    epsilon: float

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(
            alphabet=as_real_line(self.alphabet),
            epsilon=check_epsilon(self.epsilon, self._rare_probability),
        )
        arguments.whole("number of secrets", len(self.alphabet), 2)

    @staticmethod
    def _rare_probability(epsilon: float) -> float:
        """Least probability of a report of Duchi's mechanism, which is that of -C given t = 1."""
        return 1 / (math.exp(epsilon) + 1)

    @property
    def numbers(self) -> Floats:
        """The secrets as numbers from -1 to 1, shape (k,)."""
        return np.linspace(-1, 1, self.k)

    def estimate_mean(self, reports: ArrayLike) -> float:
        """Estimate the mean of the secrets from the average of the reports, without bias.

        Parameters
        ----------
        reports : array_like, shape (n,)
            Real numbers, as `randomize` draws them.

        Returns
        -------
        float
            In the line's units. It may lie outside the line.
        """
        average = float(np.mean(self._checked(reports)))
        return self.alphabet.first + (self.k - 1) * (average + 1) / 2

    def _checked(self, reports: ArrayLike) -> Floats:
        """Reports as an array; ValueError if there are none, or if one of them is impossible."""
        numbers = real_numbers("reports", reports)
        if not len(numbers):
            raise ValueError("reports must hold at least one report, but there is none")
        self.check_reports(numbers)
        return numbers

    def report_variance(self) -> Floats:
        """Variance of a report given each secret, shape (k,), in units of half the line."""
        raise NotImplementedError
