"""Reports of many mechanisms with geometric noise on a line as one channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_fallback import InterpretUntilWorthCompiling
from ibukit._ground.rounding import gamma
from ibukit._ground.typing import override
from ibukit.channels import _gram_kernels
from ibukit.channels.base import Channel, Score
from ibukit.channels.line import (
    POSITIONS_BY_PYTHON,
    LineChannel,
    most_at_a_place,
    upper_score_of_sweeps,
)
from ibukit.channels.pools import _line_pool_kernels

# Positions of all mechanisms together from which on lines are pooled: loops for pools take two
# seconds to compile, once on each machine, which smaller pools would not make up for.
MIN_POSITIONS_POOLED = 5_000
LOOPS = InterpretUntilWorthCompiling(_line_pool_kernels, "at_reports", POSITIONS_BY_PYTHON)


@dataclass(frozen=True, eq=False)
class LinePoolChannel(Channel):
    r"""Geometric noise of many mechanisms on one line, two sweeps for each of them.

    .. math:: M_{xz}=\mathrm{scale}_z\,\mathrm{decay}_i^{|x-\mathrm{position}_z|}
        \quad\text{for a report } z \text{ of mechanism } i.

    Parameters
    ----------
    k : int
        Number of secrets, 0..k-1 on the line.
    decays : ndarray, shape (m,)
        For each mechanism the ratio of the entries of neighbouring secrets, above 0 and at most 1.
    starts : ndarray of int, shape (m + 1,)
        Where the reports of each mechanism begin, and their number.
    positions : ndarray of int, shape (s,)
        Position of each report, 0..k-1.
    scale : ndarray, shape (s,)
        A factor for each report.

    Examples
    --------
    >>> import numpy as np
    >>> two = [LineChannel(3, each, np.array([0, 2]), np.ones(2)) for each in (0.5, 0.1)]
    >>> LinePoolChannel.of(two).rows(np.arange(3))
    array([[1.  , 0.25, 1.  , 0.01],
           [0.5 , 0.5 , 0.1 , 0.1 ],
           [0.25, 1.  , 0.01, 1.  ]])
    """

    k: int
    decays: Floats
    starts: Ints
    positions: Ints
    scale: Floats

    @classmethod
    def of(cls, channels: Sequence[LineChannel]) -> LinePoolChannel:
        """Pool the reports of some channels over the same secrets, one after the other."""
        return cls(
            channels[0].k,
            np.array([channel.decay for channel in channels]),
            np.cumsum([0, *(channel.size for channel in channels)]),
            np.concatenate([channel.positions for channel in channels]),
            np.concatenate([channel.scale for channel in channels]),
        )

    @property
    @override
    def size(self) -> int:
        return len(self.positions)

    @override
    def forward(self, theta: Floats) -> Floats:
        return self._loops.at_reports(theta, *self._lines) * self.scale

    @override
    def adjoint(self, w: Floats) -> Floats:
        return self._loops.at_secrets(w * self.scale, *self._lines, self.k)

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        def back(w: Floats) -> tuple[Floats, Floats]:
            return self._loops.at_secrets_with_steps(w, *self._lines, self.k)

        sums = self._loops.at_reports_with_steps(theta, *self._lines)
        score = upper_score_of_sweeps(sums, self.scale, counts, back, self.k)
        if score is None:
            return self.score(theta, counts)
        # There is one more addition for each line than in `LineChannel`.
        most = most_at_a_place(self.positions, self.k) + len(self.decays)
        return score.raised(gamma(most + 12))

    @override
    def rows(self, secrets: Ints) -> Floats:
        distances = np.abs(secrets[:, None] - self.positions)
        powers = self.decays[:, None] ** np.arange(self.k)
        lines = np.repeat(np.arange(len(self.decays)), np.diff(self.starts))
        return powers[lines, distances] * self.scale

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        # The upper triangle in C order is the lower one in Fortran order.
        _gram_kernels.add_lines(total.T, weights * self.scale**2, *self._lines)

    @override
    def unit_columns(self) -> LinePoolChannel:
        return replace(self, scale=np.ones_like(self.scale))

    @override
    def scaled(self, factor: Floats) -> LinePoolChannel:
        return replace(self, scale=self.scale * factor)

    @cached_property
    def _lines(self) -> tuple[Floats, Ints, Ints]:
        return self.decays, self.starts, self.positions

    @property
    def _loops(self) -> Any:
        return LOOPS.for_size(self.k * len(self.decays))


def can_be_pooled(channel: Channel) -> bool:
    """True if the channel is geometric noise on a line, of the package's own class."""
    return type(channel) is LineChannel


def pooled(channels: list[LineChannel]) -> list[Channel]:
    """The channels as one, if there are positions enough; else as they are."""
    if len(channels) == 1 or channels[0].k * len(channels) < MIN_POSITIONS_POOLED:
        return list[Channel](channels)
    return [LinePoolChannel.of(channels)]
