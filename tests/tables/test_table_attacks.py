"""Names of files, and numbers in columns, by which a table could be read as another one."""

import gzip
import io
import os
import resource
import subprocess
import sys
import tempfile
import threading
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ibukit as ik
from faults import at_most
from ibukit.tables import bounded_lines
from ibukit.tables.text import TextFile

MECHANISM = ik.RandomizedResponse(["a", "b", "c"], 2.0)
ROWS = pd.DataFrame({"report": ["a"] * 10})
OTHERS = pd.DataFrame({"report": ["b"] * 20})
KRR = "--mechanism k-rr --labels a,b --epsilon 1".split()  # noqa: SIM905
WRITE = {
    "csv": lambda rows, path: rows.to_csv(path, index=False),
    "parquet": lambda rows, path: rows.to_parquet(path),
}
kinds = pytest.mark.parametrize("kind", WRITE)


def counted(table, **choices):
    tally = ik.Tally.from_table(table, MECHANISM, **choices)
    (part,) = tally.parts
    labels = MECHANISM.alphabet.labels_of(part.reports).tolist()
    return dict(zip(labels, part.counts.tolist(), strict=True))


# The name of a file, and one that it stands for as a pattern.
PATTERNS = [
    ("x[1]", "x1"),
    ("y*", "y2"),
    ("q?", "q1"),
    ("[!z]", "y"),
    ("[a-z]", "k"),
    ("{a,b}", "a"),
    ("**", "deep"),
    ("a[*]b", "a*b"),
]
NAMES = [
    *("~", "~tilde", "~root", "-dash", "$HOME", "%2f", "%s", " space ", "new\nline", "tab\t"),
    *("o'brien", 'q"uote', "semi;drop", "--", "a=b", "ünï", "https:", "C:", "#", "&", "a\\b"),
    *("'); DROP TABLE t; --", "x" * 200),
]


