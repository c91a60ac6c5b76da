"""Estimates in files, with the tally that they were computed from."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

from ibukit._ground.arguments import frozen
from ibukit.domain.status import Status
from ibukit.files import file_format
from ibukit.files.file_format import Arrays
from ibukit.files.mechanisms import made, told
from ibukit.files.tallies import content, described

VERSION_OF_ESTIMATES = 1
WRITER_OF_ESTIMATES = "Estimate"
# Fields that are not written as a name and a number.
WRITTEN_APART = ("status", "tally")


def save_estimate(estimate: Any, path: Path) -> None:
    """Replace a file with an estimate and its tally; `Estimate.save` documents it."""
    arrays: Arrays = {}
    own = {
        each.name: getattr(estimate, each.name)
        for each in fields(estimate)
        if each.name not in WRITTEN_APART
    }
    values = {
        "class": type(estimate).__name__,
        "fields": {name: told(value, arrays) for name, value in own.items()},
        "status": estimate.status.name,
        "tally": None,
    }
    if (tally := estimate.tally) is not None:
        values["tally"] = described(tally.parts, tally.full_alphabet, tally._dropped, arrays)
    file_format.write(path, WRITER_OF_ESTIMATES, VERSION_OF_ESTIMATES, values, arrays)


def load_estimate(path: Path, base: type) -> Any:
    """Return what `save_estimate` wrote, of `base` or of a public class that inherits from it."""
    values, arrays, _ = file_format.read(path, WRITER_OF_ESTIMATES, VERSION_OF_ESTIMATES)
    with file_format.sensible(path, WRITER_OF_ESTIMATES):
        # Only public names of the package are looked up, so a file cannot name other code.
        public = import_module("ibukit")
        kind = getattr(public, values["class"])
        if not issubclass(kind, base):
            raise TypeError(f"{values['class']} is no estimate")
        own = {name: made(value, arrays) for name, value in values["fields"].items()}
        own = {
            name: frozen(value) if hasattr(value, "setflags") else value
            for name, value in own.items()
        }
        tally = None
        if values["tally"] is not None:
            parts, full_alphabet, dropped = content(values["tally"], arrays)
            tally = public.Tally(parts, full_alphabet)._after_dropping(dict(dropped))
        return kind(**own, status=Status[values["status"]], tally=tally)
