"""Two-sided geometric noise, truncated to a line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import LineChannel
from ibukit.domain.alphabet import Line
from ibukit.domain.labels import CountsLike, aligned_counts
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.numeric.geometric_noise import GeometricNoise, check_noise_epsilon
from ibukit.mechanisms.numeric.line_alphabet import as_line
from ibukit.mechanisms.truth import truthful_at_infinity
from ibukit.privacy import closed_forms
from ibukit.tally.tally import Tally


@truthful_at_infinity
@dataclass(frozen=True)
class TruncatedGeometric(FiniteMechanism):
    r"""Geometric noise, moved to the nearest element of the line.

    .. math:: P(z\mid x)=c_z\,a^{|z-x|},\qquad a=e^{-\varepsilon},

    with :math:`c_z=\frac{1-a}{1+a}` inside and :math:`c_z=\frac{1}{1+a}` at the two ends. These
    probabilities satisfy epsilon-d-privacy with :math:`d(x,y)=|x-y|`, tightly. Reports are
    simulated, see `Mechanism`. The inverse of the matrix is tridiagonal, so `inv` takes O(k).

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two, which are also the reports (as codes 0..k-1).
    epsilon : float
        Nats per unit of the line. inf releases the truth: the matrix is the identity.

    Raises
    ------
    ValueError
        If `epsilon` is neither inf nor a number from 5e-15 to 36.0 (the range of
        `LinearGeometric`), or if there are fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, eqs (7)-(11).
    .. [kacem] Kacem and Palamidessi, "Geometric noise for locally private counting queries", PLAS
       2018, eq. (5).

    Examples
    --------
    >>> TruncatedGeometric(Line(0, 2), epsilon=1.0).matrix().round(4)
    array([[0.7311, 0.17  , 0.0989],
           [0.2689, 0.4621, 0.2689],
           [0.0989, 0.17  , 0.7311]])
    """

    alphabet: Line
    epsilon: float
    metric = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(
            alphabet=as_line(self.alphabet),
            epsilon=check_noise_epsilon(self.epsilon, truthful=True),
        )
        arguments.whole("number of secrets", len(self.alphabet), 2)

    @property
    def _noise(self) -> GeometricNoise:
        return GeometricNoise(self.alphabet, self.epsilon)

    @property
    def decay(self) -> float:
        r"""Ratio :math:`a=e^{-\varepsilon}` of the probabilities of neighbouring reports."""
        return self._noise.decay

    @cached_property
    def _factors(self) -> Floats:
        """Factors c_z of the columns, shape (k,)."""
        # At an end the whole tail of the noise is reported there: (1 - a)/(1 + a) sum_j a^j.
        c = np.full(self.k, -np.expm1(-self.epsilon) / (1 + self.decay))
        c[[0, -1]] = 1 / (1 + self.decay)
        return c

    @override
    def make_matrix(self) -> Floats:
        return self._factors * np.exp(-self.epsilon * self.alphabet.distances())

    @override
    def channel(self, reports: NDArray[Any]) -> LineChannel:
        return LineChannel(self.k, self.decay, reports, self._factors[reports])

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        return self._noise.truncate(self._noise.draw(secrets, rng))

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population in O(k).

        Values beyond an end are reported as that end.
        """
        rng = arguments.generator(rng)
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        # Everybody whose noise leads beyond an end is counted at that end.
        reported, beyond_first, beyond_last = self._noise.spread(counts, rng)
        reported[-1] += beyond_last
        reported[0] += beyond_first
        return self.tally_counts(reported)

    @override
    def _solve(self, q: Floats) -> Floats:
        # The closed form holds for the exact type: a class that inherits may have another law, and
        # nothing would certify the result.
        if type(self) is not TruncatedGeometric:
            return super()._solve(q)
        # M = K diag(c) with K_xz = a^|x - z|, and (1 - a^2) K^-1 is tridiagonal: 1 + a^2 on the
        # diagonal (1 at the two ends), -a beside it.
        a = self.decay
        u = q / self._factors
        v = (1 + a * a) * u
        v[[0, -1]] = u[[0, -1]]
        v[1:] -= a * u[:-1]
        v[:-1] -= a * u[1:]
        return v / -np.expm1(-2 * self.epsilon)


@exact_sampler(TruncatedGeometric)
def _truncated_geometric_sampler(mechanism: TruncatedGeometric) -> exact.ExactSampler:
    noise = mechanism._noise
    return exact.ExactSampler(
        lambda secrets, random_bits: noise.truncate(noise.draw_exactly(secrets, random_bits)),
        lambda: mechanism.epsilon,
    )


closed_forms.register(
    TruncatedGeometric,
    closed_forms.ClosedForms(
        epsilon=lambda mechanism, metric: (
            mechanism.epsilon if metric else mechanism.epsilon * (mechanism.k - 1)
        ),
        log_matrix=lambda mechanism: (
            np.log(mechanism._factors) - mechanism.epsilon * mechanism.alphabet.distances()
        ),
    ),
)
