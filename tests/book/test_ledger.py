"""The lists of claims and errata:
complete, in order, and what the tests and chapters say they test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import hypothesis
import nbformat
import numpy as np
import pandas as pd
import pytest

import ibukit_claims as claims
import ledger

ROOT = Path(__file__).resolve().parents[2]
PAPERS = {"A": "consistency", "B": "geometric", "C": "freewill", "D": "estimators", "E": "privic"}
CLASSES = {"error", "conditional error", "missing condition", "remark", "irreproducible"}
# ids that were withdrawn, because the printed sentence is true or is not the paper's; never used
# again
WITHDRAWN = {"A15", "D8", "D9", "E16"}
MAY_BE_EMPTY = {"quote"}

CLAIMS = ledger.rows("ledger")
ERRATA = ledger.rows("erratum")

PYPROJECT = """
[tool.pytest.ini_options]
markers = ["slow: slow", "ledger(*ids): claims", "erratum(*ids): errata"]
addopts = ["--strict-markers", "-m not slow"]
filterwarnings = ["error"]
"""
TESTS = """
import pytest

@pytest.mark.ledger("A-T1", "A-T2")
@pytest.mark.parametrize("k", [2, 3])
def test_rank(k): pass

@pytest.mark.slow
@pytest.mark.erratum("A16")
def test_normaliser(): pass

class TestAges:
    @pytest.mark.ledger("A-F1a")
    def test_figure(self): pass
"""


def pytest_in(root, *options, **environment):
    """Run pytest in a tree of its own, away from this run's plugins and variables."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:nbval",
        *options,
        "tests",
    ]
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTEST", "HYPOTHESIS", "CI"))
    }
    return subprocess.run(
        command, cwd=root, env=kept | environment, capture_output=True, text=True, timeout=900
    )


def cell(source, *tags, kind=nbformat.v4.new_code_cell):
    return kind(source, metadata={"tags": list(tags)})


