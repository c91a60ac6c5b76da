"""Mechanisms on the command line:
matrices, files of parameters, and what `ibukit check` tells of them.
"""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.cli import main


def as_printed(numbers):
    """The numbers that a table of the command line has: twelve significant digits."""
    return [float(f"{number:.12g}") for number in numbers]


def write_reports(path, reports):
    path.write_text("\n".join(["value", *map(str, reports)]) + "\n")
    return str(path)


def test_a_matrix_may_carry_labels(tmp_path, capsys):
    matrix = [[0.9, 0.1], [0.3, 0.7]]
    (tmp_path / "bare.csv").write_text("0.9,0.1\n0.3,0.7\n")
    (tmp_path / "labels.csv").write_text(",no,yes\nno,0.9,0.1\nyes,0.3,0.7\n")
    np.save(tmp_path / "m.npy", matrix)
    file = write_reports(tmp_path / "reports.csv", ["no", "yes", "yes"])
    expected = as_printed(ik.mle(ik.MatrixMechanism(matrix).tally_counts([1, 2])).distribution)
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
    # The 2^50 reports are not listed, and the level has a closed form.
    assert main(["check", "rappor", "--k", "50", "--epsilon", "0.5"]) == 0
    assert "any two secrets: 0.5 nats" in capsys.readouterr().out
    assert main(["check", "rappor", "--k", "15000", "--epsilon", "0.5"]) == 0
    assert "reports: 2.82e+4515\n" in capsys.readouterr().out
    assert main(["check", "square-wave", "--k", "100000", "--epsilon", "0.5"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["check", "truncated-geometric", "--k", "5", "--epsilon", "0.5"]) == 0
    assert re.search(r"per .*: 0.5 nats", capsys.readouterr().out)


@pytest.mark.parametrize(
    "option", ["--epsilon", "--k", "--first", "--rows", "--cols", "--cell-size", "--bounds"]
)
def test_a_matrix_has_its_own_secrets_and_level(option, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.csv").write_text("0.9,0.1\n0.3,0.7\n")
    value = "0,0,1,1" if option == "--bounds" else "2"
    assert main(["check", "m.csv", option, value]) == 2
    assert f"{option} does not apply with --mechanism m.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.csv", "0.5,0.5\n0.5,x\n", ["line 2", "column 2", "'x'"]),
        ("m.csv", "0.5,0.5\n1\n", ["line 2", "2 numbers"]),
        ("m.csv", "0.5,0.4\n0.5,0.5\n", ["row 0"]),
        ("m.csv", "", ["empty"]),
        ("m.csv", ",a,a\na,1,0\nb,0,1\n", ["must all be different"]),
        ("m.csv", ",a,b\na,1\nb,0,1\n", ["line 2", "3 fields"]),
        ("m.csv", "a,b\n0.9,0.1\n0.2,0.8\n", ["m.csv", "'0.9'", "begin line 1 with an empty"]),
        ("m.csv", ",a,b\na;1,0\nb;0,1\n", ["line 2", "2"]),
        ("m.csv", "0.5;0.5\n0.4;0.6\n", ["line 1 of", "commas", "'0.5;0.5'"]),
        ("m.json", "{", ["m.json", "line 1"]),
        ("m.yaml", "a: [", ["m.yaml"]),
        ("m.json", '{"epsilon": 1}', ["mechanism"]),
        ("m.json", '{"mechanism": "k-rr", "epsilon": 1, "k": 3, "delta": 1}', ["delta", "epsilon"]),
        ("m.json", '{"mechanism": "frog", "epsilon": 1, "k": 3}', ["'frog'", "k-rr"]),
        ("m.json", '{"mechanism": "frog", "bits": 1, "k": 3}', ["'frog'", "k-rr"]),
        (
            "m.json",
            '{"mechanism": "warner", "epsilon": 1}',
            ["'warner'; reports of survey", "from_table"],
        ),
        ("m.yaml", "mechanism: k-rr\n1: 3\n", ["m.yaml must have texts", "got 1:"]),
        ("m.yaml", "mechanism: k-rr\non: 3\n", ["m.yaml must have texts", "got True:"]),
        ("m.yaml", "mechanism: k-rr\n2026-11-01: 3\n", ["m.yaml must have texts", "2026, 11"]),
        (
            "m.yaml",
            "mechanism: k-rr\ncell-size: 2\ncell_size: 3\n",
            ["each parameter once", "'cell-size', 'cell_size'"],
        ),
        ("m.yaml", b"mechanism: \xff\n", ["m.yaml must be text in UTF-8", "0xff"]),
        ("m.csv", "0.5,0.5\n" + "5" * 200_000, ["line 2 of", "m.csv cannot be read: field"]),
        ("m.csv", b"0.5,0.5\n\xff,0.5\n", ["m.csv must be text in UTF-8", "0xff"]),
        ("m.yaml", "mechanism: k-rr\nk: 3\nepsilon: 2026-11-01\n", ["number for epsilon"]),
        ("m.yaml", "mechanism: linear-gaussian\nk: 3\nsigma: [1]\n", ["sigma", "got [1]"]),
    ],
)
def test_bad_mechanisms_are_named(name, content, words, tmp_path, capsys):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["check", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert [word for word in words if word not in error] == []


@pytest.mark.parametrize("label", ["no", "2026-11-01", "null", "[a]"])
def test_labels_that_yaml_reads_as_something_else_are_refused(label, tmp_path, capsys):
    (tmp_path / "m.yaml").write_text(f"mechanism: k-rr\nepsilon: 1\nlabels: [a, {label}]\n")
    assert main(["check", str(tmp_path / "m.yaml")]) == 2
    assert "m.yaml must have texts or numbers for labels" in capsys.readouterr().err


# The third report, "U" for unknown, is none of the secrets. Of a test 5 of 100 are positive, whose
# sides are named 0 and 1: (.05 - .01) / (.85 - .01) are ill.
S_AND_B, ILL = {"S": 0.2, "B": 0.8}, {"ill": 1 / 21, "well": 20 / 21}


@pytest.mark.parametrize(
    ("matrix", "counts", "expected"),
    [
        (",S,B,U\nS,.9,.02,.08\nB,.05,.75,.2\n", "S,220\nB,604\nU,176\n", S_AND_B),
        (",B,U,S\nS,.02,.08,.9\nB,.75,.2,.05\n", "S,220\nB,604\nU,176\n", S_AND_B),
        (",0,1\nill,.85,.15\nwell,.01,.99\n", "0,5\n1,95\n", ILL),
        (",1,0\nill,.15,.85\nwell,.99,.01\n", "0,5\n1,95\n", ILL),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_matrix_names_its_reports(
    matrix, counts, expected, suffix, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text(matrix, encoding="utf-8")
    Path("c.csv").write_text("report,n\n" + counts, encoding="utf-8")
    # In Parquet whole numbers are numbers.
    pd.read_csv("c.csv").to_parquet("c.parquet")
    assert main(["estimate", f"c.{suffix}", "--mechanism", "m.csv", "--count-column", "n"]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out), index_col=0)["probability"]
    assert found.to_dict() == pytest.approx(expected, rel=1e-12)


def test_check_prints_a_level_per_unit_only_where_secrets_have_distances(tmp_path, capsys):
    (tmp_path / "classes.txt").write_text("private\npublic\nnone\n", "utf8")
    assert main(["check", "k-rr", "--labels", str(tmp_path / "classes.txt"), "--epsilon", "1"]) == 0
    assert "epsilon, per" not in capsys.readouterr().out
    assert main(["check", "truncated-geometric", "--k", "5", "--epsilon", "0.5"]) == 0
    assert "epsilon, per unit of distance: 0.5 nats" in capsys.readouterr().out


def test_on_a_line_check_tells_the_level_of_any_two_secrets_and_that_of_neighbours(capsys):
    options = ["--k", "74", "--epsilon", "0.5"]
    assert main(["check", "truncated-geometric", *options]) == 0
    shown = capsys.readouterr().out
    levels = re.findall(r"^epsilon, (.*?): (\S+) nats$", shown, re.MULTILINE)
    assert levels == [("for any two secrets", "36.5"), ("per unit of distance", "0.5")]
