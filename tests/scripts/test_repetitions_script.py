"""The script that makes the tables of `data/repetitions` anew, on a chapter of three cells."""

import csv

import nbformat

import repetitions

FIRST = "import numpy as np\nrng = np.random.default_rng(0)"
IMPORTS = "import ibukit as ik\nimport ibukit_claims as claims"
ASKS = """
drawn = [ik.RandomizedResponse(3, 1.0).simulate([50, 30, 20], rng) for _ in range(4)]
what = "largest shares"
found = claims.remembered(
    "none", what, drawn, lambda: [[ik.mle(t).distribution.max()] for t in drawn]
)
"""


def test_any_cell_may_be_the_one_that_imports_the_claims(tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in (FIRST, IMPORTS, ASKS)]
    )
    nbformat.write(notebook, tmp_path / "chapter.ipynb")
    repetitions.make(tmp_path / "chapter.ipynb", tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["what"] == "largest shares"
    assert row["repetitions"] == "4"
    assert all(0 < float(value) < 1 for value in row["values"].split())
