"""A table of verdicts that draws itself: what deviates comes first, and settings are folded."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# what a reader looks for comes first
DEVIATIONS_FIRST = (
    "deviates",
    "not in this setting",
    "holds with a condition",
    "fitted",
    "reproduced",
    "not checkable",
)
NUMBERS = ("ours", "paper", "difference")


class Comparison:
    """Texts in columns, the last of them the verdict, drawn the same every time.

    Rows that deviate come first, otherwise the order is kept. In HTML the settings stand below,
    folded.
    """

    def __init__(self, rows: Sequence[dict[str, str]], settings: Sequence[str] = ()):
        self.rows = sorted(rows, key=lambda row: DEVIATIONS_FIRST.index(row["verdict"]))
        self.settings = tuple(settings)

    @property
    def table(self) -> pd.DataFrame:
        """The rows as a frame."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __repr__(self) -> str:
        return self.table.to_string(index=False)

    def _repr_html_(self) -> str:
        # with a scope, so that a screen reader names the column of a number
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in next(iter(self.rows), {}))
        lines = [
            "<tr>" + "".join(_cell(*item) for item in row.items()) + "</tr>" for row in self.rows
        ]
        table = f'<table class="dataframe verdicts">\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
        return table + "\n".join(lines) + "\n</tbody>\n</table>" + self._folded()

    def _folded(self) -> str:
        if not self.settings:
            return ""
        items = "".join(f"<li>{escape(text)}</li>" for text in self.settings)
        n, s = len(self.settings), "s" * (len(self.settings) > 1)
        said = f"{n} setting{s} of the paper, taken over"
        inside = f"<summary>{said}</summary><ul>{items}</ul>"
        return f'\n<details class="settings-of-table">{inside}</details>'


def _cell(column: str, text: str) -> str:
    text = escape(text)
    if column == "verdict":
        return f'<td><span class="verdict" data-verdict="{text}">{text}</span></td>'
    return f'<td class="number">{text}</td>' if column in NUMBERS else f"<td>{text}</td>"
