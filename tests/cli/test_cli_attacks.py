"""What a careless call, or a file of parameters by somebody else, could do on the command line."""

import gzip
import io
import json
import os
import sys
import threading
import time

import pandas as pd
import pytest

from ibukit.cli import main

KRR = ["--labels", "a,b", "--epsilon", "1"]
SECRET = "root:x:0:0:root"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("report\na\nb\n", "utf8")
    (tmp_path / "passwd").write_text(f"{SECRET}\nnobody:x:1\n", "utf8")
    return tmp_path


def estimate(*words, reports="r.csv", mechanism="k-rr"):
    return main(["estimate", reports, "--mechanism", mechanism, *words])


def refused(capsys, *words, **choices):
    """The one line on standard error."""
    assert estimate(*words, **choices) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def by_link(folder):
    (folder / "out.csv").symlink_to("r.csv")
    return "out.csv"


def by_another_name(folder):
    os.link(folder / "r.csv", folder / "out.csv")
    return "out.csv"


@pytest.mark.parametrize(
    "out",
    [
        lambda folder: "r.csv",
        lambda folder: "./r.csv",
        lambda folder: str(folder / "r.csv"),
        lambda folder: f"../{folder.name}/r.csv",
        by_link,
        by_another_name,
    ],
)
def test_the_estimate_does_not_replace_the_reports(out, folder, capsys):
    before = (folder / "r.csv").read_bytes()
    assert "--out must not be a file that is read" in refused(
        capsys, *KRR, "--out", out(folder), reports="r.csv"
    )
    assert (folder / "r.csv").read_bytes() == before


def test_nor_any_other_file_that_is_read(folder, capsys):
    pd.DataFrame({"report": ["a", "b"]}).to_parquet("r.parquet")
    pd.DataFrame({"a": [0.8, 0.2], "b": [0.2, 0.8]}, index=["a", "b"]).to_csv("m.csv")
    (folder / "m.json").write_text(
        json.dumps({"mechanism": "k-rr", "labels": ["a", "b"], "epsilon": 1}), "utf8"
    )
    (folder / "labels.csv").write_text("a\nb\n", "utf8")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for words, choices in (
        ([*KRR, "--out", "r.parquet"], {"reports": "r.parquet"}),
        ([*KRR, "--out", "r.parquet"], {"reports": "*.parquet"}),
        ([*KRR, "--out", "r.csv"], {"reports": "r.*v"}),
        (["--out", "m.csv"], {"mechanism": "m.csv"}),
        (["--out", "m.json"], {"mechanism": "m.json"}),
        (["--labels", "labels.csv", "--epsilon", "1", "--out", "labels.csv"], {}),
    ):
        assert "--out must not be a file that is read" in refused(capsys, *words, **choices)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_nor_the_file_behind_standard_input(folder, capsys, monkeypatch):
    with (folder / "r.csv").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        said = refused(capsys, *KRR, "--out", "r.csv", reports="-")
    assert "--out must not be a file that is read" in said


def test_another_file_is_written(folder):
    assert estimate(*KRR, "--out", "new.csv") == 0
    assert estimate(*KRR, "--out", "new.csv") == 0


@pytest.mark.parametrize("number", ["1e19", "inf", "1e400", "9223372036854775807", "1e308"])
@pytest.mark.parametrize("name", ["c.csv", "c.csv.gz"])
def test_counts_that_no_column_holds_are_one_line(number, name, folder, capsys):
    write = gzip.open if name.endswith("gz") else open
    with write(name, "wt") as file:
        file.write(f"report,n\na,{number}\nb,1\na,5\n")
    said = refused(capsys, *KRR, "--count-column", "n", reports=name)
    assert "column 'n' must" in said


