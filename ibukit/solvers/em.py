"""Steps of the iterative Bayesian update on a channel, by the fastest routine that its structure has."""

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

# updates(theta, p, g, n, enough) takes steps in place and returns how many. On entry g holds the
# ratios at theta; n times, or until no g exceeds `enough`: theta <- theta g, then p = the reports'
# probabilities and g = the ratios there.
Updates = Callable[[Floats, Floats, Floats, int, float], int]

# the reports that a routine works on, among those of a stack
ReportIndex = slice | Ints

# a point with its probabilities and ratios, and the steps that led there
Moved = tuple[Floats, Floats, Floats, int]

# entries up to which a dense channel in a stack is joined with others: calling costs more than
# copying
MAX_ENTRIES_JOINED = 2**16
# seconds between two looks at the progress bar and at Ctrl-C
SECONDS_BETWEEN_LOOKS = 0.05


class BatchedSteps:
    """Steps from a point to the next: one at a time, or as many as pass unwatched between two looks.

    What is watched gets new arrays. Unwatched, p is overwritten: with bits it is long beside all
    else.
    """

    def __init__(self, updates: Updates, enough: float | None = None):
        self._updates = updates
        self._watched = enough is None
        self._enough = np.inf if enough is None else enough
        self._size = 1

    def move(self, theta: Floats, p: Floats, g: Floats, most: int) -> Moved:
        """At most `most` steps."""
        moved = theta.copy(), np.empty_like(p) if self._watched else p, g.copy()
        began = time.perf_counter()
        taken = self._updates(*moved, min(self._size, most), self._enough)
        if not self._watched:
            pace = SECONDS_BETWEEN_LOOKS / max(time.perf_counter() - began, 1e-9)
            self._size = max(1, int(taken * min(pace, 4.0)))
        return *moved, taken


def evaluate(updates: Updates, theta: Floats, s: int) -> tuple[Floats, Floats]:
    """The probabilities of the s reports, and the ratios, at theta itself."""
    p, g = np.empty(s), np.ones(len(theta))  # with 1 for its ratios a step stays where it is
    updates(theta, p, g, 1, np.inf)
    return p, g


def updates_of(channel: Channel, q: Floats) -> Updates:
    """The steps on a channel, with the frequencies q of its reports.

    Compiled loops exist for the package's own channels, by their exact type: a class that inherits
    from one of them may mean something else by forward or adjoint, and those two are what counts.
    """
    channels, starts = (
        (channel.channels, channel.starts) if type(channel) is StackedChannel else ((channel,), ())
    )
    bounds = np.array([0, *starts, len(q)])
    alike: dict[tuple[type, int], list[int]] = {}
    for i, one in enumerate(channels):
        alike.setdefault(_kind(one, i), []).append(i)
    parts: list[tuple[ReportIndex, Updates]] = []
    for group in alike.values():
        where = _where(group, bounds)
        own_starts = np.cumsum([0, *(bounds[i + 1] - bounds[i] for i in group)])
        parts.append(
            (where, _updates_alike([channels[i] for i in group], own_starts, _fixed(q[where])))
        )
    return parts[0][1] if len(parts) == 1 else partial(_stacked, parts)


def _kind(channel: Channel, place: int) -> tuple[type, int]:
    """What channels in a stack must share for one loop to run over them all."""
    together = type(channel) in (ResponseChannel, LineChannel, BitChannel) or (
        type(channel) is DenseChannel and channel.columns.size <= MAX_ENTRIES_JOINED
    )
    return type(channel), -1 if together else place


def _where(group: Sequence[int], bounds: Ints) -> ReportIndex:
    """The reports of some channels of a stack: a slice if these are neighbours, or else the index of each report."""
    first, last = group[0], group[-1]
    if len(group) == last - first + 1:
        return slice(bounds[first], bounds[last + 1])
    return np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in group])


def _updates_alike(channels: Sequence[Any], starts: Ints, q: Floats) -> Updates:
    """One loop over channels of a kind, whose reports begin at `starts`."""
    kind = type(channels[0])
    if kind is DenseChannel:
        columns = [channel.columns.T for channel in channels]
        return partial(_em_kernels.dense, _joined(columns), q)
    if kind is ResponseChannel:
        reports = _fixed(np.concatenate([channel.reports for channel in channels]))
        off = _fixed([channel.off for channel in channels])
        extra = _fixed([channel.diagonal - channel.off for channel in channels])
        return partial(_em_kernels.responses, reports, _fixed(starts), off, extra, q)
    if kind is LineChannel:
        positions, scale = (
            _fixed(np.concatenate([getattr(channel, name) for channel in channels]))
            for name in ("positions", "scale")
        )
        decay = _fixed([channel.decay for channel in channels])
        return partial(_em_kernels.lines, positions, _fixed(starts), decay, scale, q)
    if kind is BitChannel:
        rows, factors = (
            _joined([getattr(channel, name) for channel in channels])
            for name in ("packed", "scale")
        )
        one, zero = (
            _fixed([getattr(channel, name) for channel in channels]) for name in ("one", "zero")
        )
        return partial(_em_kernels.bits, rows, _fixed(starts), one, zero, factors, q)
    (channel,) = channels
    return partial(_on_plane if kind is PlaneChannel else _forward_and_adjoint, channel, q)


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One after the other; a single one is not copied, there may be a million rows in it."""
    return _fixed(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))


def _fixed(values: ArrayLike) -> NDArray[Any]:
    """Contiguous and read-only whatever it was, so that each loop is compiled for one combination of types."""
    return frozen(np.ascontiguousarray(values).view())


def _forward_and_adjoint(
    channel: Channel, q: Floats, theta: Floats, p: Floats, g: Floats, n: int, enough: float
) -> int:
    """The steps on any channel."""
    for step in range(n):
        theta *= g
        p[:] = channel.forward(theta)
        g[:] = channel.adjoint(q / p)
        if (g <= enough).all():
            return step + 1
    return n


def _on_plane(
    channel: PlaneChannel, q: Floats, theta: Floats, p: Floats, g: Floats, n: int, enough: float
) -> int:
    """The steps on a plane, whose Fourier transforms go there and back at once."""
    for step in range(n):
        theta *= g
        channel.score_into(theta, q, p, g)
        if g.max() <= enough:
            return step + 1
    return n


def _stacked(
    parts: Sequence[tuple[ReportIndex, Updates]],
    theta: Floats,
    p: Floats,
    g: Floats,
    n: int,
    enough: float,
) -> int:
    """The steps on several channels: their ratios add up."""
    share = np.empty_like(g)
    # what lies scattered is worked on in one piece, and goes to its places in the end
    pieces = [p[where] if isinstance(where, slice) else np.empty(len(where)) for where, _ in parts]
    taken = n
    for step in range(n):
        theta *= g
        g.fill(0.0)
        for piece, (_, updates) in zip(pieces, parts, strict=True):
            share.fill(1.0)
            updates(theta, piece, share, 1, np.inf)
            g += share
        if (g <= enough).all():
            taken = step + 1
            break
    for piece, (where, _) in zip(pieces, parts, strict=True):
        if not isinstance(where, slice):
            p[where] = piece
    return taken
