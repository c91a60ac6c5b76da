"""Alphabets as what JSON can hold."""

from __future__ import annotations

from typing import Any

from ibukit.domain.alphabet import Alphabet, Line, UnboundedLine
from ibukit.domain.grid import Grid, UnboundedGrid
from ibukit.files.file_format import Arrays

LABELS = (str, int, float, bool)
OF_A_GRID = ("n_rows", "n_cols", "cell_size", "unit", "bounds", "first")


def describe(alphabet: Alphabet) -> tuple[dict[str, Any], Arrays]:
    """The alphabet as what JSON can hold, and its distances where they are its own."""
    if type(alphabet) in (Line, UnboundedLine):
        first, last = alphabet.ends if isinstance(alphabet, UnboundedLine) else alphabet._key()
        return {"kind": "Line", "first": first, "last": last, "unit": alphabet.unit}, {}
    if type(alphabet) is UnboundedGrid:
        return {
            "kind": "Grid",
            "n_rows": None,
            "n_cols": None,
            "cell_size": alphabet.cell_size,
            "unit": alphabet.unit,
        }, {}
    if type(alphabet) is Grid:
        return {"kind": "Grid", **{name: getattr(alphabet, name) for name in OF_A_GRID}}, {}
    labels = alphabet.values.tolist()
    if type(alphabet) is not Alphabet or not all(isinstance(label, LABELS) for label in labels):
        raise TypeError(
            "alphabet must be an Alphabet of strings or numbers, a Line or a Grid to be written to a file, got "
            f"{alphabet!r}"
        )
    own = alphabet._distances
    return {"kind": "Alphabet", "values": labels, "unit": alphabet.unit}, {} if own is None else {
        "distances": own
    }


def alphabet_of(described: dict[str, Any], arrays: Arrays) -> Alphabet:
    """The alphabet that `describe` described."""
    words = dict(described)
    kind = words.pop("kind")
    if kind == "Line":
        return Line(**words)
    if kind == "Grid":
        # JSON has lists only
        given: dict[str, Any] = {
            name: tuple(it) if isinstance(it, list) else it for name, it in words.items()
        }
        return Grid(**given)
    return Alphabet(words["values"], arrays.get("distances"), words["unit"])
