"""The page *Try your own counts*: what it computes is what ibukit computes.

Its functions are run by node where there is one; `make browser` runs the page itself.
"""

import contextlib
import io
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import chdtrc

import check_try
import ibukit as ik
from try_cases import ANSWER, EMPTY, GOOD, HOSTILE, differences, edge_cases, random_cases, refused

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "try.md").read_text("utf8")
STATIC = ROOT / "book" / "_static"
SCRIPTS = re.findall(r'<script defer src="\.\./_static/(try-[\w-]+\.js)"></script>', PAGE)
TEXTS = {name: (STATIC / name).read_text("utf8") for name in SCRIPTS}
# the files that need no document
PURE = [name for name in SCRIPTS if name not in ("try-page.js", "try-picture.js")]
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node; `make browser` runs these")


def run(code, given, change=None):
    """What an expression in JavaScript gives for an argument, with one text changed."""
    source = "".join(TEXTS[name] for name in PURE)
    if change is not None:
        assert change[0] in source
        source = source.replace(*change)
    program = f"{source}\nconst given = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
    program += f"console.log(JSON.stringify(({code})(given)));"
    done = subprocess.run(
        [NODE, "-e", program], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@cache
def cases():
    return list(random_cases(24, seed=1))


def wrong(change=None):
    """The kinds of what differs from ibukit, over all cases."""
    answers = run(ANSWER, [case.form for case in cases()], change)
    found = [differences(case, answer) for case, answer in zip(cases(), answers, strict=True)]
    return [text for texts in found for text in texts]


@needs_node
def test_the_page_computes_what_ibukit_does():
    assert wrong() == []
    kinds = {(case.form["mechanism"], case.known["set"].unique) for case in cases()}
    assert kinds == {
        ("krr", True),
        ("cut", True),
        ("uncut", True),
        ("matrix", True),
        ("matrix", False),
    }


@needs_node
def test_the_page_computes_what_ibukit_does_at_the_edges():
    edges = list(edge_cases())
    answers = run(ANSWER, [case.form for case in edges])
    found = [differences(case, answer) for case, answer in zip(edges, answers, strict=True)]
    assert {i: texts for i, texts in enumerate(found) if texts} == {}


@needs_node
def test_reports_may_be_so_far_away_that_a_double_does_not_hold_their_probability():
    data = "-500, 3\n4, 2\n1000, 1"
    form = EMPTY | {"mechanism": "uncut", "epsilon": "36", "data": data}
    (answer,) = run(ANSWER, [form])
    mechanism = ik.LinearGeometric(ik.Line(0, 9), 36.0)
    best = ik.mle(mechanism.tally([-500] * 3 + [4] * 2 + [1000])).distribution
    np.testing.assert_allclose(answer["theta"], best, atol=1e-9)
    assert answer["gap"] < 1e-9
    assert np.isfinite(answer["intervals"]).all()


@needs_node
@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("Math.log1p(best.off)", "1e-8", "gap off"),
        ("MAX_STEPS = 200", "MAX_STEPS = 2", "estimate off"),
        ("2 / 2 / n", "2 / 2.00001 / n", "interval off"),
        ("share * g[x])", "share * g[x] ** 0.9)", "IBU off"),
        ("i, -1);", "i, 1);", "range off"),
        ("length === some.length", "length", "unique"),
    ],
)
def test_a_wrong_script_is_found(old, new, word):
    assert any(word in text for text in wrong((old, new)))


@needs_node
def test_hostile_forms_are_answered_by_one_sentence():
    answers = run(ANSWER, [GOOD | hostile.change for hostile in HOSTILE.values()])
    faults = [refused(name, answer) for name, answer in zip(HOSTILE, answers, strict=True)]
    assert [text for texts in faults for text in texts] == []
    assert refused("negative", {"theta": []}) == ["negative: not refused"]
    assert len(refused("negative", {"refusal": "No. What", "field": "labels"})) == 3


@needs_node
def test_the_printed_calls_run_and_give_the_same():
    forms = [case.form for case in cases()]
    # labels that need quotes, and an IBU of many steps
    forms.append(EMPTY | {"data": '"a ""b"" \\", 5\n"ü, 漢", 3\nNone, 2'})
    for form, answer in zip(forms, run(ANSWER, forms), strict=True):
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(answer["python"], names)
        assert max(map(len, answer["python"].splitlines())) <= 79 or form["mechanism"] == "matrix"
        assert names["estimate"].gap <= 1e-9
        assert "IBU" in printed.getvalue() or "ibu" in printed.getvalue()
        assert [str(label) for label in names["estimate"].alphabet.values] == answer["labels"]
        if answer["unique"]:
            best = ik.theory.mle_set(names["tally"]).estimate
            assert np.abs(best.distribution - answer["theta"]).max() < 1e-9
        assert ("every" in names) == (not answer["unique"])


READ = "texts => texts.map(text => globalThis.ibukitTry.read.counts(text))"


