"""The reports that came through one mechanism: which were seen, how often, and how probable each secret makes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import Channel
from ibukit.domain.alphabet import Alphabet
from ibukit.errors import ImpossibleReport


class ReportModel(Protocol):
    """What a tally needs of a mechanism: the secrets, and the channel on given reports. Hashable, comparable."""

    @property
    def alphabet(self) -> Alphabet:
        """The secrets."""

    def channel(self, reports: NDArray[Any]) -> Channel:
        """The columns of given reports."""

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Logarithm of the factor that the channel leaves out of each report, if any."""


@dataclass(frozen=True, eq=False)
class Part(arguments.ReadOnlyArrays):
    """The reports that came through one mechanism: the distinct ones seen, sorted, and their counts.

    Parameters
    ----------
    mechanism : Mechanism
    reports : ndarray, shape (s,) or (s, width)
        Codes, integers, cell coordinates or packed bit rows, as the mechanism keeps them.
    counts : ndarray of int, shape (s,)
        All at least 1. Where reports are weighted, the sums of their weights: floats above 0.
    """

    mechanism: Any
    reports: NDArray[Any]
    counts: Ints

    mergeable: ClassVar[bool] = True
    """Whether it joins with others of its mechanism where tallies are added."""

    @cached_property
    def channel(self) -> Channel:
        """Forward and adjoint on the seen reports."""
        channel: Channel = self.mechanism.channel(self.reports)
        return channel

    @cached_property
    def log_scale(self) -> Floats:
        """Logarithm of the factor left out of each seen report's probability, shape (s,); mostly 0."""
        scale: Floats | None = self.mechanism.log_scale(self.reports)
        return np.broadcast_to(0.0, self.counts.shape) if scale is None else scale

    @cached_property
    def n(self) -> int:
        """Number of reports, or the sum of their weights."""
        total: int = self.counts.sum().item()
        return total

    @cached_property
    def left_out(self) -> float:
        """sum_z counts_z log_scale_z."""
        return float(self.counts @ self.log_scale)

    def __getstate__(self) -> dict[str, Any]:
        # channels are rebuilt where they are needed: a tally travels to workers as reports and
        # counts
        return {"mechanism": self.mechanism, "reports": self.reports, "counts": self.counts}


def make_part(
    mechanism: ReportModel, reports: NDArray[Any], counts: Ints | Floats | None = None
) -> Part:
    """A part from reports that may repeat (each counted once by default); checks that each is possible."""
    counts = np.ones(len(reports), dtype=np.int64) if counts is None else counts
    seen = counts > 0
    if not seen.any():
        raise ValueError(
            "the tally is empty: at least one report is needed, reports or counts hold none"
        )
    arguments.refuse_too_many("counts", counts)
    reports, counts = _distinct(reports[seen], counts[seen])
    part = Part(mechanism, arguments.frozen(reports), arguments.frozen(counts))
    k = len(mechanism.alphabet)
    likely = part.channel.forward(np.full(k, 1 / k)) > 0
    if not likely.all():
        raise ImpossibleReport(
            f"reports contains {part.reports[np.argmin(likely)]}, which no secret can produce under {mechanism}; "
            "is this the mechanism that made the reports?"
        )
    return part


def _distinct(reports: NDArray[Any], counts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sort the reports and add up the counts of equal ones; np.unique(axis=0) takes ten times as long for rows."""
    if reports.ndim == 1:
        if (reports[1:] > reports[:-1]).all():
            return reports.copy(), counts.copy()
        order = np.argsort(reports, kind="stable")
    else:
        order = np.lexsort(_words(reports).T[::-1])
    reports = reports[order]
    differs = reports[1:] != reports[:-1]
    starts = np.flatnonzero(np.r_[True, differs if reports.ndim == 1 else differs.any(axis=1)])
    return reports[starts], np.add.reduceat(counts[order], starts)


def _words(rows: NDArray[Any]) -> NDArray[Any]:
    """Packed bit rows as few 64-bit words that sort alike; other rows as they are."""
    if rows.dtype != np.uint8:
        return rows
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 8)))
    return padded.view(">u8").astype(np.uint64)
