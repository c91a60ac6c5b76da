"""Objects of ibukit as JSON values with arrays beside them, and back.

A value names classes of ibukit and their arguments; nothing else can be named, so nothing else is
ever called when a file is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import frozen
from ibukit.domain.label_arrays import shown_labels

Arrays = dict[str, NDArray[Any]]
Kind = TypeVar("Kind")

LABELS = (str, int, float, bool)
# Classes without a public name that a file may hold besides mechanisms and alphabets.
_STORABLE: list[type] = []


def storable(kind: type[Kind]) -> type[Kind]:
    """Let files hold objects of a class that has no public name; a decorator."""
    _STORABLE.append(kind)
    return kind


def to_json(thing: Any, arrays: Arrays) -> Any:
    """Return what JSON can hold of an object; its arrays are added to `arrays` under new names.

    Raises
    ------
    TypeError
        If a class is not ibukit's own, or an alphabet has labels that a file cannot hold.
    """
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, LABELS):
        return thing
    # Sequences come back as tuples: the fields of mechanisms hold no lists.
    if isinstance(thing, (tuple, list)):
        return [to_json(each, arrays) for each in thing]
    if isinstance(thing, np.ndarray):
        # The labels of an alphabet may be strings, or of several types. Every other array is of
        # numbers, which are kept to the last bit beside the JSON.
        if thing.dtype.kind not in "biuf":
            return _labels(thing)
        name = f"array {len(arrays)}"
        if thing.dtype == np.uint8 and thing.ndim == 1:
            # Objects that share a text have it once in a file, and in memory when it is read.
            name = f"text {hashlib.sha256(thing.tobytes()).hexdigest()}"
        arrays[name] = thing
        return {"array": name}
    name = type(thing).__name__
    # The class itself has to be ours, not only its name: a foreign class could do anything.
    if _own_class(name) is not type(thing):
        raise TypeError(
            "mechanism must be one of ibukit's own to be written to a file, got "
            f"{thing!r}; write what is known of its reports as a MatrixMechanism"
        )
    if isinstance(thing, Enum):
        return {"class": name, "member": thing.name}
    # A class whose state is more than its fields says itself what a file needs. All other classes
    # are frozen dataclasses, which are made again from their fields.
    if hasattr(thing, "_stored"):
        arguments = thing._stored()
    else:
        arguments = {each.name: getattr(thing, each.name) for each in fields(thing) if each.init}
    return {
        "class": name,
        "arguments": {key: to_json(value, arrays) for key, value in arguments.items()},
    }


def from_json(value: Any, arrays: Arrays) -> Any:
    """Return the object that `to_json` wrote; sequences come back as tuples, arrays read-only."""
    if isinstance(value, list):
        return tuple(from_json(each, arrays) for each in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return frozen(arrays[value["array"]])
    if "labels" in value:
        # A tuple is a list in JSON, and no label is a list.
        labels = [tuple(each) if isinstance(each, list) else each for each in value["labels"]]
        if not _are_storable(labels):
            raise ValueError(f"labels must be strings or numbers or tuples of them, got {labels!r}")
        return labels
    kind = _own_class(value["class"])
    if kind is None:
        raise ValueError(f"this release has no class {value['class']!r} that a file may hold")
    if "member" in value:
        return kind[value["member"]]
    arguments = {key: from_json(each, arrays) for key, each in value["arguments"].items()}
    if hasattr(kind, "_restored"):
        return kind._restored(**arguments)
    thing = kind(**arguments)
    # If only this package makes objects of a class, the class says what a file may hold of them.
    if hasattr(thing, "_refuse_other_content"):
        thing._refuse_other_content()
    return thing


def _labels(values: NDArray[Any]) -> dict[str, Any]:
    labels = values.tolist()
    if not _are_storable(labels):
        raise TypeError(
            "alphabet must be an Alphabet of strings or numbers or of tuples of them, a Line or a "
            f"Grid to be written to a file, got the labels {shown_labels(values)}"
        )
    return {"labels": labels}


def _are_storable(labels: list[Any]) -> bool:
    """Return whether a file can hold these labels."""
    parts = [part for label in labels for part in (label if type(label) is tuple else (label,))]
    return all(isinstance(part, LABELS) for part in parts)


def _own_class(name: str) -> Any:
    """Return the class of ibukit with this name if a file may hold such objects, else None."""
    # This module is in a lower layer than the classes that it writes, so they are looked up by
    # public names. Some mechanisms and alphabets have none: they are made by public ones, from
    # which they inherit.
    import ibukit

    public = [getattr(ibukit, name)] if name in ibukit.__all__ else []
    return next(
        (
            kind
            for kind in (
                *public,
                *_STORABLE,
                *_subclasses(ibukit.Mechanism),
                *_subclasses(ibukit.Alphabet),
            )
            if isinstance(kind, type)
            and kind.__name__ == name
            and kind.__module__.startswith("ibukit.")
        ),
        None,
    )


def _subclasses(kind: Any) -> Iterator[Any]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)
