"""Files of tallies and estimates: they come back as they were, or say what happened to them."""

import contextlib
import multiprocessing
import os
import pickle
import sys

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.files import file_format, journal
from mechanism_cases import KINDS

GRID = ik.Grid(2, 2, cell_size=0.5, unit="km", bounds=(48.0, 48.1, 2.0, 2.1), first=(3, 4))
REFUSED = (ik.errors.ForeignFile, ik.errors.DataChanged)


def one_of_each():
    """Mechanisms of every form:
    with arrays, with others inside, without an end, with labels of all kinds.
    """
    more = [
        ik.FreeWill([ik.RandomizedResponse(3, 1.0), ik.Rappor(3, 2.0)], [0.25, 0.75]),
        ik.PlanarGeometric(ik.Grid(None, None, cell_size=(1.0, 0.5), unit="km"), 1.0),
        ik.LinearGeometric(ik.Line(None, 7, unit="year"), 1.0),
        ik.LocalHashing(4, 1.0),
        ik.HadamardResponse(5, 1.0),
        ik.SquareWave(4, 1.0),
        ik.LongitudinalResponse(3, 1.0, 2.0),
        ik.MatrixMechanism([[0.6, 0.2], [0.1, 0.3]], ["a", "b"], ["x", "y"], efficiency=True),
        ik.MatrixMechanism([[0.33333, 0.66666], [0.5, 0.5]], normalize=True),
        ik.RandomizedResponse(GRID, 1.0),
        ik.RandomizedResponse(["a", 1, "1", 2.5], 1.0),
        ik.RandomizedResponse([("a", 1), ("a", 2), "b"], 1.0),
    ]
    return KINDS + more


def tally_of(mechanism, rng):
    if mechanism.alphabet.bounded:
        return mechanism.simulate([20, 10] + [0] * (len(mechanism.alphabet) - 2), rng)
    secrets = [(0, 0), (2, -3)] if isinstance(mechanism, ik.PlanarGeometric) else [5, -2]
    return mechanism.tally(mechanism.randomize(secrets, rng))


@pytest.fixture(scope="module")
def tally():
    return ik.RandomizedResponse(["yes", "no", "?"], epsilon=1.0).tally_counts([60, 40, 7])


@pytest.mark.parametrize("mechanism", one_of_each(), ids=lambda mechanism: type(mechanism).__name__)
def test_a_tally_comes_back_as_it_was(mechanism, tmp_path, rng):
    before = tally_of(mechanism, rng)
    before.save(tmp_path / "tally")
    after = ik.Tally.load(tmp_path / "tally")
    assert repr(after) == repr(before)
    assert after.alphabet == before.alphabet
    assert after.alphabet.unit == before.alphabet.unit
    assert after.full_alphabet == before.full_alphabet
    for old, new in zip(before.parts, after.parts, strict=True):
        assert new.mechanism == old.mechanism
        assert new.reports.dtype == old.reports.dtype
        assert not new.counts.flags.writeable
        np.testing.assert_array_equal(new.reports, old.reports)
        np.testing.assert_array_equal(new.counts, old.counts)
    assert (
        before + after
    ).n == 2 * before.n  # it is of the same secrets, through the same mechanism


def test_pooled_and_weighted_and_what_was_dropped(tmp_path):
    weights = ik.RandomizedResponse(3, 1.0).tally_counts([0.5, 2.25, 1 / 3], weighted=True)
    both = (weights + ik.Rappor(3, 2.0).tally([[1, 0, 0], [1, 1, 0]]))._after_dropping(
        {"missing": 3, "unknown": 0.5}
    )
    both.save(tmp_path / "tally")
    again = ik.Tally.load(tmp_path / "tally")
    assert again.n == both.n
    assert dict(again.dropped) == {"missing": 3, "unknown": 0.5}
    np.testing.assert_array_equal(again.counts, both.counts)
    np.testing.assert_array_equal(again.matrix(), both.matrix())


def test_an_estimate_knows_what_was_dropped_when_it_comes_back(tmp_path):
    table = pd.DataFrame({"report": ["a", "b", "b", None, "?"]})
    mechanism = ik.RandomizedResponse(["a", "b"], 2.0)
    tally = ik.Tally.from_table(table, mechanism, missing="drop", unknown="drop")
    ik.mle(tally).save(tmp_path / "estimate")
    again = ik.Estimate.load(tmp_path / "estimate").tally
    assert dict(again.dropped) == dict(tally.dropped) == {"missing": 1, "unknown": 1}


