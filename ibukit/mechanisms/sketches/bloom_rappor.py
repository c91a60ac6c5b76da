"""RAPPOR with Bloom filters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import LookupChannel
from ibukit.channels.line import split_factor
from ibukit.channels.lookup import levels_per_byte
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.errors import NotInvertible
from ibukit.mechanisms.epsilon_range import MIN_PROBABILITY
from ibukit.mechanisms.row_reports import NumberedBits
from ibukit.mechanisms.sketches import _sketch_kernels
from ibukit.mechanisms.sketches.bloom_sums import BloomSums, read_sums
from ibukit.tally.part import make_tally_part
from ibukit.tally.tally import Tally

# Most hash functions of a cohort: the pairs (ones, zeros) with a sum of at most 15 fit into a byte.
MAX_HASHES = 15


@dataclass(frozen=True)
class BloomRappor(NumberedBits):
    r"""RAPPOR with Bloom filters: one noisy filter of the user's cohort.

    Each user belongs to one of several cohorts, at random; their number is `cohorts`. A filter has
    `bits` bits. For secret x the cohort's hash functions turn on those in a set :math:`B_{x}`, of
    which there are at most `hashes`. The permanent response makes each bit 1 with probability f/2,
    0 with probability f/2, and otherwise leaves it as it is; the instantaneous response then
    reports 1 with probability q if the result is 1, and with probability p if it is 0. So in one
    report a bit of :math:`B_x` is 1 with probability :math:`q^*=f(p+q)/2+(1-f)\,q`, and any other
    bit with probability :math:`p^*=f(p+q)/2+(1-f)\,p`, all independently. With t of the
    :math:`|B_{x}|` bits reported as 1, :math:`P(\text{cohort},\text{report}\mid
    x)\propto(q^*/p^*)^t\bigl((1-q^*)/(1-p^*)\bigr)^{|B_x|-t}`. Two hash functions may set the same
    bit for a secret; then :math:`|B_{x}| < \mathrm{hashes}`. Reports are simulated, see
    `Mechanism`.

    The hash functions are public and known: the likelihood is that of the whole filter, exactly.
    Filters of another program's hash functions look the same and are not refused, but the estimate
    is then meaningless, which `Estimate.fit_test` need not notice. If you know that program's set
    :math:`B_{x}` of each secret, pass the probabilities above to `Tally.from_likelihoods`, a row
    for each report.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are the cohort and the bits, shape (n, 1 + bits). Secrets are hashed
        by their places in the alphabet.
    bits : int
        Size of the filter.
    hashes : int
        Number of hash functions of a cohort, at most 15.
    cohorts : int
        Number of cohorts.
    f : float
        Probability that the permanent response says nothing about a bit, from 0 to less than 1.
    p, q : float
        Probabilities that a bit of the permanent response is reported as 1: p if the bit is 0, q if
        it is 1. They must differ.
    seed : int
        Which functions of the family (version 1, uint64 arithmetic, the same on every machine) are
        taken.

    Raises
    ------
    ValueError
        If `bits`, `hashes`, `cohorts` or `seed` is not a whole number or is out of range, if `f`,
        `p` or `q` is not a probability, if p and q are equal, if p* or q* is closer to 0 or 1 than
        :math:`2^{-53}`, if there are fewer than two secrets, or if all secrets have the same filter
        in each cohort.

    Notes
    -----
    `epsilon` is the tight level of one report, `lifetime_epsilon` that of all reports that one
    permanent response can ever give. The published analysis fits debiased counts of bits by lasso
    and least squares; `inv` is the least squares fit to all secrets, which is unbiased if the
    filters are linearly independent.

    References
    ----------
    .. [erlingsson2014] Erlingsson, Pihur and Korolova, "RAPPOR: randomized aggregatable
       privacy-preserving ordinal response", CCS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = BloomRappor(100, bits=32, hashes=2, cohorts=8, f=0.5, p=0.5, q=0.75)
    >>> round(mechanism.epsilon, 4), round(mechanism.lifetime_epsilon, 4)
    (1.0743, 4.3944)
    >>> mechanism.randomize([7, 7], np.random.default_rng(1))[:, :8]
    array([[3, 0, 1, 0, 1, 1, 0, 1],
           [4, 0, 0, 0, 1, 1, 1, 1]], dtype=uint8)
    """

    alphabet: Alphabet
    bits: int
    hashes: int
    cohorts: int
    f: float
    p: float
    q: float
    seed: int = 0

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self,
            alphabet: AlphabetLike,
            bits: int,
            hashes: int,
            cohorts: int,
            f: float,
            p: float,
            q: float,
            seed: int = 0,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        super().__post_init__()
        arguments.whole("number of secrets", self.k, 2)
        for name, least, most in (
            ("bits", 2, 2**31 - 1),
            ("hashes", 1, MAX_HASHES),
            ("cohorts", 1, (2**31 - 1) // MAX_HASHES),
            ("seed", 0, 2**31 - 1),
        ):
            value = arguments.whole(name, getattr(self, name), least)
            if value > most:
                raise ValueError(f"{name} must be at most {most}, got {value}")
            self._keep(**{name: value})
        self._keep(f=arguments.fraction("f", self.f, "[)"))
        self._keep(p=arguments.fraction("p", self.p, "[]"), q=arguments.fraction("q", self.q, "[]"))
        if self.p == self.q:
            raise ValueError(
                f"p and q must differ, got {self.p} for both: the reports would say nothing"
            )
        # Both values of each bit must be possible whether the filter has it or not.
        probabilities = (self.p_set, 1 - self.p_set, self.p_clear, 1 - self.p_clear)
        if not min(probabilities) > MIN_PROBABILITY:
            raise ValueError(
                f"f, p and q must leave each bit in doubt, got {self.f}, {self.p} and {self.q}: a "
                f"bit is reported as 1 with probability {self.p_set:.3g} if the filter sets it, "
                f"and {self.p_clear:.3g} if not"
            )
        if not self.epsilon > 0:
            raise ValueError(
                f"bits, hashes and cohorts must tell secrets apart, got {self.bits}, "
                f"{self.hashes} and {self.cohorts}: all {self.k} secrets have the same filters; "
                "take more bits or another seed"
            )

    @property
    def p_set(self) -> float:
        """q*, the probability that a bit of the secret's filter is reported as 1."""
        return self.f * (self.p + self.q) / 2 + (1 - self.f) * self.q

    @property
    def p_clear(self) -> float:
        """p*, the probability that any other bit is reported as 1."""
        return self.f * (self.p + self.q) / 2 + (1 - self.f) * self.p

    @property
    def _log_ratios(self) -> tuple[float, float]:
        """Log-likelihood ratios of a bit in the filter, if it is 1 and if it is 0."""
        return math.log(self.p_set / self.p_clear), math.log((1 - self.p_set) / (1 - self.p_clear))

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]
        r"""The tight level of one report, nats, for all pairs of secrets.

        It is the largest :math:`|B_x\setminus B_y|\max(a,b)-|B_y\setminus B_x|\min(a,b)` over all
        cohorts and pairs of secrets, where a and b are :math:`\ln(q^*/p^*)` and
        :math:`\ln\frac{1-q^*}{1-p^*}`.
        """
        # Reports of two secrets differ in law only on bits that just one of the filters has. On a
        # bit of Bx without By the log-ratio is at most max(a, b), on a bit of By without Bx at most
        # -min(a, b), and some report attains both.
        one, zero = self._log_ratios
        return self._farthest(max(one, zero), -min(one, zero))

    @cached_property
    def lifetime_epsilon(self) -> float:
        r"""The tight level of the permanent response, which no number of reports exceeds.

        It adds up :math:`\ln ((1 - f / 2) / (f / 2))` over the bits in which two filters differ,
        for the pair with the largest number of such bits; it is inf if f is 0. The more reports of
        one user share a permanent response, the closer they come to this level.
        """
        if self.f == 0:
            return math.inf
        # A permanent bit is true with probability 1 - f/2; each bit that differs adds the log-odds.
        each = math.log((1 - self.f / 2) / (self.f / 2))
        return self._farthest(each, each)

    def _farthest(self, own: float, other: float) -> float:
        """The largest |Bx without By| own + |By without Bx| other over all cohorts and pairs."""
        return _sketch_kernels.farthest_filters(
            self.cohorts, self.k, self.bits, self.hashes, self.seed, own, other
        )

    @property
    @override
    def _numbers(self) -> tuple[str, int]:
        return "cohort", self.cohorts

    @property
    @override
    def _bits(self) -> int:
        return self.bits

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> NDArray[Any]:
        n = len(secrets)
        cohorts, uniform = rng.integers(0, self.cohorts, n), rng.random((n, self.bits))
        # All bits are first drawn as bits that the filter does not set; those of the secret's
        # filter are then judged again by the same uniform numbers, once for each hash function.
        ones = uniform < self.p_clear
        for i in range(self.hashes):
            own = _sketch_kernels.buckets_of(
                cohorts * self.hashes + i, secrets, self.bits, self.seed
            )
            ones[np.arange(n), own] = uniform[np.arange(n), own] < self.p_set
        return self._join(cohorts, ones)

    @override
    def channel(self, reports: NDArray[Any]) -> LookupChannel:
        cohorts, packed = self._split(reports)
        # With t ones among the |B_x| bits of secret x, its likelihood ratio depends on the pair (t,
        # |B_x| - t) alone. There are few such pairs, so the channel keeps a small code of each.
        codes, table, _ = self._table
        levels = _sketch_kernels.filter_levels(
            cohorts,
            packed,
            self.k,
            self.bits,
            self.hashes,
            self.seed,
            codes,
            len(table),
            levels_per_byte(len(table)),
        )
        return LookupChannel(self.k, levels, table, split_factor(self._log_factor(packed))[0])

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Logarithm of what `channel` leaves out where a probability would underflow.

        This happens with hundreds of bits.
        """
        return split_factor(self._log_factor(self._split(reports)[1]))[1]

    @cached_property
    def _table(self) -> tuple[NDArray[np.uint8], Floats, float]:
        """Code of each (ones, zeros); likelihood ratio of each code; logarithm of the largest.

        The ratios are divided by the largest one. A filter has from one bit to `hashes` bits.
        """
        bits = np.add.outer(np.arange(self.hashes + 1), np.arange(self.hashes + 1))
        ones, zeros = np.nonzero((bits > 0) & (bits <= self.hashes))
        codes = np.zeros(bits.shape, dtype=np.uint8)
        codes[ones, zeros] = np.arange(len(ones))
        one, zero = self._log_ratios
        logs = ones * one + zeros * zero
        return codes, np.exp(logs - logs.max()), float(logs.max())

    def _log_factor(self, packed: NDArray[np.uint8]) -> Floats:
        """Log-probability of each report for an empty filter, plus what the table leaves out."""
        # The probability if the filter sets no bit, times the largest likelihood ratio, divided by
        # the number of cohorts.
        ones = np.bitwise_count(packed).sum(axis=1, dtype=np.int64)
        empty = ones * math.log(self.p_clear) + (self.bits - ones) * math.log1p(-self.p_clear)
        return empty + self._table[2] - math.log(self.cohorts)

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        cohorts, packed = self._split(reports)
        seen = np.unique(cohorts)
        shares, ones = np.zeros(len(seen)), np.zeros((len(seen), self.bits))
        for row, cohort in enumerate(seen):
            here = cohorts == cohort
            shares[row] = frequencies[here].sum()
            ones[row] = frequencies[here] @ np.unpackbits(packed[here], axis=1, count=self.bits)
        return self.fit_filters(seen.tolist(), shares, ones)

    def fit_filters(self, cohorts: Sequence[int], shares: Floats, ones: Floats) -> Floats:
        """Return the least squares fit of all secrets to the ones of some cohorts.

        `shares` are the frequencies of these cohorts, `ones` the frequencies of ones at each bit in
        them.
        """
        # In each cohort the debiased frequencies of the bits are fitted by theta @ filters, and the
        # cohorts' normal equations are added up, weighted by their shares.
        normal, right = np.zeros((self.k, self.k)), np.zeros(self.k)
        for cohort, share, of_bits in zip(cohorts, shares, ones, strict=True):
            filters = self.filters(cohort)
            normal += share * (filters @ filters.T)
            right += filters @ ((of_bits - share * self.p_clear) / (self.p_set - self.p_clear))
        rank = int(np.linalg.matrix_rank(normal, hermitian=True))
        if rank < self.k:
            raise NotInvertible(
                f"the filters of the cohorts seen have rank {rank} for {self.k} secrets: least "
                "squares has many solutions; take mle, or more bits or cohorts before reports are "
                "made"
            )
        return np.asarray(np.linalg.solve(normal, right), dtype=np.float64)

    def tally_sums(self, sums: ArrayLike, n: ArrayLike) -> Tally:
        r"""Make the tally of reports of which only the sums of bits by cohort are known.

        The sums are enough for `inv`, with standard errors, covariances and Wald's intervals of the
        unbiased estimate. The likelihood depends on which bits were reported together, so `mle`,
        `ibu` and profile intervals are refused, and the estimate's gap is NaN.

        Parameters
        ----------
        sums : array_like of int, shape (cohorts, bits)
            For each cohort, the number of its reports in which each bit was 1.
        n : array_like of int, shape (cohorts,)
            The number of reports of each cohort.

        Raises
        ------
        AlphabetMismatch
            If `sums` or `n` has another shape.
        ValueError
            If a sum is not a whole number from 0 to the cohort's n.

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> mechanism = ik.BloomRappor(2, 8, 1, cohorts=1, f=0.0, p=0.25, q=0.75, seed=1)
        >>> bits = mechanism.filters(0).argmax(axis=1)
        >>> sums = np.full((1, 8), 250)
        >>> sums[0, bits] = 600, 400
        >>> ik.inv(mechanism.tally_sums(sums, [1000]), post="none").distribution.round(3)
        array([0.7, 0.3])
        """
        table, people = read_sums(sums, n, self.cohorts, self.bits)
        counts = np.append(table.ravel(), people)
        return Tally((make_tally_part(BloomSums(self), np.arange(counts.size), counts),))

    def filters(self, cohort: int) -> Floats:
        """The Bloom filters of a cohort: 1 where the secret sets the bit, shape (k, bits)."""
        if not 0 <= arguments.whole("cohort", cohort, 0) < self.cohorts:
            raise ValueError(f"cohort must be below {self.cohorts}, got {cohort}")
        functions: Ints = np.arange(self.hashes) + cohort * self.hashes
        bits = _sketch_kernels.buckets(functions, self.k, self.bits, self.seed)
        filters = np.zeros((self.k, self.bits))
        filters[np.arange(self.k), bits] = 1.0
        return filters