PARAMETERS = {
    "labels": ["passwd", "./passwd", "/etc/passwd", "~", "", 5, None, {"a": 1}],
    "k": ["2", 2.0, True, None, [2], 1e9],
    "first": ["0", 0.5, False],
    "rows": ["2", True, 2.5],
    "epsilon": ["1", True, [1], {"a": 1}],
    "cell_size": ["1", True],
    "bounds": ["48,49,2,3", [48, 49, 2], [48, 49, 2, "3"], {"s": 48}],
}


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in PARAMETERS.items() for value in values]
)
def test_parameters_of_other_types_are_named_and_read_no_file(key, value, suffix, folder, capsys):
    content = {"mechanism": "k-rr", "labels": ["a", "b"], "epsilon": 1}
    if key in ("k", "first"):
        del content["labels"]
    if key in ("rows", "cell_size", "bounds"):
        content = {"mechanism": "truncated-planar-geometric", "rows": 2, "cols": 2, "epsilon": 1}
    # YAML holds all that JSON does.
    (folder / f"m{suffix}").write_text(json.dumps(content | {key: value}), "utf8")
    said = refused(capsys, mechanism=f"m{suffix}")
    assert f"m{suffix} must have" in said
    assert key in said
    assert SECRET not in said


@pytest.mark.parametrize("name", ["m.csv", "../m.csv", "m.npy", "other.json", "passwd"])
def test_parameters_name_no_other_file(name, folder, capsys):
    pd.DataFrame({SECRET: [0.8, 0.2], "b": [0.2, 0.8]}, index=["a", "b"]).to_csv("m.csv")
    (folder / "m.json").write_text(json.dumps({"mechanism": name, "epsilon": 1}), "utf8")
    assert SECRET not in refused(capsys, mechanism="m.json")


@pytest.mark.parametrize(
    "text",
    [
        # Ten lists of ten of the one before are 10^10 values.
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 11))
        + "mechanism: k-rr\nlabels: *a10\nepsilon: 1\n",
        "mechanism: k-rr\nk: &a [*a]\nepsilon: 1\n",
        "mechanism: &a {b: *a}\nepsilon: 1\n",
    ],
    ids=["ten billion", "itself", "a mapping of itself"],
)
def test_lists_that_contain_each_other_are_not_expanded(text, folder, capsys):
    (folder / "m.yaml").write_text(text, "utf8")
    start = time.perf_counter()
    said = refused(capsys, mechanism="m.yaml")
    assert time.perf_counter() - start < 60
    assert len(said) < 500


def test_many_labels_are_no_name_of_a_file(folder, capsys):
    labels = ",".join(f"label {number}" for number in range(1000))
    (folder / "l.csv").write_text("report\nlabel 3\nlabel 7\n", "utf8")
    assert estimate("--labels", labels, "--epsilon", "1", reports="l.csv") == 0


@pytest.mark.parametrize("name", ["a\0b.csv", "", "\0"])
def test_names_that_are_none_are_one_line(name, folder, capsys):
    refused(capsys, *KRR, reports=name)
    refused(capsys, mechanism=f"{name}.json")
    refused(capsys, *KRR, "--out", f"{name}.csv")


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no such folder")
def test_the_output_of_another_program_is_read_in_full(folder, capsys):
    """As in `ibukit estimate <(zcat reports.csv.gz)`; a pipe holds 64 kilobytes."""
    reading, writing = os.pipe()
    content = b"report\n" + b"a\na\nb\n" * 50_000

    def fill():
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(content)

    writer = threading.Thread(target=fill, daemon=True)
    writer.start()
    words = ["--labels", "a,b", "--epsilon", "30"]
    assert estimate(*words, reports=f"/dev/fd/{reading}") == 0
    writer.join()
    os.close(reading)
    assert "a,0.6666" in capsys.readouterr().out


def test_a_line_without_an_end_is_one_line(folder, capsys):
    with gzip.open("r.csv.gz", "wb", 1) as file:
        for _ in range(20):
            file.write(b"a" * 2**20)
    assert "lines of at most 16 MB" in refused(capsys, *KRR, reports="r.csv.gz")


def test_a_line_of_standard_input_without_an_end_is_one_line(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a" * 2**25), "utf8"))
    assert "standard input must have lines" in refused(capsys, *KRR, reports="-")
