"""Steps of the iterative Bayesian update (EM), by the fastest routine for a channel's structure.

A step is theta_x <- theta_x g_x with g = M (q / p) and p = theta M. It never lowers the likelihood,
and at a maximiser g is 1 wherever theta is positive and at most 1 elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground.arguments import Floats, Ints, frozen
from ibukit.channels import (
    BitChannel,
    Channel,
    DenseChannel,
    LineChannel,
    PlaneChannel,
    ResponseChannel,
    StackedChannel,
)
from ibukit.solvers import _em_kernels

# updates(theta, p, g, n, target) takes steps in place and returns their number. On entry g holds
# the ratios at theta. A step sets theta to theta g, then p to the probabilities of the reports
# there and g to the ratios there. It is repeated n times, or until no g exceeds `target`.
Updates = Callable[[Floats, Floats, Floats, int, float], int]

# The reports that a routine works on, among those of a stack.
ReportIndex = slice | Ints

# A point, its probabilities and ratios, and the number of steps that led there.
Moved = tuple[Floats, Floats, Floats, int]

# Entries up to which dense channels of a stack are joined: one more call costs more than the copy.
MAX_ENTRIES_JOINED = 2**16
# A batch of steps takes about this number of seconds. After it the progress bar is updated and
# Ctrl-C is heeded.
SECONDS_PER_BATCH = 0.05


class BatchedSteps:
    """Steps one at a time, or in batches until no g exceeds `target`.

    Without a target each step is watched by a stopping rule and gets new arrays. In a batch p is
    overwritten, because with bits it is long compared with theta and g.
    """

    def __init__(self, updates: Updates, target: float | None = None):
        self._updates = updates
        self._watched = target is None
        self._target = np.inf if target is None else target
        self._size = 1

    def move(self, theta: Floats, p: Floats, g: Floats, max_steps: int) -> Moved:
        """Take at most `max_steps` steps."""
        moved = theta.copy(), np.empty_like(p) if self._watched else p, g.copy()
        began = time.perf_counter()
        taken = self._updates(*moved, min(self._size, max_steps), self._target)
        if not self._watched:
            # The next batch aims at SECONDS_PER_BATCH, and is at most four times as large.
            pace = SECONDS_PER_BATCH / max(time.perf_counter() - began, 1e-9)
            self._size = max(1, int(taken * min(pace, 4.0)))
        return *moved, taken


def evaluate(updates: Updates, theta: Floats, s: int) -> tuple[Floats, Floats]:
    """Probabilities of the s reports, and the ratios g, at theta itself."""
    # A step with g = 1 stays at theta.
    p, g = np.empty(s), np.ones(len(theta))
    updates(theta, p, g, 1, np.inf)
    return p, g


def updates_of(channel: Channel, q: Floats) -> Updates:
    """Steps on a channel, with the frequencies q of its reports.

    Compiled loops exist for the package's own channels, by their exact type: a class that inherits
    from one of them may define forward and adjoint differently, and these define a channel.
    """
    channels, starts = (
        (channel.channels, channel.starts) if type(channel) is StackedChannel else ((channel,), ())
    )
    bounds = np.array([0, *starts, len(q)])
    alike: dict[tuple[type, int], list[int]] = {}
    for i, one in enumerate(channels):
        alike.setdefault(_loop_key(one, i), []).append(i)
    parts: list[tuple[ReportIndex, Updates]] = []
    for group in alike.values():
        index = _report_index(group, bounds)
        own_starts = np.cumsum([0, *(bounds[i + 1] - bounds[i] for i in group)])
        own_q = _as_kernel_argument(q[index])
        parts.append((index, _updates_of_group([channels[i] for i in group], own_starts, own_q)))
    return parts[0][1] if len(parts) == 1 else partial(_stacked, parts)


def _loop_key(channel: Channel, place: int) -> tuple[type, int]:
    """Key that channels in a stack share if one loop can run over them all."""
    together = type(channel) in (ResponseChannel, LineChannel, BitChannel) or (
        type(channel) is DenseChannel and channel.columns.size <= MAX_ENTRIES_JOINED
    )
    return type(channel), -1 if together else place


def _report_index(group: Sequence[int], bounds: Ints) -> ReportIndex:
    """Reports of some channels of a stack: a slice if they are neighbours, else their indices."""
    first, last = group[0], group[-1]
    if len(group) == last - first + 1:
        return slice(bounds[first], bounds[last + 1])
    return np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in group])


def _updates_of_group(channels: Sequence[Any], starts: Ints, q: Floats) -> Updates:
    """One compiled loop over channels of a kind, whose reports begin at `starts`."""
    kind = type(channels[0])
    if kind is DenseChannel:
        columns = [channel.columns.T for channel in channels]
        return partial(_em_kernels.dense, _concatenated(columns), q)
    if kind is ResponseChannel:
        reports = _as_kernel_argument(np.concatenate([channel.reports for channel in channels]))
        off = _as_kernel_argument([channel.off for channel in channels])
        extra = _as_kernel_argument([channel.diagonal - channel.off for channel in channels])
        return partial(_em_kernels.responses, reports, _as_kernel_argument(starts), off, extra, q)
    if kind is LineChannel:
        positions, scale = (
            _as_kernel_argument(np.concatenate([getattr(channel, name) for channel in channels]))
            for name in ("positions", "scale")
        )
        decay = _as_kernel_argument([channel.decay for channel in channels])
        return partial(_em_kernels.lines, positions, _as_kernel_argument(starts), decay, scale, q)
    if kind is BitChannel:
        rows, factors = (
            _concatenated([getattr(channel, name) for channel in channels])
            for name in ("packed", "scale")
        )
        one, zero = (
            _as_kernel_argument([getattr(channel, name) for channel in channels])
            for name in ("one", "zero")
        )
        return partial(_em_kernels.bits, rows, _as_kernel_argument(starts), one, zero, factors, q)
    (channel,) = channels
    return partial(_on_plane if kind is PlaneChannel else on_any_channel, channel, q)


def _concatenated(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays one after the other; a single one is not copied, as it may have a million rows."""
    return _as_kernel_argument(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))


