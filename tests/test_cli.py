"""The command line: the same numbers as the library, exit codes, and errors in one line on standard error."""

import csv
import subprocess
import sys

import numpy as np
import pytest

import ibukit as ik
from ibukit.cli import MECHANISMS, main


def write_reports(path, reports, column="value"):
    path.write_text("\n".join([column, *map(str, reports)]) + "\n")
    return str(path)


def read_distribution(path):
    with open(path, newline="") as file:
        return {int(row["value"]): float(row["probability"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("name", MECHANISMS)
def test_estimates_as_the_library_does(name, tmp_path, capsys):
    line = ik.Line(17, 31)
    mechanism = MECHANISMS[name](line, 1.0)
    reports = mechanism.draw(np.repeat([2, 5, 11], 200), np.random.default_rng(5))
    shift = 0 if name == "geometric" else 17
    file = write_reports(tmp_path / "reports.csv", reports + shift)
    out = tmp_path / "out.csv"
    options = ["--mechanism", name, "--epsilon", "1", "--k", "15", "--first", "17", "--out", str(out)]
    assert main(["estimate", file, *options]) == 0
    expected = ik.ibu(mechanism.tally(reports, codes=True)).distribution
    assert read_distribution(out) == dict(zip(line.values.tolist(), expected.tolist(), strict=True))
    assert "gap=" in capsys.readouterr().err


@pytest.mark.parametrize("estimator", ["ibu", "mle", "inv-n", "inv-p"])
def test_every_estimator_writes_a_distribution(estimator, tmp_path, capsys):
    file = write_reports(tmp_path / "reports.csv", [0, 1, 1, 2, 2, 2])
    assert main(["estimate", file, "--mechanism", "k-rr", "--epsilon", "2", "--k", "4", "--estimator", estimator]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert sum(float(row["probability"]) for row in rows) == pytest.approx(1)
    assert len(rows) == 4


def test_steps_stop_early(tmp_path, capsys):
    file = write_reports(tmp_path / "reports.csv", [0, 1, 1])
    assert main(["estimate", file, "--mechanism", "k-rr", "--epsilon", "1", "--k", "3", "--steps", "7"]) == 0
    assert "n_iter=7" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("value\n1\n", ["--epsilon", "-2", "--k", "3"], "epsilon"),
        ("value\n1\n", ["--epsilon", "nan", "--k", "3"], "epsilon"),
        ("value\n7\n", ["--epsilon", "2", "--k", "3"], "7"),
        ("value\nfrog\n", ["--epsilon", "2", "--k", "3"], "line 2"),
        ("value\n1.5\n", ["--epsilon", "2", "--k", "3"], "1.5"),
        ("value\n", ["--epsilon", "2", "--k", "3"], "empty"),
        ("", ["--epsilon", "2", "--k", "3"], "--column"),
        ("a,b\n1,2\n", ["--epsilon", "2", "--k", "3"], "--column"),
        ("a,b\n1,2\n", ["--epsilon", "2", "--k", "3", "--column", "c"], "'c'"),
    ],
)
def test_bad_input_is_one_line_on_standard_error(text, options, message, tmp_path, capsys):
    file = tmp_path / "reports.csv"
    file.write_text(text)
    assert main(["estimate", str(file), "--mechanism", "k-rr", *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ibukit: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err


def test_a_column_is_chosen_by_name(tmp_path, capsys):
    file = tmp_path / "reports.csv"
    file.write_text("user,value\n10,1\n11,1\n12,0\n")
    assert main(["estimate", str(file), "--mechanism", "k-rr", "--epsilon", "2", "--k", "2", "--column", "value"]) == 0


def test_the_installed_command_runs(tmp_path):
    file = write_reports(tmp_path / "reports.csv", [0, 1, 1])
    command = [sys.executable, "-c", "import sys; from ibukit.cli import main; sys.exit(main())"]
    options = ["estimate", file, "--mechanism", "k-rr", "--epsilon", "2", "--k", "3"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("value,probability\n")