@needs_node
@pytest.mark.parametrize(
    "text",
    [
        "a, 5\nb, 3",
        "\ufeffvalue,count\r\na,5\r\nb,3\r\n",
        "a;5\nb;3",
        "a\t5\nb\t3",
        "a 5\nb 3",
        "a: 5\n\nb: 3",
        '"a", "5"\n"b", 3',
        "a, 5,\nb, 3.0,",
    ],
)
def test_counts_are_read_in_the_ways_that_people_write_them(text):
    (found,) = run(READ, [text])
    assert found == {"labels": ["a", "b"], "counts": [5, 3], "n": 8}


@needs_node
@pytest.mark.parametrize(
    "matrix",
    [
        "0.9, 0.1\n1/3, 2/3",
        "0.9 0.1\n1/3 2/3",
        "0,9; 0,1\n1/3; 2/3",
        "[[0.9, 0.1], [1/3, 2/3]]",
        ", yes, no\nx, 0.9, 0.1\ny, 1/3, 2/3",
        "yes, no\n0.9, 0.1\n1/3, 2/3",
        "no\tyes\n0.1\t0.9\n2/3\t1/3",
        "x, 0.9, 0.1\ny, 1/3, 2/3",
    ],
)
def test_matrices_are_read_in_the_ways_that_people_write_them(matrix):
    form = EMPTY | {"mechanism": "matrix", "matrix": matrix, "data": "yes, 6\nno, 4"}
    (answer,) = run(ANSWER, [form])
    mechanism = ik.MatrixMechanism([[0.9, 0.1], [1 / 3, 2 / 3]], reports=["yes", "no"])
    best = ik.mle(mechanism.tally_counts({"yes": 6, "no": 4}))
    np.testing.assert_allclose(answer["theta"], best.distribution, atol=1e-9)


@needs_node
def test_reports_are_counted_from_a_column_of_a_table():
    table = 'person,how,"age, years"\n1,bus,30\n2,"car",41\n3,bus,5\n'
    form = EMPTY | {"kind": "reports", "column": "1", "heading": True, "data": table}
    (answer,) = run(ANSWER, [form])
    mechanism = ik.RandomizedResponse(["bus", "car"], epsilon=1.0)
    best = ik.mle(mechanism.tally(["bus", "car", "bus"])).distribution
    np.testing.assert_allclose(answer["theta"], best, atol=1e-9)


@needs_node
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("bus, 5\ncar, 3", {"kind": "counts"}),
        ("how,n\nbus,5\ncar,3", {"kind": "counts"}),
        ("bus 5\nby car 3", {"kind": "counts"}),
        ("", {"kind": "counts"}),
        ("bus\ncar\nbus", {"kind": "reports", "column": "0", "heading": False}),
        ("how\ncar\nbus\nbus", {"kind": "reports", "column": "0", "heading": True}),
        ("no;how\n1;car\n2;bus\n3;car", {"kind": "reports", "column": "1", "heading": True}),
        ("1,car,x\n2,bus,x\n3,car,x\n4,bus,", {"kind": "reports", "column": "1", "heading": False}),
    ],
)
def test_what_is_loaded_says_what_its_lines_hold(text, wanted):
    assert run("text => globalThis.ibukitTry.read.guess(text)", text) == wanted


@needs_node
def test_reports_that_the_mechanism_cannot_make_are_told():
    form = EMPTY | {"data": "a, 412\nb, 201\nc, 87", "epsilon": "ln 3"}
    (answer,) = run(ANSWER, [form])
    estimate = ik.mle(ik.RandomizedResponse(list("abc"), np.log(3)).tally_counts([412, 201, 87]))
    assert answer["fit"] == pytest.approx(estimate.fit_test().p_value, rel=1e-9)
    assert answer["fit"] < 1e-3
    assert min(case.known["fit"] for case in cases() if case.known) > 1e-3
    tail = "cases => cases.map(([freedom, x]) => globalThis.ibukitTry.tail(freedom, x))"
    grid = [[freedom, x] for freedom in (1, 2, 5, 99, 999) for x in (0.1, 1, 30, 120, 1100)]
    np.testing.assert_allclose(run(tail, grid), [chdtrc(*each) for each in grid], atol=1e-12)


def test_every_script_is_loaded_and_none_asks_the_network():
    assert sorted(SCRIPTS) == sorted(path.name for path in STATIC.glob("try-*.js"))
    for name, text in TEXTS.items():
        assert len(text.splitlines()) <= 300, name
        words = re.findall(r"\bfetch\b|XMLHttpRequest|sendBeacon|WebSocket|\bimport\(", text)
        assert words == [], name
        assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/2000/svg"}, name
        assert "innerHTML" not in text, name


def test_the_form_has_what_the_script_asks_for():
    asked = re.search(r"const FIELDS = \[(.*?)\]", TEXTS["try-page.js"])[1]
    for name in json.loads(f"[{asked}]"):
        assert f' name="{name}"' in PAGE, name
    for name in set(re.findall(r'part\("([\w-]+)"\)', TEXTS["try-page.js"])):
        assert f'data-part="{name}"' in PAGE, name
    assert set(EMPTY) == set(json.loads(f"[{asked}]"))


def test_each_fault_of_the_browser_check_has_its_place():
    """A script that is rewritten must not leave `make browser` without its negative controls."""
    for name, (file, old, *_) in check_try.BROKEN.items():
        assert TEXTS[f"try-{file}.js"].count(old) == 1, name
