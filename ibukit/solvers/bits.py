"""The maximum-likelihood mixture of many reports, such as rows of bits, alone or pooled.

A million rows of a hundred bits are too many for a Newton matrix at each step. But the probability
of each row varies with theta by at most the factor e^epsilon, so the log-likelihood l of the rows
is close to a parabola. Let B = M diag(q / p^2) M^T be its negative Hessian, computed from a part of
the rows. A step maximises over the simplex

    l(theta) + g . (y - theta) - 1/2 (y - theta) B (y - theta) + likelihood of the others at y,

where the gradient g is exact and takes one pass over all rows. B is kept, and corrected by the
gradients that follow (BFGS). The maximiser is found by an active set or by the interior point. The
certificate is that of the exact gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy.linalg.blas import dsyrk

from ibukit._ground.arguments import Floats, Ints, frozen
from ibukit._ground.single_precision import probe
from ibukit._ground.threads import in_order
from ibukit._ground.typing import override
from ibukit.channels import BitChannel, BitPoolChannel, Channel, LookupChannel, RowMajorChannel
from ibukit.channels.base import slices_of
from ibukit.channels.bits import mean_ones
from ibukit.channels.partitioned import PartitionedChannel, broadcast_weights, sum_arrays
from ibukit.solvers.dense.non_negative import maximise_parabola
from ibukit.solvers.dense.product import Singles, fits, lower_product
from ibukit.solvers.em import evaluate, updates_of
from ibukit.solvers.interior_point import central_path
from ibukit.solvers.interior_point_model import QuadraticTerm
from ibukit.solvers.pooled import PooledModel

MAX_PASSES = 100
# Rows from which a Hessian is computed: 50 for each secret, and at least a tenth of all.
MIN_ROWS_PER_SECRET = 50
MIN_SHARE_OF_ROWS = 0.1
# Least number of entries of a chunk of reports that is written out; this many stay in the cache.
MIN_CHUNK_ENTRIES = 2**15
# Rows of bits come in larger chunks, so that the overhead of calls stays small: up to one entry for
# each eight bytes of all rows, and no more than MAX_CHUNK_ENTRIES.
MIN_CHUNK_ENTRIES_OF_BITS = 2**17
CHUNK_ENTRIES_PER_BYTE = 1 / 8
MAX_CHUNK_ENTRIES = 2**20
# Visiting a pair of set bits takes as long as 32 multiplications in single precision.
COST_OF_PAIR = 32
# A warm start uses every 10th row and stops at max g - 1 = 1e-4, below the sampling error of the
# rows that are left out.
WARM_START_STRIDE = 10
WARM_START_EXCESS = 1e-4
# With fewer secrets a pass costs less than a warm start saves.
MIN_K_FOR_WARM_START = 500
# Secrets up to which an active set is faster than the interior point.
MAX_K_ACTIVE_SET = 1000
# Work of the active set, in systems of all secrets, after which the interior point takes over.
MAX_FULL_SYSTEMS = 30


@dataclass(frozen=True, eq=False)
class Reports:
    """Many reports of a channel, whose likelihood is close to a parabola.

    That holds if the entries of a report differ by a moderate factor. Report z has the share
    counts_z / total of all reports.
    """

    channel: Channel
    counts: Ints | Floats
    total: float = 1.0

    def gradient(self, theta: Floats) -> Floats:
        """These reports' share of g."""
        return self.channel.score(theta, self.counts).g / self.total

    def hessian(self, theta: Floats, stride: int) -> Floats:
        """M diag(q / p^2) M^T at theta, estimated from every `stride`-th report."""
        channel = self.channel.take(slice(None, None, stride))
        counts = np.asarray(self.counts[::stride], dtype=np.float64)
        # Entries are divided by p first: the square of a small p would underflow.
        gram = channel.scaled(1 / channel.forward(theta)).gram(counts)
        return gram * (self.counts.sum() / counts.sum() / self.total)

    def hessian_cost(self) -> float:
        """Approximate number of multiplications for a Hessian of all reports."""
        return len(self.counts) * self.channel.k**2 / 2

    def subsample(self, stride: int) -> Self | None:
        """Every `stride`-th report, with the weight of all; None if that is not possible."""
        few = self.counts[::stride]
        total = float(self.total * few.sum() / self.counts.sum())
        return replace(
            self, channel=self.channel.take(slice(None, None, stride)), counts=few, total=total
        )


