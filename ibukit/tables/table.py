"""Interface of a table of reports, for every engine and file format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from ibukit.tables.columns import Columns, Piece


class ReportTable(ABC):
    """A table whose reports can be counted piece by piece."""

    textual = False
    """True if values are read as text; they then match the labels that are written so."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of all columns."""

    @abstractmethod
    def pieces(self, columns: Columns) -> Iterator[Piece]:
        """Yield the counted reports, in one piece or several."""

    def find(
        self, columns: Columns, check: Callable[[Piece], None]
    ) -> tuple[str, Exception] | None:
        """Return the place of the first row that `check` refuses, and its error.

        The result is None for tables whose rows have no line numbers.
        """
        return None
