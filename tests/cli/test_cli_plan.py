"""``ibukit plan``: the library's numbers, one a line, and errors in one line on standard error."""

from dataclasses import replace

import numpy as np
import pytest

import ibukit as ik
from ibukit.cli import main

LABELS = ["bike", "bus", "car"]
K_RR = ["plan", "k-rr", "--labels", ",".join(LABELS), "--epsilon", "2"]


def facts(printed):
    return dict(line.split(": ", 1) for line in printed.splitlines())


def test_it_says_what_the_library_says(capsys):
    assert main([*K_RR, "--width", "0.02", "--level", "0.9"]) == 0
    plan = ik.plan(ik.RandomizedResponse(LABELS, 2.0), width=0.02, level=0.9)
    printed = facts(capsys.readouterr().out)
    assert printed["secrets"] == "3"
    assert printed["width"] == "0.02, at level 0.9"
    assert printed["reports needed"] == f"{plan.n}, whatever the distribution"
    assert printed["least certain"] == f"bike where its probability is {plan.distribution[0]:.4g}"
    error = printed["root mean square error of maximum likelihood, all secrets together"]
    assert error == f"{plan.error(plan.n):.4g}"


def test_it_says_how_many_reports_may_be_too_many(monkeypatch, capsys):
    plan = ik.plan(ik.RandomizedResponse(LABELS, 2.0))
    for gap, lines in ((0.0123, 1), (0.0, 0)):
        found = replace(plan, gap=gap)
        monkeypatch.setattr("ibukit.cli.plan.plan", lambda *_, found=found, **__: found)
        assert main(K_RR) == 0
        assert capsys.readouterr().out.count("of these at most 1.23% too many") == lines


@pytest.mark.parametrize(
    "text",
    [
        "answer,count\nbus,20\nbike,30\n",
        "answer,anything\nbike,0.6\nbus,0.4\ncar,0\n",
        # as `ibukit estimate --interval` writes it
        "value,probability,lower,upper\nbike,0.6,0.5,0.7\nbus,0.4,0.3,0.5\ncar,0.0,0.0,0.1\n",
    ],
)
def test_near_counts_or_probabilities_by_label(text, tmp_path, capsys):
    (tmp_path / "near.csv").write_text(text)
    assert main([*K_RR, "--near", str(tmp_path / "near.csv"), "--of", "bus, car"]) == 0
    plan = ik.plan(ik.RandomizedResponse(LABELS, 2.0), of=[0, 1, 1], near=[0.6, 0.4, 0])
    assert facts(capsys.readouterr().out)["reports needed"].startswith(
        f"{plan.n}, near the distribution in "
    )


@pytest.mark.parametrize("groups", [1, 2])
def test_tests_of_a_difference(groups, capsys):
    options = ["--difference", "0.05", "--power", "0.9", "--groups", str(groups)]
    assert main([*K_RR, *options]) == 0
    plan = ik.plan(ik.RandomizedResponse(LABELS, 2.0), difference=0.05, power=0.9, groups=groups)
    printed = facts(capsys.readouterr().out)
    assert printed["difference"] == "0.05, found with probability 0.9"
    where = "in each of two groups" if groups == 2 else "in one group"
    assert printed["reports needed"] == f"{plan.n} {where}, whatever the distribution"


def test_whole_numbers_and_cells(tmp_path, capsys):
    (tmp_path / "ages.csv").write_text("age,count\n18,5\n17,15\n")
    options = ["--first", "17", "--k", "3", "--epsilon", "1", "--near", str(tmp_path / "ages.csv")]
    assert main(["plan", "truncated-geometric", *options, "--of", "17,18"]) == 0
    plan = ik.plan(ik.TruncatedGeometric(ik.Line(17, 19), 1.0), of=[1, 1, 0], near=[0.75, 0.25, 0])
    assert facts(capsys.readouterr().out)["reports needed"].startswith(f"{plan.n},")
    (tmp_path / "cells.csv").write_text("row,col,count\n1,0,5\n0,1,15\n")
    options = [
        "--rows",
        "2",
        "--cols",
        "2",
        "--epsilon",
        "1",
        "--near",
        str(tmp_path / "cells.csv"),
    ]
    assert main(["plan", "planar-laplace", *options]) == 0
    plan = ik.plan(ik.PlanarLaplace(ik.Grid(2, 2), 1.0), near=[0, 0.75, 0.25, 0])
    assert facts(capsys.readouterr().out)["reports needed"].startswith(f"{plan.n},")


def test_what_does_not_apply_is_said(tmp_path, capsys):
    np.save(tmp_path / "merged.npy", [[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]])
    assert main(["plan", str(tmp_path / "merged.npy"), "--of", "1,2", "--width", "0.1"]) == 0
    printed = facts(capsys.readouterr().out)
    assert (
        printed["root mean square error of maximum likelihood, all secrets together"]
        == "does not apply"
    )


BAD = {
    "a width of 0": (["--width", "0"], None, ["width must be a finite number above 0"]),
    "a width that excludes nothing": (["--width", "2"], None, ["width must be below 2"]),
    "percent": (["--level", "95"], None, ["level"]),
    "an unknown label": (["--of", "bus,train"], None, ["--of", "'train'"]),
    "all of them": (["--of", "bus,bike,car"], None, ["of must depend"]),
    "no such file": (["--near", "no.csv"], None, ["no.csv"]),
    "nothing near": ([], "", ["near.csv must have a line of column names"]),
    "one column": ([], "bike\nbus\n", ["near.csv must have"]),
    "another label": ([], "a,n\nbike,1\ntrain,2\n", ["line 3 of", "'train'"]),
    "a label twice": ([], "a,n\nbike,1\nbike,2\n", ["line 3 of", "twice"]),
    "no number": ([], "a,n\nbike,x\n", ["line 2 of", "'x'"]),
    "a negative count": ([], "a,n\nbike,-1\n", ["line 2 of", "'-1'"]),
    "too many fields": ([], "a,n\nbike,1,2\n", ["line 2 of", "2 fields"]),
    "nobody": ([], "a,n\nbike,0\n", ["not all zero"]),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line(what, tmp_path, capsys, monkeypatch):
    options, text, words = BAD[what]
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "near.csv").write_text(text)
        options = ["--near", "near.csv"]
    assert main([*K_RR, *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ibukit: ")
    assert printed.err.count("\n") == 1
    assert [word for word in words if word not in printed.err] == []


def test_a_word_for_a_width_is_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        main([*K_RR, "--width", "wide"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
