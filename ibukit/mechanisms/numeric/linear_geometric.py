"""Two-sided geometric noise on the integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import LineChannel
from ibukit.channels.line import split_factor
from ibukit.domain.alphabet import Line
from ibukit.domain.labels import CountsLike, aligned_counts
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.mechanisms.numeric.geometric_noise import GeometricNoise, check_noise_epsilon
from ibukit.mechanisms.numeric.line_alphabet import as_line
from ibukit.mechanisms.numeric.truncated_geometric import TruncatedGeometric
from ibukit.mechanisms.saturation import differences
from ibukit.tally.tally import Tally, make_tally_part


@dataclass(frozen=True)
class LinearGeometric(Mechanism):
    r"""Geometric noise on all integers.

    .. math::

        P(z\mid x)=\frac{1-a}{1+a}\,a^{|z-x|}\text{ for every integer }z,\qquad a=e^{-\varepsilon}.

    These probabilities satisfy epsilon-d-privacy with :math:`d(x,y)=|x-y|`, tightly. Reports are
    simulated, see `Mechanism`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets; reports may be any integers (labels of the line continued in both directions,
        not codes). The line itself may have no end: secrets are then labels as well.
    epsilon : float
        Nats per unit of the line.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 36.0. Below this range noise can exceed
        :math:`2^{53}`, beyond which every double is an even number, so that a report shows whether
        its secret is even; just above the range numpy draws no noise but 0.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, eq. (6).
    .. [ghosh] Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy
       mechanisms", STOC 2009.

    Examples
    --------
    >>> mechanism = LinearGeometric(Line(0, 9), epsilon=0.5)
    >>> tally = mechanism.tally([-3, 4, 4, 12])
    >>> tally.counts
    array([1, 2, 1])

    If the alphabet is unbounded, the estimate covers only the values between the reports:

    >>> LinearGeometric(Line(0, None), epsilon=0.5).tally([-3, 4, 4, 12]).alphabet
    Line(0, 12)
    """

    alphabet: Line
    epsilon: float
    metric = True
    every_report_is_possible: ClassVar[bool] = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_line(self.alphabet), epsilon=check_noise_epsilon(self.epsilon))

    @property
    def _noise(self) -> GeometricNoise:
        return GeometricNoise(self.alphabet, self.epsilon)

    @property
    def decay(self) -> float:
        r"""Ratio :math:`a=e^{-\varepsilon}` of the probabilities of neighbouring reports."""
        return self._noise.decay

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        return arguments.integers("reports", reports)

    @override
    def channel(self, reports: NDArray[Any]) -> LineChannel:
        """Forward and adjoint on the given reports, in O(k + s).

        The probability of a report beyond an end is that of the end, times a factor of its own.
        """
        # Reports beyond an end are moved to it, and their factor a^distance goes into the scale.
        scale, _ = split_factor(self._log_factor(reports))
        return LineChannel(self.k, self.decay, self._noise.truncate(reports), scale)

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats:
        """Logarithm of the factor that `channel` omits for reports far outside the line.

        Without this, their probability would underflow.
        """
        return split_factor(self._log_factor(reports))[1]

    @override
    def as_finite(self) -> FiniteMechanism:
        """The truncated kind, which has the same information.

        The columns beyond an end are multiples of the column at the end.
        """
        if type(self) is not LinearGeometric:
            return super().as_finite()  # a class that inherits may have another law
        # Columns beyond an end are multiples of that end's column, so they say no more than it.
        if self.k == 1:
            return MatrixMechanism([[1.0]], self.alphabet)
        return TruncatedGeometric(self.alphabet, self.epsilon)

    def _log_factor(self, reports: Ints) -> Floats:
        """Logarithm of (1 - a) / (1 + a), times a for each unit beyond an end."""
        beyond = np.maximum(
            np.maximum(
                differences(reports, np.array(self.alphabet.last)),
                differences(np.array(self.alphabet.first), reports),
            ),
            0,
        )
        return np.log(-np.expm1(-self.epsilon)) - np.log1p(self.decay) - self.epsilon * beyond

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        return self._noise.draw(secrets, rng)

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population in O(k + spread).

        It moves the users together, step by step, because the noise has no memory.
        """
        rng = arguments.generator(rng)
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        # Counts on the line by the memoryless walk of the noise, then the tails beyond both ends.
        inside, beyond_first, beyond_last = self._noise.spread(counts, rng)
        above, stopped_above = self._noise.tail(beyond_last, rng)
        below, stopped_below = self._noise.tail(beyond_first, rng)
        reports = np.concatenate(
            [self.alphabet.first - below, self.alphabet.values, self.alphabet.last + above]
        )
        return Tally(
            (
                make_tally_part(
                    self, reports, np.concatenate([stopped_below, inside, stopped_above])
                ),
            )
        )


@exact_sampler(LinearGeometric)
def _linear_geometric_sampler(mechanism: LinearGeometric) -> exact.ExactSampler:
    return exact.ExactSampler(mechanism._noise.draw_exactly, lambda: mechanism.epsilon)
