"""Colours in the chapters:
none is written by hand where the dictionary of estimators should give it.

``python tests/book/test_plotting_book.py`` lists what is.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from ibukit.plotting._looks import estimator_of

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(
    path for path in (ROOT / "book").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
COLOUR = re.compile(r"C\d|tab:\w+|#[0-9A-Fa-f]{6}")
# on the light scale of maps and matrices these were right when it was a dark one
DARK = re.compile(r"cividis")


def by_hand(source: str) -> list[str]:
    """Colours that a cell names itself:
    of the palette by position, of matplotlib's cycle, or by their hex digits.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "PALETTE":
            found.append("PALETTE")
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and COLOUR.fullmatch(node.value)
        ):
            found.append(node.value)
    return found


def series(source: str) -> list[str]:
    """The estimators that a cell names in its strings: labels, keys of what is drawn."""
    strings = [
        n.value
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    return sorted(
        {
            name
            for text in strings
            if (name := estimator_of(text)) and name not in ("truth", "reports")
        }
    )


def cells(path: Path) -> list[tuple[int, str]]:
    """Places and sources of the cells of code,
    with what is said to IPython as the Python that it becomes.
    """
    plain = TransformerManager().transform_cell
    return [
        (i, plain(c["source"]))
        for i, c in enumerate(nbformat.read(path, 4).cells)
        if c["cell_type"] == "code"
    ]


def left(path: Path) -> list[str]:
    """What of a chapter is not in order, a line for each cell."""
    found = []
    for i, source in cells(path):
        colours, names = by_hand(source), series(source)
        if colours and names:
            found.append(f"cell {i}: {', '.join(dict.fromkeys(colours))} for {', '.join(names)}")
        if DARK.search(source):
            found.append(f"cell {i}: cividis, on a light scale")
    return found


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_estimator_has_a_colour_of_its_own(path):
    assert left(path) == []


@pytest.mark.parametrize(
    ("source", "colours", "names"),
    [
        ('ax.plot(x, color=plotting.PALETTE[4], label="its MLE")', ["PALETTE"], []),
        ('ax.plot(x, color=plotting.PALETTE[4], label="MLE, certified")', ["PALETTE"], ["MLE"]),
        ('LOOK = {"Norm-Sub": ("#0072B2", "s"), "truth": "C1"}', ["#0072B2", "C1"], ["INV-P"]),
        (
            (
                "for name, look in plotting.looks(found).items():\n    ax.plot(x, **look.line(),"
                ' color="black")'
            ),
            [],
            [],
        ),
        ('ax.plot(x, color="tab:orange", label="k-RR")', ["tab:orange"], []),
    ],
)
def test_what_is_written_by_hand_is_found(source, colours, names):
    assert sorted(by_hand(source)) == sorted(colours)
    assert series(source) == names


if __name__ == "__main__":
    for chapter in CHAPTERS:
        for line in left(chapter):
            print(f"{chapter.stem}: {line}")
