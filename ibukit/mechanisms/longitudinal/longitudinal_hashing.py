"""Memoised local hashing: a kept hash function and noisy bucket, and fresh noise in each round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground.arguments import Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.longitudinal.longitudinal_response import LongitudinalResponse
from ibukit.mechanisms.longitudinal.memoised import Memoised
from ibukit.mechanisms.sketches.hashed_reports import SEEDS, HashedReports


@dataclass(frozen=True)
class LongitudinalHashing(Memoised, HashedReports):
    """One report of memoised local hashing (L-OLH): memoised k-RR on hashed buckets.

    A user draws a seed, hashes the secret to a bucket 0..g-1, and keeps the seed and the bucket
    randomised by k-RR at `epsilon_inf`. Each round randomises the kept bucket afresh, as in
    `LongitudinalResponse` with g values. So one report has the law of `LocalHashing` at `epsilon`,
    tightly. Reports are simulated, see `Mechanism`; for real people, `keep` draws the seed and the
    bucket once, without roundings, and `release` draws one report of them in each round. Reports
    with another program's hash functions are not refused, and give a meaningless estimate: what to
    do with them is said under `LocalHashing`.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets. Reports are rows (seed, bucket), integers, as for `LocalHashing`.
    epsilon : float
        The level of one report, nats, for all pairs of secrets.
    epsilon_inf : float
        The level of what is kept, and so of any number of reports; above `epsilon`.
    g : int, optional
        The number of buckets, at least 2; by default the best for one report, as for
        `LocalHashing`.

    Raises
    ------
    ValueError
        If `epsilon` is not below `epsilon_inf`, or for one of the reasons given for `LocalHashing`.

    References
    ----------
    .. [longitudinal] Arcolezi, Couchot, Al Bouna and Xiao, "Improving the utility of locally
       differentially private protocols for longitudinal and multidimensional frequency estimates",
       Digital Commun. Netw. 2022.

    Examples
    --------
    >>> mechanism = LongitudinalHashing(100, epsilon=1.0, epsilon_inf=2.0)
    >>> mechanism.g, round(mechanism.rounds.second.epsilon, 4)
    (4, 1.5732)
    """

    alphabet: Alphabet
    epsilon: float
    epsilon_inf: float
    g: int = None  # type: ignore[assignment]  # until it is made

    balanced = False

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self, alphabet: AlphabetLike, epsilon: float, epsilon_inf: float, g: int | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        super().__post_init__()
        self._keep(epsilon_inf=self.rounds.epsilon_inf)

    @cached_property
    def rounds(self) -> LongitudinalResponse:
        """The two rounds on the buckets: k-RR, which is kept, and k-RR on its answer."""
        return LongitudinalResponse(self.g, self.epsilon, self.epsilon_inf)

    @override
    def _perturb(self, buckets: Ints, rng: Generator) -> Ints:
        return self.rounds.draw(buckets, rng)

    @override
    def _respond_exactly(self, answers: NDArray[Any], random_bits: exact.RandomBits) -> Ints:
        sampler = self.rounds.second._exact_sampler()
        return np.column_stack([answers[:, 0], sampler.draw(answers[:, 1], random_bits)])


@exact_sampler(LongitudinalHashing)
def _kept_bucket_sampler(mechanism: LongitudinalHashing) -> exact.ExactSampler:
    kept = mechanism.rounds.kept._exact_sampler()

    def draw(secrets: NDArray[Any], random_bits: exact.RandomBits) -> Ints:
        # The seed says nothing about the secret, and the bucket is hidden by k-RR given the seed.
        seeds = random_bits.draw(len(secrets), (SEEDS - 1).bit_length()).astype(np.int64)
        return np.column_stack([seeds, kept.draw(mechanism.hash(seeds, secrets), random_bits)])

    return exact.ExactSampler(draw, kept.epsilon)
