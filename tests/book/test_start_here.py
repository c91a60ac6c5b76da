"""The first chapter asks for averages only:
what it writes is introduced in words, and its pencil is right.
"""

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import ibukit as ik

PATH = Path(__file__).resolve().parents[2] / "book" / "chapters" / "start-here.ipynb"
CELLS = [
    cell for cell in json.loads(PATH.read_text("utf8"))["cells"] if cell["cell_type"] == "markdown"
]
TEXT = "\n\n".join("".join(cell["source"]) for cell in CELLS)
INTRODUCED = {
    "*randomised response*": "k-RR",
    "*epsilon*": r"$\varepsilon$",
    "*matrix inversion*": "INV",
    "*iterative Bayesian update*": "IBU",
    "*likelihood*": "likelihood*",
    "*maximum likelihood estimate*": "MLE",
    "*nat*": "nats",
    "we would have to move the people in it that far": "{term}`EMD`",
}
SUM = re.compile(r"^([\d.]+) × ([\d.]+) \+ ([\d.]+) × ([\d.]+) = ([\d.]+) \+ ([\d.]+) = ([\d.]+)")


def late(text):
    """What a text uses before it says what it is."""
    read = re.sub(r"^:\w+:.*$", "", text, flags=re.MULTILINE)
    return [
        short
        for words, short in INTRODUCED.items()
        if words not in read or read.index(short) < read.index(words)
    ]


def test_what_the_page_writes_short_is_introduced_in_words_before():
    assert late(TEXT) == []
    assert late(TEXT.replace("*likelihood*", "plausibility")) == ["likelihood*"]
    assert late(f"INV\n\n{TEXT}") == ["INV"]


def test_the_only_symbol_is_epsilon():
    assert set(re.findall(r"\$([^$]+)\$", TEXT)) == {r"\varepsilon"}


def test_the_sums_on_the_page_come_out():
    sums = [SUM.match(line) for line in TEXT.splitlines()]
    found = [[Fraction(part) for part in one.groups()] for one in sums if one]
    assert len(found) == 2
    for a, b, c, d, first, second, total in found:
        assert (a * b, c * d, a * b + c * d) == (first, second, total)


@pytest.mark.parametrize(
    ("yes", "inverse", "step", "factor"),
    [(40, 30, 45, 1.1), (20, -10, 35, 1.3), (55, 60, 52.5, 1.05)],
)
def test_the_pencil_and_the_package_agree(yes, inverse, step, factor):
    coin = ik.RandomizedResponse(["no", "yes"], epsilon=np.log(3))
    tally = coin.tally(["yes"] * yes + ["no"] * (100 - yes))
    assert (yes - 25) / 50 == pytest.approx(inverse / 100)
    assert ik.inv(tally, post="none")["yes"] == pytest.approx(inverse / 100)
    assert ik.ibu(tally, stop=ik.Steps(1))["yes"] == pytest.approx(step / 100)
    assert ik.gap(tally, [0.5, 0.5]) == pytest.approx(np.log(factor))


def test_the_gap_of_the_pencil_is_the_first_line_of_the_output_below_it():
    cells = json.loads(PATH.read_text("utf8"))["cells"]
    [at] = [i for i, cell in enumerate(cells) if "ln 1.1 = 0.0953" in "".join(cell["source"])]
    printed = "".join(cells[at + 1]["outputs"][0]["text"]).splitlines()[0]
    assert printed == f"step  0: 50.0%, gap {np.log(1.1):.4f}"
