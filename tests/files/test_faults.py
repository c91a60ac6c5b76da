"""Faults of disks, folders and strangers, tried on every file that the package writes or reads."""

import contextlib
import errno
import json
import multiprocessing
import os
import pickle
import stat
import sys
from functools import partial

import pytest

import ibukit as ik
from faults import STRANGE, at_most, full_disk, interrupted, read_only_folder
from ibukit import scale
from ibukit.cli import main
from ibukit.files import atomic, file_format, journal
from replicate_cases import ESTIMATORS, LINE, PEOPLE, numbers

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="limits, users and locks are those of POSIX"
)
TALLY = ik.RandomizedResponse(["yes", "no", "?"], epsilon=1.0).tally_counts([60, 40, 7])
ESTIMATE = ik.mle(TALLY)
# an interrupt at the end of a `with`, before it is left, leaves closing the file to the collector,
# which warns of it
interrupts = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
WRITING = (
    atomic,
    *("replace", "_open_exclusively", "_remove_own", "_set_access", "_try"),
    *("_target", "_part_of", "lock", "_is_same_file", "_flush_folder"),
)


def loop(path=None):
    return ik.Privic(3, ba_steps=2, ibu_steps=2, path=path)


SAVES = {"Tally": TALLY.save, "Estimate": ESTIMATE.save, "Privic": loop().save}
LOADS = {"Tally": ik.Tally.load, "Estimate": ik.Estimate.load, "Privic": ik.Privic.load}
FORMATS = [".csv", ".json", ".parquet", ".geojson"]
saves = pytest.mark.parametrize("save", SAVES.values(), ids=SAVES)
EACH = [*zip(SAVES.values(), LOADS.values(), strict=True)]
both = pytest.mark.parametrize(("save", "load"), EACH, ids=SAVES)


def estimate(folder, suffix, *more):
    """The command line, asked to write a file in a folder."""
    reports = folder / "reports.csv"
    if not reports.exists():
        reports.write_text("lat,lon\n" + "48.81,2.21\n48.89,2.39\n" * 30, "utf8")
    words = [
        "--mechanism",
        "planar-laplace",
        "--epsilon",
        "1",
        "--rows",
        "2",
        "--cols",
        "2",
        "--bounds=48.8,48.9,2.2,2.4",
    ]
    words += ["--column", "lat", "--column", "lon", "--out", str(folder / f"out{suffix}"), *more]
    return main(["estimate", str(reports), *words])


@both
def test_a_disk_that_fills_during_a_write_leaves_the_old_file(save, load, tmp_path):
    path = tmp_path / "state"
    save(path)
    before = path.read_bytes()
    for size in (0, 1, 50, 110, len(before) - 1):
        with full_disk(size), pytest.raises(OSError, match="File too large"):
            save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
    with full_disk(len(before)):
        save(path)
    load(path)


@interrupts
@saves
def test_an_interrupt_at_any_line_leaves_the_old_file_or_the_new(save, tmp_path):
    path, old, line, held = tmp_path / "state", b"what stood there before", 0, []
    save(tmp_path / "whole")
    new = (tmp_path / "whole").read_bytes()
    while True:
        path.write_bytes(old)
        try:
            with interrupted(line, *WRITING):
                save(path)
        except KeyboardInterrupt:
            held.append([old, new].index(path.read_bytes()))  # an error for anything else
            line += 1
            save(path)  # nothing is in the way of the next
            assert {each.name for each in tmp_path.iterdir()} == {"state", "whole"}
        else:
            break
    assert held == sorted(held)
    assert set(held) == {0, 1}
    assert line > 20


@saves
def test_a_read_only_folder_stays_as_it_is(save):
    with read_only_folder() as folder:
        for name in ("old", "new"):
            with pytest.raises(PermissionError, match=name):
                save(folder / name)
        assert [each.name for each in folder.iterdir()] == ["old"]
        assert (folder / "old").read_bytes() == b"as it was"


