"""The square wave mechanism on whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Line
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.epsilon_range import check_epsilon
from ibukit.mechanisms.numeric.line_alphabet import as_line
from ibukit.mechanisms.numeric.square_wave import half_width


@dataclass(frozen=True)
class DiscreteSquareWave(FiniteMechanism):
    r"""The square wave on whole numbers.

    :math:`P(z \mid x) = e^{\varepsilon}\,q` if :math:`|z - x| \le b`, else q, for the k + 2b
    integers z from b below the line's first value to b above its last value. Here
    :math:`q=\frac{1}{(2b+1)\,e^\varepsilon+k-1}`, and b is k times the b of `SquareWave`, rounded
    down; with b = 0 the mechanism is k-RR. These probabilities satisfy epsilon-local differential
    privacy, tightly. Reports are simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two; reports are integers of the line extended by b at both ends.
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to about :math:`36.7 + \log (k - 1)` (above it, the
        probability of the truth rounds to 1 in doubles), or if there are fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [li2020] Li, Wang, Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions
       under local differential privacy", SIGMOD 2020, section 5.

    Examples
    --------
    >>> mechanism = DiscreteSquareWave(Line(1, 4), epsilon=1.0)
    >>> mechanism.b, mechanism.report_alphabet
    (1, Line(0, 5))
    >>> mechanism.matrix()[0].round(4)
    array([0.2437, 0.2437, 0.2437, 0.0896, 0.0896, 0.0896])
    """

    alphabet: Line
    epsilon: float

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_line(self.alphabet))
        k = arguments.whole("number of secrets", len(self.alphabet), 2)
        # The limit is that of k-RR, because b is 0 at so large an epsilon.
        self._keep(
            epsilon=check_epsilon(self.epsilon, lambda eps: (k - 1) / (k - 1 + math.exp(eps)))
        )

    @cached_property
    def b(self) -> int:
        """Largest distance from the secret at which a report has the higher probability."""
        return math.floor(self.k * half_width(self.epsilon))

    @property
    @override
    def m(self) -> int:
        return self.k + 2 * self.b

    @property
    @override
    def report_alphabet(self) -> Line:
        return Line(self.alphabet.first - self.b, self.alphabet.last + self.b)

    @override
    def make_matrix(self) -> Floats:
        near = np.abs(np.arange(self.m) - self.b - np.arange(self.k)[:, None]) <= self.b
        less = math.exp(-self.epsilon)
        return np.where(near, 1.0, less) / (2 * self.b + 1 + (self.k - 1) * less)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        n, window = len(secrets), 2 * self.b + 1
        near = secrets + rng.integers(window, size=n)
        # The k - 1 improbable reports are numbered from the left; those to the right of the window
        # are its width farther on.
        rest = rng.integers(self.k - 1, size=n)
        far = np.where(rest < secrets, rest, rest + window)
        inside = window / (window + (self.k - 1) * math.exp(-self.epsilon))
        return np.where(rng.random(n) < inside, near, far)
