"""What a copy button copies runs alone: the cell with the cells that it needs."""

import re

import nbformat
import pytest
from copied_code import needed

import notebooks
from test_shown_code import CHAPTERS, read, shown

FIRST = "import numpy as np\nSEED = 7"


@pytest.mark.parametrize(
    ("sources", "last"),
    [
        ([FIRST, "x = np.ones(3)", "y = 2", "x + SEED"], {0, 1}),
        ([FIRST, "def g():\n    return SEED", "def f():\n    return g()", "f()"], {0, 1, 2}),
        ([FIRST, "z = {}", "z['a'] = SEED", "z"], {0, 1, 2}),
        ([FIRST, "for row in z:\n    w = row", "lambda v: v + w"], {1}),
        ([FIRST, "a = 1", "[a for a in range(3)]"], set()),
        ([FIRST, "a = 1", "b = 1", "{a: c for a in range(b) for c in {a for a in [b]}}"], {2}),
        ([FIRST, "import ibukit as ik", "!ibukit --help"], {0, 1}),
        ([FIRST], set()),
    ],
)
def test_a_cell_needs_what_gives_its_names(sources, last):
    assert needed(sources)[-1] == last


@pytest.mark.slow
@pytest.mark.parametrize("stem", CHAPTERS)
def test_every_shown_cell_runs_with_what_it_needs(stem, tmp_path):
    sources = [cell["source"] for cell in shown(read(stem))]
    book = nbformat.v4.new_notebook(metadata=notebooks.METADATA)
    for source, needs in zip(sources, needed(sources), strict=True):
        cells = [*(sources[other] for other in sorted(needs)), source]
        pasted = "\n\n".join(re.sub(r"^%%.*\n", "", cell) for cell in cells)
        book.cells += map(nbformat.v4.new_code_cell, ["%reset -f", pasted])
    notebooks.execute(book, tmp_path)
