"""The hybrid mechanism for a mean: a mixture of the piecewise mechanism and Duchi's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Line
from ibukit.mechanisms.numeric.duchi import Duchi, is_point, two_points
from ibukit.mechanisms.numeric.piecewise import Piecewise
from ibukit.mechanisms.numeric.unbiased_numbers import UnbiasedNumbers
from ibukit.mechanisms.points.real_numbers import real_numbers

# Up to this epsilon, 0.6094, Duchi's mechanism alone has the least worst-case variance of all
# mixtures of the two (Wang et al., section III-C).
HYBRID_FROM = math.log(
    (-5 + 2 * math.cbrt(6353 - 405 * math.sqrt(241)) + 2 * math.cbrt(6353 + 405 * math.sqrt(241)))
    / 27
)


@dataclass(frozen=True)
class HybridMechanism(UnbiasedNumbers):
    r"""The hybrid mechanism for a mean: the piecewise mechanism or Duchi's, by chance.

    Up to :math:`\varepsilon = 0.6094` the mechanism is `Duchi`. Above it, the report is made by
    `Piecewise` with probability :math:`1 - e^{-\varepsilon / 2}`, else by `Duchi`, both at the
    whole level; the variance of a report is then the same for all secrets. Duchi's two points lie
    inside the range of the piecewise mechanism, but no continuous report falls exactly on them. So
    a report tells which way it was made: the likelihood uses this, and the average of the reports
    does not. These probabilities satisfy epsilon-local differential privacy, tightly. Reports are
    simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two. Reports are numbers on the scale on which the line is [-1, 1].
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.7, or if there are fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    Notes
    -----
    The codes of reports are first those of the piecewise intervals, then those of Duchi's two
    points, -C and C. A continuous report within eight units in the last place of one of these
    points counts as that point; this has a probability of about 1e-14.

    References
    ----------
    .. [wang2019] Wang et al., "Collecting and analyzing multidimensional data with local
       differential privacy", ICDE 2019, section III-C.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = HybridMechanism(ik.Line(0, 4), epsilon=2.0)
    >>> mechanism.report_variance().round(4)
    array([1.0423, 1.0423, 1.0423, 1.0423, 1.0423])
    """

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    every_report_is_possible: ClassVar[bool] = True

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
        # Codes are those of the piecewise intervals, then -C and C.
        points = is_point(numbers, two_points(self.epsilon))
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
        if self._has_own_matrix:
            return super().draw(secrets, rng)
        piecewise, duchi = self._arms
        is_piecewise = rng.random(len(secrets)) < self.piecewise_share
        reports = np.empty(len(secrets))
        reports[is_piecewise] = piecewise.draw(secrets[is_piecewise], rng)
        reports[~is_piecewise] = duchi.draw(secrets[~is_piecewise], rng)
        return reports

    @override
    def _columns(self, codes: Ints) -> Floats:
        piecewise, duchi = self._arms
        if not self._intervals:
            return duchi._columns(codes)
        # A report tells through which mechanism it was made, so the columns stand side by side.
        point = codes >= self._intervals
        columns = np.empty((self.k, len(codes)))
        columns[:, ~point] = self.piecewise_share * piecewise._columns(codes[~point])
        rest = math.exp(-self.epsilon / 2)
        columns[:, point] = rest * duchi._columns(codes[point] - self._intervals)
        return columns

    @override
    def report_variance(self) -> Floats:
        # Both arms have the expectation t, so the variances average.
        share = self.piecewise_share
        piecewise, duchi = (arm.report_variance() for arm in self._arms)
        return share * piecewise + (1 - share) * duchi
