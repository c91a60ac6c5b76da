"""The page of notation speaks of names that exist:
one symbol, one name, in the book and in the code.
"""

import inspect
import json
import re
from functools import cache
from io import StringIO
from pathlib import Path

import chapter_symbols as symbols
import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

import ibukit as ik
from ibukit.mechanisms import FiniteMechanism

PAGE = (Path(__file__).resolve().parents[2] / "book" / "notation.md").read_text("utf-8")
OBJECTS = {
    "mechanism": FiniteMechanism,
    "alphabet": ik.Alphabet,
    "tally": ik.Tally,
    "Estimate": ik.Estimate,
    "theory": ik.theory,
    "privacy": ik.privacy,
}


def rows():
    """Cells of the tables, header and rule left out."""
    for line in PAGE.splitlines():
        if line.startswith("| ") and not line.startswith(("| ---", "| Term", "| Rule")):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def in_code():
    """Every name that a table gives for something in the code."""
    for row in rows():
        for cell in row[1:3]:
            yield from re.findall(r"`([^`]+)`", cell)


def names_of_the_package():
    """Public names, with the parameters and attributes of what they stand for."""
    found = set()
    for name in ik.__all__:
        thing = getattr(ik, name)
        if inspect.isclass(thing) and issubclass(thing, Exception):
            continue
        if inspect.isclass(thing):
            found |= set(dir(thing)) | set(getattr(thing, "__dataclass_fields__", ()))
        if callable(thing):
            found |= {name, *inspect.signature(thing).parameters}
        if inspect.isclass(thing):
            for member in vars(thing).values():
                if inspect.isfunction(member):
                    found |= set(inspect.signature(member).parameters)
    return found


def exists(name):
    """Whether a name of the table is one of the package."""
    word, *attributes = re.sub(r"\(.*\)|=.*", "", name).split(".")  # without arguments or a value
    parameters = re.findall(r"(\w+)=", name)
    if attributes:
        return attributes[0] in set(dir(OBJECTS[word])) | set(
            getattr(OBJECTS[word], "__dataclass_fields__", ())
        )
    known = names_of_the_package()
    return word.strip('"') in known | {"none", "normalize", "project"} and set(parameters) <= known


@pytest.mark.ledger("A-TabI")
def test_every_name_on_the_page_is_one_of_the_package():
    names = list(dict.fromkeys(in_code()))
    assert len(names) > 25
    assert [name for name in names if not exists(name)] == []


@pytest.mark.ledger("A-TabI")
def test_the_papers_basic_notation_has_a_row_each():
    # what table I of the consistency paper lists, in its own letters
    symbols = " ".join(row[1] for row in rows() if len(row) == 4)
    for symbol in (r"\mathcal X", r"\theta", "x", "z", r"\mathcal Z", "M_{xz}", "q", "L"):
        assert symbol in symbols, symbol


@pytest.mark.ledger("D-TII")
def test_the_symbols_of_frequency_estimation_are_translated():
    # what table II of that paper lists and writes otherwise than we do, each in the row of the
    # thing it stands for
    theirs = {row[1]: row[3] for row in rows() if len(row) == 4 and re.search(r"\bD\b", row[3])}
    pairs = {
        r"$\mathcal X$, $k$": r"\mathcal A",
        "$F$": "F_x=T_x/n",
        r"$\theta$; $\hat\theta$": "$P$",
        r"$\pi$": r"\mu",
        r"$M$, $M_{xz}=P(z\mid x)$": r"Q_{y\mid x}",
        r"$\lvert\mathcal Z\rvert$": "$b$",
        "$z$": "$y$",
        "$n q_z$": "S_y",
        r"$\bar\theta$, $\bar F$": r"\hat P^*",
    }
    for ours, symbol in pairs.items():
        assert symbol in theirs[ours], ours
    same = " ".join(row[1] for row in rows() if len(row) == 4 and not re.search(r"\bD\b", row[3]))
    assert "$n$" in same
    assert r"$\varepsilon$" in same


@pytest.mark.ledger("E-TI")
def test_the_symbols_of_privic_are_translated():
    # what table I of that paper lists, each in the row of the thing it stands for; two lines are
    # names: BA and IBU
    theirs = {row[1]: row[3] for row in rows() if len(row) == 4}
    pairs = {
        r"$M$, $M_{xz}=P(z\mid x)$": r"E: $\mathcal C_{xy}$",
        r"$\theta$; $\hat\theta$": r"E: $\pi_{\mathcal X}$, $\hat\pi_{\mathcal X}$",
        "$D$": "E: $d^*$",
        "$C$, $c$": r"E: $\hat{\mathcal C}_{\mathrm{BA}}$",
        "": r"E: $\delta_{\mathrm{BA}}$, $\delta_{\mathrm{IBU}}$",
        "$t$": "E: $N$ for the cycles",
    }
    for ours, symbol in pairs.items():
        assert symbol in theirs[ours], ours
    assert all(
        theirs[same] == "" or "E:" not in theirs[same]
        for same in (r"$\mathcal X$, $k$", r"$\beta$")
    )


@pytest.mark.parametrize(
    "name", ["mechanism.matrixx()", "Gap2(tol)", "ibu(tally, begin=...)", "lie_detector"]
)
def test_a_name_that_does_not_exist_is_noticed(name):
    assert not exists(name)


