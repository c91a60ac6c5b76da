"""Data augmentation: draw the secrets behind the reports, given a distribution p.

This is the half of a Gibbs sweep that depends on the mechanism. The mixture M_xz = least_z + (M_xz
- least_z), with least_z = min_x M_xz, splits each report: with the first part it tells nothing of
its secret, which is then a draw from p and tells nothing of p. Only the secrets of the second part
are drawn, so fewer are drawn, and the noisier the reports are, the faster the chain forgets. Under
k-RR the second part is the truth itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats, Ints
from ibukit.bayes import _gibbs_kernels
from ibukit.channels import BitChannel, ResponseChannel, facts
from ibukit.errors import TooLarge
from ibukit.tally.tally import Tally, TallyPart

# With more equal reports than this, one multinomial draw is faster than single draws: numpy takes
# about 60 times as long for an entry as the kernel does.
MIN_EQUAL_REPORTS = 64
# Bytes of the matrix of the reports seen; beyond that `sampler_of` raises TooLarge.
MAX_BYTES = 2**31
# Number of weights held in memory at a time.
WEIGHTS_AT_ONCE = 2**22

Sampler = Callable[[Floats, Generator], Ints]


def sampler_of(tally: Tally) -> Sampler:
    """Return a function from p, shape (chains, k), to totals of the secrets told, same shape."""
    samplers = [_sampler(part, tally.k) for part in tally.parts]
    return lambda p, rng: np.asarray(
        sum(draw_secrets(p, rng) for draw_secrets in samplers), dtype=np.int64
    )


def _sampler(part: TallyPart, k: int) -> Sampler:
    channel, counts = part.channel, part.counts
    if (krr := facts.as_response(channel)) is not None:
        return _RandomizedResponseSampler(krr, counts)
    # Mean number of equal reports, which decides between single draws and multinomials.
    reports_per_column = int(counts.sum()) / len(counts)
    if (bits := facts.as_bits(channel)) is not None and reports_per_column <= 2 * k:
        return _BitSampler(bits, counts)
    if 8.0 * k * len(counts) > MAX_BYTES:
        raise TooLarge(
            f"method='gibbs' would write out {k} x {len(counts)} numbers of {part.mechanism}, "
            f"{8.0 * k * len(counts):.3g} bytes (at most {MAX_BYTES:.3g}): tally fewer "
            "reports, drawn from them at random, or merge reports and add up their columns"
        )
    # The mixture of the module's docstring: the least entry of each column, and the excess over it.
    columns = np.ascontiguousarray(channel.rows(np.arange(k)).T)
    least = columns.min(axis=1)
    columns -= least[:, None]
    return (_ColumnSampler if reports_per_column <= MIN_EQUAL_REPORTS else _MultinomialSampler)(
        columns, least, counts
    )


@dataclass(frozen=True, eq=False)
class _RandomizedResponseSampler:
    """k-RR in O(k): report z tells its secret with probability (truth - lie) p_z / (theta M)_z."""

    channel: ResponseChannel
    counts: Ints

    def __call__(self, p: Floats, rng: Generator) -> Ints:
        """Draw one binomial for each different report."""
        # Report z tells its secret with weight (truth - lie) p_z, and is random with weight `lie`.
        own = (self.channel.diagonal - self.channel.off) * p[:, self.channel.reports]
        totals = np.zeros(p.shape, dtype=np.int64)
        totals[:, self.channel.reports] = rng.binomial(self.counts, own / (own + self.channel.off))
        return totals


@dataclass(frozen=True, eq=False)
class _BitSampler:
    """Unary encodings from packed rows, with k/8 table look-ups a row."""

    channel: BitChannel
    counts: Ints

    def __call__(self, p: Floats, rng: Generator) -> Ints:
        """Draw one uniform for each user."""
        channel, n = self.channel, int(self.counts.sum())
        # Rows are whole bytes: bits beyond k get probability 0.
        padded = np.pad(p, ((0, 0), (0, 8 * channel.packed.shape[1] - channel.k)))
        contrast = channel.one - channel.zero
        totals = [
            _gibbs_kernels.assign_by_bits(
                channel.packed, self.counts, channel.zero, contrast, each, rng.random(n)
            )
            for each in padded
        ]
        return np.array(totals)[:, : channel.k]


@dataclass(frozen=True, eq=False)
class _ColumnSampler:
    """Any channel, for few equal reports."""

    excess: Floats
    least: Floats
    counts: Ints

    @cached_property
    def _n(self) -> int:
        return int(self.counts.sum())

    def __call__(self, p: Floats, rng: Generator) -> Ints:
        """Draw one uniform for each user."""
        totals = [
            _gibbs_kernels.assign_by_columns(
                self.excess, self.least, self.counts, each, rng.random(self._n)
            )
            for each in p
        ]
        return np.array(totals)


@dataclass(frozen=True, eq=False)
class _MultinomialSampler:
    """Any channel, for many equal reports, whose secrets are multinomial."""

    excess: Floats
    least: Floats
    counts: Ints

    def __call__(self, p: Floats, rng: Generator) -> Ints:
        """Draw one binomial and one multinomial for each different report."""
        totals = np.zeros(p.shape, dtype=np.int64)
        # Reports of one kind are exchangeable: a binomial decides how many tell, a multinomial
        # which secrets they tell.
        step = max(1, WEIGHTS_AT_ONCE // p.size)
        for start in range(0, len(self.counts), step):
            here = slice(start, start + step)
            weights = p[:, None, :] * self.excess[here]
            excess_mass = weights.sum(axis=2)
            assigned = rng.binomial(
                self.counts[here], excess_mass / (excess_mass + self.least[here])
            )
            weights /= np.where(excess_mass > 0, excess_mass, 1)[:, :, None]
            totals += rng.multinomial(assigned, weights).sum(axis=1)
        return totals
