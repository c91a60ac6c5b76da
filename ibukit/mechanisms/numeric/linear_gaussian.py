"""Gaussian noise on a line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Line, require_bounded
from ibukit.domain.report_kind import ReportKind
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.mechanisms.numeric.gaussian_noise import (
    check_sigma,
    distance_beyond,
    log_ratio_to_nearest,
)
from ibukit.mechanisms.numeric.line_alphabet import as_real_line
from ibukit.mechanisms.points.gaussian_points import (
    GaussianPoints,
    ascending_edges,
    masses_between,
)


@dataclass(frozen=True)
class LinearGaussian(GaussianPoints):
    r"""Gaussian noise on a line: reports are real numbers.

    The density of z given x is :math:`e^{-(z - x)^{2} / (2\,\sigma^{2})} /
    (\sigma\,\sqrt{2\,\pi})`. No finite pure epsilon holds. For secrets at distance d the noise
    satisfies :math:`d^2/(2\sigma^2)`-zCDP, and :math:`(\varepsilon, \delta)`-differential privacy
    with the exact :math:`\delta` that `delta` returns. `tally.forward` and `tally.log_scale` refer
    to densities. If many reports would make a large matrix, reports close together are merged into
    their mean; see `merging_loss` in `ibukit.mechanisms.points`. Reports are simulated, see
    `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets; reports are real numbers in the units of the line.
    sigma : float
        Standard deviation of the noise, in units of the line.

    Raises
    ------
    ValueError
        If `sigma` is not a number from 1e-50 to 1e50.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [balle2018] Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML
       2018, theorem 8.

    Examples
    --------
    >>> mechanism = LinearGaussian(Line(0, 9), sigma=3.0)
    >>> mechanism.tally([-3.4, 4.1, 12.9]).n
    3
    >>> round(mechanism.delta(epsilon=1.0, distance=1), 6)
    0.000208
    """

    alphabet: Line
    sigma: float
    every_report_is_possible: ClassVar[bool] = True
    dimension: ClassVar[int] = 1
    report_kind: ClassVar[ReportKind] = ReportKind.NUMBERS

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: Line | int, sigma: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_real_line(self.alphabet), sigma=check_sigma(self.sigma))
        require_bounded(self.alphabet)

    @property
    @override
    def diameter(self) -> float:
        return float(self.k - 1)

    @override
    def logs(self, points: Floats) -> Floats:
        return log_ratio_to_nearest(self.alphabet, points[:, 0], self.sigma)

    @override
    def log_largest(self, points: Floats) -> Floats:
        # The normal density at the distance beyond the nearest value of the line.
        level = math.log(self.sigma) + math.log(2 * math.pi) / 2
        return -(distance_beyond(self.alphabet, points[:, 0]) ** 2) / (2 * self.sigma**2) - level

    def binned(self, edges: ArrayLike) -> MatrixMechanism:
        """The mechanism whose reports are binned.

        Code i stands for reports from edges_(i-1) to edges_i; the first and the last bin have no
        end.

        Parameters
        ----------
        edges : array_like, shape (m - 1,)
            Ascending numbers that separate m bins.

        Returns
        -------
        MatrixMechanism, m reports
        """
        at = ascending_edges("edges", edges)
        return MatrixMechanism(masses_between(self.alphabet.values, at, self.sigma), self.alphabet)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        return self.alphabet.first + secrets + self.sigma * rng.standard_normal(len(secrets))
