"""Tallies in files: each part's mechanism, its distinct reports and their counts."""

from __future__ import annotations

import os
from typing import Any

from ibukit._ground import arguments
from ibukit.domain.alphabet import Alphabet
from ibukit.files import file_format
from ibukit.files.file_format import Arrays
from ibukit.files.mechanisms import made, told
from ibukit.tally.part import TallyPart, make_tally_part

VERSION_OF_TALLIES = 1
WRITER_OF_TALLIES = "Tally"


def described(
    parts: tuple[TallyPart, ...],
    full_alphabet: Alphabet | None,
    dropped: tuple[tuple[str, int], ...],
    arrays: Arrays,
) -> dict[str, Any]:
    """The content of a tally as what JSON can hold."""
    listed = []
    for part in parts:
        if type(part) is not TallyPart:
            raise TypeError(
                "tally must be in memory to be written to a file, its reports lie elsewhere: "
                f"{part.mechanism!r}; "
                "mechanism.tally(rows) makes a tally of those that fit"
            )
        mechanism = told(part.mechanism, arrays)
        if (
            made(mechanism, arrays) != part.mechanism
        ):  # of labels or fields that a file cannot hold as they are
            raise TypeError(
                f"mechanism must come back from a file as it was, {part.mechanism!r} does not"
            )
        place = len(arrays)
        arrays[f"reports {place}"], arrays[f"counts {place}"] = part.reports, part.counts
        listed.append({"mechanism": mechanism, "place": place})
    return {
        "parts": listed,
        "full_alphabet": told(full_alphabet, arrays),
        "dropped": [list(each) for each in dropped],
    }


def content(
    said: dict[str, Any], arrays: Arrays
) -> tuple[tuple[TallyPart, ...], Alphabet | None, tuple[tuple[str, int], ...]]:
    """What `described` described."""
    parts = tuple(_part(each, arrays) for each in said["parts"])
    return (
        parts,
        made(said["full_alphabet"], arrays),
        tuple((why, number) for why, number in said["dropped"]),
    )


def _part(said: dict[str, Any], arrays: Arrays) -> TallyPart:
    reports, counts = arrays[f"reports {said['place']}"], arrays[f"counts {said['place']}"]
    part = make_tally_part(made(said["mechanism"], arrays), reports.copy(), counts.copy())
    if len(part.counts) != len(counts):
        raise ValueError("reports must be distinct and counted at least once")
    return TallyPart(
        part.mechanism, arguments.frozen(reports.copy()), arguments.frozen(counts.copy())
    )


def write_tally(
    path: str | os.PathLike[str],
    parts: tuple[TallyPart, ...],
    full_alphabet: Alphabet | None,
    dropped: tuple[tuple[str, int], ...],
) -> None:
    """Write the content of a tally to a file."""
    arrays: Arrays = {}
    values = described(parts, full_alphabet, dropped, arrays)
    file_format.write(
        arguments.path("path", path), WRITER_OF_TALLIES, VERSION_OF_TALLIES, values, arrays
    )


def read_tally(
    path: str | os.PathLike[str],
) -> tuple[tuple[TallyPart, ...], Alphabet | None, dict[str, int]]:
    """Return the content of a tally from a file: its parts, full alphabet and dropped reports."""
    file = arguments.path("path", path)
    values, arrays, _ = file_format.read(file, WRITER_OF_TALLIES, VERSION_OF_TALLIES)
    with file_format.sensible(file, WRITER_OF_TALLIES):
        parts, full_alphabet, dropped = content(values, arrays)
        return parts, full_alphabet, dict(dropped)
