"""The scripts behind `make book` and `make notebooks`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import KernelManager

import build_book
import notebooks

v4 = nbformat.v4
PICTURE = {"image/png": "iVBORw0KGgo=", "text/plain": "<Thing at 0x7f3c2a>"}


@pytest.fixture
def notebook():
    """Two code cells as Jupyter leaves them:
    run out of order, with times, a picture and an address.
    """
    output = v4.new_output("execute_result", data=dict(PICTURE), execution_count=7)
    first = v4.new_code_cell(
        "1", execution_count=7, outputs=[output], metadata={"execution": {"t": "now"}}
    )
    ignored = {"tags": ["nbval-ignore-output"], "collapsed": False}
    second = v4.new_code_cell(
        "2", execution_count=9, outputs=[v4.new_output("stream", text="3 s")], metadata=ignored
    )
    return v4.new_notebook(
        cells=[v4.new_markdown_cell("# Title"), first, second], metadata={"widgets": {}}
    )


def test_canonical_form(notebook):
    cells = notebooks.canonical(notebook, "ages").cells
    assert [c["id"] for c in cells] == ["ages-00", "ages-01", "ages-02"]
    assert [c["execution_count"] for c in cells[1:]] == [1, 2]
    assert cells[1]["outputs"][0]["data"] == {"text/plain": "<Thing at 0x0>"}
    assert cells[1]["outputs"][0]["execution_count"] == 1
    assert cells[1]["metadata"] == {}
    assert cells[2]["outputs"] == []
    assert cells[2]["metadata"] == {"tags": ["nbval-ignore-output"]}
    assert notebook.metadata == notebooks.METADATA


def test_canonical_form_is_a_fixed_point(notebook):
    once = notebooks.dump(notebooks.canonical(notebook, "ages"))
    assert notebooks.dump(notebooks.canonical(nbformat.reads(once, 4), "ages")) == once


def test_check_sees_what_nbval_would_not(notebook, tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    path = tmp_path / "ages.ipynb"
    path.write_text(notebooks.dump(notebook), "utf8")
    assert "not in canonical form" in notebooks.check(path)
    path.write_text(notebooks.dump(notebooks.canonical(notebook, "ages")), "utf8")
    assert notebooks.check(path) is None
    notebook.cells[2]["execution_count"] = None
    path.write_text(notebooks.dump(notebooks.canonical(notebook, "ages")), "utf8")
    assert "cells [2] were never run" in notebooks.check(path)


def test_run_leaves_the_file_alone_when_a_cell_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    path = tmp_path / "wrong.ipynb"
    path.write_text(
        notebooks.dump(v4.new_notebook(cells=[v4.new_code_cell("assert 1 == 2")])), "utf8"
    )
    before = path.read_bytes()
    assert "AssertionError" in notebooks.run(path)
    assert path.read_bytes() == before


RUN = """
import sys
from pathlib import Path
import notebooks
notebooks.ROOT = Path(sys.argv[1])
print(notebooks.run(notebooks.ROOT / "right.ipynb"))
"""


def test_run_twice_gives_the_same_bytes_and_no_warning(tmp_path):
    path = tmp_path / "right.ipynb"
    path.write_text(
        notebooks.dump(v4.new_notebook(cells=[v4.new_code_cell("print(1)\nobject()")])), "utf8"
    )
    written = []
    for wanted in (f"rewrote {path.name}\nNone\n", "None\n"):
        # a process of its own, as what other tests left behind may complain at any time
        command = [sys.executable, "-c", RUN, str(tmp_path)]
        found = subprocess.run(
            command, cwd=Path(notebooks.__file__).parent, capture_output=True, text=True, check=True
        )
        assert found.stdout == wanted
        assert found.stderr == ""  # nobody has to act on what kernels warn of
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert notebooks.check(path) is None
    assert not list(tmp_path.rglob("history.sqlite"))


COMPLAIN = """
import logging, zmq
for number, words in ((zmq.ENOTSOCK, "at its end"), (zmq.ETERM, "in the midst")):
    try:
        raise zmq.ZMQError(number)
    except zmq.ZMQError:
        logging.getLogger("tornado.general").error(words, exc_info=True)
