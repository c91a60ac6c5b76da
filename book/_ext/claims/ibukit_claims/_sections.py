"""The sections of the papers, and the rows of the ledger that stand in each."""

from __future__ import annotations

import re
from pathlib import Path

from ibukit.datasets import DATA
from ibukit_claims._published import InvalidClaim
from ibukit_claims._tables import rows_of

NUMBER = re.compile(r"Sec\. (\d+(?:\.\d+)*)")


def sections(letter: str, data: Path = DATA) -> list[dict[str, str]]:
    """The rows of data/sections.csv of a paper, in its order."""
    return [row for row in rows_of(data / "sections.csv") if row["paper"] == letter]


def section_of(where: str, of_paper: list[dict[str, str]]) -> str:
    """The number of the section in which a place stands.

    It is the section whose column `holds` names the place, or else the section whose number is in
    the place. "Fig. 1" holds "Fig. 1a", not "Fig. 12"; the longest name that fits decides.
    """
    held = [
        (len(name), row["section"])
        for row in of_paper
        for name in row["holds"].split(";")
        if name and re.match(rf"{re.escape(name)}(?![0-9IVX])", where)
    ]
    if held:
        return max(held)[1]
    number, known = NUMBER.search(where), {row["section"] for row in of_paper}
    if number is None:
        raise InvalidClaim(f"data/sections.csv has no section that holds {where!r}")
    found = number[1]
    while found not in known and "." in found:
        found = found.rpartition(".")[0]
    if found not in known:
        raise InvalidClaim(f"data/sections.csv has no section {number[1]}, for {where!r}")
    return found


def rows_by_section(letter: str, data: Path = DATA) -> dict[str, list[str]]:
    """Section -> codes of its rows in the ledger, in the order of the paper."""
    of_paper = sections(letter, data)
    found: dict[str, list[str]] = {row["section"]: [] for row in of_paper}
    for row in rows_of(data / "ledger.csv"):
        if row["id"][0] == letter:
            found[section_of(row["where"], of_paper)].append(row["id"])
    return found
