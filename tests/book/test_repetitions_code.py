"""Kept numbers are those of the code that a chapter has now:
whoever changes an estimator is told so.
"""

import importlib
import linecache
from functools import partial

import nbformat
import numpy as np
import pytest

import ibukit as ik
import ibukit_claims as claims
import notebooks

kept, published = (
    importlib.import_module(f"ibukit_claims.{name}") for name in ("_repetitions", "_setting")
)
code_of = kept.code_of
AGES = ik.datasets.load_adult_ages()
NOISE = ik.TruncatedGeometric(AGES.alphabet, 0.05)


def in_a_notebook(source, name="cell"):
    """What a cell defines, with its text where a kernel keeps it."""
    found = {"__name__": "__main__", "np": np, "ik": ik, "partial": partial}
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), found)
    return found


def cell_of_the_chapter():
    [chapter] = [path for path in notebooks.chapters() if path.stem == "what-to-run"]
    cells = nbformat.read(chapter, 4).cells
    [cell] = [cell["source"] for cell in cells if cell["source"].startswith("def noisy(t):")]
    return cell


def asked(source):
    return claims.repeated(
        "what-to-run", AGES, [NOISE], in_a_notebook(source)["ESTIMATORS"], 2, seed=16
    )


def test_the_chapters_own_estimators_are_those_of_the_file():
    assert len(asked(cell_of_the_chapter())) == 12


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (
            "return np.bincount(t.parts[0].reports, t.frequencies",
            "return np.bincount(t.parts[0].reports, t.counts",
            "noisy reports",
        ),
        ("ik.Steps(300)", "ik.Steps(301)", "IBU, 300 steps"),
        ('post="project"', 'post="normalize"', "INV-P"),
        ('"MLE": ik.mle', '"MLE": ik.ibu', "MLE"),
        ('"smooth": ik.smooth', '"smooth": lambda t: ik.smooth(t)', "smooth"),
    ],
)
def test_an_estimator_changed_in_a_copy_of_the_chapter_is_told(old, new, name):
    changed = cell_of_the_chapter().replace(old, new, 1)
    with pytest.raises(
        kept.OtherCode,
        match=rf"what-to-run.csv keeps '{name}' .* scripts/repetitions.py what-to-run",
    ):
        asked(changed)


def test_another_name_is_computed_and_so_is_a_changed_setting(monkeypatch):
    made = []
    monkeypatch.setattr(
        kept, "replicate", lambda *asked, **how: made.append(1) or ik.replicate(*asked)
    )
    changed = {"MLE": partial(ik.ibu, stop=ik.Steps(2))}
    ask = partial(claims.repeated, "what-to-run", AGES, [NOISE], repetitions=2, seed=16)
    assert len(ask(estimators={"mine": changed["MLE"]})) == 2
    monkeypatch.setitem(published._setting, "published", False)
    assert len(ask(estimators=changed)) == 2
    assert made == [1, 1]


def test_losses_of_other_code_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    source = (
        "SCALE = 2.5\ndef f(x):\n    return SCALE * x\ndef compute():\n    return [[f(1), f(2)]]\n"
    )
    compute = in_a_notebook(source)["compute"]
    row = dict.fromkeys(kept.COMPUTED, "") | {
        "what": "x",
        "reports": kept.of_reports([]),
        "column": "0",
    }
    row |= {"code": code_of(compute), "values": "7 8"}
    (tmp_path / "toy.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    assert claims.remembered("toy", "x", [], compute).tolist() == [[7], [8]]
    for old, new in (("2.5", "3.5"), ("SCALE * x", "SCALE + x"), ("f(2)", "f(3)")):
        with pytest.raises(kept.OtherCode, match=r"toy.csv keeps 'x' .*give it another name"):
            claims.remembered("toy", "x", [], in_a_notebook(source.replace(old, new))["compute"])


BASE = "LEVEL = 3\ndef f(t):\n    return t + LEVEL\n"


@pytest.mark.parametrize(
    "source",
    [
        (
            'LEVEL = 3\n\n\ndef f(t):  # what it is\n    """Says something."""\n    return (\n     '
            "   t + LEVEL\n    )\n"
        ),
        "OTHER = 4\nLEVEL = 3\ndef f(t: float) -> float:\n    return t + LEVEL\n",
    ],
)
def test_layout_comments_and_docstrings_are_no_other_code(source):
    assert code_of(in_a_notebook(source)["f"]) == code_of(in_a_notebook(BASE)["f"])


@pytest.mark.parametrize(
    "source",
    [
        BASE.replace("LEVEL = 3", "LEVEL = 4"),
        BASE.replace("t + LEVEL", "t - LEVEL"),
        BASE.replace("(t)", "(t, u=1)"),
        BASE.replace("LEVEL", "(lambda: LEVEL)()", 2).replace("(lambda: LEVEL)() = 3", "LEVEL = 3"),
        "def LEVEL():\n    return 3\ndef f(t):\n    return t + LEVEL()\n",
    ],
)
def test_what_it_reads_is_part_of_it(source):
    assert code_of(in_a_notebook(source)["f"]) != code_of(in_a_notebook(BASE)["f"])


def test_of_two_on_one_line_each_has_its_own():
    found = in_a_notebook(
        "pair = [lambda x: x + 1, lambda x: x + 2]\ndef odd(n):\n    return n and not even(n)\n"
        "def even(n):\n    return not odd(n)\n"
    )
    first, second = found["pair"]
    assert code_of(first) != code_of(second)
    assert code_of(first) == code_of(lambda x: x + 1)
    assert code_of(found["odd"]) != code_of(found["even"])
