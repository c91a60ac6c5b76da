"""k-ary randomized response (k-RR)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import ResponseChannel
from ibukit.domain.alphabet import Alphabet, AlphabetLike, as_alphabet
from ibukit.domain.labels import CountsLike, aligned_counts
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.epsilon_range import check_epsilon, level_of_equal_pairs
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.truth import truthful_at_infinity
from ibukit.privacy import closed_forms
from ibukit.tally.tally import Tally


@truthful_at_infinity
@dataclass(frozen=True)
class RandomizedResponse(FiniteMechanism):
    r"""k-RR: the report is the secret with a probability, or else any of the others.

    .. math::

        P(z\mid x)=\begin{cases}
        \dfrac{e^\varepsilon}{k-1+e^\varepsilon}&\text{if }z=x,\\[1ex]
        \dfrac{1}{k-1+e^\varepsilon}&\text{else.}
        \end{cases}

    The matrix satisfies epsilon-local differential privacy, tightly. Reports are simulated, see
    `Mechanism`.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets, which are also the reports; an int k means Line(0, k - 1).
    epsilon : float
        Nats, for all pairs of secrets. inf releases the truth: the matrix is the identity.

    Raises
    ------
    ValueError
        If `epsilon` is neither inf nor a number from 5e-15 to about :math:`36.7 + \log (k - 1)`
        (where P(truth) rounds to 1 in doubles), or if there are fewer than two secrets.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, eq. (5).

    Examples
    --------
    >>> RandomizedResponse(3, epsilon=1.0).matrix().round(4)
    array([[0.5761, 0.2119, 0.2119],
           [0.2119, 0.5761, 0.2119],
           [0.2119, 0.2119, 0.5761]])
    """

    alphabet: Alphabet
    epsilon: float

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: AlphabetLike, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        others = arguments.whole("number of secrets", len(self.alphabet), 2) - 1
        self._keep(
            epsilon=check_epsilon(self.epsilon, lambda eps: others * math.exp(-eps), truthful=True)
        )

    @property
    def truth(self) -> float:
        r"""Probability of reporting the secret itself.

        It is :math:`\frac{e^{\varepsilon}}{k - 1 + e^{\varepsilon}}`.
        """
        return float(1 / (1 + (self.k - 1) * np.exp(-self.epsilon)))

    @property
    def lie(self) -> float:
        r"""Probability of each other report, :math:`1 / (k - 1 + e^{\varepsilon})`."""
        return float(self.truth * np.exp(-self.epsilon))

    @override
    def make_matrix(self) -> Floats:
        matrix = np.full((self.k, self.k), self.lie)
        np.fill_diagonal(matrix, self.truth)
        return matrix

    @override
    def channel(self, reports: NDArray[Any]) -> ResponseChannel:
        return ResponseChannel(self.k, reports, self.truth, self.lie)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        # A lie is uniform among the other k - 1 values: 1 to k - 1 places after the secret, cyclic.
        other = rng.integers(1, self.k, size=len(secrets))
        honest = rng.random(len(secrets)) < self.truth
        return np.where(honest, secrets, (secrets + other) % self.k)

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population in O(k).

        With probability truth - lie a report is the secret, otherwise a uniform draw from all
        values.
        """
        rng = arguments.generator(rng)
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        honest = rng.binomial(counts, self.truth - self.lie)
        uniform = rng.multinomial(counts.sum() - honest.sum(), np.full(self.k, 1 / self.k))
        return self.tally_counts(honest + uniform)

    @override
    def _solve(self, q: Floats) -> Floats:
        # The closed form holds for the exact type: a class that inherits may have another law, and
        # nothing would certify the result.
        if type(self) is not RandomizedResponse:
            return super()._solve(q)
        # (q - lie sum q) / (truth - lie), with the difference computed without cancellation, so
        # that it stays above 0 for the smallest epsilon.
        return (q - self.lie * q.sum()) / (self.truth * -np.expm1(-self.epsilon))


closed_forms.register(
    RandomizedResponse,
    closed_forms.ClosedForms(
        level_of_equal_pairs,
        lambda mechanism, prior: closed_forms.two_valued_information(
            mechanism.truth, mechanism.lie, prior
        ),
    ),
)


@exact_sampler(RandomizedResponse)
def _randomized_response_sampler(mechanism: RandomizedResponse) -> exact.ExactSampler:
    lie = exact.odds(mechanism.k - 1, Fraction(mechanism.epsilon))
    return exact.ExactSampler(
        lambda secrets, random_bits: exact.randomized_response(
            secrets, mechanism.k, lie, random_bits
        ),
        lambda: mechanism.epsilon,
    )