@pytest.fixture
def tree(tmp_path):
    """A small tree: this one's conftest.py, five rows, three tests and one chapter."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "tests" / "test_toy.py").write_text(TESTS)
    rows = [
        "A-T1,consistency,T,Three agree.,ages,reproduced,yes",
        "A-T2,consistency,T,A bound.,ages,reproduced,yes",
    ]
    rows += ["A-F1a,consistency,F,A figure.,mechanisms,setting,10"]
    rows += [f"A-F8,consistency,F,{'On a map '}{'far ' * 30}.,ages,open,9"]
    head = "id,paper,where,claim,chapter,verdict,expected"
    (tmp_path / "data" / "ledger.csv").write_text("\n".join([head, *rows, ""]))
    errata = [
        "A16,error,ages,S,closer,Closer is likelier.,No.,study",
        "A17,remark,ages,F,,1.87.,1.88.,recomputed",
    ]
    head = "id,class,chapter,where,quote,wrong,right,status"
    (tmp_path / "data" / "errata.csv").write_text("\n".join([head, *errata, ""]))
    write_chapter(tmp_path, cell("x = 1\nassert x", "ledger:A-T1", "remove-cell"))
    return tmp_path


def write_chapter(root, *cells):
    (root / "book").mkdir(exist_ok=True)
    for i, each in enumerate(cells):
        each["id"] = f"toy-{i:02d}"
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), root / "book" / "toy.ipynb")


# The two tables


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (CLAIMS, ["id", "paper", "where", "claim", "chapter", "verdict", "expected"]),
        (ERRATA, ["id", "class", "chapter", "where", "quote", "wrong", "right", "status"]),
    ],
    ids=["claims", "errata"],
)
def test_rows_are_complete_and_unique(rows, columns):
    for row in rows:
        assert list(row) == columns, row
        assert all(text or column in MAY_BE_EMPTY for column, text in row.items()), row
        assert all(text == text.strip() for text in row.values()), row
        assert not any(re.search(r"\s\s|\n", text) for text in row.values()), row
        assert row["chapter"] in ledger.CHAPTERS, row
    assert [i for i, n in Counter(row["id"] for row in rows).items() if n > 1] == []


def test_claims_are_short_sentences_of_known_papers():
    for row in CLAIMS:
        assert row["paper"] == PAPERS[row["id"][0]], row
        assert re.fullmatch(r"[A-E]-\w+(\.\w+)?", row["id"]), row
        assert 20 <= len(row["claim"]) <= 200, row
        assert row["claim"].endswith("."), row
        assert len(row["expected"]) <= 300, row


def test_every_claim_has_a_verdict_that_its_numbers_bear_out():
    published = [claims.load_published(stem) for stem in PAPERS.values()]
    numbers = {
        name: set(rows["verdict"]) for table in published for name, rows in table.groupby("claim")
    }
    for row in CLAIMS:
        assert row["verdict"] in (*claims.VERDICTS, claims.OURS), row
        assert (row["verdict"] == claims.OURS) == (row["where"] == "beyond the paper"), row
        assert row["verdict"] != "open", row
        found = numbers.get(row["id"], set()) - {"setting"}
        if row["verdict"] == "setting":  # an input is no result, and what has a result is no input
            assert not found, (row, found)
        elif "deviates" in found:
            assert row["verdict"] in ("deviates", "holds with a condition"), (row, found)


def recount(table):
    """The counts of a ledger, by pandas and without the claims code."""
    of_papers = table[table["where"] != "beyond the paper"]
    by_verdict = of_papers.groupby([of_papers["id"].str[0], "verdict"]).size()
    return {pair: int(n) for pair, n in by_verdict.items()}, len(table) - len(of_papers)


def test_counts_are_those_of_the_ledger():
    found = claims.counts()
    counted = {(p, v): n for p, words in found.rows.items() for v, n in words.items()}
    table = pd.read_csv(ROOT / "data" / "ledger.csv")
    assert (counted, found.ours) == recount(table)
    assert found.n_rows + found.ours == len(table)
    assert found.n_settings == (table["verdict"] == "setting").sum()
    assert found.n_rows == found.n_results + found.n_settings
    # a result of ours that is taken for one of the paper is seen
    table.loc[table["id"] == "E-X1", "where"] = "Sec. 6"
    assert (counted, found.ours) != recount(table)


def test_a_number_that_a_table_prints_ten_times_counts_once():
    tables = pd.concat(claims.load_published(stem) for stem in PAPERS.values())
    once = tables.drop_duplicates(["claim", "quantity", "printed", "verdict"])
    assert claims.counts().numbers == once["verdict"].value_counts().to_dict()
    reproduced = [t[t["verdict"] == "reproduced"] for t in (tables, once)]
    start = [len(t[t["claim"] == "E-TIII"]) for t in reproduced]
    assert start == [10, 1]
    assert len(reproduced[0]) - len(reproduced[1]) == 9


def test_the_readme_has_the_counts():
    text = (ROOT / "README.md").read_text("utf8")
    found = ledger.IN_README.search(text)
    assert found is not None
    counts = claims.counts()
    assert [int(found[1]), int(found[3])] == [counts.n_rows, counts.ours]
    wrong = text.replace(f"each of their {counts.n_rows} ", "each of their 213 ")
    assert wrong != text
    assert ledger.with_counts(wrong) == text == ledger.with_counts(text)


@pytest.mark.parametrize(
    ("joined", "ids"),
    [
        ("D-T4.4/4.5", ["D-T4.4", "D-T4.5"]),
        ("E-D2.2-2.4", ["E-D2.2", "E-D2.3", "E-D2.4"]),
        ("E-R2,R3", ["E-R2", "E-R3"]),
        ("E-S4/F4", ["E-S4", "E-F4"]),
        ("E-A2,A3", ["E-A2", "E-A3"]),
        ("E-F8/TIII", ["E-F8", "E-TIII"]),
        ("E-F9/TIV", ["E-F9", "E-TIV"]),
    ],
)
def test_one_row_for_each_claim_of_a_joined_entry(joined, ids):
    known = {row["id"] for row in CLAIMS}
    assert set(ids) <= known
    assert joined not in known


def test_every_erratum_is_there_and_classed():
    numbers = {
        letter: range(1, n + 1)
        for letter, n in {"A": 23, "B": 10, "C": 13, "D": 9, "E": 33}.items()
    }
    ids = [f"{letter}{i}" for letter in numbers for i in numbers[letter]]
    assert [row["id"] for row in ERRATA] == [i for i in ids if i not in WITHDRAWN]
    for row in ERRATA:
        assert row["class"] in CLASSES, row
        assert row["quote"] or "error" not in row["class"], (
            f"{row['id']}: an error quotes the sentence that is false"
        )
        assert row["status"] in {"study", "recomputed"}, row
        assert row["wrong"].endswith("."), row
        assert row["right"].endswith("."), row


def test_chapters_are_named_as_their_files():
    assert {path.stem for path in (ROOT / "book" / "chapters").glob("*.ipynb")} <= set(
        ledger.CHAPTERS
    )


# This tree's tests and chapters against the tables


def test_tags_of_the_chapters_name_rows_and_stand_on_cells_that_assert():
    assert ledger.tag_faults() == []


def carried(files, ids):
    """The errata that tests and chapters carry,
    from this run's own collection where that was of all tests.
    """
    if {*(ROOT / "tests").glob("*/test_*.py")} <= files:
        tags = {row for kind, row, _, _ in ledger.tagged_cells() if kind == "erratum"}
        return dict.fromkeys(ids["erratum"].keys() | tags, "here")
    code = "import json, ledger; print(json.dumps(ledger.places()))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["erratum"]


def test_an_erratum_counts_as_recomputed_exactly_when_a_test_or_chapter_carries_it(collected):
    tested = carried(*collected)
    wrong = {
        row["id"]: row["status"] for row in ERRATA if row["status"] != ledger.status(row, tested)
    }
    assert wrong == {}, "run scripts/ledger.py --write"


# Wrong marks and tags are found


@pytest.fixture
def wrong_tree(tree):
    """The small tree with four wrong marks, one of them on a test that -m deselects."""
    path = tree / "tests" / "test_toy.py"
    text = (
        path.read_text()
        .replace('"A-T2"', '"A-T22"')
        .replace('"A16"', '"A61"')
        .replace('"A-F1a"', "")
    )
    path.write_text(text + '\n@pytest.mark.ledger(row="A-T1")\ndef test_keyword(): pass\n')
    return tree


def test_a_mark_that_names_no_row_stops_the_run(wrong_tree):
    run = pytest_in(wrong_tree)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "passed" not in run.stdout
    found = [
        line.removeprefix("ERROR: tests/test_toy.py::") for line in run.stderr.split("\n") if line
    ]
    assert found == [
        "test_rank[2]: ledger 'A-T22' names no row of data/ledger.csv; the nearest are A-T2, A-T1",
        "test_rank[3]: ledger 'A-T22' names no row of data/ledger.csv; the nearest are A-T2, A-T1",
        "test_normaliser: erratum 'A61' names no row of data/errata.csv; the nearest are A17, A16",
        "TestAges::test_figure: ledger wants ids, as in @pytest.mark.ledger('A-T1')",
        "test_keyword: ledger wants ids, as in @pytest.mark.ledger('A-T1')",
    ]


def test_it_stops_the_run_on_two_workers_too(wrong_tree):
    run = pytest_in(wrong_tree, "-n", "2")
    assert run.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert (
        "ledger 'A-T22' names no row of data/ledger.csv; the nearest are A-T2, A-T1" in run.stdout
    )


def test_right_marks_run(tree):
    assert "3 passed, 1 deselected" in pytest_in(tree).stdout


def test_tags_that_name_no_row_or_assert_nothing(tree):
    write_chapter(
        tree,
        cell("assert 1 + 1 == 2", "ledger:A-T1", "erratum:A16", "hide-input"),
        cell("if True:\n    claims.check(table)", "ledger:A-F8"),
        cell("claims.statements(rows)", "ledger:A-F8"),
        cell("assert True", "ledger:A-T9"),
        cell("# assert something\nprint('assert')", "erratum:A17"),
        cell("assert", "ledger:A-F8", kind=nbformat.v4.new_markdown_cell),
    )
    nothing = "stands on a cell without an assert or a verdict of claims"
    assert ledger.tag_faults(tree) == [
        "toy.ipynb#toy-03: the tag ledger:A-T9 names no row of data/ledger.csv",
        f"toy.ipynb#toy-04: the tag erratum:A17 {nothing}",
        f"toy.ipynb#toy-05: the tag ledger:A-F8 {nothing}",
    ]


# The report


def script(root, *options):
    command = [sys.executable, str(ROOT / "scripts" / "ledger.py"), "--root", str(root), *options]
    return subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.fixture
def report(tree, monkeypatch, capsys):
    """The script's exit code and output for the small tree, its tests collected beforehand."""
    places = {
        "ledger": {"A-F1a": ["b.py::x"], "A-T1": ["c.py::y"], "A-T2": ["c.py::y"]},
        "erratum": {"A16": ["z"]},
    }
    monkeypatch.setattr(ledger, "places", lambda _root: places)
    return lambda *options: (ledger.main(["--root", str(tree), *options]), capsys.readouterr().out)