def test_an_estimate_comes_back_with_its_tally(tally, tmp_path):
    for estimate in (
        ik.mle(tally),
        ik.ibu(tally, stop=ik.Steps(3)),
        ik.inv(tally),
        ik.unfold([60, 40, 7], tally.parts[0].mechanism.matrix()),
    ):
        estimate.save(tmp_path / "estimate")
        again = ik.Estimate.load(tmp_path / "estimate")
        assert again == estimate
        assert type(again) is type(estimate)
        np.testing.assert_array_equal(again.standard_errors(), estimate.standard_errors())


def test_a_file_is_read_only_by_the_class_and_version_that_wrote_it(tally, tmp_path):
    tally.save(tmp_path / "tally")
    with pytest.raises(
        ik.errors.ForeignFile,
        match=r"that Estimate wrote, .* is not; Tally wrote it, so load it by ibukit\.Tally\.load",
    ):
        ik.Estimate.load(tmp_path / "tally")
    head, _, content = (tmp_path / "tally").read_bytes().partition(b"\n")
    (tmp_path / "tally").write_bytes(head.replace(b"Tally 1", b"Tally 9") + b"\n" + content)
    with pytest.raises(
        ik.errors.ForeignFile, match=r"version 1, .* is of version 9; read it with the release"
    ):
        ik.Tally.load(tmp_path / "tally")


def test_every_bit_counts(tally, tmp_path, rng):
    path = tmp_path / "estimate"
    ik.mle(tally).save(path)
    content = path.read_bytes()
    for place in [*range(0, 110, 3), *rng.integers(len(content), size=40).tolist()]:
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(REFUSED, match="path must be"):
            ik.Estimate.load(path)
    for length in rng.integers(len(content), size=20).tolist():
        path.write_bytes(content[:length])
        with pytest.raises(REFUSED, match="path must be"):
            ik.Estimate.load(path)


class Bomb:
    """What a pickle would execute when it is read."""

    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_no_file_is_executed(tally, tmp_path, monkeypatch):
    """Whoever can write the checksum can write anything:
    numbers and names of mechanisms, and no more.
    """
    monkeypatch.chdir(tmp_path)
    bomb = pickle.dumps(Bomb())
    hostile = {
        "a pickle for content": bomb,
        "an array of objects": None,
        "a class of others": {"class": "Popen", "arguments": {"args": "x"}},
        "a module": {"class": "os.mkdir", "arguments": {}},
        "a function of ours": {"class": "uniform", "arguments": {"k": 2}},
    }
    for content in hostile.values():
        if isinstance(content, dict):
            arrays = {"array 0": np.arange(2), "array 1": np.ones(2, dtype=np.int64)}
            part = [content, {"array": "array 0"}, {"array": "array 1"}]
            fields = {"full_alphabet": None, "dropped": [], "parts": [part]}
            values = {"content": {"class": "Tally", "arguments": fields}}
            file_format.write(tmp_path / "tally", "Tally", values, arrays)
        else:
            if content is None:
                np.save(
                    tmp_path / "objects.npy", np.array([Bomb()], dtype=object), allow_pickle=True
                )
                content = b'{"arrays": ["reports 0"]}\n' + (tmp_path / "objects.npy").read_bytes()
            digest = file_format.hashlib.sha256(content).hexdigest().encode()
            (tmp_path / "tally").write_bytes(b"ibukit Tally 1 sha256 " + digest + b"\n" + content)
        with pytest.raises(ik.errors.ForeignFile, match="the content of"):
            ik.Tally.load(tmp_path / "tally")
    assert not (tmp_path / "exploded").exists()


def test_no_file_makes_a_loop_write_to_another(tmp_path):
    """A loop that is given a path writes to it: a file may not give one."""
    ik.Privic(3, ba_steps=2, ibu_steps=2).save(tmp_path / "state")
    values, arrays, _ = file_format.read(tmp_path / "state", "Privic")
    values["content"]["arguments"]["path"] = str(tmp_path / "planted")
    for kind, load in (("Privic", ik.Privic.load), ("Tally", ik.Tally.load)):
        file_format.write(tmp_path / "hostile", kind, values, arrays)
        with pytest.raises(ik.errors.ForeignFile, match="the content of"):
            load(tmp_path / "hostile")
    assert not (tmp_path / "planted").exists()