"""


def test_a_kernel_that_ends_complains_of_no_closed_socket(tmp_path):
    """That a thread of it still writes then is a matter of chance: here it says so itself;
    all else it says as ever.
    """
    (tmp_path / "right.ipynb").write_text(
        notebooks.dump(v4.new_notebook(cells=[v4.new_code_cell(COMPLAIN)])), "utf8"
    )
    run = (
        "import json, sys\nfrom pathlib import Path\nimport nbformat, notebooks\nnotebooks.ROOT ="
        " Path(sys.argv[1])\n"
    )
    run += (
        "book = notebooks.execute(nbformat.read(notebooks.ROOT / 'right.ipynb', 4),"
        " notebooks.ROOT)\n"
    )
    run += "print(json.dumps(book.cells[0].outputs))"
    command = [sys.executable, "-c", run, str(tmp_path)]
    found = subprocess.run(
        command, cwd=Path(notebooks.__file__).parent, capture_output=True, text=True, check=True
    )
    said = found.stdout + found.stderr
    assert "in the midst" in said
    assert "at its end" not in said


@pytest.mark.skipif(os.name == "nt", reason="Windows has ports only")
def test_kernels_take_no_port_that_another_may_have(tmp_path):
    """Those of the chapters' tests, which nbval starts in this process,
    and those that run and build the book.
    """
    assert {KernelManager().transport for _ in range(2)} == {"ipc"}
    assert KernelManager().ip != KernelManager().ip
    ask = (
        "from ipykernel.connect import"
        " get_connection_info\nprint(get_connection_info(unpack=True)['transport'])"
    )
    book = v4.new_notebook(cells=[v4.new_code_cell(ask)])
    assert notebooks.execute(book, tmp_path).cells[0].outputs[0].text == "ipc\n"


RACES = "benchmarks/results/races.csv"  # which a chapter shows


@pytest.fixture
def tree(tmp_path):
    ours = (
        "ibukit/a.py",
        "ibukit/__pycache__/a.pyc",
        "data/t.csv",
        "book/chapters/ages.ipynb",
        "book/_templates/layout.html",
        "_toc.yml",
        RACES,
    )
    for name in ours:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "ibukit/a.py",
        "ibukit/new.py",
        "data/t.csv",
        "book/_templates/layout.html",
        "_toc.yml",
        RACES,
    ],
)
def test_the_package_the_data_and_the_configuration_are_part_of_the_fingerprint(tree, name):
    before = build_book.fingerprint(tree)
    (tree / name).write_text("2")
    assert build_book.fingerprint(tree) != before


def test_a_file_that_goes_changes_the_fingerprint(tree):
    before = build_book.fingerprint(tree)
    (tree / "data/t.csv").unlink()
    assert build_book.fingerprint(tree) != before


def test_clearing_leaves_what_the_benchmarks_made(tree):
    (tree / "bench").mkdir()
    (tree / "bench/kept.npy").write_text("1")
    build_book.clear(tree)
    assert [path.name for path in tree.rglob("*")] == ["bench", "kept.npy"]


@pytest.mark.parametrize("name", ["ibukit/__pycache__/a.pyc", "book/chapters/ages.ipynb"])
def test_caches_and_chapters_are_not(tree, name):
    before = build_book.fingerprint(tree)
    (tree / name).write_text("2")
    assert build_book.fingerprint(tree) == before


def test_chapters_are_run_ahead_once_and_those_that_raise_are_named(tmp_path):
    sources = {
        "right": "import pathlib; pathlib.Path('ran').open('a').write('x')",
        "wrong": "assert 1 == 2",
    }
    for name, source in sources.items():
        notebook = v4.new_notebook(
            cells=[v4.new_code_cell(source)], metadata=dict(notebooks.METADATA)
        )
        (tmp_path / f"{name}.ipynb").write_text(notebooks.dump(notebook), "utf8")
    paths = [tmp_path / f"{name}.ipynb" for name in sources]
    for _ in range(2):  # the second time there is nothing to do but the chapter that raised
        assert build_book.run_all_ahead(2, paths, tmp_path / "cache") == [tmp_path / "wrong.ipynb"]
        assert (tmp_path / "ran").read_text() == "x"