def test_report_of_claims(tree):
    run = script(tree)
    assert run.returncode == 0, run.stderr
    assert run.stdout == (
        "Reconstructing ages (ages): 2 of 3 rows have a test\n"
        "  A-T1      reproduced: test_toy.py::test_rank, toy.ipynb#toy-00\n"
        "  A-T2      reproduced: test_toy.py::test_rank\n"
        f"  A-F8      open: On a map {'far ' * 17}...\n\n"
        "The local model and its mechanisms (mechanisms): 1 of 1 rows have a test\n"
        "  A-F1a     setting: test_toy.py::TestAges::test_figure\n\n"
        "4 rows: 1 settings; 3 results: 2 reproduced, 1 open\n3 with a test, 1 without\n"
    )
    assert max(map(len, run.stdout.splitlines())) <= 100


def test_status_is_written_from_the_marks_of_slow_tests_too(tree):
    assert script(tree, "--write").stdout == "2 rows of data/errata.csv changed\n"
    assert [row["status"] for row in ledger.rows("erratum", tree)] == ["recomputed", "study"]


@pytest.mark.parametrize(
    ("slug", "code", "rows"), [("ages", 1, ["A-F8"]), ("mechanisms", 0, []), ("privic", 0, [])]
)
def test_open_rows_of_a_chapter_decide_the_exit_code(report, slug, code, rows):
    returned, text = report("--open", "--chapter", slug)
    assert returned == code
    assert re.findall(r"^  (\S+)", text, re.MULTILINE) == rows