def _as_kernel_argument(values: ArrayLike) -> NDArray[Any]:
    """A contiguous read-only view, so that each loop is compiled for one combination of types."""
    return frozen(np.ascontiguousarray(values).view())


def on_any_channel(
    channel: Channel, q: Floats, theta: Floats, p: Floats, g: Floats, n: int, target: float
) -> int:
    """Steps on any channel."""
    for step in range(n):
        theta *= g
        p[:] = channel.forward(theta)
        g[:] = channel.adjoint(q / p)
        if (g <= target).all():
            return step + 1
    return n


def _on_plane(
    channel: PlaneChannel, q: Floats, theta: Floats, p: Floats, g: Floats, n: int, target: float
) -> int:
    """Steps on a plane, which computes p and g in one pass of Fourier transforms."""
    for step in range(n):
        theta *= g
        channel.score_into(theta, q, p, g)
        if g.max() <= target:
            return step + 1
    return n


def _stacked(
    parts: Sequence[tuple[ReportIndex, Updates]],
    theta: Floats,
    p: Floats,
    g: Floats,
    n: int,
    target: float,
) -> int:
    """Steps on several channels: their ratios add up."""
    share = np.empty_like(g)
    # A loop needs its reports in one piece; scattered ones are copied to their places at the end.
    pieces = [p[index] if isinstance(index, slice) else np.empty(len(index)) for index, _ in parts]
    taken = n
    for step in range(n):
        theta *= g
        g.fill(0.0)
        for piece, (_, updates) in zip(pieces, parts, strict=True):
            # theta has moved already: with ratios of 1 the step stays there, and evaluates p and g.
            share.fill(1.0)
            updates(theta, piece, share, 1, np.inf)
            g += share
        if (g <= target).all():
            taken = step + 1
            break
    for piece, (index, _) in zip(pieces, parts, strict=True):
        if not isinstance(index, slice):
            p[index] = piece
    return taken
