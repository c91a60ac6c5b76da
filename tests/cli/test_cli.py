"""The command line: the same numbers as the library, exit codes,
and errors in one line on standard error.
"""

import csv
import gzip
import io
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.cli import main
from ibukit.cli.arguments import EXAMPLES
from ibukit.cli.models import named_mechanisms
from ibukit.cli.output import write

LINE = [
    "truncated-geometric",
    "linear-geometric",
    "linear-laplace",
    "exponential",
    "tight-constraints",
]
BITS = ["rappor", "optimized-unary-encoding", "subset-selection"]
PLANE = ["planar-geometric", "truncated-planar-geometric", "planar-laplace"]
OLD = {"k-rr": "randomized-response", "geometric": "linear-geometric", "laplace": "linear-laplace"}
K_RR = ["--mechanism", "k-rr", "--epsilon", "2"]


def write_reports(path, reports, column="value"):
    path.write_text("\n".join([column, *map(str, reports)]) + "\n")
    return str(path)


def read_distribution(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {row["label"]: float(row["probability"]) for row in csv.DictReader(file)}


def as_printed(numbers):
    """The numbers that a table of the command line has: twelve significant digits."""
    return [float(f"{number:.12g}") for number in numbers]


def test_every_mechanism_of_an_alphabet_and_an_epsilon_has_a_name():
    names = named_mechanisms()
    assert {*LINE, *BITS, *PLANE, "randomized-response"} <= set(names)
    assert all(names[old] is names[new] for old, new in OLD.items())
    assert "matrix-mechanism" not in names


@pytest.mark.parametrize("name", [*LINE, "randomized-response", *OLD])
def test_estimates_as_the_library_does(name, tmp_path, capsys):
    line = ik.Line(17, 31)
    mechanism = named_mechanisms()[name](line, 1.0)
    tally = mechanism.tally(
        mechanism.randomize(np.repeat([19, 22, 28], 200), np.random.default_rng(5))
    )
    reports = np.repeat(mechanism.label_reports(tally.parts[0].reports), tally.counts)
    file = write_reports(tmp_path / "reports.csv", reports)
    out = tmp_path / "out.csv"
    options = [
        "--mechanism",
        name,
        "--epsilon",
        "1",
        "--k",
        "15",
        "--first",
        "17",
        "--out",
        str(out),
    ]
    assert main(["estimate", file, *options]) == 0
    expected = ik.mle(tally).distribution
    assert read_distribution(out) == dict(
        zip(map(str, line.values), expected.tolist(), strict=True)
    )
    assert "gap=" in capsys.readouterr().err


@pytest.mark.parametrize("name", BITS)
def test_bits_are_texts_or_columns(name, tmp_path, capsys):
    mechanism = named_mechanisms()[name](ik.Alphabet(["a", "b", "c"]), 1.0)
    rows = mechanism.randomize(["a", "b", "b", "c"] * 20, np.random.default_rng(6))
    expected = as_printed(ik.mle(mechanism.tally(rows)).distribution)
    (tmp_path / "texts.csv").write_text(
        "\n".join(["bits", *("".join(map(str, row)) for row in rows.tolist())]) + "\n"
    )
    pd.DataFrame(rows, columns=["x", "y", "z"]).to_csv(tmp_path / "columns.csv", index=False)
    options = ["--mechanism", name, "--epsilon", "1", "--labels", "a,b,c"]
    columns = ["--column", "x", "--column", "y", "--column", "z"]
    for file, chosen in (("texts.csv", []), ("columns.csv", columns)):
        assert main(["estimate", str(tmp_path / file), *options, *chosen]) == 0
        shown = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert [float(row["probability"]) for row in shown] == expected


@pytest.mark.parametrize("name", PLANE)
def test_places_are_cells_or_coordinates(name, tmp_path):
    grid = ik.Grid(3, 4)
    mechanism = named_mechanisms()[name](grid, 1.0)
    reports = mechanism.randomize([(0, 0), (1, 1), (1, 1), (2, 3)] * 25, np.random.default_rng(7))
    pd.DataFrame(reports, columns=["row", "col"]).to_csv(tmp_path / "cells.csv", index=False)
    options = [
        "--mechanism",
        name,
        "--epsilon",
        "1",
        "--rows",
        "3",
        "--cols",
        "4",
        "--column",
        "row",
        "--column",
        "col",
    ]
    assert (
        main(
            ["estimate", str(tmp_path / "cells.csv"), *options, "--out", str(tmp_path / "out.csv")]
        )
        == 0
    )
    rows = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    assert [float(row["probability"]) for row in rows] == ik.mle(
        mechanism.tally(reports)
    ).distribution.tolist()


def test_coordinates_become_a_map(tmp_path):
    box = (40.0, 40.2, -74.0, -73.8)
    grid = ik.Grid.from_bounds(*box, 2, 2)
    (tmp_path / "places.csv").write_text(
        "lat,lon\n40.05,-73.95\n40.15,-73.95\n40.15,-73.85\n50,-73.9\n"
    )
    out = tmp_path / "map.geojson"
    options = [
        "--mechanism",
        "planar-laplace",
        "--epsilon",
        "0.5",
        "--rows",
        "2",
        "--cols",
        "2",
        "--bounds=40,40.2,-74,-73.8",
    ]
    options += ["--column", "lat", "--column", "lon", "--unknown", "drop", "--out", str(out)]
    assert main(["estimate", str(tmp_path / "places.csv"), *options]) == 0
    expected = ik.mle(ik.PlanarLaplace(grid, 0.5).tally([0, 2, 3], codes=True)).distribution
    frame = geopandas.read_file(out)
    assert frame["probability"].tolist() == pytest.approx(expected.tolist())
    assert frame.total_bounds.tolist() == pytest.approx([-74.0, 40.0, -73.8, 40.2])


@pytest.mark.parametrize("estimator", ["ibu", "mle", "inv-n", "inv-p", "inv"])
def test_every_estimator_writes_a_distribution(estimator, tmp_path, capsys):
    file = write_reports(tmp_path / "reports.csv", [0, 1, 1, 2, 2, 2])
    assert main(["estimate", file, *K_RR, "--k", "4", "--estimator", estimator]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert sum(float(row["probability"]) for row in rows) == pytest.approx(1)
    assert len(rows) == 4


def test_steps_stop_early(tmp_path, capsys):
    file = write_reports(tmp_path / "reports.csv", [0, 1, 1])
    assert (
        main(
            ["estimate", file, "--mechanism", "k-rr", "--epsilon", "1", "--k", "3", "--steps", "7"]
        )
        == 0
    )
    assert "n_iter=7" in capsys.readouterr().err


def test_labels_epsilons_counts_and_intervals_at_once(tmp_path, capsys):
    (tmp_path / "r.csv").write_text(
        'who,answer,eps,n\n1,"a, or b",1,30\n2,c,1,50\n3,c,2.0,20\n4,?,2.0,7\n5,,2.0,1\n'
    )
    (tmp_path / "labels.txt").write_text("a, or b\nc\n")
    options = [
        "--mechanism",
        "k-rr",
        "--labels",
        str(tmp_path / "labels.txt"),
        "--epsilon-column",
        "eps",
    ]
    options += [
        "--column",
        "answer",
        "--count-column",
        "n",
        "--interval",
        "0.9",
        "--unknown",
        "drop",
        "--missing",
        "drop",
    ]
    out = tmp_path / "out.json"
    assert main(["estimate", str(tmp_path / "r.csv"), *options, "--out", str(out)]) == 0
    alphabet = ik.Alphabet(["a, or b", "c"])
    tally = ik.RandomizedResponse(alphabet, 1.0).tally_counts([30, 50])
    expected = ik.mle(tally + ik.RandomizedResponse(alphabet, 2.0).tally_counts([0, 20]))
    document = json.loads(out.read_text())
    assert document["labels"] == ["a, or b", "c"]
    assert document["probabilities"] == pytest.approx(expected.distribution)
    assert pytest.approx(np.array(expected.interval(0.9))) == [document["lower"], document["upper"]]
    assert document["identified"] == [True, True]
    assert (document["n"], document["dropped"]) == (100, {"missing": 1, "unknown": 7})
    assert "dropped: 1 missing, 7 unknown" in capsys.readouterr().err


def test_input_may_be_zipped_piped_parquet_or_without_a_header(tmp_path, capsysbinary, monkeypatch):
    text = b"value\n0\n1\n1\n"
    (tmp_path / "a.csv").write_bytes(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    (tmp_path / "bare.csv").write_bytes(b"0\n1\n1\n")
    (tmp_path / "a.tsv").write_bytes(b"who\tvalue\nx\t0\ny\t1\nz\t1\n")
    (tmp_path / "semicolons.csv").write_bytes(b"who;value\nx;0\ny;1\nz;1\n")
    pd.DataFrame({"value": [0, 1, 1]}).to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text)), encoding="utf-8")
    )
    outputs = []
    for name, more in {
        "a.csv": [],
        "a.csv.gz": [],
        "bom.csv": [],
        "bare.csv": [],
        "a.tsv": ["--column", "value"],
        "semicolons.csv": ["--column", "value", "--delimiter", ";"],
        "a.parquet": [],
        "-": [],
    }.items():
        file = name if name == "-" else str(tmp_path / name)
        assert main(["estimate", file, *K_RR, "--k", "2", *more]) == 0, name
        outputs.append(capsysbinary.readouterr().out)
    assert len(set(outputs)) == 1
    assert outputs[0].startswith(b"label,probability\n0,")


