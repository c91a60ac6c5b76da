"""An estimate in other formats: codes of labels, plain JSON, a short HTML table."""

from __future__ import annotations

import json
import math
from difflib import get_close_matches
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import name_of_alphabet
from ibukit.errors import AlphabetMismatch

# An HTML table has all rows if they are at most the first number, else the most probable TOP_ROWS.
MAX_ROWS_SHOWN, TOP_ROWS = 20, 10
# Number of labels up to which an error message looks for a similar one, which takes time.
MAX_LABELS_COMPARED = 10_000


def code_of(label: Any, alphabet: Alphabet, full: Alphabet | None = None) -> int | None:
    """Return the code of one label.

    It is None for a label that the unbounded alphabet `full` has and `alphabet` lacks.
    """
    codes = _codes(alphabet, label)
    if codes is not None:
        return int(codes[0])
    # A label of the unbounded alphabet outside the part in use is valid: its probability is 0.
    if full is not None and _labels(full, label) is not None:
        return None
    known = alphabet if full is None else full
    raise AlphabetMismatch(
        f"label {label!r} is not in {name_of_alphabet(known)}{_suggestion(label, alphabet)}"
    )


def _codes(alphabet: Alphabet, label: Any) -> Ints | None:
    try:
        codes = alphabet.codes([label])
    except (TypeError, ValueError):
        return None
    return codes if codes.shape == (1,) else None


def _labels(full: Alphabet, label: Any) -> Any:
    try:
        return full.labels_of([label])
    except (TypeError, ValueError):
        return None


def _suggestion(label: Any, alphabet: Alphabet) -> str:
    # A list of labels is the usual mistake: the error names the call that takes several.
    if isinstance(label, (list, np.ndarray, slice)):
        raise AlphabetMismatch(
            f"label must be a single label, got {label!r}; for several: estimate.to_series()"
        )
    if len(alphabet) > MAX_LABELS_COMPARED:
        return ""
    known = [text_of(each) for each in _days(alphabet.values)]
    # Only strings have a meaningful similarity; numbers near each other are not misspelt.
    close = get_close_matches(str(label), known, n=1) if isinstance(label, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def plain_labels(alphabet: Alphabet) -> list[Any]:
    """Return the labels as JSON values: dates as text, infinite numbers as "inf" and "-inf"."""
    # numpy writes dates in ISO 8601, which is what readers of JSON expect.
    labels = _days(alphabet.values)
    labels = labels.astype(str) if labels.dtype.kind in "mM" else labels
    return [finite(label) for label in labels.tolist()]


def _days(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels that are all midnights without the time, other labels as they are."""
    if labels.dtype.kind != "M":
        return labels
    days = labels.astype("M8[D]")
    return days if (days == labels).all() else labels


def finite(value: Any) -> Any:
    """Return the value, or "inf", "-inf" and "nan", which `float` reads but JSON lacks."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def as_json(**fields: Any) -> str:
    """Return one JSON object; values that JSON lacks, such as dates, as their text."""
    return json.dumps(fields, ensure_ascii=False, allow_nan=False, default=str)


def as_html(title: str, alphabet: Alphabet, distribution: Floats) -> str:
    """Return an HTML table of the labels and their probabilities, cut if there are many."""
    shown = np.arange(len(alphabet))
    if len(alphabet) > MAX_ROWS_SHOWN:
        shown = np.argsort(-distribution, kind="stable")[:TOP_ROWS]
    rows = [
        f"<tr><th>{escape(text_of(label))}</th><td>{p:.4g}</td></tr>"
        for label, p in zip(
            _days(alphabet.values[shown]), distribution[shown].tolist(), strict=True
        )
    ]
    # The rows that were cut are summed up in one.
    if len(rows) < len(alphabet):
        rest = float(np.delete(distribution, shown).sum())
        rows.append(f"<tr><th>{len(alphabet) - len(rows):,} others</th><td>{rest:.4g}</td></tr>")
    head = "<thead><tr><th>label</th><th>probability</th></tr></thead>"
    return f"<div><p>{escape(title)}</p><table>{head}<tbody>{''.join(rows)}</tbody></table></div>"


def text_of(label: Any) -> str:
    """Return a label as people read it; a cell of a grid as its row and column."""
    return (
        f"({', '.join(map(str, label))})" if isinstance(label, (tuple, np.ndarray)) else str(label)
    )