@kinds
@pytest.mark.parametrize(("name", "other"), PATTERNS)
def test_an_existing_file_is_not_taken_for_a_pattern(kind, name, other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    WRITE[kind](ROWS, f"./{name}.{kind}")
    WRITE[kind](OTHERS, f"./{other}.{kind}")
    assert counted(f"{name}.{kind}") == {"a": 10}
    assert counted(tmp_path / f"{name}.{kind}") == {"a": 10}
    assert counted([f"{name}.{kind}", f"{other}.{kind}"]) == {"a": 10, "b": 20}
    assert counted(tmp_path) == {"a": 10, "b": 20}


@kinds
@pytest.mark.parametrize("name", NAMES)
def test_odd_characters_still_name_a_file(kind, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/nowhere")
    WRITE[kind](ROWS, f"./{name}.{kind}")
    assert counted(f"{name}.{kind}") == {"a": 10}
    assert counted(tmp_path) == {"a": 10}


@kinds
def test_a_folder_whose_name_is_a_pattern_is_that_folder(kind, tmp_path):
    for folder, rows in (("d[1]", ROWS), ("d1", OTHERS)):
        (tmp_path / folder).mkdir()
        WRITE[kind](rows, tmp_path / folder / f"part.{kind}")
    assert counted(tmp_path / "d[1]") == {"a": 10}


@kinds
def test_a_path_that_looks_like_a_url_may_be_a_file(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    WRITE[kind](ROWS, tmp_path / "s3:" / "bucket" / f"x.{kind}")
    assert counted(f"s3://bucket/x.{kind}") == {"a": 10}


@kinds
@pytest.mark.parametrize("hidden", [".x", "._x", "_x", "_temporary/0/x", ".git/x"])
def test_hidden_files_are_not_counted_through_links_either(kind, hidden, tmp_path):
    (tmp_path / "data").mkdir()
    WRITE[kind](ROWS, tmp_path / "data" / f"x.{kind}")
    there = tmp_path / "data" / f"{hidden}.{kind}"
    there.parent.mkdir(parents=True, exist_ok=True)
    there.symlink_to(tmp_path / "data" / f"x.{kind}")
    (tmp_path / "data" / "up").symlink_to("..")
    assert counted(tmp_path / "data") == {"a": 10}


def counts_of(numbers, kind):
    """A table of counts in one of the engines, four rows of them."""
    columns = {"report": ["a", "a", "a", "b"], "n": numbers}
    if kind == "polars":
        return pl.DataFrame({"report": columns["report"], "n": pl.Series(numbers)})
    if kind == "lazy":
        return pl.DataFrame({"report": columns["report"], "n": pl.Series(numbers)}).lazy()
    if kind == "arrow":
        return pa.table(columns)
    return pd.DataFrame(columns)


TOO_MANY = {
    "a sum of 2^64": [2**62, 2**62, 2**62, 2**62],
    "a sum of 2^63": [2**62, 2**62, 0, 1],
    "a sum that wraps to a small number": [2**62, 2**62, 2**62, 2**62 + 5],
    "two that are nearly the largest": [2**63 - 1, 2**63 - 1, 5, 1],
    "no sign": np.array([2**63, 2**63, 5, 1], dtype=np.uint64),
    "one that is too large": np.array([2**64 - 1, 0, 0, 1], dtype=np.uint64),
    "large doubles": [1e19, 1.0, 1.0, 1.0],
    "huge doubles": [1e300, 1.0, 1.0, 1.0],
    "an infinite one": [np.inf, 1.0, 1.0, 1.0],
    "doubles that sum to too many": [5e18, 5e18, 0.0, 1.0],
}


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow"])
@pytest.mark.parametrize("what", TOO_MANY)
def test_counts_beyond_64_bits_are_refused(kind, what):
    with pytest.raises(ValueError, match=r"column 'n' must|table's counts must"):
        counted(counts_of(TOO_MANY[what], kind), count="n")


@kinds
@pytest.mark.parametrize("what", TOO_MANY)
def test_counts_beyond_64_bits_in_files_are_refused(kind, what, tmp_path):
    path = tmp_path / f"x.{kind}"
    WRITE[kind](counts_of(TOO_MANY[what], "pandas"), path)
    with pytest.raises(ValueError, match=r"'n' must|table's counts must|cannot be read"):
        counted(path, count="n")


@kinds
def test_several_files_may_hold_too_many_together(kind, tmp_path):
    for name in ("x", "y", "z"):
        rows = pd.DataFrame({"report": ["a", "b"], "n": [2**62, 1]})
        WRITE[kind](rows, tmp_path / f"{name}.{kind}")
    with pytest.raises(ik.errors.TooLarge, match=r"must sum to less than 2\^63"):
        counted(tmp_path, count="n")


def test_partitions_of_dask_may_hold_too_many_together():
    dask = pytest.importorskip("dask.dataframe")
    rows = pd.DataFrame({"report": ["a", "b"] * 3, "n": [2**62, 1] * 3})
    with pytest.raises(ik.errors.TooLarge, match=r"must sum to less than 2\^63"):
        counted(dask.from_pandas(rows, npartitions=3), count="n")


@pytest.mark.parametrize("numbers", [[2**61, 2**61, 2**61, 1], [100, 100, 100, 1]])
@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow"])
def test_large_counts_that_fit_are_exact(kind, numbers):
    assert counted(counts_of(numbers, kind), count="n") == {"a": sum(numbers[:3]), "b": 1}


def test_small_types_do_not_overflow():
    numbers = np.array([100, 100, 100, 1], dtype=np.int8)
    assert counted(counts_of(numbers, "polars"), count="n") == {"a": 300, "b": 1}


@pytest.mark.parametrize("head", [b"", b"report\n", b"report\na\n", b'report\n"', b"report\na,"])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_an_endless_line_does_not_fill_the_memory(head, name, tmp_path):
    """A file of a megabyte unzips to 300."""
    path = tmp_path / name
    with gzip.open(path, "wb", 1) if name.endswith("gz") else path.open("wb") as file:
        file.write(head)
        for _ in range(100):
            file.write(b"a" * 2**20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"lines of at most 16 MB|must have 1 field"):
        counted(path)
    # In kilobytes; what is read at once is some times the longest line.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 90_000


def test_a_line_of_many_columns_is_read(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    names = [f"column {number}" for number in range(1000)]
    path.write_text(",".join(["report", *names]) + "\n" + ",".join(["a"] * 1001) + "\n", "utf8")
    assert counted(path, report="report") == {"a": 1}
    longest = max(map(len, path.read_bytes().splitlines()))
    monkeypatch.setattr(bounded_lines, "MAX_LINE", longest + 1)
    assert counted(path, report="report") == {"a": 1}
    monkeypatch.setattr(bounded_lines, "MAX_LINE", longest - 1)
    with pytest.raises(ValueError, match="line 1 is longer"):
        counted(path, report="report")


def test_what_standard_input_was_copied_to_is_closed_and_removed(tmp_path):
    run = subprocess.run(
        [sys.executable, *"-W error -X dev -m ibukit estimate -".split(), *KRR],  # noqa: SIM905
        input=b"report\na\nb\n",
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0
    assert b"ResourceWarning" not in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_long_line_in_a_file_of_short_ones_is_found():
    short = b"a\n" * 10**6
    file = bounded_lines.BoundedLines(io.BytesIO(short), "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert io.BufferedReader(file).read() == short


def sub_folder(folder, kind):
    WRITE[kind](ROWS, folder / f"x.{kind}")
    (folder / "sub").mkdir()
    WRITE[kind](OTHERS, folder / "sub" / f"y.{kind}")


@pytest.mark.skipif(sys.platform == "win32", reason="users and modes are those of POSIX")
@kinds
def test_an_unreadable_folder_is_not_left_out(kind):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        sub_folder(folder, kind)
        assert counted(folder) == {"a": 10, "b": 20}
        (folder / "sub").chmod(0)
        administrator = os.geteuid() == 0
        if administrator:
            os.seteuid(65534)
        try:
            with pytest.raises(PermissionError, match="sub"):
                counted(folder)
        finally:
            if administrator:
                os.seteuid(0)
            (folder / "sub").chmod(0o755)


@kinds
def test_a_broken_link_is_not_left_out(kind, tmp_path):
    sub_folder(tmp_path, kind)
    (tmp_path / "sub" / f"z.{kind}").symlink_to(tmp_path / "nowhere")
    for table in (tmp_path, f"{tmp_path}/**/*.{kind}", tmp_path / "sub" / f"z.{kind}"):
        with pytest.raises((FileNotFoundError, ValueError), match=rf"z\.{kind}"):
            counted(table)
    # A hidden one is no data.
    (tmp_path / "sub" / f"z.{kind}").rename(tmp_path / "sub" / f"._z.{kind}")
    assert counted(tmp_path) == {"a": 10, "b": 20}


@kinds
def test_no_file_is_counted_twice(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sub_folder(tmp_path, kind)
    path = f"x.{kind}"
    for paths in (
        [path, path],
        [path, f"./{path}"],
        [path, str(tmp_path / path)],
        [path, f"sub/../{path}"],
        [f"*.{kind}", f"x*.{kind}"],
        [".", path],
        [".", f"sub/*.{kind}"],
    ):
        with pytest.raises(ValueError, match="must name each file once"):
            counted(paths)
    assert counted([path, f"sub/y.{kind}"]) == {"a": 10, "b": 20}


def through_pipe(path, content):
    os.mkfifo(path)

    def fill():
        with path.open("wb") as pipe:
            pipe.write(content)

    writer = threading.Thread(target=fill, daemon=True)
    writer.start()
    return writer


@pytest.mark.skipif(sys.platform == "win32", reason="pipes have no names there")
@pytest.mark.parametrize("zipped", [False, True])
def test_a_pipe_is_read_once_and_whole(zipped, tmp_path):
    """It does not give again what was read to see what it is."""
    content = b"report\n" + b"a\nb\nb\n" * 100_000
    path = tmp_path / ("x.csv.gz" if zipped else "x.csv")
    writer = through_pipe(path, gzip.compress(content, 1) if zipped else content)
    with at_most(60):
        assert counted(path) == {"a": 100_000, "b": 200_000}
    writer.join()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes have no names there")
def test_a_pipe_is_no_parquet(tmp_path):
    os.mkfifo(tmp_path / "x.parquet")
    with at_most(60), pytest.raises(ValueError, match="is a pipe or a device"):
        counted(tmp_path / "x.parquet")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_an_endless_stream_fills_neither_memory_nor_disk(tmp_path):
    with at_most(60), pytest.raises(ValueError, match="/dev/zero must have lines of at most"):
        TextFile("/dev/zero")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_a_stream_that_is_refused_leaves_no_copy(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with at_most(60), pytest.raises(ValueError, match="must have lines of at most") as caught:
        TextFile("/dev/zero")
    # The error, which is still held, holds the table in its turn.
    assert caught.tb is not None
    assert list(tmp_path.iterdir()) == []


def test_counts_of_decimals_are_counts():
    numbers = pa.array([Decimal(3), Decimal(4), Decimal(0), Decimal(1)], pa.decimal128(20, 0))
    table = pa.table({"report": ["a", "a", "a", "b"], "n": numbers})
    assert counted(table, count="n") == {"a": 7, "b": 1}