@dataclass(frozen=True, eq=False)
class DenseReports(Reports):
    """Reports quickly written out in single precision, which is enough for a parabola."""

    channel: LookupChannel | RowMajorChannel

    @override
    def hessian(self, theta: Floats, stride: int) -> Floats:
        channel, counts = self.channel.take(slice(None, None, stride)), self.counts[::stride]
        gram, x = np.zeros((self.channel.k, self.channel.k)), probe(self.channel.k)
        step = max(MIN_CHUNK_ENTRIES // self.channel.k, 2 * self.channel.k)
        starts = range(0, len(counts), step)
        for start in starts:
            chunk, n = channel.take(slice(start, start + step)), counts[start : start + step]
            factor = np.sqrt(n) / chunk.forward(theta)
            with np.errstate(over="ignore"):
                product = lower_product(chunk.in_single(factor))
                if start in _checked(starts):
                    image = chunk.adjoint(factor * (factor * chunk.forward(x)))
                    if not fits(product, image):
                        return super().hessian(theta, stride)
            gram += product
        # The entries of a report may differ by more than the range of single precision.
        if not np.isfinite(gram).all():
            return super().hessian(theta, stride)
        return _mirrored(gram) * (self.counts.sum() / counts.sum() / self.total)


@dataclass(frozen=True, eq=False)
class BitReports(Reports):
    """Rows of bits of one unary encoding, or of a pool of small ones."""

    channel: BitChannel | BitPoolChannel

    @override
    def gradient(self, theta: Floats) -> Floats:
        if isinstance(self.channel, BitPoolChannel):
            return super().gradient(theta)

        # The compiled pass of an EM step evaluates g without keeping p.
        def share_of(rows: slice) -> Floats:
            q = self.counts[rows] / self.total
            return evaluate(updates_of(self.channel.take(rows), q), theta, len(q))[1]

        g = np.zeros(self.channel.k)
        slices = slices_of(len(self.counts), self.channel.min_rows_per_slice)
        for share in in_order(share_of, slices, self.channel.is_worth_threads):
            g += share
        return g

    @override
    def hessian(self, theta: Floats, stride: int) -> Floats:
        # A row over its probability is a_z bits_z + b_z with a_z = (one - zero) / u_z, b_z = zero /
        # u_z and u_z the probability without the row's scale. Its products are a^2 bits_x bits_y +
        # a b (bits_x + bits_y) + b^2, so the sum over the rows is a matrix of pairs, a vector and a
        # number. The channel's own gram has all digits; this has those of single precision, which
        # is what makes a matrix worthwhile.
        sample, counts, k = (
            self.channel.take(slice(None, None, stride)),
            self.counts[::stride],
            self.channel.k,
        )
        chunk_size = max(
            MIN_CHUNK_ENTRIES_OF_BITS,
            min(MAX_CHUNK_ENTRIES, int(CHUNK_ENTRIES_PER_BYTE * self.channel.packed.nbytes)),
        )
        step = max(chunk_size // k, 2 * k)

        def weigh(start: int) -> tuple[BitChannel, Floats, Floats, float]:
            own = sample.take(slice(start, start + step))
            # Read-only rows, like all others: numba compiles a kernel for each kind of array.
            chunk = frozen(np.ascontiguousarray(own.packed).view())
            # The scale of a row cancels, and without it nothing underflows.
            u = replace(own, packed=chunk, scale=np.ones(len(chunk))).forward(theta)
            # Quotients are formed before they are squared: 1 / u^2 might overflow.
            # Contiguous doubles, so that whole numbers give the same digits as floats.
            b, n = own.zero / u, np.ascontiguousarray(counts[start : start + step], np.float64)
            a = np.divide(own.one - own.zero, u, out=np.zeros(len(u)), where=chunk.any(axis=1))
            bits = BitChannel(k, chunk, 1.0, 0.0, np.ones(len(chunk)))
            return bits, np.asarray(n * a * a), bits.adjoint(n * a * b), float(n @ (b * b))

        def multiply(
            precision: Any, start: int
        ) -> tuple[Floats | Singles | None, float, Floats, float]:
            bits, pair_weights, chunk_sums, chunk_weight = weigh(start)
            pairs = _scaled_pair_sums(bits, pair_weights, precision, start in _checked(starts))
            return *pairs, chunk_sums, chunk_weight

        def add(precision: Any) -> tuple[Floats, Floats, float] | None:
            pair_sums, bit_sums, weight = np.zeros((k, k)), np.zeros(k), 0.0
            for pairs, largest, chunk_sums, chunk_weight in in_order(
                partial(multiply, precision), starts, self.channel.is_worth_threads
            ):
                if pairs is None:
                    return None
                pair_sums += largest * pairs
                bit_sums += chunk_sums
                weight += chunk_weight
            return pair_sums, bit_sums, weight

        starts = range(0, len(counts), step)
        if self._has_few_ones:
            # This is done by one thread, as each would need a matrix of its own.
            pair_sums, bit_sums, weight = np.zeros((k, k)), np.zeros(k), 0.0
            for bits, pair_weights, chunk_sums, chunk_weight in map(weigh, starts):
                bits.add_pairs(pair_weights, pair_sums)
                bit_sums += chunk_sums
                weight += chunk_weight
        else:
            sums = add(np.float32) or add(np.float64)
            assert sums is not None
            pair_sums, bit_sums, weight = sums
        hessian = _mirrored(pair_sums) + bit_sums + bit_sums[:, None] + weight
        return hessian * (self.counts.sum() / counts.sum() / self.total)

    @cached_property
    def _mean_ones(self) -> float:
        return mean_ones(self.channel.packed)

    @property
    def _cost_of_pairs(self) -> float:
        """Cost of visiting all pairs of set bits, in multiplications."""
        return len(self.counts) * COST_OF_PAIR * (self._mean_ones**2 / 2 + self.channel.k)

    @property
    def _has_few_ones(self) -> bool:
        return self._cost_of_pairs < super().hessian_cost()

    @override
    def hessian_cost(self) -> float:
        return min(self._cost_of_pairs, super().hessian_cost())


def _mirrored(lower: Floats) -> Floats:
    """The symmetric matrix with this lower triangle."""
    return np.tril(lower) + np.tril(lower, -1).T


def _checked(starts: range) -> tuple[int, ...]:
    """The chunks whose products in single precision are checked: the first and the last.

    A library chooses its routine by the shape, which all others share with the first.
    """
    return (starts[0], starts[-1])


def _scaled_pair_sums(
    bits: BitChannel, w: Floats, precision: Any, is_checked: bool
) -> tuple[Floats | Singles | None, float]:
    """Sums of w / max(w) over the rows with bits x and y, for y <= x; and max(w).

    Single precision is enough, as the Hessian is an approximation anyway. None if its product is
    wrong.
    """
    largest = float(w.max())
    # If the bits tell nothing, all weights are 0.
    shares = w / (largest or 1.0)
    weights = np.sqrt(shares).astype(precision)
    rows = np.multiply(np.unpackbits(bits.packed, axis=1, count=bits.k), weights[:, None])
    if precision == np.float64:
        return dsyrk(1.0, rows.T, lower=1), largest
    product = lower_product(rows)
    if is_checked and not fits(product, bits.adjoint(shares * bits.forward(probe(bits.k)))):
        return None, largest
    return product, largest


@dataclass(frozen=True, eq=False)
class PartitionedReports(Reports):
    """Reports in partitions, maybe on other machines; sums are computed where the reports are."""

    channel: PartitionedChannel

    @override
    def hessian(self, theta: Floats, stride: int) -> Floats:
        function = partial(_hessian_of_partition, stride)
        hessian = self.channel.total(function, theta, self.counts, sum_arrays)
        return hessian / self.total

    @override
    def subsample(self, stride: int) -> None:
        """None: a warm start would need the reports here."""


def _hessian_of_partition(
    stride: int, channel: Channel, theta: Floats, weights: Floats | Ints
) -> Floats:
    return as_reports(channel, broadcast_weights(weights, channel)).hessian(theta, stride)


def as_reports(channel: Channel, counts: Floats | Ints, total: float = 1.0) -> Reports:
    """The reports of a channel in the class that computes their Hessian fastest."""
    if isinstance(channel, PartitionedChannel):
        return PartitionedReports(channel, counts, total)
    if isinstance(channel, (BitChannel, BitPoolChannel)):
        return BitReports(channel, counts, total)
    if isinstance(channel, (LookupChannel, RowMajorChannel)):
        return DenseReports(channel, counts, total)
    return Reports(channel, counts, total)


def maximise(
    bits: Sequence[Reports], others: PooledModel, q_others: Floats, tol: float
) -> tuple[Floats, int]:
    """Maximise over the simplex; return the maximiser and the passes over the rows, rounded up.

    With many rows and secrets, the maximum of a tenth of the rows is found first: it is close to
    the maximum of all rows, and a pass over a tenth of the rows costs a tenth of a full pass.
    """
    problem = _Problem(bits, others, q_others)
    warm_start = problem.warm_start()
    if warm_start is None:
        return _quasi_newton(problem, tol)
    start, cheap_passes = _quasi_newton(warm_start, max(tol, WARM_START_EXCESS))
    theta, passes = _quasi_newton(problem, tol, start)
    return theta, passes + math.ceil(cheap_passes / WARM_START_STRIDE)


def _quasi_newton(problem: _Problem, tol: float, theta: Floats | None = None) -> tuple[Floats, int]:
    """The maximiser and the passes over all rows of the problem, from `theta` or a first pass."""
    k, passes = problem.others.k, 0
    if theta is None:
        passes, theta = 1, np.full(k, 1 / k)
        g = problem.gradient(theta)
        if g.max() - 1 <= tol:
            return theta, passes
        # A start from one gradient: the more people have a secret, the more rows have its bit.
        excess_of_bits = g - g.min()
        theta = 0.9 * excess_of_bits / excess_of_bits.sum() + 0.1 / k
    hessian, stride, last_excess = None, problem.hessian_stride(), np.inf
    best, last = (np.inf, theta), None
    while passes < MAX_PASSES:
        g_rows = problem.gradient_of_rows(theta)
        g = g_rows + problem.gradient_of_others(theta)
        passes += 1
        excess = float(g.max() - 1)
        best = min(best, (excess, theta), key=lambda candidate: candidate[0])
        if excess <= tol:
            break
        if hessian is None or problem.is_new_hessian_worthwhile(excess / last_excess, excess / tol):
            # If the Hessian of a part was not good enough, that of all rows is next.
            stride = stride if hessian is None else 1
            hessian = problem.hessian(theta, stride)
        elif last is not None:
            hessian = _bfgs_update(hessian, theta - last[0], last[1] - g_rows)
        last_excess, last = excess, (theta, g_rows)
        theta = problem.step(theta, g, hessian, excess)
    return best[1], passes


@dataclass(frozen=True, eq=False)
class _Problem:
    """Many reports, and the channels and frequencies of the other mechanisms."""

    bits: Sequence[Reports]
    others: PooledModel
    q_others: Floats

    def gradient(self, theta: Floats) -> Floats:
        """Gradient g of all reports."""
        return self.gradient_of_rows(theta) + self.gradient_of_others(theta)

    def gradient_of_rows(self, theta: Floats) -> Floats:
        """Share of the many reports in g, by one pass over them."""
        return np.sum([rows.gradient(theta) for rows in self.bits], axis=0)

    def gradient_of_others(self, theta: Floats) -> Floats:
        """Share of the other mechanisms' reports in g."""
        return self.others.adjoint(self.q_others / self.others.forward(theta))

    def hessian_stride(self) -> int:
        """The n such that every n-th row is enough for the Hessian."""
        n = min(len(rows.counts) for rows in self.bits)
        return max(1, min(int(1 / MIN_SHARE_OF_ROWS), n // (MIN_ROWS_PER_SECRET * self.others.k)))

    def warm_start(self) -> _Problem | None:
        """The problem with every `WARM_START_STRIDE`-th row; None if that saves no time.

        Enough rows must be left for a Hessian.
        """
        k, n = self.others.k, min(len(rows.counts) for rows in self.bits)
        if k < MIN_K_FOR_WARM_START or n < WARM_START_STRIDE * MIN_ROWS_PER_SECRET * k:
            return None
        some = [few for rows in self.bits if (few := rows.subsample(WARM_START_STRIDE)) is not None]
        return replace(self, bits=some) if len(some) == len(self.bits) else None

    def is_new_hessian_worthwhile(self, rate: float, to_go: float) -> bool:
        """True if a Hessian of all rows costs less than the steps left at this rate of convergence.

        `rate` is the factor by which the excess fell in the last step, `to_go` that by which it is
        to fall.
        """
        if rate < 0.1:
            return False
        steps_left = MAX_PASSES if rate >= 1 else np.log(to_go) / -np.log(rate)
        n, k = sum(len(rows.counts) for rows in self.bits), self.others.k
        # Work in multiplications of single precision: a pass looks up n k / 8 bytes, each look-up
        # takes as long as 32, and the linear algebra of a step takes about 4 k^3.
        return bool(
            steps_left * (4 * n * k + 4 * k**3) > sum(rows.hessian_cost() for rows in self.bits)
        )

    def hessian(self, theta: Floats, stride: int) -> Floats:
        """Hessian of all many reports."""
        return np.sum([rows.hessian(theta, stride) for rows in self.bits], axis=0)

    def step(self, theta: Floats, g: Floats, hessian: Floats, excess: float) -> Floats:
        """Maximise the parabola of the many reports plus the exact likelihood of the others.

        Written as 1/2 y H y + (c - 1) . y, the negative of the parabola has c = 1 - g - H theta. On
        the simplex the constant 1 does not matter; it makes the multiplier of sum y = 1 that of a
        likelihood.
        """
        if not self.others.channels and self.others.k <= MAX_K_ACTIVE_SET:
            solution = _without_sum(hessian, g - 1 + hessian @ theta, theta)
            if solution is not None:
                return solution
        quadratic = QuadraticTerm(
            hessian, 1 - (g - self.gradient_of_others(theta)) - hessian @ theta
        )
        k = self.others.k
        start = np.maximum(theta, 1e-3 / k)
        point = None
        for step, point in enumerate(
            central_path(self.others, self.q_others, start, False, quadratic)
        ):
            # The path goes on until small masses are small for good, because a secret that is cut
            # off too early would not come back.
            off = point.residual + self.others.adjoint(self.q_others / point.nu - point.lam)
            if (
                (point.theta * point.s).max() <= 1e-18 and np.abs(off).max() <= 1e-3 * excess
            ) or step == 50:
                break
        assert point is not None
        solution = np.where(point.theta > point.s, point.theta, 0.0)
        return solution / solution.sum()


def _without_sum(hessian: Floats, b: Floats, theta: Floats) -> Floats | None:
    """Maximiser of b . y - 1/2 y H y over y >= 0, scaled to sum 1; None if there is no such point.

    The last support is that of the next maximiser, apart from a few secrets. But from a theta
    without zeros nearly all secrets would have to leave, so the first step begins without any mass.
    """
    k = len(theta)
    start = np.zeros(k) if theta.all() else theta
    found = maximise_parabola(hessian, b, start, MAX_FULL_SYSTEMS * k**3 / 3)
    return found.y / found.y.sum() if found.is_maximiser and found.y.any() else None


def _bfgs_update(hessian: Floats, moved: Floats, fallen: Floats) -> Floats:
    """The BFGS update: a Hessian that maps the last step to the change of the gradient.

    H + y y^T / (y . s) - H s (H s)^T / (s . H s) with the step s = `moved` and y = `fallen`. It
    costs k^2, while a pass over the rows costs n k / 8, and it corrects what a part of the rows
    cannot show.
    """
    predicted = hessian @ moved
    curvature, predicted_curvature = float(moved @ fallen), float(moved @ predicted)
    # Once the steps are small the curvature may be rounding, or even negative.
    if not (curvature > 1e-3 * predicted_curvature > 0):
        return hessian
    return (
        hessian
        + np.outer(fallen, fallen) / curvature
        - np.outer(predicted, predicted) / predicted_curvature
    )
