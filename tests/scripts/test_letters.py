"""The letters to the authors: ready to send, and each program in them runs."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
import verdict_html as html
import verdict_rows as data

import errata
import ledger

ROOT = Path(__file__).resolve().parents[2]
ERRATA = ledger.rows("erratum")
FILES = sorted((ROOT / "data" / "counterexamples").glob("*"))
# errors whose computation takes more than five lines: people with ten mechanisms against people
# with their average, the program of the authors, and the loop
TOO_LONG = {"C13", "E3", "E5"}
# each program in a process of its own, which begins with what all of them import: importing it
# again is most of what they cost
RUNS = """
import os, sys, traceback, warnings
import numpy as np, ibukit as ik
ik.ibu, ik.mle, ik.inv, ik.emd, ik.datasets.load_adult_ages()
for path, errors in zip(sys.argv[1::2], sys.argv[2::2]):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of threads, of which none is needed
        child = os.fork()
    if not child:
        with open(path, encoding="utf8") as file, open(errors, "w", encoding="utf8") as out:
            os.dup2(out.fileno(), 2)
            try:
                exec(compile(file.read(), path, "exec"), {"__name__": "__main__"})
                os._exit(0)
            except BaseException:
                traceback.print_exc(file=out)
                out.flush()
                os._exit(1)
    if os.waitpid(child, 0)[1]:
        print(path)
"""


def run_each(paths, folder):
    """What each of some programs says of the error that ends it, if one does."""
    said = {path: folder / f"{path.stem}.err" for path in paths}
    given = [str(each) for pair in said.items() for each in pair]
    command = [sys.executable, "-W", "error", "-c", RUNS, *given]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    failed = run.stdout.splitlines()
    return {path: said[path].read_text("utf8") for path in paths if str(path) in failed}


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    return run_each(FILES, tmp_path_factory.mktemp("errors"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_counterexample_runs_alone(path, errors):
    code = path.read_text("utf8")
    assert code.count("\n") <= 5
    assert max(map(len, code.splitlines())) <= 100
    assert re.search(r"^ *assert ", code, re.MULTILINE)
    assert path not in errors, errors[path]


def test_a_program_that_fails_alone_is_told(tmp_path):
    programs = {
        "good": "x = 1",
        "alone": "assert x",
        "wrong": "import numpy\nassert numpy.pi > 4",
        "warns": "import warnings\nwarnings.warn('no')",
    }
    paths = [tmp_path / f"{name}.txt" for name in programs]
    for path, code in zip(paths, programs.values(), strict=True):
        path.write_text(code, "utf8")
    found = {path.stem: said.splitlines()[-1] for path, said in run_each(paths, tmp_path).items()}
    assert found == {
        "alone": "NameError: name 'x' is not defined",
        "wrong": "AssertionError",
        "warns": "UserWarning: no",
    }


@pytest.mark.parametrize(
    ("code", "right", "wrong"),
    [
        ("A1", "> 273.5", "< 227.28"),
        ("B1", "q / (p @ M)", "q / (p @ M) ** 2"),
        ("E13", "np.exp(d)", "np.exp(-d)"),
        ("E24", "< island[B]", "> island[B]"),
    ],
)
def test_a_counterexample_stops_where_the_paper_is_right(code, right, wrong):
    text = errata.counterexample(code)
    assert right in text
    with pytest.raises(AssertionError):
        exec(text.replace(right, wrong), {})


def test_counterexamples_are_of_rows_that_need_one():
    words = {row["id"]: row["class"] for row in ERRATA}
    codes = {path.stem for path in FILES}
    assert {path.suffix for path in FILES} == {".txt"}
    assert {words[code] for code in codes} <= {*errata.LONG, "remark"}
    missing = {row["id"] for row in ERRATA if "error" in row["class"]} - codes
    assert missing <= TOO_LONG


@pytest.mark.parametrize("paper", errata.PAPERS)
def test_a_letter_has_each_erratum_once_with_its_words_and_its_program(paper):
    text = errata.letter(paper)
    of_paper = [row for row in ERRATA if row["id"][0] == paper]
    flat = " ".join(text.split())
    for row in of_paper:
        is_long = row["class"] in errata.LONG
        start = rf"^{row['id']}\. " if is_long else rf"^- {row['id']}, "
        assert len(re.findall(start, text, re.MULTILINE)) == 1, row["id"]
        if is_long:
            assert " ".join(f'"{errata.plain(row["quote"])}"'.split()) in flat, row["id"]
            assert " ".join(errata.plain(row["right"]).split()) in flat, row["id"]
            for line in errata.counterexample(row["id"]).splitlines():
                assert f"    {line}".rstrip() in text.splitlines(), row["id"]
    assert "$" not in text
    assert "\\" not in text
    assert text.startswith("Subject: ")
    assert text.endswith("the authors of ibukit\n")
    prose = [line for line in text.splitlines()[1:] if not line.startswith("    ")]
    assert max(map(len, prose)) <= 100
    # errors come first, remarks last
    headings = [text.index(said) for said in errata.KINDS.values() if said in text]
    assert headings == sorted(headings)


def test_the_script_prints_the_letter_and_refuses_another_paper(capsys):
    assert errata.main(["--paper", "B"]) == 0
    assert capsys.readouterr().out == errata.letter("B")
    with pytest.raises(SystemExit):
        errata.main(["--paper", "F"])
    with pytest.raises(ValueError, match="paper must be one of A, B, C, D, E, got 'F'"):
        errata.letter("F")


def test_a_reply_stands_in_its_row(monkeypatch):
    with (ROOT / "data" / "replies.csv").open(encoding="utf8", newline="") as file:
        replies = list(csv.DictReader(file))
    assert {row["id"] for row in replies} <= {row["id"] for row in ERRATA}
    real = data.table
    reply = {"id": "B1", "date": "2026-11-30", "reply": "True for p* < 1 & not else."}
    rows = {"replies.csv": [*replies, reply]}
    monkeypatch.setattr(data, "table", lambda root, name: rows.get(name) or real(root, name))
    page = html.Page(data.in_the_books_order(ROOT), data.known(ROOT))
    shown = {entry.id: html.rows([entry], page) for entry in data.entries(ROOT, ("erratum",), {})}
    said = "<b>Reply of the authors:</b> True for p* &lt; 1 &amp; not else. (2026-11-30)"
    assert said in shown["B1"]
    assert sum("Reply of the authors" in text for text in shown.values()) == len(
        rows["replies.csv"]
    )
