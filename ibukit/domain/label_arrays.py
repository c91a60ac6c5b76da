"""Labels from outside as arrays that keep each of them as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from datetime import datetime, time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints

# Labels up to which an alphabet is shown with all of them.
MAX_LISTED = 8
# Labels of a longer one that are shown.
FIRST_SHOWN = 3


def shown_labels(labels: NDArray[Any]) -> str:
    """Labels for messages and representations; if there are many, their number and the first ones.

    Examples
    --------
    >>> shown_labels(np.array(["a", "b"])), shown_labels(np.arange(490))
    ("['a', 'b']", '<490 labels: 0, 1, 2, ...>')
    """
    few = len(labels) <= MAX_LISTED
    first = ", ".join(
        arguments.brief(label) for label in (labels if few else labels[:FIRST_SHOWN]).tolist()
    )
    return f"[{first}]" if few else f"<{len(labels)} labels: {first}, ...>"


def categories_of(labels: Any) -> tuple[Any, Ints | None]:
    """Return the categories of categorical labels and the index of each, -1 if it is missing."""
    categorical = getattr(labels, "cat", labels)
    indices = getattr(categorical, "codes", None)
    if indices is None or callable(indices) or not hasattr(categorical, "categories"):
        return None, None
    return list(categorical.categories), np.asarray(indices)


def refuse_missing(missing: Any, name: str) -> None:
    """Raise ValueError at the first label that is missing."""
    if np.any(missing):
        raise ValueError(
            f"{name} has a missing value at index {int(np.argmax(missing))}: remove missing "
            'ones before the call, or count the table by Tally.from_table(..., missing="drop"); '
            "both are right only if they are like the others"
        )


def has_code(code_of: Mapping[Any, int], label: Any) -> bool:
    """Return whether a label has a code; False for values without a hash."""
    try:
        return label in code_of
    except TypeError:
        return False


def codes_by_label(labels: NDArray[Any]) -> dict[Any, int]:
    """Return the code of each label."""
    codes = {label: code for code, label in enumerate(labels.tolist())}
    if labels.dtype.kind == "M":
        # Columns of days hold dates, which Python does not count equal to their midnights.
        codes |= {
            moment.date(): code
            for moment, code in codes.items()
            if isinstance(moment, datetime) and moment.time() == time.min
        }
    return codes


def without_numpy(labels: list[Any]) -> list[Any]:
    """Return labels with moments as Python has them; numpy's may have another hash."""
    return [
        arguments.whole_array("labels", [label]).tolist()[0]
        if isinstance(label, np.datetime64)
        else label
        for label in labels
    ]


def dates_of(labels: Any) -> list[Any] | None:
    """Return the dates of an array of days, which is read as one of midnights; else None."""
    is_array = isinstance(labels, np.ndarray) and labels.dtype.kind == "M"
    return labels.tolist() if is_array and np.datetime_data(labels.dtype)[0] == "D" else None


def array_of_labels(values: Any) -> NDArray[Any]:
    """Return labels as an array that keeps each of them as it is.

    numpy would turn the 1 in [1, "a"] into "1", and beside a duration into one, integers on both
    sides of 2^63 into floats, and tuples into rows.
    """
    if isinstance(values, (list, tuple)):
        kinds = {type(value) for value in values}
        mixed = len(kinds) > 1 and not kinds.isdisjoint({str, tuple, np.timedelta64})
        integers = all(arguments.is_whole(kind) for kind in kinds)
        large = integers and any(not -(2**63) <= int(value) < 2**63 for value in values)
        if mixed or large or (kinds and kinds <= {tuple}):
            labels = np.empty(len(values), dtype=object)
            labels[:] = values
            return labels
    labels = arguments.whole_array("values", values)
    if labels.dtype.kind == "U" and not all(isinstance(label, str) for label in values):
        labels = np.array(list(values), dtype=object)
    # The same numbers in more bits: pandas has no index of half precision.
    return labels.astype(np.float64) if labels.dtype == np.float16 else labels


def refuse_twice_or_missing(labels: NDArray[Any]) -> None:
    """Raise ValueError unless each label is there once and none is missing."""
    # None is accepted as a label; NaN and NA are not, because they do not equal themselves. A list
    # of dates has numbers in place of NaT.
    is_nat = np.isnat(labels) if labels.dtype.kind in "mM" else np.zeros(labels.size, dtype=bool)
    first: dict[Any, int] = {}
    for place, label in enumerate(labels.tolist()):
        if is_nat[place] or (label is not None and arguments.is_missing(label)):
            raise ValueError(
                "values must all be different and not missing, got "
                f"{labels[place]} at index {place}: leave it out, or give it a name"
            )
        if first.setdefault(label, place) != place:
            raise ValueError(
                f"values must all be different, got {label!r} at index {first[label]} and {place}: "
                "list(dict.fromkeys(labels)) has each label once"
            )


def require_sequence(values: Any, name: str = "values") -> None:
    """Reject scalars, sets, mappings and iterators as label sequences."""
    if isinstance(values, (str, bytes)):
        raise ValueError(
            f"{name} must be a sequence of labels, got the text {arguments.brief(values)}: pass "
            f"list({arguments.brief(values)}) if each character is a label, "
            f"[{arguments.brief(values)}] if the text is one"
        )
    if not hasattr(values, "__iter__"):
        hint = (
            ", for 0..k-1 that is Line(0, k - 1)" if isinstance(values, (int, np.integer)) else ""
        )
        raise ValueError(
            f"values must be a sequence of labels{hint}, got {arguments.brief(values)}"
        )
    if isinstance(values, (Set, Mapping, Iterator)):
        # A set has no order, so its labels would get codes by chance.
        order = "sorted" if isinstance(values, Set) else "list"
        raise ValueError(
            f"{name} must be a sequence of labels, in order, got {type(values).__name__}; pass "
            f"{order}(values)"
        )
