"""Save an object of ibukit to a file, and load it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

from ibukit._ground import arguments
from ibukit.files import file_format
from ibukit.files.json_values import Arrays, from_json, to_json

Kind = TypeVar("Kind")


def save(
    thing: object,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    checksum: str | None = None,
) -> str:
    """Replace a file with an object, all at once or not at all, and return its checksum.

    Parameters
    ----------
    thing : object
        A tally, an estimate or a PRIVIC loop.
    path : str or path
    overwrite : bool
        False replaces the file only if it has this checksum.
    checksum : str or None
        Checksum of the file as it was left; None if there was no file.
    """
    arrays: Arrays = {}
    content = to_json(thing, arrays)
    return file_format.write(
        arguments.path("path", path),
        _writer(type(thing)),
        {"content": content},
        arrays,
        overwrite=overwrite,
        checksum=checksum,
    )


def load(path: str | os.PathLike[str], kind: type[Kind]) -> tuple[Kind, str]:
    """Return the saved object, of class `kind` or one that inherits from it, and the checksum.

    Raises
    ------
    ForeignFile
        If it is not such a file, or is of another version.
    DataChanged
        If it was changed or cut short.
    """
    file: Path = arguments.path("path", path)
    values, arrays, checksum = file_format.read(file, _writer(kind))
    # The classes check the arguments that a file gives, as they check those of any caller: an error
    # means that another program wrote the file.
    with file_format.decoding_errors_as_foreign(file, _writer(kind)):
        thing: Any = from_json(values["content"], arrays)
        if not isinstance(thing, kind):
            raise TypeError(f"{type(thing).__name__} is no {kind.__name__}")
        return thing, checksum


def _writer(kind: type) -> str:
    """Return the name in the first line of a file: the name of the class that defines `save`."""
    # So either class loads the file of a class that inherits, as `Unfolded` from `Estimate`.
    return next(each.__name__ for each in kind.__mro__[::-1] if "save" in vars(each))