CHAPTERS = {
    path.stem: path
    for path in (Path(__file__).resolve().parents[2] / "book" / "chapters").glob("*.ipynb")
}
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$]+?)\$", re.DOTALL)
# letters that papers use for several things, and the chapters that use them for the one thing that
# Notation says
ONE_MEANING = {
    r"\lambda": "comparison fast-ibu stopping",
    r"\beta": (
        "attack consistency counterexamples geometric-noise mechanisms privic privic-measured"
        " shokri silent-designs"
    ),
    "K": (
        "concavity consistency counterexamples geometric-noise privic privic-measured"
        " silent-designs"
    ),
    "D": "privic privic-measured shokri",
    r"\ell": "ages counterexamples fast-ibu fixed-points stopping",
}


@cache
def texts(path):
    """The text of a chapter, without its code."""
    cells = json.loads(path.read_text("utf8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def formulas(text):
    """The formulas in a text."""
    return [display or inline for display, inline in FORMULA.findall(text)]


def letters(text):
    """Which of the letters with one meaning the formulas of a text use;
    an index makes another symbol of a letter.
    """
    plain = [symbols.WORDS.sub(" ", formula) for formula in formulas(text)]
    ways = {letter: rf"{symbols.letter(letter)}(?!_[\d{{])" for letter in ONE_MEANING}
    return {
        letter for letter, way in ways.items() if any(re.search(way, formula) for formula in plain)
    }


def symbol_cells():
    return [row[1] for row in rows() if len(row) == 4 and row[1]]


def test_every_symbol_of_the_page_is_registered_and_no_other():
    assert [symbol.cell for symbol in symbols.table()] == symbol_cells()


def test_the_register_names_chapters_that_exist_and_anchors_once():
    anchors = [symbol.anchor for symbol in symbols.table()]
    assert len(set(anchors)) == len(anchors)
    named = {name.lstrip("!") for symbol in symbols.table() for name in symbol.where}
    assert named - set(CHAPTERS) == set()


def test_every_registered_symbol_is_used_by_a_chapter():
    found = set()
    for name, path in CHAPTERS.items():
        text = texts(path)
        found |= {symbol.anchor for symbol in symbols.symbols_of(name, formulas(text), text)}
    assert {symbol.anchor for symbol in symbols.table()} - found == set()


@pytest.mark.parametrize("letter", ONE_MEANING)
def test_a_letter_has_one_meaning_in_the_whole_book(letter):
    assert {name for name, path in CHAPTERS.items() if letter in letters(texts(path))} - set(
        ONE_MEANING[letter].split()
    ) == set()


def test_the_letters_of_a_text_are_found():
    assert letters(r"$D(p\Vert q)$ and $\lambda d$") == {"D", r"\lambda"}
    assert letters(
        r"$\mathrm{KL}(p)$, $\ell_2$, $\text{D}$, $K_{3,3}$, $\mathcal D$, $\bar\lambda$ or K"
    ) == {r"\lambda"}
    assert letters(r"$$\ell(\theta) = L(\theta)/n$$") == {r"\ell"}


@pytest.mark.parametrize(
    ("chapter", "text", "anchors"),
    [
        ("ages", r"$\alpha^{\lvert x-z\rvert}$", ["secret", "report", "ratio"]),
        ("optimal-estimators", r"$\alpha_0$", ["dirichlet"]),
        ("ages", r"the EMD, no formula", ["emd"]),
        ("ages", r"EMDs; $\text{n}$, $\log k$", ["secrets-alphabet"]),
        ("ages", r"$\ell_2$", ["l2"]),
        ("ages", r"$\ell(\theta)$", ["theta", "mean-log-likelihood"]),
        ("privic", r"$F(C,c)$", []),
        ("stopping", "$F$", ["secret-frequencies"]),
    ],
)
def test_the_symbols_of_a_page_are_told(chapter, text, anchors):
    assert [s.anchor for s in symbols.symbols_of(chapter, formulas(text), text)] == [
        f"symbol-{a}" for a in anchors
    ]


def built(folder, table):
    """A page of notation with this table and a chapter, as HTML, and the warnings."""
    (folder / "book" / "chapters").mkdir(parents=True)
    (folder / "index.md").write_text(
        "# A\n\n```{toctree}\nbook/notation\nbook/chapters/ages\n```\n", "utf8"
    )
    (folder / "book" / "notation.md").write_text(f"# Notation\n\n{table}", "utf8")
    (folder / "book" / "chapters" / "ages.md").write_text(
        "# Ages\n\nHow old?\n\n## Then\n\n$\\theta$\n", "utf8"
    )
    warnings = StringIO()
    with docutils_namespace():
        settings = {
            "extensions": ["myst_parser", "chapter_symbols"],
            "myst_enable_extensions": ["dollarmath"],
        }
        app = Sphinx(
            folder, None, folder / "out", folder / "tree", "html", settings, None, warnings
        )
        app.build()
    pages = folder / "out" / "book"
    notation, chapter = (
        (pages / name).read_text("utf8") for name in ("notation.html", "chapters/ages.html")
    )
    return notation, chapter, warnings.getvalue()


def test_a_chapter_links_the_symbols_it_uses_to_their_rows(tmp_path):
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("| Rule"))]
    table = [re.sub(r"\{[\w:]+\}(?=`)", "", line) for line in table]
    notation, chapter, warnings = built(
        tmp_path, "\n".join([*table, r"| not registered | $\aleph$ | | |"])
    )
    [warning] = warnings.splitlines()
    assert r"'\\aleph' of the page of notation is not in chapter_symbols.tsv" in warning
    assert all(f'id="{symbol.anchor}"' in notation for symbol in symbols.table())
    opening, _, rest = chapter.partition("Symbols on this page")
    assert "How old?" in opening
    assert re.findall(r'href="\.\./notation\.html#(symbol-[\w-]+)"', rest) == ["symbol-theta"]
    assert rest.index("symbol-theta") < rest.index("Then")
