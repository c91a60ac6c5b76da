"""Secrets assigned to the reports, given a distribution: the half of a Gibbs sweep that depends on the mechanism.

M_xz = least_z + (M_xz - least_z) is a mixture: with its first part the report says nothing of the
secret, which is then a draw from p and says nothing of p. Only the secrets of the second part
count, so fewer are drawn, and the chain forgets the faster the noisier the reports are. Under k-RR
the second part is the truth itself.
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

# numpy's multinomial takes some 60 times as long for an entry as the kernel does
MANY_EQUAL_REPORTS = 64
MAX_BYTES = 2**31
WEIGHTS_AT_ONCE = 2**22

Sampler = Callable[[Floats, Generator], Ints]


def sampler_of(tally: Tally) -> Sampler:
    """p, shape (chains, k) -> totals of the secrets assigned to the reports, shape (chains, k)."""
    samplers = [_sampler(part, tally.k) for part in tally.parts]
    return lambda p, rng: np.asarray(
        sum(draw_secrets(p, rng) for draw_secrets in samplers), dtype=np.int64
    )


def _sampler(part: TallyPart, k: int) -> Sampler:
    channel, counts = part.channel, part.counts
    if (krr := facts.as_response(channel)) is not None:
        return _Truths(krr, counts)
    alike = int(counts.sum()) / len(counts)
    if (bits := facts.as_bits(channel)) is not None and alike <= 2 * k:
        return _Bits(bits, counts)
    if 8.0 * k * len(counts) > MAX_BYTES:
        raise TooLarge(
            f"method='gibbs' would write out {k} x {len(counts)} numbers of {part.mechanism}, "
            f"{8.0 * k * len(counts):.3g} bytes (at most {MAX_BYTES:.3g}): tally fewer reports, or merge secrets"
        )
    columns = np.ascontiguousarray(channel.rows(np.arange(k)).T)
    least = columns.min(axis=1)
    columns -= least[:, None]
    return (_Columns if alike <= MANY_EQUAL_REPORTS else _EqualReports)(columns, least, counts)


@dataclass(frozen=True, eq=False)
class _Truths:
    """k-RR, O(k): with probability (truth - lie) p_z / (theta M)_z the report z is the secret."""

    channel: ResponseChannel
    counts: Ints

    def __call__(self, p: Floats, rng: Generator) -> Ints:
        """One binomial a report."""
        own = (self.channel.diagonal - self.channel.off) * p[:, self.channel.reports]
        totals = np.zeros(p.shape, dtype=np.int64)
        totals[:, self.channel.reports] = rng.binomial(self.counts, own / (own + self.channel.off))
        return totals


@dataclass(frozen=True, eq=False)
class _Bits:
    """Packed rows: k/8 look-ups a row."""

    channel: BitChannel
    counts: Ints

    def __call__(self, p: Floats, rng: Generator) -> Ints:
        """One uniform a user."""
        channel, n = self.channel, int(self.counts.sum())
        padded = np.pad(p, ((0, 0), (0, 8 * channel.packed.shape[1] - channel.k)))
        contrast = channel.one - channel.zero
        totals = [
            _gibbs_kernels.assigned_by_bits(
                channel.packed, self.counts, channel.zero, contrast, each, rng.random(n)
            )
            for each in padded
        ]
        return np.array(totals)[:, : channel.k]


@dataclass(frozen=True, eq=False)
class _Columns:
    """Any channel, with few reports of a kind."""

    excess: Floats
    least: Floats
    counts: Ints

    @cached_property
    def _n(self) -> int:
        return int(self.counts.sum())

    def __call__(self, p: Floats, rng: Generator) -> Ints:
        """One uniform a user."""
        totals = [
            _gibbs_kernels.assigned_by_columns(
                self.excess, self.least, self.counts, each, rng.random(self._n)
            )
            for each in p
        ]
        return np.array(totals)


@dataclass(frozen=True, eq=False)
class _EqualReports:
    """Any channel, with many reports of a kind: their secrets are multinomial."""

    excess: Floats
    least: Floats
    counts: Ints

    def __call__(self, p: Floats, rng: Generator) -> Ints:
        """One binomial and one multinomial a kind."""
        totals = np.zeros(p.shape, dtype=np.int64)
        step = max(1, WEIGHTS_AT_ONCE // p.size)
        for start in range(0, len(self.counts), step):
            here = slice(start, start + step)
            weights = p[:, None, :] * self.excess[here]
            held = weights.sum(axis=2)
            assigned = rng.binomial(self.counts[here], held / (held + self.least[here]))
            weights /= np.where(held > 0, held, 1)[:, :, None]
            totals += rng.multinomial(assigned, weights).sum(axis=1)
        return totals