def test_a_class_of_the_same_name_is_another(tally, tmp_path):
    """It is not saved as ours, and does not keep ours from being saved."""
    mine = type("RandomizedResponse", (ik.RandomizedResponse,), {"__module__": __name__})
    with pytest.raises(TypeError, match="mechanism must be one of ibukit's own"):
        mine(3, 1.0).tally([0, 1], codes=True).save(tmp_path / "tally")
    tally.save(tmp_path / "tally")
    assert type(ik.Tally.load(tmp_path / "tally").parts[0].mechanism) is ik.RandomizedResponse


def test_contents_that_a_file_cannot_hold_are_named(tmp_path):
    class Mine(ik.RandomizedResponse):
        """A mechanism of somebody else."""

    days = ik.Alphabet(np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"))
    for mechanism, said in (
        (Mine(3, 1.0), "mechanism must be one of ibukit's own"),
        (ik.RandomizedResponse(days, 1.0), "alphabet must be an Alphabet of strings or numbers"),
    ):
        with pytest.raises(TypeError, match=said):
            mechanism.tally([0, 1], codes=True).save(tmp_path / "tally")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tally, tmp_path, monkeypatch):
    path = tmp_path / "tally"
    tally.save(path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        (tally + tally).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def begun(path):
    return ik.Privic(3, ba_steps=2, ibu_steps=2, path=path)


def test_a_second_loop_on_a_file_gets_an_error_and_no_cycle_is_lost(tmp_path, rng):
    path = tmp_path / "state"
    one, two = begun(path), begun(path)
    one.collect(one.mechanism().simulate([500, 300, 550], rng))
    before = path.read_bytes()
    with pytest.raises(
        ik.errors.DataChanged,
        match=r"another object has written .* since: begin again from the file",
    ):
        two.collect(two.mechanism().simulate([50, 30, 20], rng))
    assert path.read_bytes() == before
    assert two.cycle == 0
    again = begun(path)
    assert again.cycle == 1
    again.collect(again.mechanism().simulate([5, 3, 2], rng))
    assert begun(path).history()["n"].tolist() == [1350, 10]


def test_two_loops_that_begin_one_file_together(tmp_path, monkeypatch):
    """The second saw no file when it looked, and finds one when it writes."""
    path = tmp_path / "state"
    begun(path)
    before = path.read_bytes()
    monkeypatch.setattr(type(path), "exists", lambda self: False)
    late = ik.Privic(3, ba_steps=2, ibu_steps=2)
    late._path = path
    monkeypatch.undo()
    with pytest.raises(ik.errors.DataChanged, match="another object has written"):
        late.save(path)
    assert path.read_bytes() == before


def test_a_second_writer_gets_an_error(tally, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "tally"
    with (tmp_path / "tally.part").open("wb") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        with pytest.raises(ik.errors.DataChanged, match="but another is writing"):
            tally.save(path)
    tally.save(path)  # the lock has gone with the one who held it
    assert ik.Tally.load(path).n == tally.n


def _write_often(path, value):
    for _ in range(100):
        with contextlib.suppress(ik.errors.DataChanged):
            file_format.write(path, "Tally", {"who": value}, {"all": np.full(1000, value)})


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_two_processes_that_write_at_once_leave_one_whole_file(tmp_path):
    context = multiprocessing.get_context("fork")
    path = tmp_path / "both"
    writers = [context.Process(target=_write_often, args=(path, value)) for value in (1, 2)]
    for writer in writers:
        writer.start()
    read = 0
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            values, arrays, _ = file_format.read(path, "Tally")
            assert (arrays["all"] == values["who"]).all()
            read += 1
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert read > 0


QUESTION = {"seed": 1, "estimators": {"MLE": "mle"}}


def lines_of(path, question=QUESTION):
    with journal.open_journal(path, question) as (finished, write):
        if not finished:
            for repetition in range(3):
                write(("k-RR", repetition), {"MLE": {"emd": 0.125 + repetition, "gap": 1e-12}})
            return None
        return finished


def test_no_digit_of_a_journal_can_change_unseen(tmp_path):
    """A bit in every fourth byte: refused, or a line that was cut short and is computed again."""
    path = tmp_path / "runs.jsonl"
    lines_of(path)
    content = path.read_bytes()
    whole = lines_of(path)
    assert len(whole) == 3
    first = content.index(b"\n") + 1
    for place in range(first, len(content), 4):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with contextlib.suppress(*REFUSED), journal.open_journal(path, QUESTION) as (found, _):
            assert found.items() < whole.items()  # never another number
