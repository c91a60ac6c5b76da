"""Mechanisms as what JSON can hold: the name of a class of ibukit, and the arguments that made it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from typing import Any

import numpy as np

from ibukit.domain.alphabet import Alphabet
from ibukit.files.alphabets import alphabet_of, describe
from ibukit.files.file_format import Arrays


def told(thing: Any, arrays: Arrays) -> Any:
    """A mechanism, or what it is made of, as JSON; arrays go where their names point to."""
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, (tuple, list)):
        return {"many": [told(each, arrays) for each in thing]}
    if isinstance(thing, np.ndarray) and thing.dtype.kind in "biuf":
        return {"array": _added(thing, arrays)}
    if isinstance(thing, Alphabet):
        described, own = describe(thing)
        return {
            "alphabet": described,
            "arrays": {name: _added(array, arrays) for name, array in own.items()},
        }
    if _kinds().get(type(thing).__name__) is type(thing):
        given = {each.name: getattr(thing, each.name) for each in fields(thing) if each.init}
        return {
            "mechanism": type(thing).__name__,
            "fields": {name: told(it, arrays) for name, it in given.items()},
        }
    raise TypeError(
        f"mechanism must be one of ibukit's own to be written to a file, got {thing!r}; write what is known of its "
        "reports as a MatrixMechanism"
    )


def made(said: Any, arrays: Arrays) -> Any:
    """What `told` told. The classes are those of ibukit, by their names: nothing else is ever called."""
    if not isinstance(said, dict):
        return said
    if "many" in said:
        return tuple(made(each, arrays) for each in said["many"])
    if "array" in said:
        return arrays[said["array"]].copy()
    if "alphabet" in said:
        return alphabet_of(
            said["alphabet"], {name: arrays[place] for name, place in said["arrays"].items()}
        )
    kind = _kinds().get(said["mechanism"])
    if kind is None:
        raise ValueError(f"this release has no mechanism {said['mechanism']!r}")
    return kind(**{name: made(each, arrays) for name, each in said["fields"].items()})


def _added(array: Any, arrays: Arrays) -> str:
    name = f"array {len(arrays)}"
    arrays[name] = np.asarray(array)
    return name


def _kinds() -> dict[str, Any]:
    """The package's own mechanisms by name; rooms further down the stream are asked for when a file is made."""
    base: Any = import_module("ibukit.mechanisms").Mechanism
    import_module("ibukit.mechanisms")
    return {kind.__name__: kind for kind in _heirs(base) if kind.__module__.startswith("ibukit.")}


def _heirs(kind: Any) -> Iterator[Any]:
    for heir in kind.__subclasses__():
        yield heir
        yield from _heirs(heir)