def test_report_of_errata(report):
    assert report("--errata", "--open") == (
        0,
        "Reconstructing ages (ages): 1 of 2 rows have a test\n  A17       open: 1.87.\n\n"
        "2 rows: 1 error, 1 remark\n1 with a test, 1 without\n",
    )


def test_an_unknown_chapter_is_refused(report, capsys):
    with pytest.raises(SystemExit):
        report("--chapter", "age")
    assert f"--chapter must be one of {', '.join(ledger.CHAPTERS)}" in capsys.readouterr().err


def test_wrong_tags_and_tests_that_cannot_be_collected_stop_the_report(tree):
    (tree / "tests" / "test_toy.py").write_text("import nothing_of_this_name")
    run = script(tree)
    assert run.returncode == 1
    assert "nothing_of_this_name" in run.stderr
    write_chapter(tree, cell("1", "ledger:A-T1"))
    with pytest.raises(SystemExit, match="stands on a cell without"):
        ledger.places(tree)


# What conftest.py gives to every test


@pytest.mark.parametrize("_", range(2))
def test_rng_is_fresh_for_every_test(rng, _):
    np.testing.assert_array_equal(rng.random(3), np.random.default_rng(20260101).random(3))


def test_hypothesis_profile():
    profile = hypothesis.settings.get_profile("ibukit")
    assert (profile.derandomize, profile.deadline, profile.print_blob, profile.max_examples) == (
        True,
        None,
        False,
        100,
    )


@pytest.mark.parametrize(
    ("variables", "outcome"), [({}, "1 passed"), ({"HYPOTHESIS_PROFILE": "default"}, "1 failed")]
)
def test_the_profile_is_loaded_unless_another_is_asked_for(tree, variables, outcome):
    path = tree / "tests" / "test_toy.py"
    path.write_text(
        "import hypothesis\n\ndef test_profile(): assert hypothesis.settings().derandomize\n"
    )
    assert outcome in pytest_in(tree, **variables).stdout
