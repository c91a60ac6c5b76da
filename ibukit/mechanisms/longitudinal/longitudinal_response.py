"""Memoised k-ary randomized response."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel
from ibukit.domain.alphabet import Alphabet, AlphabetLike, as_alphabet
from ibukit.domain.labels import CountsLike
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.categorical.randomized_response import RandomizedResponse
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.longitudinal.chances import check_levels
from ibukit.mechanisms.longitudinal.memoised import Memoised
from ibukit.tally.tally import Tally


@dataclass(frozen=True)
class LongitudinalResponse(Memoised, FiniteMechanism):
    r"""One report of memoised k-RR (L-GRR): fresh k-RR on a kept answer by k-RR.

    The first round is k-RR at `epsilon_inf`. The second is k-RR at the level that makes one report
    k-RR at `epsilon`, tightly: :math:`e^{\varepsilon_2}=1+\frac{c\,(A+k)}{A-c}` with
    :math:`A = e^{\varepsilon_{\mathrm{inf}}} - 1` and :math:`c = e^{\varepsilon} - 1`. (The formula
    of the paper that proposed L-GRR is this one for k = 2 only; for more secrets it leaves out the
    other k - 2 values that the kept answer may have, so that the reports are more private and less
    useful than asked for.) Reports are simulated, see `Mechanism`; for real people, `keep` draws
    the answer once, without roundings, and `release` draws one report of it in each round.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets, which are also the reports.
    epsilon : float
        The level of one report, nats, for all pairs of secrets.
    epsilon_inf : float
        The level of what is kept, and so of any number of reports; above `epsilon`.

    Raises
    ------
    ValueError
        If `epsilon` is not below `epsilon_inf`, if one of them is not a level of
        `RandomizedResponse`, or if there are fewer than two secrets.

    References
    ----------
    .. [longitudinal] Arcolezi, Couchot, Al Bouna and Xiao, "Improving the utility of locally
       differentially private protocols for longitudinal and multidimensional frequency estimates",
       Digital Commun. Netw. 2022.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = LongitudinalResponse(20, epsilon=1.0, epsilon_inf=2.0)
    >>> round(mechanism.second.epsilon, 4)
    2.371
    >>> bool(np.allclose(mechanism.kept.matrix() @ mechanism.second.matrix(), mechanism.matrix()))
    True
    """

    alphabet: Alphabet
    epsilon: float
    epsilon_inf: float

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: AlphabetLike, epsilon: float, epsilon_inf: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        first, permanent = check_levels(self.epsilon, self.epsilon_inf)
        self._keep(epsilon=first, epsilon_inf=permanent)
        self._keep(epsilon=self.once.epsilon, epsilon_inf=self.kept.epsilon)
        try:
            self.second  # noqa: B018
        except ValueError:
            raise ValueError(
                f"epsilon_inf must be farther above epsilon, got {permanent!r} and {first!r}: the "
                "second round would lie with a probability that rounds to 0 in doubles"
            ) from None

    @cached_property
    def once(self) -> RandomizedResponse:
        """k-RR with the law of one report."""
        return RandomizedResponse(self.alphabet, self.epsilon)

    @cached_property
    def kept(self) -> RandomizedResponse:
        """The first round, whose answer is kept."""
        return RandomizedResponse(self.alphabet, self.epsilon_inf)

    @cached_property
    def second(self) -> RandomizedResponse:
        """The second round: k-RR on the kept answer, drawn afresh in each round."""
        a, c = math.expm1(self.epsilon_inf), math.expm1(self.epsilon)
        # In two rounds P(truth) / P(a given lie) is, with B = e^eps2 - 1 and A, c as above,
        # 1 + A B / (A + B + k). It is e^epsilon for B = c (A + k) / (A - c), where A - c is
        # computed without cancellation.
        between = math.exp(self.epsilon) * math.expm1(self.epsilon_inf - self.epsilon)
        return RandomizedResponse(self.alphabet, math.log1p(c * (a + self.k) / between))

    @override
    def make_matrix(self) -> Floats:
        return self.once.make_matrix()

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        return self.once.channel(reports)

    @override
    def as_finite(self) -> FiniteMechanism:
        # By the exact type: a class that inherits may have another law.
        return self.once if type(self) is LongitudinalResponse else self

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        return self.second.draw(self.kept.draw(secrets, rng), rng)

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population in O(k), from the law of one report."""
        # A class that inherits may have another law, which its matrix says.
        if type(self) is not LongitudinalResponse:
            return super().simulate(secret_counts, rng)
        (part,) = self.once.simulate(secret_counts, rng).parts
        return Tally((part.with_mechanism(self),))

    @override
    def _respond_exactly(self, answers: NDArray[Any], random_bits: exact.RandomBits) -> Ints:
        return self.second._exact_sampler().draw(answers, random_bits)


@exact_sampler(LongitudinalResponse)
def _kept_answer_sampler(mechanism: LongitudinalResponse) -> exact.ExactSampler:
    return mechanism.kept._exact_sampler()
