"""Labels outside, codes inside: what people hand over is looked up in an alphabet, never taken for places in it."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.errors import AlphabetMismatch


def codes_of(name: str, labels: Any, alphabet: Alphabet, hint: str = "") -> Ints:
    """Codes of an argument's labels, which the error calls by its name.

    Parameters
    ----------
    name : str
        Of the argument.
    labels : sequence
        As `Alphabet.codes` takes them.
    alphabet : Alphabet
        With an end.
    hint : str
        What to do where there are others, at the end of the message.
    """
    if type(alphabet) is Line and alphabet.first == 0:  # a label is its own code
        return arguments.codes(name, labels, len(alphabet))
    if isinstance(labels, Sized) and not len(labels):
        return np.zeros(0, dtype=np.int64)
    try:
        return alphabet.codes(labels, name=name)
    except AlphabetMismatch as error:
        raise type(error)(f"{error}{hint}") from None


def in_order(name: str, counts: Any, alphabet: Alphabet, weighted: bool = False) -> Any:
    """Counts in the order of an alphabet, shape (k,): arrays have it, mappings and Series are aligned by label.

    Parameters
    ----------
    name : str
        Of the argument.
    counts : array_like, mapping or Series
        A label that is not there counts 0.
    alphabet : Alphabet
    weighted : bool
        Whether they may be weights, any numbers that are not negative; whole numbers otherwise.

    Raises
    ------
    AlphabetMismatch
        If a label is not in the alphabet, or an array has not one count for each label.
    ValueError
        If a label is there twice, or a count is missing, no whole number or negative.
    """
    labelled, checked = (
        _labelled(counts),
        arguments.weights if arguments.flag("weighted", weighted) else arguments.counts,
    )
    if labelled is None:
        return checked(name, counts, len(alphabet))
    labels, values = labelled
    hint = (
        "; counts with labels are aligned by them: give an array for counts in the alphabet's order"
    )
    places = codes_of(name, labels, alphabet, hint)
    if len(np.unique(places)) < len(places):
        first = int(np.argmax(np.bincount(places) > 1))
        (twice,) = alphabet.labels_of([first]).tolist()
        raise ValueError(
            f"{name} must have each label once, got {twice!r} twice: add its counts up first"
        )
    given = checked(name, values, len(places))
    numbers = np.zeros(len(alphabet), dtype=given.dtype)
    numbers[places] = given
    return numbers


def _labelled(counts: Any) -> tuple[Any, Any] | None:
    """Labels and counts of what has labels: mappings, and Series by their index."""
    if isinstance(counts, Mapping):
        return list(counts.keys()), list(counts.values())
    index = getattr(counts, "index", None)
    if index is None or callable(index):  # lists have a method of that name
        return None
    if getattr(counts, "ndim", 1) != 1:
        raise ValueError(
            "counts must be a Series, a mapping or an array, got a frame: take one of its columns"
        )
    return list(index), counts.to_numpy()
