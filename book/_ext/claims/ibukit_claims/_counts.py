"""Every count of the papers' claims that a page, a bar or the README shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ibukit.datasets import DATA
from ibukit_claims._tables import rows_of

# letter of a paper in the codes -> its name in data/
PAPERS = {"A": "consistency", "B": "geometric", "C": "freewill", "D": "estimators", "E": "privic"}
OURS = "ours"
"""The verdict of a row that no paper states: it is listed, tested, and in no count."""


@dataclass(frozen=True)
class Counts:
    """How many rows and printed numbers have each verdict."""

    rows: dict[str, Counter[str]]
    """letter of the paper -> verdict -> rows of the ledger; settings are among them, ours not"""
    ours: int
    """rows of the ledger that are results of ours"""
    numbers: Counter[str]
    """verdict -> distinct numbers that the papers print; settings are among them"""

    @property
    def results(self) -> dict[str, Counter[str]]:
        """Letter -> verdict -> number of results; a setting is an input, so it does not count."""
        return {
            letter: Counter({word: n for word, n in found.items() if word != "setting"})
            for letter, found in self.rows.items()
        }

    @property
    def verdicts(self) -> Counter[str]:
        """Verdict -> number of results in all papers."""
        return sum(self.results.values(), Counter())

    @property
    def n_rows(self) -> int:
        """The number of claims and settings of the papers."""
        return sum(found.total() for found in self.rows.values())

    @property
    def n_results(self) -> int:
        """The number of claims without the settings."""
        return self.verdicts.total()

    @property
    def n_settings(self) -> int:
        """The number of inputs that the papers chose."""
        return self.n_rows - self.n_results


def counts(data: Path = DATA) -> Counts:
    """Count the rows of the ledger and the numbers that the papers print.

    Parameters
    ----------
    data : pathlib.Path
        The folder with ledger.csv and published/.

    Returns
    -------
    Counts
        Rows by paper and verdict, results of ours apart, and distinct printed numbers.

    Examples
    --------
    >>> found = counts()
    >>> found.n_rows == found.n_results + found.n_settings
    True
    """
    rows: dict[str, Counter[str]] = {letter: Counter() for letter in PAPERS}
    ours = 0
    for row in rows_of(data / "ledger.csv"):
        if row["verdict"] == OURS:
            ours += 1
        else:
            rows[row["id"][0]][row["verdict"]] += 1
    numbers: Counter[str] = Counter()
    for stem in PAPERS.values():
        path = data / "published" / f"{stem}.csv"
        if path.is_file():
            keys = ("claim", "quantity", "value", "verdict")
            numbers += distinct(tuple(row[key] for key in keys) for row in rows_of(path))
    return Counts(rows, ours, numbers)


def distinct(numbers: Iterable[tuple[str, ...]]) -> Counter[str]:
    """Verdict -> how many distinct numbers have it; the verdict comes last in each of `numbers`.

    A table may print one number in many cells, such as the distance of the uniform start before
    each round: one value of one quantity of one claim, with the same verdict, counts once.
    """
    return Counter(verdict for *_, verdict in set(numbers))
