"""Laplace noise on a line whose reports are real numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels.points import LaplaceChannel
from ibukit.domain.alphabet import Line, require_bounded
from ibukit.domain.report_kind import ReportKind
from ibukit.exact import ExactSampler
from ibukit.mechanisms.epsilon_range import finite_epsilon
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.numeric.line_alphabet import as_real_line
from ibukit.mechanisms.points.lattice import LineLattice
from ibukit.mechanisms.points.merging import Merged
from ibukit.mechanisms.points.point_reports import PointReports


@dataclass(frozen=True)
class LinearLaplacePoints(PointReports):
    """Laplace noise on a line whose reports are real numbers.

    `LinearLaplace.tally_points` counts such reports.

    The density of z given x is (eps/2) e^(-eps |z - x|). This satisfies epsilon-d-privacy with d(x,
    y) = |x - y|, tightly.

    `release` draws a point of a lattice with a probability proportional to this density, and rounds
    it to a double. The lattice divides each unit into an odd number of steps of at most 2^-20 /
    eps. So the likelihood of a number is still the density, times a constant. The probability of
    any set of points of the lattice is that of the stretches around them, times a factor between
    e^-eta and e^eta with eta = 2^-20 < 1e-6. So the divergence of the two laws is below 1e-12 nats
    per report.

    Parameters
    ----------
    alphabet : Line
        The k secrets. Reports are real numbers in the line's units.
    epsilon : float
        Nats per unit of the line.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0.
    TypeError
        If `alphabet` is not a Line.
    NoExactSampler
        By `release`, if `epsilon` is below 2^-50, or above 2^41 divided by the number of secrets,
        because noise on the lattice would leave the whole numbers of 64 bits.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.LinearLaplace(Line(17, 90), epsilon=0.1)
    >>> mechanism.tally_points(mechanism.of_points.release([17, 33, 90])).n
    3
    """

    alphabet: Line
    epsilon: float
    metric = True
    dimension: ClassVar[int] = 1
    report_kind: ClassVar[ReportKind] = ReportKind.NUMBERS
    # This is less than for other noise: on a line merging costs next to nothing, and iterations
    # over many reports take minutes.
    most_entries: ClassVar[int] = 2**22

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_real_line(self.alphabet), epsilon=finite_epsilon(self.epsilon))
        require_bounded(self.alphabet)

    @property
    @override
    def side(self) -> float:
        return 1.0

    @override
    def logs(self, points: Floats) -> Floats:
        place = points[:, 0] - self.alphabet.first
        nearest = np.abs(place - np.clip(np.rint(place), 0, self.k - 1))
        return -self.epsilon * (np.abs(place - np.arange(self.k)[:, None]) - nearest)

    @override
    def log_largest(self, points: Floats) -> Floats:
        nearest = np.clip(np.rint(points[:, 0]), self.alphabet.first, self.alphabet.last)
        return math.log(self.epsilon / 2) - self.epsilon * np.abs(points[:, 0] - nearest)

    @override
    def merging_bound(self, means: Floats, merged: Merged) -> Floats:
        """Bound on what merging may cost, for each of the original points, shape (n,).

        Between two neighbours the density of z is a sum of multiples of e^(eps z) and e^(-eps z).
        So at a distance t from the mean its logarithm, apart from a term linear in t, is larger by
        at most (eps t)^2 / 2. Beyond an end of the line the logarithm is linear.
        """
        place = means[:, 0] - self.alphabet.first
        inside = (place > 0) & (place < self.k - 1)
        return (self.epsilon * merged.apart) ** 2 / 2 * inside[merged.group]

    @override
    def channel(self, reports: NDArray[Any]) -> LaplaceChannel:
        # Secrets up to `below` are to the left of the report, the others to the right. Each side is
        # a geometric sequence that begins at the report's neighbour on that side, at the distance
        # low or high. Densities are relative to that of the nearer neighbour.
        place = reports[:, 0] - self.alphabet.first
        below = np.clip(np.floor(place), -1, self.k - 1)
        low, high = place - below, below + 1 - place
        # Beyond an end there is one neighbour, and the entry of the other is not used.
        nearest = np.where(
            below < 0, high, np.where(below == self.k - 1, low, np.minimum(low, high))
        )
        low, high = (np.exp(-self.epsilon * np.maximum(away - nearest, 0)) for away in (low, high))
        return LaplaceChannel(self.k, math.exp(-self.epsilon), below.astype(np.int64), low, high)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        return (
            self.alphabet.first + secrets + rng.laplace(scale=1 / self.epsilon, size=len(secrets))
        )


@exact_sampler(LinearLaplacePoints)
def _linear_laplace_points_sampler(mechanism: LinearLaplacePoints) -> ExactSampler:
    return ExactSampler(
        LineLattice(mechanism.alphabet, mechanism.epsilon).points, lambda: mechanism.epsilon
    )