E = ["--epsilon", "2"]
K3 = [*E, "--k", "3"]
AB = [*E, "--labels", "a,b"]
BAD = {
    "a negative epsilon": ("value\n1\n", ["--epsilon", "-2", "--k", "3"], ["epsilon"]),
    "no number for epsilon": ("value\n1\n", ["--epsilon", "nan", "--k", "3"], ["epsilon"]),
    "outside the line": ("value\n1\n7\n", K3, ["line 3 of", "'value'", "'7'", "Line(0, 2)"]),
    "no number": ("value\nfrog\n", K3, ["line 2 of", "'frog'"]),
    "a half": ("value\n1.5\n", K3, ["line 2 of", "1.5"]),
    "no report": ("value\n", K3, ["at least one report"]),
    "nothing at all": ("", K3, ["empty"]),
    "two columns": ("a,b\n1,2\n", K3, ["--column", "['a', 'b']"]),
    "no such column": ("a,b\n1,2\n", [*K3, "--column", "c"], ["'c'", "'a', 'b'"]),
    "the only name twice": ("a,a\n1,2\n", K3, ["one column 'a', but has 2: give each"]),
    "a column twice": ("a,a\n1,2\n", [*K3, "--column", "a"], ["one column 'a'"]),
    "a blank line": ("value\n1\n\n2\n", K3, ["line 3 of", "missing", "--missing drop"]),
    "a blank line after a quoted line break": (
        'a,value\n"x\ny",1\nz,\n',
        [*K3, "--column", "value"],
        ["line 4 of"],
    ),
    "too many fields": ("value\n1\n2,3\n", K3, ["line 3 of", "1 field"]),
    "too many fields from the first": (
        "a,value\n1,2,3\n",
        [*K3, "--column", "value"],
        ["line 2 of", "2 field"],
    ),
    "an unknown label": ("value\na\nc\n", AB, ["line 3 of", "'c'", "'a', 'b'", "--unknown drop"]),
    "a bad count": ("v,n\na,1\na,x\n", [*AB, "--count-column", "n"], ["line 3 of", "'n'", "'x'"]),
    "a negative count": (
        "v,n\na,1\na,-4\n",
        [*AB, "--count-column", "n"],
        ["line 3 of", "'n'", "-4"],
    ),
    "a bad epsilon": (
        "v,e\na,1\na,0\n",
        ["--labels", "a,b", "--epsilon-column", "e"],
        ["line 3 of", "'e'", "'0'"],
    ),
    "epsilon twice": ("v,e\na,1\n", [*AB, "--epsilon-column", "e"], ["--epsilon does not apply"]),
    "no epsilon": ("value\n1\n", ["--k", "3"], ["--epsilon"]),
    "no alphabet": ("value\n1\n", E, ["--labels", "--k"]),
    "two alphabets": ("value\n1\n", [*AB, "--k", "3"], ["--k does not apply with --labels"]),
    "a grid by halves": ("value\n1\n", [*E, "--rows", "3"], ["--rows and --cols"]),
    "cells of no size": (
        "value\n1\n",
        [*E, "--rows", "2", "--cols", "2", "--cell-size", "0"],
        ["cell_size", "got 0"],
    ),
    "cells of no size between bounds": (
        "value\n1\n",
        [*E, "--rows", "2", "--cols", "2", "--cell-size", "0", "--bounds=1,2,3,4"],
        ["cell_size", "got 0"],
    ),
    "what no line is to blame for": (
        "value\n1\n",
        [*K3, "--unknown", "nearest"],
        ["ibukit: unknown must not be 'nearest'"],
    ),
    "a count that is none": (
        "v,n\na,1\na,1.5\n",
        [*AB, "--count-column", "n"],
        ["line 3 of", "whole numbers from 0 on, but it contains 1.5\n"],
    ),
    "bounds in another order": (
        "value\n1\n",
        [*E, "--rows", "2", "--cols", "2", "--bounds=2,48,3,49"],
        ["--bounds=48.0,49.0,2.0,3.0. If"],
    ),
    "nothing between columns": ("value\n1\n", [*K3, "--delimiter", ""], ["delimiter", "''"]),
    "bounds without a grid": ("value\n1\n", [*K3, "--bounds=1,2,3,4"], ["--bounds does not apply"]),
    "fewer than no secrets": ("value\n1\n", [*E, "--k", "-3"], ["--k", "-3"]),
    "steps of no iteration": (
        "value\n1\n",
        [*K3, "--steps", "3", "--estimator", "mle"],
        ["--steps does not apply"],
    ),
    "a level in percent": ("value\n1\n", [*K3, "--interval", "95"], ["--interval", "95"]),
    "an interval of no likelihood": (
        "value\n1\n",
        [*K3, "--interval", ".9", "--estimator", "inv"],
        ["--interval"],
    ),
    "another format": ("value\n1\n", [*K3, "--out", "x.txt"], ["--out", ".geojson"]),
    "no such folder": ("value\n1\n", [*K3, "--out", "no/such/x.csv"], ["--out", "no/such"]),
    "semicolons": ("who;value\nx;0\n", K3, ["'who;value'", "--delimiter ';'", "sep=';'"]),
    "semicolons and no row": ("who;value\n", K3, ["--delimiter ';'"]),
    "tabs": ("who\tvalue\nx\t0\n", K3, ["--delimiter '\\t'"]),
    "no map": ("value\n1\n", [*K3, "--out", "x.geojson"], ["GeoJSON", "--bounds"]),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line_on_standard_error(what, tmp_path, capsys, monkeypatch):
    text, options, words = BAD[what]
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "reports.csv"
    file.write_text(text)
    assert main(["estimate", str(file), "--mechanism", "k-rr", *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ibukit: ")
    assert printed.err.count("\n") == 1
    assert [word for word in words if word not in printed.err] == []


@pytest.mark.parametrize("rows", [[*range(3)] * 200_000 + [9], [9]])
def test_the_line_is_found_wherever_it_is(rows, tmp_path, capsys):
    file = write_reports(tmp_path / "reports.csv", rows)
    assert main(["estimate", file, *K_RR, "--k", "3"]) == 2
    assert f"line {len(rows) + 1} of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"value\n1\n\xff\n", ["line 3 of", "UTF-8", "0xff"]),
        (gzip.compress(b"value\n1\n2\n" * 1000, mtime=0)[:-20], ["line", "unzipped"]),
        (gzip.compress(b"value\n1\n", mtime=0)[:-8] + b"12345678", ["unzipped", "CRC"]),
    ],
    ids=["encoding", "cut", "checksum"],
)
def test_damaged_files_say_where(content, words, tmp_path, capsys):
    (tmp_path / "reports.csv").write_bytes(content)
    assert main(["estimate", str(tmp_path / "reports.csv"), *K_RR, "--k", "3"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert [word for word in [*words, "reports.csv"] if word not in error] == []


@pytest.mark.parametrize(
    "arguments", [["estimate"], [], ["plan"], ["estimate", "x", "--mechanism", "k-rr", "--k", "x"]]
)
def test_a_wrong_command_is_one_line(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_numbers_have_the_digits_that_are_certain(tmp_path, capsys):
    (tmp_path / "m.csv").write_text(",S,B,U\nS,0.9,0.02,0.08\nB,0.05,0.75,0.2\n")
    (tmp_path / "c.csv").write_text("report,n\nS,220\nB,604\nU,176\n")
    options = ["--mechanism", str(tmp_path / "m.csv"), "--count-column", "n"]
    assert main(["estimate", str(tmp_path / "c.csv"), *options]) == 0
    assert "\nS,0.2\nB,0.8\n" in capsys.readouterr().out
    # Labels are no computed numbers, and keep all their digits.
    labels = [0.12345678901234567, 3.5]
    estimate = ik.mle(ik.MatrixMechanism(np.eye(2), labels).tally_counts([1, 2]))
    write(estimate, None, None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [f"{labels[0]!r},0.333333333333", "3.5,0.666666666667"]


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "ibukit", *arguments], capture_output=True, text=True, **options
    )


def test_the_installed_command_runs(tmp_path):
    file = write_reports(tmp_path / "reports.csv", [0, 1, 1])
    done = run("estimate", file, *K_RR, "--k", "3", check=True)
    assert done.stdout.startswith("label,probability\n")
    assert done.stderr.count("\n") == 1, "no progress bar where nobody looks"
    assert run("--version", check=True).stdout == f"ibukit {ik.__version__}\n"


def test_an_interrupt_ends_quietly():
    process = subprocess.Popen(
        [sys.executable, "-m", "ibukit", "estimate", "-", *K_RR, "--k", "3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b"value\n1\n")
    process.stdin.flush()
    stack = Path(f"/proc/{process.pid}/wchan")
    deadline = time.monotonic() + 120
    while (
        stack.exists()
        and "pipe" not in stack.read_text(encoding="utf-8")
        and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, b"", b"")


def commands(text):
    """The commands that a text shows, as lists of words, and what stands after <."""
    for line in re.findall(r"^ *ibukit ((?:estimate|check|plan) .*)$", text, re.MULTILINE):
        words, _, piped = line.partition(" < ")
        yield words.split(), piped


README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf8")


@pytest.mark.parametrize("text", [EXAMPLES, README], ids=["--help", "README"])
def test_commands_run_as_they_are_printed(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    reports = pd.DataFrame(
        {"report": ["bike", "bus", "car", "train", "car"], "eps": [1.0, 1.0, 2.0, 2.0, 2.0]}
    )
    reports.to_csv("reports-eps.csv", index=False)
    reports[["report"]].to_csv("reports.csv", index=False)
    pd.DataFrame({"age": [20, 35, 35, 60]}).to_csv("ages.csv.gz", index=False)
    matrix = 0.6 * np.eye(4) + 0.1
    pd.DataFrame(matrix, reports["report"][:4], reports["report"][:4]).to_csv("matrix.csv")
    Path("counts.csv").write_text("answer,count\nbike,20\nbus,30\ncar,50\n", encoding="utf-8")
    Path("mechanism.json").write_text(
        json.dumps({"mechanism": "k-rr", "epsilon": 2, "labels": "bike,bus,car,train"}),
        encoding="utf-8",
    )
    shown = list(commands(text))
    assert shown
    for words, piped in shown:
        if piped:
            monkeypatch.setattr(
                sys,
                "stdin",
                io.TextIOWrapper(io.BytesIO(Path(piped).read_bytes()), encoding="utf-8"),
            )
        assert main(words) == 0, (words, capsys.readouterr().err)


def test_missing_and_unknown_reports_are_dropped_apart(tmp_path, capsys):
    command = ["estimate", str(tmp_path / "reports.csv"), "--mechanism", "k-rr", "--labels", "a,b"]
    command += ["--epsilon", "1"]
    for row, word, other in ((",1", "missing", "unknown"), ("c,1", "unknown", "missing")):
        rows = ["value,n", "a,3", "b,2", row]
        (tmp_path / "reports.csv").write_text("\n".join(rows) + "\n")
        options = ["--count-column", "n"]
        assert main([*command, *options, f"--{word}", "drop"]) == 0
        assert f"dropped: 1 {word}" in capsys.readouterr().err
        assert main([*command, *options, f"--{other}", "drop"]) == 2
        assert f"--{word} drop" in capsys.readouterr().err
