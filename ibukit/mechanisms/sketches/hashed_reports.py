"""Base class of local hashing: a report is a seed and a bucket."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import BitChannel
from ibukit.domain.alphabet import Alphabet, as_alphabet
from ibukit.domain.label_arrays import refuse_missing
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.categorical.subset_selection import SubsetSelection
from ibukit.mechanisms.categorical.unary_encoding import UnaryEncoding
from ibukit.mechanisms.epsilon_range import check_epsilon
from ibukit.mechanisms.sketches import _hash_kernels

# Number of seeds. They are 0..2^63 - 1, because integers are signed in tables and elsewhere.
SEEDS = 2**63


# Largest number of buckets that the compiled kernels take.
MAX_BUCKETS = 2**31 - 1


class HashedReports(Mechanism):
    """A report is a seed and a bucket; the secret's bucket is the most probable one.

    The seed says which bucket each secret has. The tally keeps seeds and buckets; the channel works
    out which secrets each report supports.
    """

    alphabet: Alphabet
    epsilon: float
    g: int
    balanced: bool

    report_kind: ClassVar[ReportKind] = ReportKind.ROWS

    hash_family: ClassVar[str] = "ibukit-splitmix64-v1"
    """Version of the hash family; a seed means nothing without it."""

    def __post_init__(self) -> None:
        """Check and convert the shared fields; choose the number of buckets if none is given."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        arguments.whole("number of secrets", len(self.alphabet), 2)
        self._keep(
            epsilon=check_epsilon(
                self.epsilon, lambda eps: (self._buckets_at(eps) - 1) * math.exp(-eps)
            )
        )
        self._keep(g=self._buckets_at(self.epsilon))

    def _buckets_at(self, epsilon: float) -> int:
        most = self.k if self.balanced else MAX_BUCKETS
        if self.g is None:
            return min(best_buckets(epsilon), most)  # type: ignore[unreachable]
        g = arguments.whole("g", self.g, 2)
        if g > most:
            raise ValueError(
                f"g must be at most {most}{', the number of secrets' * self.balanced}, got {g}"
            )
        return g

    @property
    def truth(self) -> float:
        r"""Probability of reporting the secret's own bucket.

        It is :math:`\frac{e^{\varepsilon}}{e^{\varepsilon} + g - 1}`.
        """
        return float(1 / (1 + (self.g - 1) * np.exp(-self.epsilon)))

    @property
    def lie(self) -> float:
        r"""Probability of each other bucket, :math:`1 / (e^{\varepsilon} + g - 1)`."""
        return float(self.truth * np.exp(-self.epsilon))

    @property
    def collision(self) -> float:
        """Probability that two secrets share a bucket: 1/g, or less if balanced."""
        if not self.balanced:
            return 1 / self.g
        # Of g buckets, `larger` have small + 1 secrets and the others `small`: pairs in one bucket
        # over all pairs.
        small, larger = divmod(self.k, self.g)
        pairs = larger * (small + 1) * small + (self.g - larger) * small * (small - 1)
        return pairs / (self.k * (self.k - 1))

    def hash(self, seeds: ArrayLike, secrets: ArrayLike) -> Ints:
        """Buckets of secrets, given as codes, each under its own seed; shape (n,)."""
        seeds, secrets = (
            arguments.integers("seeds", seeds),
            arguments.codes("secrets", secrets, self.k),
        )
        if seeds.shape != secrets.shape:
            raise ValueError(
                f"seeds must be as many as secrets, got {len(seeds)} for {len(secrets)}"
            )
        _refuse_negative("seeds", seeds)
        return _hash_kernels.buckets(seeds, secrets, self.k, self.g, self.balanced)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        # Each user draws a hash function, hashes the secret, and perturbs the bucket by k-RR.
        n = len(secrets)
        seeds = rng.integers(0, SEEDS, size=n)
        own = _hash_kernels.buckets(
            seeds, np.asarray(secrets, dtype=np.int64), self.k, self.g, self.balanced
        )
        return np.column_stack([seeds, self._perturb(own, rng)])

    def _perturb(self, buckets: Ints, rng: Generator) -> Ints:
        """Draw reports by k-RR on the buckets."""
        # A lie is uniform among the other g - 1 buckets: 1 to g - 1 places after the own bucket,
        # cyclic.
        other = rng.integers(1, self.g, size=len(buckets))
        honest = rng.random(len(buckets)) < self.truth
        return np.where(honest, buckets, (buckets + other) % self.g)

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        values = arguments.whole_array("reports", reports)
        if values.ndim != 2 or values.shape[1] != 2:
            raise AlphabetMismatch(
                f"reports must be rows (seed, bucket) of shape (n, 2), got shape {values.shape}"
            )
        if values.dtype.kind not in "iu":
            # A single missing value turns integers into floats or objects.
            refuse_missing(
                [any(map(arguments.is_missing, row)) for row in values.tolist()], "reports"
            )
            raise TypeError(
                f"reports must be integers, got an array of {values.dtype}: seeds of up to 63 bits "
                "are not exact in other numbers"
            )
        if values.dtype.kind == "u" and values.size and values.max() >= SEEDS:
            raise AlphabetMismatch(f"reports must have seeds below 2^63, got {values.max()}")
        rows = values.astype(np.int64)
        _refuse_negative("seeds of reports", rows[:, 0])
        bad = (rows[:, 1] < 0) | (rows[:, 1] >= self.g)
        if bad.any():
            first = int(np.argmax(bad))
            raise AlphabetMismatch(
                f"reports must have buckets 0..{self.g - 1}, got {rows[first, 1]} at index {first}"
            )
        return rows

    @override
    def channel(self, reports: NDArray[Any]) -> BitChannel:
        # A report supports the secrets that its seed hashes to its bucket. The likelihood needs no
        # more than these bits: it is `truth` for a secret that is supported, else `lie`.
        rows = _hash_kernels.supports(reports, self.k, self.g, self.balanced)
        return BitChannel(self.k, rows, self.truth, self.lie, np.full(len(rows), 1 / SEEDS))

    @property
    def ideal(self) -> FiniteMechanism:
        """The mechanism that tells as much as equally likely hash functions would.

        It is a `UnaryEncoding` with the probabilities p and 1/g, or, if the buckets are balanced, a
        `SubsetSelection` with sets of k / g secrets. Plans and theory use it, because they cannot
        list the seeds.

        Raises
        ------
        ValueError
            If the buckets are balanced and g does not divide k.
        """
        if not self.balanced:
            return UnaryEncoding(self.alphabet, self.truth, 1 / self.g)
        if self.k % self.g:
            raise ValueError(
                f"g must divide the number of secrets, got g={self.g} and {self.k} secrets"
            )
        return SubsetSelection(self.alphabet, self.epsilon, self.k // self.g)

    @override
    def as_finite(self) -> FiniteMechanism:
        """Raise ValueError, because seeds cannot be listed.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            f"mechanism must have reports that can be listed, got {self}, whose seeds cannot; use "
            "mechanism.ideal, the law under which all hash functions are equally likely"
        )

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        """The published estimator: the frequency of support of each secret, debiased.

        It need not sum to 1.
        """
        support = _hash_kernels.support_counts(reports, frequencies, self.k, self.g, self.balanced)
        # A report supports its user's secret with probability `truth`, and another secret with
        # probability `background`, on average over the seeds. `more` is truth - lie without
        # cancellation.
        more = self.truth * -np.expm1(-self.epsilon)
        background = self.lie + more * self.collision
        return (support - background * frequencies.sum()) / (more * (1 - self.collision))


def best_buckets(epsilon: float) -> int:
    """The smallest whole g, at least 2, with the least (e^eps - 1 + g)^2 / (g - 1)."""
    if epsilon > math.log(MAX_BUCKETS):
        return MAX_BUCKETS
    # The optimum over real g is e^eps + 1, so it is one of the two whole numbers around it.
    more = math.expm1(epsilon)
    low = max(2, math.floor(more) + 2)
    return min((low, low + 1), key=lambda g: (more + g) ** 2 / (g - 1))


def _refuse_negative(name: str, seeds: Ints) -> None:
    if (seeds < 0).any():
        first = int(np.argmax(seeds < 0))
        raise AlphabetMismatch(
            f"{name} must be from 0 to 2^63 - 1, got {seeds[first]} at index {first}"
        )
