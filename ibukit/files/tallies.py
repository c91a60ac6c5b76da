"""Tallies in files: each part's mechanism, its distinct reports and their counts."""

from __future__ import annotations

import os
from typing import Any

from ibukit._ground import arguments
from ibukit.domain.alphabet import Alphabet
from ibukit.files import file_format
from ibukit.files.file_format import Arrays
from ibukit.files.mechanisms import made, told
from ibukit.tally.part import Part, make_part

VERSION_OF_TALLIES = 1
WRITER_OF_TALLIES = "Tally"


def described(
    parts: tuple[Part, ...],
    full_alphabet: Alphabet | None,
    dropped: tuple[tuple[str, int], ...],
    arrays: Arrays,
) -> dict[str, Any]:
    """The content of a tally as what JSON can hold."""
    listed = []
    for part in parts:
        if type(part) is not Part:
            raise TypeError(
                f"tally must be in memory to be written to a file, its reports lie elsewhere: {part.mechanism!r}; "
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
) -> tuple[tuple[Part, ...], Alphabet | None, tuple[tuple[str, int], ...]]:
    """What `described` described."""
    parts = tuple(_part(each, arrays) for each in said["parts"])
    return (
        parts,
        made(said["full_alphabet"], arrays),
        tuple((why, number) for why, number in said["dropped"]),
    )


def _part(said: dict[str, Any], arrays: Arrays) -> Part:
    reports, counts = arrays[f"reports {said['place']}"], arrays[f"counts {said['place']}"]
    part = make_part(made(said["mechanism"], arrays), reports.copy(), counts.copy())
    if len(part.counts) != len(counts):
        raise ValueError("reports must be distinct and counted at least once")
    return Part(part.mechanism, arguments.frozen(reports.copy()), arguments.frozen(counts.copy()))


class SavedTally:
    """How a tally is written to a file, and read from one."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Replace a file with the tally, all at once or not at all.

        The file is plain: a line with its version and SHA-256, a line of JSON, then arrays as numpy
        writes them.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        TypeError
            If a mechanism is not ibukit's own, its labels are neither strings nor numbers, or the
            reports lie in partitions.
        ForeignFile
            If there is a folder, a pipe or a device at `path`.
        DataChanged
            If another is writing the file now.

        Examples
        --------
        >>> import tempfile, ibukit as ik
        >>> tally = ik.RandomizedResponse(["yes", "no"], epsilon=1.0).tally_counts([60, 40])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tally.save(f"{folder}/answers")
        ...     ik.Tally.load(f"{folder}/answers")
        Tally(n=100, k=2, 2 distinct reports of RandomizedResponse)
        """
        tally: Any = self
        arrays: Arrays = {}
        values = described(tally.parts, tally.full_alphabet, tally._dropped, arrays)
        file_format.write(
            arguments.path("path", path), WRITER_OF_TALLIES, VERSION_OF_TALLIES, values, arrays
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """The tally as `save` wrote it.

        A file can only name mechanisms: nothing in it is executed.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        ForeignFile
            If it is no such file, or of another version.
        DataChanged
            If it was changed or cut short.
        """
        values, arrays, _ = file_format.read(
            arguments.path("path", path), WRITER_OF_TALLIES, VERSION_OF_TALLIES
        )
        with file_format.sensible(arguments.path("path", path), WRITER_OF_TALLIES):
            return cls._made(*content(values, arrays))

    @classmethod
    def _made(
        cls,
        parts: tuple[Part, ...],
        full_alphabet: Alphabet | None,
        dropped: tuple[tuple[str, int], ...],
    ) -> Any:
        tally: Any = cls(parts, full_alphabet)  # type: ignore[call-arg]  # the arguments of the one that inherits
        return tally._after_dropping(dict(dropped))
