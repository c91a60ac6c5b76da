"""Estimates in files, with the tally that they were computed from."""

from __future__ import annotations

import os
from dataclasses import fields
from importlib import import_module
from typing import Any

from ibukit._ground import arguments
from ibukit._ground.arguments import frozen
from ibukit.files import file_format
from ibukit.files.file_format import Arrays
from ibukit.files.mechanisms import made, told
from ibukit.files.tallies import content, described
from ibukit.tally.tally import Tally

VERSION_OF_ESTIMATES = 1
WRITER_OF_ESTIMATES = "Estimate"
# whose fields need more than a name and a number
APART = ("status", "tally")


class SavedEstimate:
    """How an estimate is written to a file, and read from one."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Replace a file with the estimate and its tally, all at once or not at all.

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
        >>> estimate = ik.mle(ik.RandomizedResponse(["yes", "no"], epsilon=1.0).tally_counts([60, 40]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     estimate.save(f"{folder}/answers")
        ...     ik.Estimate.load(f"{folder}/answers") == estimate
        True
        """
        here: Any = self
        arrays: Arrays = {}
        own = {
            each.name: getattr(here, each.name) for each in fields(here) if each.name not in APART
        }
        values = {
            "class": type(self).__name__,
            "fields": {name: told(value, arrays) for name, value in own.items()},
            "status": here.status.name,
            "tally": None,
        }
        if (tally := here.tally) is not None:
            values["tally"] = described(tally.parts, tally.full_alphabet, tally._dropped, arrays)
        file_format.write(
            arguments.path("path", path), WRITER_OF_ESTIMATES, VERSION_OF_ESTIMATES, values, arrays
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """The estimate as `save` wrote it.

        A file can only name classes of ibukit: nothing in it is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Estimate
            Or what inherits from it, as it was written.

        Raises
        ------
        ForeignFile
            If it is no such file, or of another version.
        DataChanged
            If it was changed or cut short.
        """
        values, arrays, _ = file_format.read(
            arguments.path("path", path), WRITER_OF_ESTIMATES, VERSION_OF_ESTIMATES
        )
        with file_format.sensible(arguments.path("path", path), WRITER_OF_ESTIMATES):
            kind = _kinds()[values["class"]]
            given = {name: made(value, arrays) for name, value in values["fields"].items()}
            tally = None
            if values["tally"] is not None:
                parts, full_alphabet, dropped = content(values["tally"], arrays)
                tally = Tally(parts, full_alphabet)._after_dropping(dict(dropped))
            status = import_module("ibukit.estimate").Status[values["status"]]
            given = {
                name: frozen(value) if hasattr(value, "setflags") else value
                for name, value in given.items()
            }
            return kind(**given, status=status, tally=tally)


def _kinds() -> dict[str, Any]:
    """The package's estimates by name; rooms further down the stream are asked for when a file is read."""
    rooms = (import_module(f"ibukit.{room}") for room in ("estimate", "estimators"))
    found = (thing for room in rooms for thing in vars(room).values() if isinstance(thing, type))
    return {kind.__name__: kind for kind in found if issubclass(kind, SavedEstimate)}
