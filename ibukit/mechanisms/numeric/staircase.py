"""The staircase mechanism: noise whose density falls in steps by a factor e^-eps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Line
from ibukit.mechanisms.epsilon_range import MIN_EPSILON, MIN_PROBABILITY, check_epsilon
from ibukit.mechanisms.numeric.line_alphabet import as_real_line
from ibukit.mechanisms.numeric.windows import MIN_WINDOW_SHARE, RealReports
from ibukit.mechanisms.points.real_numbers import real_numbers


class _Classes(NamedTuple):
    """Intervals of reports, in units from the line's first value, and their classes.

    All reports of one class give the secrets densities in the same ratios.
    """

    breaks: Floats
    gaps: Floats
    repeated: NDArray[np.bool_]
    """True if an interval also stands for its copies farther out, each a step lower."""
    code: Ints
    """Class of each interval."""


@dataclass(frozen=True)
class Staircase(RealReports):
    r"""Staircase noise on a line: reports are real numbers.

    The density of the noise t is :math:`a\,e^{-j\,\varepsilon}`, where j is the number of steps
    that are at most :math:`|t|`, and
    :math:`a=\frac{1-e^{-\varepsilon}}{2D\,(\gamma+(1-\gamma)\,e^{-\varepsilon})}`. The steps are at
    :math:`(i + \gamma)\,D`, i = 0, 1, ..., and D = last - first is the line's width, the
    sensitivity of the paper. So `epsilon` holds for all pairs of secrets, tightly, and
    epsilon-local differential privacy is satisfied. `epsilon` is not a level per unit of distance:
    the densities given two neighbouring secrets differ by the factor :math:`e^{\varepsilon}` where
    a step lies between them. Reports fall into finitely many classes, because farther out the
    density repeats itself, a step lower. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two. Reports are real numbers in the units of the line, and may lie
        beyond its ends.
    epsilon : float
        Nats, for all pairs of secrets.
    gamma : float, optional
        Place of the step in each stretch of length D, from 0 to 1. By default
        :math:`1 / (1 + e^{\varepsilon / 2})`, at which the mean absolute noise is least;
        `least_variance_gamma` gives the gamma at which the variance is least.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 D to about 55, if there are fewer than two secrets,
        or if `gamma` is neither 0 nor a number from :math:`2^{-40}` to 1.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [geng2016] Geng and Viswanath, "The optimal noise-adding mechanism in differential privacy",
       IEEE Trans. Inf. Theory 62(2), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = Staircase(Line(0, 4), epsilon=1.0)
    >>> mechanism.m, round(mechanism.absolute_error, 4)  # 4 e^(1/2) / (e - 1)
    (9, 3.8381)
    >>> mechanism.tally(mechanism.randomize([0, 3, 4], np.random.default_rng(1))).n
    3
    """

    alphabet: Line
    epsilon: float
    gamma: float = None  # type: ignore[assignment]  # until it is made
    every_report_is_possible: ClassVar[bool] = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self, alphabet: Line | int, epsilon: float, gamma: float | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields; choose gamma if none is given."""
        self._keep(alphabet=as_real_line(self.alphabet))
        width = arguments.whole("number of secrets", len(self.alphabet), 2) - 1
        self._keep(epsilon=check_epsilon(self.epsilon, _rare_probability, MIN_EPSILON * width))
        gamma: Any = self.gamma
        if gamma is None:
            gamma = 1 / (1 + math.exp(self.epsilon / 2))
        else:
            gamma = arguments.fraction("gamma", gamma, "[]")
        if 0 < gamma < MIN_WINDOW_SHARE:
            raise ValueError(
                f"gamma must be 0 or at least {MIN_WINDOW_SHARE:.3g}, got {gamma}: the step is too "
                "narrow"
            )
        self._keep(gamma=gamma)

    @property
    def width(self) -> int:
        """The largest distance D between two secrets, also that between two steps."""
        return self.k - 1

    @property
    def _less(self) -> float:
        return math.exp(-self.epsilon)

    @property
    def _upper(self) -> float:
        """Probability that the noise lies before the step of its stretch of length D."""
        return self.gamma / (self.gamma + (1 - self.gamma) * self._less)

    @property
    def absolute_error(self) -> float:
        """Mean absolute noise, in units of the line."""
        return self.width * self._moment(1)

    @property
    def noise_variance(self) -> float:
        """Variance of the noise, in squared units of the line."""
        return self.width**2 * self._moment(2)

    def _moment(self, power: int) -> float:
        """The moment E|t / D|^power of the noise, for the powers 1 and 2."""
        # |t| / D = i + u, where the number i of whole stretches is geometric with ratio e^-eps, and
        # u in [0, 1) is independent of it: uniform before the step or after it. i1 and i2 are the
        # moments of i, `first` and `second` those of u.
        i1 = self._less / -math.expm1(-self.epsilon)
        i2 = i1 * (1 + self._less) / -math.expm1(-self.epsilon)
        g, upper = self.gamma, self._upper
        first = upper * g / 2 + (1 - upper) * (1 + g) / 2
        second = upper * g**2 / 3 + (1 - upper) * (1 + g + g**2) / 3
        return i1 + first if power == 1 else i2 + 2 * i1 * first + second

    @cached_property
    def _classes(self) -> _Classes:
        k, width, step = self.k, self.width, self.gamma * self.width
        x = np.arange(k)
        # The density given x steps down at x + (i + gamma) D and at x - (i + gamma) D. Such an end
        # is kept as an integer plus or minus gamma D: differences of rounded ends would lose
        # digits where the steps are narrow.
        wrapped = x[:-1] - width * ((x[:-1] + step) >= width)
        end = width + int(wrapped.min())
        # Beyond the first end to the right of the line all ends are those of x + gamma D, modulo
        # D: from there on the pattern of the intervals repeats itself, so one period is enough. The
        # left side mirrors the right one.
        whole = np.concatenate([x, width + wrapped, [end, end + width]])
        whole, sign = np.r_[whole, width - whole], np.repeat([1.0, -1.0], len(whole))
        at = whole + sign * step
        order = np.argsort(at, kind="stable")
        order = order[(at[order] >= -end - step) & (at[order] <= end + width + step)]
        gaps = np.diff(whole[order]) + np.diff(sign[order]) * step
        # Two ends that differ only by rounding are taken as one.
        order = order[np.r_[True, gaps > 8 * np.spacing(2.0 * width)]]
        breaks, gaps = at[order], np.diff(whole[order]) + np.diff(sign[order]) * step
        low, high = width - end - step, end + step
        middles = (breaks[1:] + breaks[:-1]) / 2
        return _Classes(breaks, gaps, (middles > high) | (middles < low), self._codes(middles))

    def _steps(self, points: Floats, secrets: Ints) -> Ints:
        """Number of steps down from the density at each secret to that at each point."""
        away = np.abs(points - secrets)
        return np.floor(away / self.width - self.gamma).astype(np.int64) + 1

    def _codes(self, points: Floats) -> Ints:
        """Classes of points, numbered in the order of the steps of the secrets."""
        # The number of steps grows with the distance from the point, and differs by at most 1. So a
        # class is two numbers: how many secrets to the left of the nearest one, and how many to the
        # right of it, are a step lower than it. Both are found by bisection.
        nearest = np.clip(np.rint(points), 0, self.k - 1).astype(np.int64)
        least = self._steps(points, nearest)
        counts = []
        for side in (-1, 1):
            size = nearest if side == -1 else self.k - 1 - nearest
            near, far = np.zeros_like(size), size + 1
            while (open_ := far - near > 1).any():
                middle = (near + far) // 2
                lower = self._steps(points, nearest + side * middle) > least
                far = np.where(open_ & lower, middle, far)
                near = np.where(open_ & ~lower, middle, near)
            counts.append(size + 1 - far)
        left, right = counts
        # As sequences of 0 and 1, longer runs of ones at the start come later, and so do longer
        # ones at the end.
        _, code = np.unique(left * (self.k + 1) + right, return_inverse=True)
        return code

    @property
    @override
    def m(self) -> int:
        return int(self._classes.code.max()) + 1

    @override
    def _columns(self, codes: Ints) -> Floats:
        breaks, gaps, repeated, code = self._classes
        height = -math.expm1(-self.epsilon) / (
            2 * self.width * (self.gamma + (1 - self.gamma) * self._less)
        )
        # The intervals of the classes, and the columns to which they are added.
        places = np.full(self.m, -1)
        places[codes] = np.arange(len(codes))
        seen = np.flatnonzero(places[code] >= 0)
        middles = (breaks[seen] + breaks[seen + 1]) / 2
        steps = self._steps(middles, np.arange(self.k)[:, None])
        # Copies of an interval farther out have e^-eps, e^-2eps, ... of its mass: a geometric sum.
        copies = np.where(repeated[seen], 1 / -math.expm1(-self.epsilon), 1.0)
        masses = height * np.exp(-self.epsilon * steps) * (gaps[seen] * copies)
        columns = np.zeros((len(codes), self.k))
        np.add.at(columns, places[code[seen]], masses.T)
        return np.ascontiguousarray(columns.T)

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        breaks, _, _, code = self._classes
        # Reports beyond the repeated period are shifted back into it by whole widths.
        at = real_numbers("reports", reports) - self.alphabet.first
        low, high = breaks[0] + self.width, breaks[-1] - self.width
        at = np.where(at > high, high + np.fmod(at - high, self.width), at)
        at = np.where(at < low, low - np.fmod(low - at, self.width), at)
        return code[np.clip(np.searchsorted(breaks, at, side="right") - 1, 0, len(code) - 1)]

    @override
    def restore_reports(self, kept: NDArray[Any]) -> Floats:
        breaks, _, _, code = self._classes
        _, one = np.unique(code, return_index=True)
        return self.alphabet.first + (breaks[1:] + breaks[:-1])[one[kept]] / 2

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        if self._has_own_matrix:
            return super().draw(secrets, rng)
        n = len(secrets)
        # The composition of the paper: a geometric number of stretches, one of the two parts of the
        # stretch, a uniform place in the part, and a sign.
        stretch = rng.geometric(-math.expm1(-self.epsilon), n) - 1.0
        place = rng.random(n)
        upper = rng.random(n) < self._upper
        away = stretch + np.where(upper, self.gamma * place, self.gamma + (1 - self.gamma) * place)
        return self.alphabet.first + (secrets + rng.choice([-1, 1], n) * away * self.width)


