"""Files of reports on the command line: folders and patterns, and what cannot be read."""

import io

import pandas as pd
import pytest

import ibukit as ik
from ibukit.cli import main

K_RR = ["--mechanism", "k-rr", "--epsilon", "2"]


def headless(frame, path):
    frame.to_csv(path, index=False, header=False)


@pytest.mark.parametrize(
    ("suffix", "write_table"),
    [
        ("csv", lambda frame, path: frame.to_csv(path, index=False)),
        ("tsv", lambda frame, path: frame.to_csv(path, index=False, sep="\t")),
        ("csv.gz", headless),
        ("parquet", lambda frame, path: frame.to_parquet(path)),
    ],
    ids=["csv", "tsv", "without a header", "parquet"],
)
def test_a_folder_or_a_pattern_is_read_as_the_library_reads_it(
    suffix, write_table, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    mechanism = ik.RandomizedResponse(["a", "b"], 2.0)
    days = {"1": ["a", "a", "b"], "2": ["b", "a", "b", "b"]}
    for day, reports in days.items():
        folder = tmp_path / "lake" / f"day={day}"
        folder.mkdir(parents=True)
        write_table(pd.DataFrame({"report": reports}), folder / f"part0.{suffix}")
    (tmp_path / "lake" / "_SUCCESS").write_text("")
    expected = {day: ik.mle(mechanism.tally(days[day])).distribution[0] for day in days}
    options = ["--mechanism", "k-rr", "--labels", "a,b"]
    for path in ("lake", "lake/*/part0*"):
        words = ["estimate", path, *options, "--epsilon", "2", "--groups", "day"]
        assert main(words) == 0, capsys.readouterr().err
        found = pd.read_csv(io.StringIO(capsys.readouterr().out), dtype={"day": str})
        found = found[found["label"] == "a"].set_index("day")["probability"]
        assert found.to_dict() == pytest.approx(expected)
    # The epsilon of each day, too, may be in the names of the folders.
    by_day = sum(ik.RandomizedResponse(["a", "b"], float(day)).tally(days[day]) for day in days)
    assert main(["estimate", "lake", *options, "--epsilon-column", "day"]) == 0
    shown = pd.read_csv(io.StringIO(capsys.readouterr().out))["probability"]
    assert shown.to_numpy() == pytest.approx(ik.mle(by_day).distribution)


def test_a_delimiter_holds_for_all_files_of_a_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    for name in "xy":
        (tmp_path / "lake" / f"{name}.csv").write_text("who;value\nx;0\ny;1\n")
    words = ["estimate", "lake", *K_RR, "--k", "2", "--column", "value"]
    assert main([*words, "--delimiter", ";"]) == 0
    assert "\n0,0.5\n1,0.5\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["estimate", "empty", *K_RR, "--k", "2"], "'empty' must be a file, a folder of files"),
        (["estimate", "texts", *K_RR, "--k", "2"], "texts/a.txt' must be Parquet (.parquet) or"),
        (["estimate", "lake/*", *K_RR, "--k", "2"], "'lake/*' must be a file, a folder of files"),
        (["estimate", "no.csv", *K_RR, "--k", "2"], "'no.csv' must be a file, a folder of files"),
        (["estimate", "https://x/r.csv", *K_RR, "--k", "2"], "must be a file that can be opened"),
        (["check", "empty.csv"], "'empty.csv' must be a file that can be opened, got: Is a"),
        (["check", "empty.json"], "empty.json' must be a file that can be opened, got: Is a"),
        (["check", "no.npy"], "'no.npy' must be a file that can be opened, got: No such file"),
        (["plan", "k-rr", "--k", "2", "--epsilon", "1", "--near", "empty"], "got: Is a directory"),
        (
            ["plan", "k-rr", "--k", "2", "--epsilon", "1", "--near", "latin"],
            "latin must be text in",
        ),
        (["check", "k-rr", "--labels", "latin", "--epsilon", "1"], "latin must be text in UTF-8"),
    ],
)
def test_what_cannot_be_read_is_named(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "texts", "empty.csv", "empty.json"):
        (tmp_path / name).mkdir()
    (tmp_path / "latin").write_bytes("Straße,1\n".encode("latin-1"))
    (tmp_path / "texts" / "a.txt").write_text("value\n1\n")
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "Errno" not in shown
