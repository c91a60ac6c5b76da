"""Formulas of docstrings become mathematics where the table has them, and nowhere else."""

import csv
import inspect
import re
from pathlib import Path

import ascii_math
import formulas
import pytest
import rooms
from verdict_html import TYPESET

ROOT = Path(__file__).resolve().parents[2]


def typeset(*lines):
    return "\n".join(formulas.typeset(list(lines))[0])


@pytest.mark.parametrize(
    ("plain", "tex"),
    [
        ("theta_x", r"\theta_{x}"),
        ("eps_g = 0.05", r"\varepsilon_{g} = 0.05"),
        ("1e-3", "10^{-3}"),
        ("2.0e-3", r"2.0\times 10^{-3}"),
        ("n = 1e4..1e6", r"n = 10^{4} \ldots 10^{6}"),
        ("274.5 <= 277.28", r"274.5 \le 277.28"),
        (
            "((e^epsilon + k - 1) / (e^epsilon - 1))^2 / n",
            r"((e^{\varepsilon} + k - 1) / (e^{\varepsilon} - 1))^{2} / n",
        ),
        ("theta^(1/2)^T", r"{\theta^{1 / 2}}^{\top}"),  # TeX refuses two exponents
        ("E ||P-hat - P||^2", r"E\,\lVert \hat P - P\rVert ^{2}"),
        ("sum_z q_z log (theta M)_z", r"\sum_{z} q_{z}\,\log (\theta\,M)_{z}"),
        ("sqrt(delta^2 + 2 delta d_max)", r"\sqrt{\delta^{2} + 2\,\delta\,d_{\mathrm{max}}}"),
        ("[INV]_M-P", r"[\mathrm{INV}]_{M}\text{-P}"),
        ("e^eps[n] >= k", r"e^{\varepsilon[n]} \ge k"),
        ("1,413 +- 9", r"1{,}413 \pm 9"),
        ("|i - j|", "|i - j|"),
    ],
)
def test_plain_characters_become_tex(plain, tex):
    assert ascii_math.split(plain) == [(plain, tex)]
    assert ascii_math.replaced(f"the {plain}, as said", "%s") == f"the {tex}, as said"


@pytest.mark.parametrize(
    "text",
    [
        "a mechanism (A2) of k-RR, 5 x 5 cells",
        "Cell code r * n_cols + c",  # half of it would be a formula
        "files of the form x_edges_old",
        "at 0.4/1.2/1.6 and 20 tallies",
        "theta_hat_x, log ratio, mean 0",
        "it is (1.5",
    ],
)
def test_what_is_no_formula_or_not_understood_stays(text):
    assert ascii_math.replaced(text, "<%s>") == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("is epsilon-d-private", r"is <\varepsilon>-d-private"),
        ("uniform theta k-RR", r"uniform <\theta> k-RR"),
        ("at alpha (proved)", r"at <\alpha> (proved)"),
        ("a theta, s in 3.6e-3 s", r"a <\theta>, s in <3.6\times 10^{-3}> s"),
        ("beta .1/.3", r"<\beta> .1/.3"),
    ],
)
def test_a_formula_ends_where_words_begin(text, shown):
    assert ascii_math.replaced(text, "<%s>") == shown


# what a reader of the rows still meets in plain characters, and why
UNSET = {
    "BA_vs_LAP_stat_utility.py": "the name of a file",
    "sum_theta": "not in the tables: the pattern of this test is seen to work",
}
PLAIN = re.compile(r"\S*(?:\w_\w|<=|>=|\^|\bsum_|\d[eE]-\d|\|\||\beps\b|\btheta\b)\S*")


def unset(text):
    """What looks like a formula in the parts of a text that stay as they are."""
    return PLAIN.findall("·".join(plain for plain, tex in ascii_math.split(text) if tex is None))


@pytest.mark.parametrize("name", ["ledger", "errata"])
def test_no_row_of_the_verdicts_shows_a_formula_in_plain_characters(name):
    with (ROOT / "data" / f"{name}.csv").open(encoding="utf8", newline="") as file:
        texts = [row[column] for row in csv.DictReader(file) for column in TYPESET if column in row]
    assert len(texts) > 100
    assert {found for text in texts for found in unset(text)} <= set(UNSET)
    assert unset("beside sum_theta stands") == ["sum_theta"]


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("the gap is log max_x g_x.", r"the gap is :math:`\log\max_x g_x`."),
        ("of log\nmax_x g_x, broken", r"of :math:`\log\max_x g_x`, broken"),
        ("`log max_x g_x` and ``M_xz``", "`log max_x g_x` and ``M_xz``"),
        (">>> M_xz", ">>> M_xz"),
        ("M_xzw and AM_xz", "M_xzw and AM_xz"),  # parts of longer words
        # no part of the table's "M_xz" stands there by itself
        ("M_xz^2, 2 theta_x / 3", r":math:`M_{xz}^{2}`, :math:`2\,\theta_{x} / 3`"),
        ("Thus::\n\n    2^k codes\n\nand 2^k", "Thus::\n\n    2^k codes\n\nand :math:`2^{k}`"),
        (">>> f()\n  eps_g\n\neps_g", ">>> f()\n  eps_g\n\n:math:`\\varepsilon_{g}`"),
        ("**theta** : array", "**theta** : array"),
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


# what the docstrings still have in plain characters: names of code, and formulas with words in them
# that the grammar does not know. There may be fewer, and a new formula is to be written so that it
# is read, or stands in the table.
UNREAD = 170


def unread(text):
    """What looks like a formula in the text of a docstring as the reference shows it."""
    lines = re.sub(r"(?ms)^(Examples|References)\n-+.*?(?=^\w+\n-+$|\Z)", "", text).splitlines()
    kept = [
        line for line in lines if not re.match(r"[\w, ]+ : |\w+$", line)
    ]  # parameters and their types
    shown = re.sub(r"(?m)^ *\.\. math::\n\n.*$", "", "\n".join(formulas.typeset(kept)[0]))
    return PLAIN.findall(formulas.LITERAL.sub("", shown))


def test_few_formulas_of_the_docstrings_are_not_read():
    assert unread("Counts `a_b` and n_rows, at least 2^k.") == ["n_rows,"]
    found = [part for text in docstrings() if "str(object" not in text for part in unread(text)]
    assert len(found) <= UNREAD, sorted(set(found))