@pytest.mark.parametrize("what", STRANGE)
def test_no_loader_executes_a_foreign_file(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "state"
    path.write_bytes(STRANGE[what])
    for attempt in [*LOADS.values(), loop, lambda path: lines_of(path)]:
        with pytest.raises(ik.errors.ForeignFile, match="path must be"):
            attempt(path)
    assert path.read_bytes() == STRANGE[what]
    assert list(tmp_path.iterdir()) == [path]


def with_checksum(path, body, kind="Tally"):
    path.write_bytes(
        f"ibukit {kind} 1 sha256 {file_format.hashlib.sha256(body).hexdigest()}\n".encode() + body
    )


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000 + b"\n",
        b'{"arrays": ["counts 0"]}\n\x93NUMPY\x01\x00\x46\x00'
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,)}\n",
        *(b'{"arrays": ["reports 0", "counts 0"]}\n' + strange for strange in STRANGE.values()),
    ],
    ids=["nested", "eight petabytes", *STRANGE],
)
def test_nonsense_with_the_right_checksum_is_refused(body, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with_checksum(tmp_path / "state", body)
    with pytest.raises(ik.errors.ForeignFile, match="the content of"):
        ik.Tally.load(tmp_path / "state")
    assert not (tmp_path / "exploded").exists()


def test_a_file_larger_than_memory_is_refused_by_its_first_bytes(tmp_path):
    path = tmp_path / "state"
    with path.open("wb") as file:
        file.truncate(1 << 42)  # zeros that take no room
    for load in LOADS.values():
        with pytest.raises(ik.errors.ForeignFile, match="name another file"):
            load(path)


@both
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_folders_and_pipes_are_neither_replaced_nor_read(save, load, make, tmp_path):
    path = tmp_path / "state"
    make(path)
    kind = path.stat().st_mode
    for attempt in (save, load, loop, lines_of):
        with (
            at_most(60),
            pytest.raises(ik.errors.ForeignFile, match="is a folder, a pipe or a device"),
        ):
            attempt(path)
    assert path.stat().st_mode == kind
    assert list(tmp_path.iterdir()) == [path]


@both
def test_a_link_stays_a_link_and_its_target_is_replaced(save, load, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link, target = tmp_path / "state", tmp_path / "elsewhere" / "target"
    link.symlink_to(target)
    save(link)
    save(link)
    assert link.is_symlink()
    assert target.is_file()
    load(link)


@both
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL])
def test_a_file_system_without_locks_or_flushed_folders_will_do(
    save, load, number, tmp_path, monkeypatch
):
    import fcntl

    sync = os.fsync

    def cannot(descriptor, *how):
        if how or stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    monkeypatch.setattr(fcntl, "flock", cannot)
    monkeypatch.setattr(os, "fsync", cannot)
    save(tmp_path / "state")
    load(tmp_path / "state")
    assert lines_of(tmp_path / "runs.jsonl") == {}
    assert lines_of(tmp_path / "runs.jsonl") == ROWS
    number = errno.EIO  # which is no word for what it cannot do
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        save(tmp_path / "state")


def test_a_removed_loop_file_is_written_again(tmp_path, rng):
    running = loop(tmp_path / "state")
    (tmp_path / "state").unlink()
    running.collect(running.mechanism().simulate([500, 300, 550], rng))
    assert loop(tmp_path / "state").cycle == 1


QUESTION = {"seed": 1, "estimators": {"MLE": "mle"}}
ROWS = {
    ("k-RR", repetition): {"MLE": {"emd": 0.125 + repetition, "gap": 1e-12}}
    for repetition in range(3)
}
ask = partial(
    ik.replicate, PEOPLE, [ik.RandomizedResponse(LINE, 1.0)], {"INV": ESTIMATORS["INV"]}, 5, 11
)


def lines_of(path, rows=ROWS):
    """Go on with a journal until it has some rows, and return what it had."""
    with journal.open_journal(path, QUESTION) as (finished, write):
        before = dict(finished)
        for key in rows.keys() - before.keys():
            write(key, rows[key])
    return before


def test_a_journal_goes_on_after_a_full_disk(tmp_path):
    path = tmp_path / "runs.jsonl"
    expected = numbers(ask(path=path))
    size = path.stat().st_size
    path.unlink()
    for limit in (
        0,
        30,
        size // 2,
        size - 60,
    ):  # in the last line, whose seconds have some digits more or fewer
        with full_disk(limit), pytest.raises(OSError, match="File too large"):
            ask(path=path)
        assert path.stat().st_size <= limit
    assert numbers(ask(path=path)) == expected
    assert path.read_bytes().count(b"\n") == 6


@interrupts
def test_a_journal_goes_on_after_an_interrupt_at_any_line(tmp_path):
    line = 0
    while True:
        path = tmp_path / f"{line}.jsonl"
        try:
            with interrupted(line, journal, "open_journal", "append", "write"):
                lines_of(path)
        except KeyboardInterrupt:
            line += 1
        else:
            break
        assert lines_of(path).items() <= ROWS.items()
        assert lines_of(path) == ROWS
    assert line > 20


