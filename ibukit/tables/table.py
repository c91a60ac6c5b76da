"""What is asked of a table, whatever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from ibukit.tables.columns import Columns, Piece


class Source(ABC):
    """Something with columns whose reports can be counted piece by piece."""

    textual = False
    """Whether labels are read as text, and stand for those that are written so."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The columns there are."""

    @abstractmethod
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        """The counted reports, in one piece or several."""

    def find(
        self, columns: Columns, check: Callable[[Piece], None]
    ) -> tuple[str, Exception] | None:
        """Where the first row is that `check` refuses, and its error; None for what has no places."""
        return None
