"""Translate users' labels to codes; integers are looked up, too, and never taken as codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.errors import AlphabetMismatch

if TYPE_CHECKING:
    import pandas as pd

# The message does not advise an array in the alphabet's order, which would be accepted: whoever has
# other labels may have them in another order.
ALIGNED_HINT = (
    "; what has labels is aligned by them: rename them as the alphabet has them, or correct the "
    "alphabet"
)


# What `aligned_counts` reads: "array_like of int, or mapping or Series" in docstrings.
CountsLike: TypeAlias = ArrayLike | Mapping[Any, Any]
# What `codes_of` reads: labels of any kind, in whatever holds them.
LabelsLike: TypeAlias = ArrayLike | Sequence[Any]


def codes_of(name: str, labels: Any, alphabet: Alphabet, hint: str = "") -> Ints:
    """Return the codes of labels; errors name the argument.

    Parameters
    ----------
    name : str
        Name of the argument.
    labels : sequence
        As `Alphabet.codes` takes them.
    alphabet : Alphabet
        A bounded one.
    hint : str
        The end of the message if there are other labels; it says what to do.
    """
    if _is_empty(labels):
        return np.zeros(0, dtype=np.int64)
    try:
        # On the line 0..k-1 a label is its own code.
        if type(alphabet) is Line and alphabet.first == 0:
            return arguments.codes(name, labels, len(alphabet))
        return alphabet.codes(labels, name=name)
    except AlphabetMismatch as error:
        raise type(error)(f"{error}{hint}") from None


def _is_empty(labels: Any) -> bool:
    # Arrays without a dimension and sparse ones have a shape, but no length.
    shape = getattr(labels, "shape", None)
    if shape is None:
        return isinstance(labels, Sized) and not len(labels)
    return bool(shape[:1] == (0,))


def codes_of_index(
    name: str, labels: Any, alphabet: Alphabet, hint: str, twice_hint: str = ""
) -> Ints:
    """Return the codes of the labels of a vector, which are of this alphabet and occur once each.

    The hints end the messages for labels of another alphabet, and for a label that occurs twice.
    """
    try:
        codes = codes_of(name, labels, alphabet, hint)
    except AlphabetMismatch:
        raise
    except ValueError as error:
        raise AlphabetMismatch(f"the labels of {error}{hint}") from None
    often = np.bincount(codes)
    if (often > 1).any():
        (twice,) = alphabet.labels_of([int(np.argmax(often > 1))]).tolist()
        raise AlphabetMismatch(f"{name} must have each label once, got {twice!r} twice{twice_hint}")
    return codes


def aligned_counts(name: str, counts: Any, alphabet: Alphabet, weighted: bool = False) -> Any:
    """Return counts in the order of an alphabet, shape (k,).

    Arrays must have that order; mappings and Series are aligned by their labels.

    Parameters
    ----------
    name : str
        Name of the argument.
    counts : array_like, mapping or Series
        A label that is missing in a mapping or a Series counts 0.
    alphabet : Alphabet
    weighted : bool
        Whether to accept weights, which are any numbers that are not negative, instead of only
        integers.

    Raises
    ------
    AlphabetMismatch
        If a label is not in the alphabet or occurs twice, or if an array does not have one count
        for each label.
    ValueError
        If a count is missing, negative or not an integer.
    """
    check = arguments.weights if arguments.flag("weighted", weighted) else arguments.counts
    found = arguments.labelled(name, counts)
    if found is None:
        return check(name, counts, len(alphabet))
    labels, values = found
    if labels is None:
        labels = list(range(len(values)))
    codes = codes_of_index(name, labels, alphabet, ALIGNED_HINT, ": add its counts up first")
    checked = check(name, values, len(codes))
    aligned = np.zeros(len(alphabet), dtype=checked.dtype)
    aligned[codes] = checked
    return aligned


def name_of_alphabet(alphabet: Alphabet) -> str:
    """Return the alphabet as an error message names it: labels are counted, not written out."""
    return (
        f"the alphabet of {len(alphabet)} labels" if type(alphabet) is Alphabet else repr(alphabet)
    )


def index_of(alphabet: Alphabet) -> pd.Index:
    """Return the labels as an index "label"; on a grid with two levels, "row" and "col"."""
    # pandas takes a second to import.
    import pandas as pd

    labels = alphabet.labels_of(np.arange(len(alphabet)))
    if labels.ndim == 2:
        return pd.MultiIndex.from_arrays(list(labels.T), names=["row", "col"])
    # A label may be a tuple, but it must not become a row of a MultiIndex.
    return pd.Index(labels, name="label", tupleize_cols=False)
