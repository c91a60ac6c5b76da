"""The square wave mechanism for numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Line
from ibukit.mechanisms.epsilon_range import MIN_PROBABILITY, check_epsilon
from ibukit.mechanisms.numeric.line_alphabet import as_line
from ibukit.mechanisms.numeric.windows import MIN_WINDOW_SHARE, WindowReports, Windows

# Below this epsilon the numerator and the denominator of b(eps) are summed as power series: their
# closed forms, such as e^eps - 1 - eps, would cancel. 18 terms reach the last digit of a double.
SERIES_EPSILON = 0.5
SERIES = np.array([1 / math.factorial(n) for n in range(2, 20)])


def half_width(epsilon: float) -> float:
    r"""Half the width of a window on the paper's scale, from 1/2 down to 0.

    .. math::
       b=\frac{\varepsilon e^\varepsilon-e^\varepsilon+1}
              {2e^\varepsilon(e^\varepsilon-1-\varepsilon)}
    """
    if epsilon < SERIES_EPSILON:
        # Both divided by eps^2: sum_n (-eps)^n / (n + 2)! over sum_n eps^n / (n + 2)!, times 1/2.
        above, below = (
            float(SERIES @ sign ** np.arange(len(SERIES))) for sign in (-epsilon, epsilon)
        )
        return above / below / 2
    # Numerator and denominator are divided by e^eps.
    return (epsilon + math.expm1(-epsilon)) / (math.expm1(epsilon) - epsilon) / 2


@dataclass(frozen=True)
class SquareWave(WindowReports):
    r"""The square wave mechanism for numbers.

    The k values of the line stand for the middles :math:`v_{x} = (x + 1 / 2) / k` of k equal bins
    of [0, 1]. Reports are real numbers from -b to 1 + b. Their density is
    :math:`p=\frac{e^\varepsilon}{2b\,e^\varepsilon+1}` within b of :math:`v_{x}`, and
    :math:`q = p\,e^{-\varepsilon}` elsewhere, with

    .. math::

        b=\frac{\varepsilon
        e^\varepsilon-e^\varepsilon+1}{2e^\varepsilon(e^\varepsilon-1-\varepsilon)}.

    Between two neighbouring ends of such windows the density is constant for every secret, so the
    likelihood is exact with at most 2k + 1 intervals of reports. These probabilities satisfy
    epsilon-local differential privacy, tightly. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two. Reports are numbers on the scale on which the line is [0, 1];
        those outside [0, 1] carry as much information as the others, and must not be clipped.
    epsilon : float
        Nats, for all pairs of secrets.
    secrets : {"centre", "uniform"}
        Place of a secret in its bin. "centre", the default: in the middle, which is exact if the
        secrets are the k values themselves. "uniform": anywhere in the bin, which models continuous
        numbers that were cut into bins; reports must then be binned, too, because no finite number
        of intervals carries all the information.
    report_bins : int, optional
        Number of equal bins of [-b, 1 + b] in which reports are counted; the likelihood is exact
        for binned reports. By default reports are counted in the intervals above for "centre", and
        in k bins for "uniform", as in the paper. The tight level of binned reports may be below
        `epsilon`.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to about 31 (above it, the window is too narrow for
        doubles), if there are fewer than two secrets, or if another argument is not as above.
    TypeError
        If `alphabet` is not a Line.

    Notes
    -----
    If both reports and secrets are binned, the matrix may be nearly singular: at k = 256 and
    :math:`\varepsilon = 1`, with as many bins of reports as of secrets, its condition number is
    above 1e15, against 555 with the intervals of "centre" and 589 for `DiscreteSquareWave`. The
    maximum likelihood estimate is then a row of a few spikes. `ibukit.smooth` gives a smooth
    estimate.

    References
    ----------
    .. [li2020] Li, Wang, Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions
       under local differential privacy", SIGMOD 2020.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = SquareWave(Line(0, 4), epsilon=1.0)
    >>> round(mechanism.b, 4), mechanism.m
    (0.2561, 11)
    >>> reports = mechanism.randomize([0, 0, 4], np.random.default_rng(1))
    >>> mechanism.tally(reports).n
    3
    """

    alphabet: Line
    epsilon: float
    secrets: Literal["centre", "uniform"] = "centre"
    report_bins: int | None = None
    every_report_is_possible: ClassVar[bool] = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self,
            alphabet: Line | int,
            epsilon: float,
            secrets: Literal["centre", "uniform"] = "centre",
            report_bins: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(
            alphabet=as_line(self.alphabet), epsilon=check_epsilon(self.epsilon, _rare_probability)
        )
        k = arguments.whole("number of secrets", len(self.alphabet), 2)
        if not arguments.is_one_of(self.secrets, ("centre", "uniform")):
            raise ValueError(f'secrets must be "centre" or "uniform", got {self.secrets!r}')
        if self.report_bins is None and self.secrets == "uniform":
            self._keep(report_bins=k)
        if self.report_bins is not None:
            self._keep(report_bins=arguments.whole("report_bins", self.report_bins, 1))

    @property
    def b(self) -> float:
        """Half the width of a window."""
        return half_width(self.epsilon)

    @property
    @override
    def windows(self) -> Windows:
        places = 2 * np.arange(self.k) + 1
        return Windows(-self.b, 1 / (2 * self.k), 2 * self.b, places, 2 * self.k)

    @property
    @override
    def inside(self) -> float:
        return 2 * self.b / (2 * self.b + math.exp(-self.epsilon))

    @property
    @override
    def outside(self) -> float:
        return math.exp(-self.epsilon) / (2 * self.b + math.exp(-self.epsilon))

    @property
    @override
    def breaks(self) -> Floats:
        if self.report_bins is None:
            return super().breaks
        return np.linspace(-self.b, 1 + self.b, self.report_bins + 1)

    @override
    def _columns(self, codes: Ints) -> Floats:
        if self.report_bins is None:
            return super()._columns(codes)
        # Distances of the middles of report bins from those of secrets' bins, both shifted so that
        # they are symmetric around 0. The matrix is the low density on the whole report bin, and
        # the excess of the high one on the part of it that lies in the window.
        k, m, length = self.k, self.report_bins, 1 + 2 * self.b
        apart = ((2 * codes + 1 - m) / (2 * m) * length) - ((2 * np.arange(k) + 1 - k) / (2 * k))[
            :, None
        ]
        report, secret = length / m, 1 / k if self.secrets == "uniform" else 0.0
        more = -math.expm1(-self.epsilon) * self.inside / (2 * self.b)
        return self.outside * report + more * _mean_overlap(apart, report, secret, self.b)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        if self.report_bins is None:
            return super().draw(secrets, rng)
        n = len(secrets)
        v = (secrets + (rng.random(n) if self.secrets == "uniform" else 0.5)) / self.k
        near = np.minimum(v - self.b + 2 * self.b * rng.random(n), 1 + self.b)
        # The support without the window has length 1, wherever the window is: a uniform number
        # below v falls to the left of the window, one above it to the right.
        rest = rng.random(n)
        far = np.where(rest < v, rest - self.b, rest + self.b)
        return np.where(rng.random(n) < self.inside, near, far)


def _rare_probability(epsilon: float) -> float:
    """Probability of a report outside the window, or less if doubles hardly resolve the window."""
    b = half_width(epsilon)
    return min(
        math.exp(-epsilon) / (2 * b + math.exp(-epsilon)),
        2 * b * MIN_PROBABILITY / MIN_WINDOW_SHARE,
    )


def _mean_overlap(apart: Floats, report: float, secret: float, b: float) -> Floats:
    """Length of a report's bin within b of the secret, on average over the secret's bin.

    Parameters
    ----------
    apart : ndarray
        Distance of the bins' middles.
    report, secret : float
        Lengths of the bins; 0 for a secret in the middle of its bin.
    b : float
        Half the width of the window.
    """
    # For u uniform in the report's bin and v in the secret's, the area of the pairs with u - v <= c
    # is that of a triangle cut off a rectangle. It is summed from squares of clipped lengths:
    # second differences of c^2 / 2 would lose six digits at 1024 bins.
    low = apart - (report + secret) / 2  # the least u - v

    def mean_length_up_to(c: float) -> Floats:
        s = np.clip(c - low, 0, report + secret)
        if not secret:
            return s
        more = np.maximum(s - report, 0) ** 2 + np.maximum(s - secret, 0) ** 2
        return (s**2 - more) / 2 / secret

    return mean_length_up_to(b) - mean_length_up_to(-b)
