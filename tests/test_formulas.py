"""Formulas of docstrings become mathematics where the table has them, and nowhere else."""

import inspect
from pathlib import Path

import formulas
import pytest
import rooms

ROOT = Path(__file__).resolve().parents[1]


def typeset(*lines):
    return "\n".join(formulas.typeset(list(lines))[0])


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("the gap is log max_x g_x.", r"the gap is :math:`\log\max_x g_x`."),
        ("of log\nmax_x g_x, broken", r"of :math:`\log\max_x g_x`, broken"),
        ("`log max_x g_x` and ``M_xz``", "`log max_x g_x` and ``M_xz``"),
        (">>> M_xz", ">>> M_xz"),
        ("M_xzw and AM_xz", "M_xzw and AM_xz"),  # parts of longer words
        ("M_xz^2, 2 theta_x / 3", r"M_xz^2, 2 theta_x / 3"),  # parts of longer formulas
    ],
)
def test_a_formula_is_typeset_where_it_stands_by_itself(plain, shown):
    assert typeset(*plain.splitlines()) == shown


def test_a_large_formula_gets_a_line_of_its_own_but_not_in_the_first_sentence():
    sentence = "Maximise L(theta) = sum_z counts_z log (theta M)_z over the simplex."
    assert ".. math::" in typeset("First.", "", sentence)
    assert ":math:" in typeset(sentence)
    lines = typeset("First.", "", sentence).splitlines()
    block = lines.index(".. math::")
    assert [lines[block - 1], lines[block + 1], lines[block + 3]] == ["", "", ""]
    assert lines[block + 2].startswith("   L(")


def docstrings():
    for thing in rooms.entries(ROOT).values():
        yield inspect.getdoc(thing) or ""
        for member in vars(thing).values() if inspect.isclass(thing) else ():
            yield inspect.getdoc(member) or ""


def test_every_formula_of_the_table_stands_in_a_docstring():
    used = set().union(*(formulas.typeset(text.splitlines())[1] for text in docstrings()))
    assert {formula.plain for formula in formulas.table()} - used == set()


def test_the_table_is_well_formed():
    rows = [line.split("\t") for line in formulas.TABLE.read_text("utf8").splitlines()[1:]]
    assert all(len(row) == 2 or (len(row) == 3 and row[2] == "block") for row in rows)
    assert len({row[0] for row in rows}) == len(rows)
    assert all(row[1].count("{") == row[1].count("}") for row in rows)
