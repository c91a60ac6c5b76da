"""The piecewise mechanism for a mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Line
from ibukit.mechanisms.epsilon_range import MIN_PROBABILITY
from ibukit.mechanisms.numeric.unbiased_numbers import UnbiasedNumbers
from ibukit.mechanisms.numeric.windows import MIN_WINDOW_SHARE, WindowReports, Windows


@dataclass(frozen=True)
class Piecewise(WindowReports, UnbiasedNumbers):
    r"""The piecewise mechanism for a mean.

    The values of the line stand for equally spaced numbers t from -1 to 1. Reports are real numbers
    from -C to C, with :math:`C=\frac{e^{\varepsilon/2}+1}{e^{\varepsilon/2}-1}`. Their density is
    :math:`p=\frac{e^\varepsilon-e^{\varepsilon/2}}{2e^{\varepsilon/2}+2}` on the interval of length
    C - 1 that begins at (C+1) t / 2 - (C-1) / 2, and :math:`p\,e^{-\varepsilon}` elsewhere. The
    expectation of a report is t. With k secrets, at most 2k - 1 intervals of reports need to be
    told apart. These probabilities satisfy epsilon-local differential privacy, tightly. Reports are
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
        If `epsilon` is not a number from 5e-15 to about 55 (above it, the window is too narrow for
        doubles), or if there are fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [wang2019] Wang et al., "Collecting and analyzing multidimensional data with local
       differential privacy", ICDE 2019, section III-B.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> mechanism = Piecewise(ik.Line(0, 4), epsilon=1.0)
    >>> reports = mechanism.randomize([0, 1, 4] * 1000, np.random.default_rng(1))
    >>> bool(abs(mechanism.estimate_mean(reports) - 5 / 3) < 0.3)
    True
    """

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    every_report_is_possible: ClassVar[bool] = True

    @staticmethod
    @override
    def _rare_probability(epsilon: float) -> float:
        # A window is the part (C - 1) / 2C = 1 / (e^(eps/2) + 1) of the support, and a report is
        # outside it with the same probability. The width is the stricter limit: see
        # MIN_WINDOW_SHARE.
        return 1 / (math.exp(epsilon / 2) + 1) * MIN_PROBABILITY / MIN_WINDOW_SHARE

    @property
    def largest(self) -> float:
        r"""The largest report C, coth(:math:`\varepsilon / 4`)."""
        return 1 / math.tanh(self.epsilon / 4)

    @property
    @override
    def windows(self) -> Windows:
        # The width is C - 1, and the windows' starts go from -C to 1 in equal steps.
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
        # Published: t^2 / (e^(eps/2) - 1) + (e^(eps/2) + 3) / (3 (e^(eps/2) - 1)^2).
        less, half = math.expm1(self.epsilon / 2), math.exp(self.epsilon / 2)
        return self.numbers**2 / less + (half + 3) / (3 * less**2)
