"""Subset selection: a report is a set of secrets; sets with the user's own are more probable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels import BitChannel
from ibukit.channels.line import MIN_LOG_FACTOR
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.errors import AlphabetMismatch, TooLarge
from ibukit.mechanisms.categorical.bit_reports import BitReports, Bits
from ibukit.mechanisms.epsilon_range import level_of_equal_pairs
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.privacy import closed_forms

# Entries of the largest matrix that is listed, 8 MB: that of a unary encoding of 16 secrets.
MAX_MATRIX_ENTRIES = 2**20


@dataclass(frozen=True)
class SubsetSelection(BitReports):
    r"""A report is a set of `size` secrets; sets with the true one are more probable.

    The set S is drawn with

    .. math::

        P(S\mid x)=\frac1D\begin{cases}e^\varepsilon&\text{if }x\in
        S,\\1&\text{else}\end{cases}.

    .. math:: D=\binom{k-1}{\mathrm{size}-1}e^\varepsilon+\binom{k-1}{\mathrm{size}}.

    The user's own secret is in S with probability
    :math:`\frac{\mathrm{size}\;e^\varepsilon}{\mathrm{size}\;e^\varepsilon+k-\mathrm{size}}`; the
    rest of S is drawn uniformly. These probabilities satisfy epsilon-local differential privacy,
    tightly. Reports are simulated, see `Mechanism`. A set of one secret is k-RR. If
    :math:`k / (e^{\varepsilon} + 1)` is a whole number, no epsilon-private mechanism has a smaller
    asymptotic error if the secrets are uniformly distributed; see
    `ibukit.theory.least_asymptotic_mse`.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are rows of k bits with `size` ones.
    epsilon : float
        Nats, for all pairs of secrets.
    size : int, optional
        From 1 to k - 1. The default is one of the two whole numbers next to
        :math:`k / (e^{\varepsilon} + 1)`, but at least 1. Of these it is the one with the smaller
        :math:`(\mathrm{size}\,e^{\varepsilon} + k - \mathrm{size})^{2} / (\mathrm{size}\,(k -
        \mathrm{size}))`, to which the asymptotic error is proportional if the secrets are uniformly
        distributed; if both values are equal, it is the smaller number.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to about :math:`36.7 + \log (k / \mathrm{size} - 1)`
        (where the probability that the secret is in the set rounds to 1 in doubles), if there are
        fewer than two secrets, or if `size` is not a whole number from 1 to k - 1.

    Notes
    -----
    The C(k, size) reports are listed (``m``, ``matrix()``, ``forward``, ``tally_counts``) if the
    matrix has at most :math:`2^{20}` entries. The code of a report is the place of its row among
    all rows in ascending order, read as binary numbers, bit 0 first. The unbiased estimator, which
    debiases each bit's frequency, is that of the pseudo-inverse.

    References
    ----------
    .. [ye2018] Ye and Barg, "Optimal schemes for discrete distribution estimation under locally
       differential privacy", IEEE Trans. Inf. Theory 64(8), 2018.
    .. [wang2016] Wang et al., "Mutual information optimally local private discrete distribution
       estimation", arXiv:1607.08025.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = SubsetSelection(4, epsilon=0.5)
    >>> mechanism.size, mechanism.m
    (2, 6)
    >>> mechanism.randomize([0, 0, 3], np.random.default_rng(1)).sum(axis=1).tolist()
    [2, 2, 2]
    >>> mechanism.matrix()[0].round(4)  # the last three sets hold secret 0
    array([0.1258, 0.1258, 0.1258, 0.2075, 0.2075, 0.2075])
    """

    alphabet: Alphabet
    epsilon: float
    size: int = None  # type: ignore[assignment]  # until it is made

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self, alphabet: AlphabetLike, epsilon: float, size: int | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields; choose the size if none is given."""
        super().__post_init__()
        self._keep(size=self._size_at(self.epsilon))

    @override
    def _rare_probability(self, epsilon: float) -> float:
        w = self._size_at(epsilon)
        return (self.k - w) / w * math.exp(-epsilon)

    def _size_at(self, epsilon: float) -> int:
        if self.size is None:
            return best_size(self.k, epsilon)  # type: ignore[unreachable]
        w = arguments.whole("size", self.size, 1)
        if w >= self.k:
            raise ValueError(
                f"size must be at most k - 1 = {self.k - 1}, got {w}: all {self.k} secrets say "
                "nothing"
            )
        return w

    @property
    @override
    def m(self) -> int:
        return math.comb(self.k, self.size)

    @property
    @override
    def p_one(self) -> float:
        return float(self.size / (self.size + (self.k - self.size) * np.exp(-self.epsilon)))

    @property
    @override
    def p_zero(self) -> float:
        # (size - p_one) / (k - 1), without cancellation if the set has one element.
        return float((self.size - 1 + self.p_hidden) / (self.k - 1))

    @property
    def p_hidden(self) -> float:
        r"""Probability that the secret is not in the set, free of cancellation."""
        out = (self.k - self.size) * np.exp(-self.epsilon)
        return float(out / (self.size + out))

    @property
    @override
    def contrast(self) -> float:
        return float((self.k - self.size) / (self.k - 1) * -np.expm1(-self.epsilon) * self.p_one)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Bits:
        """Draw one report for each user: rows of 0 and 1 with `size` ones, shape (n, k)."""
        rows = np.zeros((len(secrets), self.k), dtype=np.uint8)
        # First it is drawn whether the set holds the secret, then the rest of the set, uniformly
        # among the other secrets.
        held = rng.random(len(secrets)) < self.p_one
        rows[held, secrets[held]] = 1
        for users, rest in (
            (np.flatnonzero(held), self.size - 1),
            (np.flatnonzero(~held), self.size),
        ):
            self._add_others(rows, users, secrets[users], rest, rng)
        return rows

    def _add_others(
        self, rows: Bits, users: NDArray[np.int64], x: NDArray[np.int64], size: int, rng: Generator
    ) -> None:
        """Set `size` bits of each user, uniformly among the k - 1 others, by Floyd's algorithm."""
        # A random subset of 0..n-1: for j = n - size, ..., n - 1 draw t from 0..j, and take t, or j
        # if t is taken already. Element t is the secret t + 1 places after the user's own.
        for j in range(self.k - 1 - size, self.k - 1):
            place = (x + 1 + rng.integers(0, j + 1, size=len(users))) % self.k
            taken = rows[users, place] == 1
            place[taken] = (x[taken] + 1 + j) % self.k
            rows[users, place] = 1

    @override
    def check_reports(self, reports: ArrayLike) -> Bits:
        rows = super().check_reports(reports)
        ones = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
        wrong = ones != self.size
        if wrong.any():
            first = int(np.argmax(wrong))
            raise AlphabetMismatch(
                f"reports must be sets of {self.size} secrets, the row at index {first} has "
                f"{ones[first]} ones"
            )
        return rows

    @override
    def channel(self, reports: NDArray[Any]) -> BitChannel:
        scale, _ = self._held
        return BitChannel(
            self.k, reports, 1.0, float(np.exp(-self.epsilon)), np.full(len(reports), scale)
        )

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Logarithm of what `channel` leaves out where a double cannot count the sets.

        This happens with k in the thousands.
        """
        _, rest = self._held
        return np.full(len(reports), rest) if rest else None

    @cached_property
    def _held(self) -> tuple[float, float]:
        """Probability p_one / C(k-1, size-1) of each set with the secret: factor and logarithm."""
        sets = math.comb(self.k - 1, self.size - 1)
        log = math.log(self.p_one) - math.log(sets)
        return (self.p_one / sets, 0.0) if log >= MIN_LOG_FACTOR else (1.0, log)

    @cached_property
    @override
    def _all_reports(self) -> Bits:
        if self.k * self.m > MAX_MATRIX_ENTRIES:
            raise TooLarge(
                f"the sets of {self.size} among {self.k} secrets are too many to list (the matrix "
                f"may have at most {MAX_MATRIX_ENTRIES} entries); use tally(rows)"
            )
        # `combinations` lists the sets in descending order of their rows, read as binary numbers.
        members = np.array(list(combinations(range(self.k), self.size)))[::-1]
        rows = np.zeros((self.m, self.k), dtype=np.uint8)
        np.put_along_axis(rows, members, 1, axis=1)
        return np.packbits(rows, axis=1)

    @override
    def _refuse_large_matrix(self) -> None:
        # The list of all reports refuses first, and says what to use instead.
        _ = self._all_reports

    @override
    def make_matrix(self) -> Floats:
        bits = np.unpackbits(self._all_reports, axis=1, count=self.k).T
        held, _ = self._held
        return np.where(bits, held, held * np.exp(-self.epsilon))


@exact_sampler(SubsetSelection)
def _subset_selection_sampler(mechanism: SubsetSelection) -> exact.ExactSampler:
    out = exact.odds(
        Fraction(mechanism.k - mechanism.size, mechanism.size), Fraction(mechanism.epsilon)
    )
    return exact.ExactSampler(
        lambda secrets, random_bits: exact.subsets(
            secrets, mechanism.k, mechanism.size, out, random_bits
        ),
        lambda: mechanism.epsilon,
    )


def _information(mechanism: SubsetSelection, prior: Floats) -> float | None:
    if not closed_forms.is_uniform(prior):
        return None
    # All sets are equally probable, and each tells only whether it holds the secret.
    share = mechanism.size / mechanism.k
    return mechanism.p_one * math.log(mechanism.p_one / share) + mechanism.p_hidden * math.log(
        mechanism.p_hidden / (1 - share)
    )


closed_forms.register(SubsetSelection, closed_forms.ClosedForms(level_of_equal_pairs, _information))


def best_size(k: int, epsilon: float) -> int:
    """The whole number next to k / (e^eps + 1), at least 1, with the least asymptotic error."""
    low = max(1, int(k * np.exp(-epsilon) / (1 + np.exp(-epsilon))))
    sizes = np.array([low, min(low + 1, k - 1)])
    # The asymptotic error at uniform secrets, up to a factor that does not depend on the size.
    errors = (sizes + (k - sizes) * np.exp(-epsilon)) ** 2 / (sizes * (k - sizes))
    return int(sizes[errors.argmin()])
