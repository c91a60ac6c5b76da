"""A finished cycle of PRIVIC."""

from __future__ import annotations

from dataclasses import dataclass

from ibukit._ground.arguments import Floats, Ints, ReadOnlyArrays


@dataclass(frozen=True)
class Cycle(ReadOnlyArrays):
    """The estimate after a cycle, with its proof, and how often each report was made."""

    distribution: Floats
    counts: Ints
    gap: float
    n_iter: int
    status: str
    method: str

    @property
    def n(self) -> int:
        """Number of reports."""
        return int(self.counts.sum())