def least_variance_gamma(epsilon: float) -> float:
    """The gamma of `Staircase` at which the variance of the noise is least.

    It is -b / (1-b) + (b - 2 b^2 + 2 b^4 - b^5)^(1/3) / (2^(1/3) (1-b)^2) with b = e^-eps.

    Parameters
    ----------
    epsilon : float
        Nats, above 0.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0.

    References
    ----------
    .. [geng2016] Geng and Viswanath, "The optimal noise-adding mechanism in differential privacy",
       IEEE Trans. Inf. Theory 62(2), 2016.

    Examples
    --------
    >>> round(least_variance_gamma(1.0), 4)
    0.4167
    """
    eps = arguments.positive("epsilon", epsilon)
    b = math.exp(-eps)
    # The polynomial factors: b - 2 b^2 + 2 b^4 - b^5 = b (1-b)^3 (1+b). So gamma is (r - b) / (1-b)
    # with r^3 = b (1+b) / 2. For small eps both r and b are near 1; without cancellation
    #     r - b = (r^3 - b^3) / (r^2 + r b + b^2),   r^3 - b^3 = b (1-b) (1+2b) / 2.
    r = math.cbrt(b * (1 + b) / 2)
    return b * (1 + 2 * b) / 2 / (r * r + r * b + b * b) if math.expm1(-eps) else 0.5


def _rare_probability(epsilon: float) -> float:
    """Width of the default first step, scaled so that the least that doubles resolve is 2^-53."""
    narrow = 1 / (1 + math.exp(epsilon / 2))
    return narrow * MIN_PROBABILITY / MIN_WINDOW_SHARE