def test_a_second_run_on_a_journal_gets_an_error(tmp_path):
    path = tmp_path / "runs.jsonl"
    with journal.open_journal(path, QUESTION) as (_, write):
        write(("k-RR", 0), ROWS["k-RR", 0])
        before = path.read_bytes()
        with pytest.raises(
            ik.errors.DataChanged, match="path must be written by one program at a time"
        ):
            lines_of(path)
        assert path.read_bytes() == before
        write(("k-RR", 1), ROWS["k-RR", 1])
    assert len(lines_of(path)) == 2


def _one_by_one(path, name, number):
    left = [(name, repetition) for repetition in range(number)]
    while left:
        try:
            lines_of(path, {left[-1]: ROWS["k-RR", 0]})
            left.pop()
        except ik.errors.DataChanged as error:
            if "one program at a time" not in str(error):
                raise


def test_two_processes_taking_turns_at_a_journal_lose_no_line(tmp_path):
    path, names, number = tmp_path / "runs.jsonl", ("one", "two"), 100
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_one_by_one, args=(path, name, number)) for name in names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert lines_of(path, {}).keys() == {
        (name, repetition) for name in names for repetition in range(number)
    }


def test_a_journal_in_a_read_only_folder():
    with read_only_folder() as folder:
        for name in ("old", "new"):
            with pytest.raises(PermissionError, match=name):
                lines_of(folder / name)
        assert (folder / "old").read_bytes() == b"as it was"


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_old_export_stays_if_the_disk_fills(suffix, tmp_path, capsys):
    out = tmp_path / f"out{suffix}"
    assert estimate(tmp_path, suffix) == 0
    before, names = out.read_bytes(), sorted(each.name for each in tmp_path.iterdir())
    capsys.readouterr()
    for size in (0, len(before) // 2, len(before) - 1):
        with full_disk(size):
            assert estimate(tmp_path, suffix) == 2
        assert "File too large" in capsys.readouterr().err
        assert out.read_bytes() == before
        assert sorted(each.name for each in tmp_path.iterdir()) == names


@interrupts
def test_an_interrupted_command_line_leaves_the_old_file_or_the_new(tmp_path):
    assert estimate(tmp_path, ".json", "--steps", "1") == 0
    old = (tmp_path / "out.json").read_bytes()
    assert estimate(tmp_path, ".json") == 0
    new, held, line = (tmp_path / "out.json").read_bytes(), [], 0
    assert new != old
    while True:
        (tmp_path / "out.json").write_bytes(old)
        with interrupted(line, *WRITING):
            code = estimate(tmp_path, ".json")
        if code == 0:
            break
        assert code == 130
        held.append([old, new].index((tmp_path / "out.json").read_bytes()))
        line += 4
    assert held == sorted(held)
    assert set(held) == {0, 1}


@pytest.mark.parametrize("content", [*STRANGE.values(), b""], ids=[*STRANGE, "nothing"])
def test_foreign_rows_and_matrices_are_not_executed(content, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.npy").write_bytes(content)
    with pytest.raises(ValueError, match="rows must"):
        scale.tally(tmp_path / "rows.npy", ik.Rappor(3, 1.0))
    (tmp_path / "reports.csv").write_text("value\n1\n", "utf8")
    assert main(["estimate", "reports.csv", "--mechanism", "rows.npy"]) == 2
    assert "rows.npy" in capsys.readouterr().err
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".yaml", '!!python/object/apply:os.mkdir ["exploded"]\n'),
        (".yaml", 'mechanism: !!python/object/apply:os.mkdir ["exploded"]\n'),
        (".json", "[" * 100_000),
        (".json", json.dumps({"mechanism": "os.mkdir", "epsilon": 1})),
        (".yaml", "[" * 1_000),
    ],
)
def test_foreign_parameters_are_not_executed(suffix, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"model{suffix}").write_text(text, "utf8")
    (tmp_path / "reports.csv").write_text("value\n1\n", "utf8")
    assert main(["estimate", "reports.csv", "--mechanism", f"model{suffix}", "--k", "3"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "exploded").exists()


def test_the_faults_are_there(tmp_path):
    """What the other tests lean on:
    a write is stopped halfway, a folder refuses, a pickle does execute.
    """
    path = tmp_path / "half"
    with full_disk(10), path.open("wb", buffering=0) as file:
        assert file.write(b"x" * 20) == 10
        with pytest.raises(OSError, match="File too large"):
            file.write(b"x" * 10)
    with read_only_folder() as folder, pytest.raises(PermissionError):
        (folder / "old").write_bytes(b"")
    with contextlib.chdir(tmp_path):
        pickle.loads(STRANGE["a pickle"])
    assert (tmp_path / "exploded").is_dir()
    with pytest.raises(KeyboardInterrupt), interrupted(0, *WRITING):
        atomic.replace(tmp_path / "new", b"")
