"""The maximum-likelihood mixture of reports that are rows of bits, alone or pooled.

A million rows of a hundred bits are too many for a Newton matrix at each step, but their likelihood
is close to a parabola: each row's probability changes at most by e^epsilon. So the rows are read
once a step for their exact gradient; their Hessian comes from some of the rows and is kept; and the
maximiser of parabola + exact likelihood of the other mechanisms is found by the interior point. The
certificate is the exact gradient's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from ibukit._ground.arguments import Floats, Ints, frozen
from ibukit._ground.threads import in_order
from ibukit._ground.typing import override
from ibukit.channels import BitChannel, Channel, LookupChannel, RowMajorChannel
from ibukit.channels.base import slices_of
from ibukit.channels.partitioned import PartitionedChannel, broadcast_weights, sum_arrays
from ibukit.solvers.dense.product import Singles, lower_product
from ibukit.solvers.em import evaluate, updates_of
from ibukit.solvers.interior_point import path
from ibukit.solvers.interior_point_model import QuadraticTerm
from ibukit.solvers.pooled import PooledModel

Bits = NDArray[np.uint8]

MAX_PASSES = 100
# rows for the Hessian: so many for each secret, and at least this share of all
ROWS_A_SECRET = 50
SHARE_OF_ROWS = 0.1
# numbers of a chunk of reports written out
CHUNK = 2**15
# and of rows of bits, a small one of which takes longer to call for than to work on: that many
# times the bytes of the rows, so that they are not more than those, and no more than this
CHUNK_A_BYTE = 1 / 8
MAX_CHUNK = 2**20
# a row's mean number of ones is counted in so many rows
ROWS_FOR_MEAN = 1000
# visiting one pair of set bits takes as long as so many multiplications of single precision
LOOK_UP = 32
# every so many-th row makes a first maximum, and max g - 1 that is enough: the rows left out change
# more than that
FIRST_SHARE = 10
ROUGH_EXCESS = 1e-4
# with fewer secrets a pass costs less than that first maximum saves
MIN_SECRETS_FOR_FIRST = 500
# so many secrets at most: an active set of least squares is quicker than an interior point
MAX_SECRETS_BY_LEAST_SQUARES = 200


@dataclass(frozen=True, eq=False)
class Reports:
    """Many reports of a channel whose likelihood is nearly a parabola: entries differ moderately.

    Report z has the share counts_z / total of all reports.
    """

    channel: Channel
    counts: Ints | Floats
    total: float = 1.0

    def gradient(self, theta: Floats) -> Floats:
        """These reports' share of g."""
        return self.channel.score(theta, self.counts).g / self.total

    def hessian(self, theta: Floats, thinned: int) -> Floats:
        """M diag(q / p^2) M^T at theta from every `thinned`-th report."""
        some, few = (
            self.channel.take(slice(None, None, thinned)),
            np.asarray(self.counts[::thinned], dtype=np.float64),
        )
        # each report over its probability: the square of a small one is 0
        found = some.scaled(1 / some.forward(theta)).gram(few)
        return np.asarray(found * (self.counts.sum() / few.sum() / self.total))

    def work(self) -> float:
        """Multiplications that a Hessian of all reports takes, about."""
        return len(self.counts) * self.channel.k**2 / 2

    def some(self, thinned: int) -> Self | None:
        """Every `thinned`-th report, with the weight of all."""
        few = self.counts[::thinned]
        total = float(self.total * few.sum() / self.counts.sum())
        return replace(
            self, channel=self.channel.take(slice(None, None, thinned)), counts=few, total=total
        )


