"""Mechanisms on the command line:
matrices, files of parameters, and what `ibukit check` tells of them.
"""

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.cli import main


def write_reports(path, reports):
    path.write_text("\n".join(["value", *map(str, reports)]) + "\n")
    return str(path)


def test_a_matrix_may_carry_labels(tmp_path, capsys):
    matrix = [[0.9, 0.1], [0.3, 0.7]]
    (tmp_path / "bare.csv").write_text("0.9,0.1\n0.3,0.7\n")
    (tmp_path / "labels.csv").write_text(",no,yes\nno,0.9,0.1\nyes,0.3,0.7\n")
    np.save(tmp_path / "m.npy", matrix)
    file = write_reports(tmp_path / "reports.csv", ["no", "yes", "yes"])
    expected = ik.mle(ik.MatrixMechanism(matrix).tally_counts([1, 2])).distribution.tolist()
    for name, more in {
        "bare.csv": ["--labels", "no,yes"],
        "m.npy": ["--labels", "no,yes"],
        "labels.csv": [],
    }.items():
        assert main(["estimate", file, "--mechanism", str(tmp_path / name), *more]) == 0
        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert [(row["label"], float(row["probability"])) for row in rows] == list(
            zip(["no", "yes"], expected, strict=True)
        )


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_parameters_may_stand_in_a_file(suffix, tmp_path, capsys):
    parameters = {
        "mechanism": "subset-selection",
        "epsilon": 1.5,
        "labels": ["a", "b", "c", "d"],
        "size": 2,
    }
    (tmp_path / f"m{suffix}").write_text(json.dumps(parameters))  # which is YAML, too
    file = write_reports(tmp_path / "r.csv", ["1100", "0110", "1010"])
    assert main(["estimate", file, "--mechanism", str(tmp_path / f"m{suffix}")]) == 0
    mechanism = ik.SubsetSelection(ik.Alphabet(["a", "b", "c", "d"]), 1.5, size=2)
    expected = ik.mle(mechanism.tally([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0]])).distribution
    shown = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert shown["probability"].to_numpy() == pytest.approx(expected)


def test_check_tells_levels_and_identifiability(tmp_path, capsys):
    (tmp_path / "m.csv").write_text("0.9,0.1\n0.3,0.7\n")
    (tmp_path / "blind.csv").write_text("0.5,0.5\n0.5,0.5\n")
    assert main(["check", str(tmp_path / "m.csv")]) == 0
    shown = capsys.readouterr().out
    assert f"any two secrets: {np.log(7):.6g} nats" in shown
    assert "identifiable: yes" in shown
    assert main(["check", str(tmp_path / "blind.csv")]) == 0
    assert "identifiable: no" in capsys.readouterr().out
    assert main(["check", "rappor", "--k", "50", "--epsilon", "0.5"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["check", "truncated-geometric", "--k", "5", "--epsilon", "0.5"]) == 0
    assert re.search(r"per .*: 0.5 nats", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.csv", "0.5,0.5\n0.5,x\n", ["line 2", "column 2", "'x'"]),
        ("m.csv", "0.5,0.5\n1\n", ["line 2", "2 numbers"]),
        ("m.csv", "0.5,0.4\n0.5,0.5\n", ["row 0"]),
        ("m.csv", "", ["empty"]),
        ("m.csv", ",b,a\na,1,0\nb,0,1\n", ["line 1", "name the reports"]),
        ("m.json", "{", ["m.json", "line 1"]),
        ("m.yaml", "a: [", ["m.yaml"]),
        ("m.json", '{"epsilon": 1}', ["mechanism"]),
        ("m.json", '{"mechanism": "k-rr", "epsilon": 1, "k": 3, "delta": 1}', ["delta", "epsilon"]),
        ("m.json", '{"mechanism": "frog", "epsilon": 1, "k": 3}', ["'frog'", "k-rr"]),
    ],
)
def test_bad_mechanisms_are_named(name, content, words, tmp_path, capsys):
    (tmp_path / name).write_text(content)
    assert main(["check", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert [word for word in words if word not in error] == []