@dataclass(frozen=True, eq=False)
class DenseReports(Reports):
    """Reports whose entries are quickly written out in single precision."""

    channel: LookupChannel | RowMajorChannel

    @override
    def hessian(self, theta: Floats, thinned: int) -> Floats:
        some, counts = self.channel.take(slice(None, None, thinned)), self.counts[::thinned]
        both = np.zeros((self.channel.k, self.channel.k))
        step = max(CHUNK // self.channel.k, 2 * self.channel.k)
        for start in range(0, len(counts), step):
            piece, n = some.take(slice(start, start + step)), counts[start : start + step]
            with np.errstate(over="ignore"):
                both += lower_product(piece.in_single(np.sqrt(n) / piece.forward(theta)))
        if not np.isfinite(
            both
        ).all():  # entries of a report that are farther apart than single precision reaches
            return super().hessian(theta, thinned)
        both = np.tril(both) + np.tril(both, -1).T
        return np.asarray(both * (self.counts.sum() / counts.sum() / self.total))


@dataclass(frozen=True, eq=False)
class BitReports(Reports):
    """The seen rows of one unary encoding."""

    channel: BitChannel

    @override
    def gradient(self, theta: Floats) -> Floats:
        def of(stretch: slice) -> Floats:
            q = self.counts[stretch] / self.total
            return evaluate(updates_of(self.channel.take(stretch), q), theta, len(q))[1]

        g = np.zeros(self.channel.k)
        stretches = slices_of(len(self.counts), self.channel.min_rows_per_slice)
        for share in in_order(of, stretches, self.channel.is_worth_threads):
            g += share
        return g

    @override
    def hessian(self, theta: Floats, thinned: int) -> Floats:
        """M diag(q / p^2) M^T at theta from every `thinned`-th row.

        Not the channel's gram, which has all digits: that a parabola needs only a few is what makes
        it worth a matrix.
        """
        rows, counts = self.channel.packed[::thinned], self.counts[::thinned]
        k, zero, contrast = self.channel.k, self.channel.zero, self.channel.one - self.channel.zero
        both, own, weight = np.zeros((k, k)), np.zeros(k), 0.0
        chunk_size = max(CHUNK, min(MAX_CHUNK, int(CHUNK_A_BYTE * self.channel.packed.nbytes)))
        step = max(chunk_size // k, 2 * k)

        def weighed(start: int) -> tuple[BitChannel, Floats, Floats, float]:
            # read-only as the rows themselves are, or the look-ups would be compiled twice
            chunk = frozen(np.ascontiguousarray(rows[start : start + step]).view())
            # a factor of a row cancels, and without it nothing underflows
            u = replace(self.channel, packed=chunk, scale=np.ones(len(chunk))).forward(theta)
            # row z over its probability is a_z bits + b_z; a probability alone may have a square
            # beyond the doubles
            b, n = zero / u, counts[start : start + step]
            a = np.divide(contrast, u, out=np.zeros(len(u)), where=chunk.any(axis=1))
            bits = BitChannel(k, chunk, 1.0, 0.0, np.ones(len(chunk)))
            return bits, np.asarray(n * a * a), bits.adjoint(n * a * b), float(n @ (b * b))

        def multiplied(start: int) -> tuple[Singles, float, Floats, float]:
            bits, of_pairs, of_ones, of_all = weighed(start)
            return *_pairs_of_many(bits, of_pairs), of_ones, of_all

        starts = range(0, len(counts), step)
        if self._few_ones:  # one after another: the sums would be as large as those of all rows
            for bits, of_pairs, of_ones, of_all in map(weighed, starts):
                bits.add_pairs(of_pairs, both)
                own += of_ones
                weight += of_all
        else:
            for pairs, largest, of_ones, of_all in in_order(
                multiplied, starts, self.channel.is_worth_threads
            ):
                both += largest * pairs
                own += of_ones
                weight += of_all
        both = np.tril(both) + np.tril(both, -1).T
        found = both + own + own[:, None] + weight
        return np.asarray(found * (self.counts.sum() / counts.sum() / self.total))

    @cached_property
    def _ones(self) -> float:
        """Set bits of a row, from some of the rows."""
        some = self.channel.packed[:: max(1, len(self.counts) // ROWS_FOR_MEAN)]
        return float(np.bitwise_count(some).sum() / max(1, len(some)))

    @property
    def _by_pairs(self) -> float:
        """Multiplications that it takes to visit all pairs of set bits."""
        return len(self.counts) * LOOK_UP * (self._ones**2 / 2 + self.channel.k)

    @property
    def _few_ones(self) -> bool:
        return self._by_pairs < super().work()

    @override
    def work(self) -> float:
        return min(self._by_pairs, super().work())


def _pairs_of_many(bits: BitChannel, w: Floats) -> tuple[Singles, float]:
    """The sum of w over the rows with bits x and y, for y <= x, over the largest w; and that."""
    largest = float(w.max())
    weights = np.sqrt(w / largest).astype(np.float32)
    written = np.multiply(np.unpackbits(bits.packed, axis=1, count=bits.k), weights[:, None])
    return lower_product(
        written
    ), largest  # in single precision: the matrix is an approximation anyway


@dataclass(frozen=True, eq=False)
class PartitionedReports(Reports):
    """Reports that lie in partitions: what is summed over them is computed where they are."""

    channel: PartitionedChannel

    @override
    def hessian(self, theta: Floats, thinned: int) -> Floats:
        found = self.channel.total(partial(_hessian_there, thinned), theta, self.counts, sum_arrays)
        return np.asarray(found / self.total)

    @override
    def some(self, thinned: int) -> None:
        """None: they stay where they are."""


def _hessian_there(thinned: int, channel: Channel, theta: Floats, weights: Floats | Ints) -> Floats:
    return as_reports(channel, broadcast_weights(weights, channel)).hessian(theta, thinned)


def as_reports(channel: Channel, counts: Floats | Ints, total: float = 1.0) -> Reports:
    """The reports of a channel in the form that suits them."""
    if isinstance(channel, PartitionedChannel):
        return PartitionedReports(channel, counts, total)
    if isinstance(channel, BitChannel):
        return BitReports(channel, counts, total)
    if isinstance(channel, (LookupChannel, RowMajorChannel)):
        return DenseReports(channel, counts, total)
    return Reports(channel, counts, total)


def maximise(
    bits: Sequence[Reports], others: PooledModel, q_others: Floats, tol: float
) -> tuple[Floats, int]:
    """The maximiser over the simplex and the number of passes over the rows, rounded up.

    With many rows and secrets, the maximum of some of the rows is found first: the Hessian there is
    nearly that of the maximum, and a pass over a tenth of the rows is a tenth of a pass.
    """
    problem = _Problem(bits, others, q_others)
    first = problem.of_some()
    if first is None:
        return _climb(problem, tol)
    start, passes_of_some = _climb(first, max(tol, ROUGH_EXCESS))
    theta, passes = _climb(problem, tol, start)
    return theta, passes + math.ceil(passes_of_some / FIRST_SHARE)


def _climb(problem: _Problem, tol: float, theta: Floats | None = None) -> tuple[Floats, int]:
    """Return the maximiser and the number of passes over all rows."""
    k, passes = problem.others.k, 0
    if theta is None:
        passes, theta = 1, np.full(k, 1 / k)
        g = problem.gradient(theta)
        if g.max() - 1 <= tol:
            return theta, passes
        # the best that one gradient tells: a secret's bit is set the more often the more people
        # have it
        excess_of_bits = g - g.min()
        theta = 0.9 * excess_of_bits / excess_of_bits.sum() + 0.1 / k
    hessian, thin, known = None, problem.thinning(), np.inf
    best, before = (np.inf, theta), None
    while passes < MAX_PASSES:
        of_rows = problem.gradient_of_rows(theta)
        g = of_rows + problem.gradient_of_others(theta)
        passes += 1
        excess = float(g.max() - 1)
        best = min(best, (excess, theta), key=lambda found: found[0])
        if excess <= tol:
            break
        if hessian is None or problem.pays(excess / known, excess / tol):
            thin = thin if hessian is None else 1
            hessian = problem.hessian(theta, thin)
        elif before is not None:
            hessian = _with_secant(hessian, theta - before[0], before[1] - of_rows)
        known, before = excess, (theta, of_rows)
        theta = problem.step(theta, g, hessian, excess)
    return best[1], passes


@dataclass(frozen=True, eq=False)
class _Problem:
    bits: Sequence[Reports]
    others: PooledModel
    q_others: Floats

    def gradient(self, theta: Floats) -> Floats:
        """The g of all reports."""
        return self.gradient_of_rows(theta) + self.gradient_of_others(theta)

    def gradient_of_rows(self, theta: Floats) -> Floats:
        """The share of g that the rows of bits have, by one pass over them."""
        return np.asarray(np.sum([rows.gradient(theta) for rows in self.bits], axis=0))

    def gradient_of_others(self, theta: Floats) -> Floats:
        """The share of the other mechanisms' reports."""
        return self.others.adjoint(self.q_others / self.others.forward(theta))

    def thinning(self) -> int:
        """Every how many-th row is enough for the Hessian."""
        n = min(len(rows.counts) for rows in self.bits)
        return max(1, min(int(1 / SHARE_OF_ROWS), n // (ROWS_A_SECRET * self.others.k)))

    def of_some(self) -> _Problem | None:
        """Return the problem of every `FIRST_SHARE`-th row; None if that does not pay."""
        k, n = self.others.k, min(len(rows.counts) for rows in self.bits)
        if k < MIN_SECRETS_FOR_FIRST or n < FIRST_SHARE * ROWS_A_SECRET * k:
            return None
        some = [few for rows in self.bits if (few := rows.some(FIRST_SHARE)) is not None]
        return replace(self, bits=some) if len(some) == len(self.bits) else None

    def pays(self, rate: float, to_go: float) -> bool:
        """Return True if a new Hessian of all rows costs less than the steps left at this rate."""
        if rate < 0.1:
            return False
        steps_left = MAX_PASSES if rate >= 1 else np.log(to_go) / -np.log(rate)
        n, k = sum(len(rows.counts) for rows in self.bits), self.others.k
        # operations; a look-up of eight bits takes as long as 32 of single precision's
        # multiplications
        return bool(steps_left * (4 * n * k + 4 * k**3) > sum(rows.work() for rows in self.bits))

    def hessian(self, theta: Floats, thinned: int) -> Floats:
        """Sum over the encodings."""
        return np.asarray(np.sum([rows.hessian(theta, thinned) for rows in self.bits], axis=0))

    def step(self, theta: Floats, g: Floats, hessian: Floats, excess: float) -> Floats:
        """Maximise the rows' parabola plus the exact likelihood of the others."""
        if not self.others.channels and self.others.k <= MAX_SECRETS_BY_LEAST_SQUARES:
            found = _least_squares(hessian, 1 - g - hessian @ theta)
            if found is not None:
                return found
        curved = QuadraticTerm(hessian, 1 - (g - self.gradient_of_others(theta)) - hessian @ theta)
        k = self.others.k
        start = np.maximum(theta, 1e-3 / k)
        point = None
        for step, point in enumerate(path(self.others, self.q_others, start, False, curved)):
            # far enough that what is small is small for good: a secret cut here too early would not
            # come back
            off = point.residual + self.others.adjoint(self.q_others / point.nu - point.lam)
            if (
                (point.theta * point.s).max() <= 1e-18 and np.abs(off).max() <= 1e-3 * excess
            ) or step == 50:
                break
        assert point is not None
        found = np.where(point.theta > point.s, point.theta, 0.0)
        return np.asarray(found / found.sum())


def _with_secant(hessian: Floats, moved: Floats, fallen: Floats) -> Floats:
    """Return the Hessian after the BFGS update by the last step's change of the gradient.

    It costs k^2 where a pass over the rows costs n k / 8, and it corrects what the rows left out
    know better.
    """
    explained = hessian @ moved
    seen, believed = float(moved @ fallen), float(moved @ explained)
    # rounding, once the steps are small
    if not (seen > 1e-3 * believed > 0):
        return hessian
    return np.asarray(
        hessian + np.outer(fallen, fallen) / seen - np.outer(explained, explained) / believed
    )


def _least_squares(hessian: Floats, c: Floats) -> Floats | None:
    """Minimise 1/2 x H x + c x over x >= 0; a distribution, or None if H is not definite."""
    try:
        root = cholesky(hessian, lower=True, check_finite=False)
        found, _ = nnls(root.T, -solve_triangular(root, c, lower=True, check_finite=False))
    except (LinAlgError, RuntimeError):
        return None
    return np.asarray(found / found.sum()) if found.any() else None
