"""The file of a PRIVIC loop:
killed at any moment it loses no cycle, and nothing but its own is read.
"""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ibukit as ik

GRID = ik.Grid(4, 5, cell_size=(0.3, 0.1 + 0.2))
COUNTS = np.arange(0, 60, 3)


def begun(**choices):
    return ik.Privic(GRID, **{"beta": 0.9, "ba_steps": 4, "ibu_steps": 6} | choices)


def run(path, cycles=12, callbacks=()):
    return begun(path=path).run(COUNTS, cycles, seed=3, callbacks=callbacks)


def states(path, cycles):
    """What the file holds before and after each cycle."""
    found = []
    for cycle in range(cycles + 1):
        run(path, cycle)
        found.append(path.read_bytes())
    return found


def assert_same(one, other):
    np.testing.assert_array_equal(one.distributions, other.distributions)
    assert one.mechanism() == other.mechanism()
    assert one.history().equals(other.history())
    for mine, theirs in zip(one.tallies(), other.tallies(), strict=True):
        np.testing.assert_array_equal(mine.counts, theirs.counts)


@pytest.mark.parametrize(
    "alphabet",
    [
        ik.Line(-3, 4, unit="year"),
        GRID,
        ik.Grid.from_bounds(48.8, 48.9, 2.2, 2.4, 2, 4),
        ik.Grid(2, 3, cell_size=(0.5, 0.4), first=(-2, 5)),
        ik.Alphabet(["a", "b", "é"]),
        ik.Alphabet(
            [0.1, 2.5, 7.0], distances=[[0, 1 / 3, 1], [1 / 3, 0, 0.7], [1, 0.7, 0]], unit="km"
        ),
        ik.Alphabet(["one", 2, True], unit="step"),
    ],
    ids=repr,
)
def test_every_alphabet_comes_back(alphabet, tmp_path):
    loop = ik.Privic(alphabet).run(np.full(len(alphabet), 20), 2, seed=1)
    loop.save(tmp_path / "state")
    again = ik.Privic.load(tmp_path / "state")
    assert again.alphabet == alphabet
    assert again.alphabet.unit == alphabet.unit
    np.testing.assert_array_equal(again.alphabet.distances(), alphabet.distances())
    assert_same(again, loop)


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"start": ik.normalize(np.arange(1, 21)), "ba_start": ik.normalize(np.arange(20, 0, -1))},
        {"restart": True, "combine": "average", "beta": 1 / 3},
        {"ba_steps": None, "ibu_steps": None, "tol": 1e-10},
    ],
)
def test_a_loop_goes_on_from_its_file_as_if_it_had_not_stopped(choices, tmp_path, rng):
    whole = begun(**choices).run(COUNTS, 5, seed=3)
    half = begun(**choices).run(COUNTS, 2, seed=3)
    half.save(tmp_path / "half")
    again = ik.Privic.load(tmp_path / "half")
    assert_same(again, half)
    assert_same(again.run(COUNTS, 5, seed=3), whole)
    assert_same(begun(**choices, path=tmp_path / "half").run(COUNTS, 5, seed=3), whole)
    for loop in (again, whole):  # equal to the last bit: what loads again is the same file
        loop.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "half").read_bytes()
    assert again.estimate().gap == whole.estimate().gap


def test_users_of_before_the_restart_are_recognised(tmp_path, rng):
    loop = begun(path=tmp_path / "state")
    tally = loop.mechanism().simulate(
        COUNTS, rng
    )  # the users have the mechanism; the provider's machine restarts
    again = begun(path=tmp_path / "state")
    again.collect(tally)
    with pytest.raises(
        ik.errors.MechanismMismatch, match="of cycle 2, but they came through that of cycle 1"
    ):
        begun(path=tmp_path / "state").collect(
            tally
        )  # restarted again: what is counted is not counted twice


def test_the_mechanism_of_the_running_cycle_is_the_one_in_the_file(tmp_path, monkeypatch, rng):
    """On another machine the last digits may be others,
    and the users' reports would not be recognised.
    """
    loop = begun(path=tmp_path / "state")
    tally = loop.mechanism().simulate(COUNTS, rng)

    def of_another_machine(*args, **kwargs):
        matrix = ik.blahut_arimoto(*args, **kwargs).matrix()
        return ik.MatrixMechanism((1 - 1e-13) * matrix + 1e-13 / len(matrix), loop.alphabet)

    monkeypatch.setattr("ibukit.design.privic.privic.blahut_arimoto", of_another_machine)
    assert begun().mechanism() != loop.mechanism()
    again = ik.Privic.load(tmp_path / "state")
    assert again.mechanism() == loop.mechanism()
    again.collect(tally)
    assert again.cycle == 1


def test_the_file_is_there_after_every_cycle(tmp_path):
    path, seen = tmp_path / "state", []
    loop = begun(path=path)
    assert ik.Privic.load(path).cycle == 0
    loop.run(COUNTS, 3, seed=3, callbacks=[lambda P: seen.append(ik.Privic.load(path).cycle)])
    assert seen == [1, 2, 3]
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_loading_and_saving_elsewhere_leave_the_file_alone(tmp_path):
    path = tmp_path / "state"
    run(path, 2)
    before = path.read_bytes()
    loaded = ik.Privic.load(path)
    loaded.run(COUNTS, 4, seed=3)
    loaded.save(str(tmp_path / "copy"))
    assert path.read_bytes() == before
    assert ik.Privic.load(tmp_path / "copy").cycle == 4


def test_a_process_may_change_its_folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    loop = begun(path="state")
    monkeypatch.chdir(tmp_path / "elsewhere")
    loop.run(COUNTS, 2, seed=3)
    assert ik.Privic.load(tmp_path / "state").cycle == 2


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_after_a_full_disk_the_cycle_can_be_ended(function, tmp_path, monkeypatch, rng):
    path = tmp_path / "state"
    loop = begun(path=path)
    tally, before = loop.mechanism().simulate(COUNTS, rng), path.read_bytes()
    with monkeypatch.context() as patched:

        def full(*args):
            raise OSError("no space left on device")

        patched.setattr(os, function, full)
        with pytest.raises(OSError, match="no space left"):
            loop.collect(tally)
    assert path.read_bytes() == before
    assert (loop.cycle, loop.history().shape[0]) == (0, 0)
    loop.collect(tally)
    assert ik.Privic.load(path).cycle == 1


# A child for each kill, made by fork from a process that has imported everything: fifty starts take
# a second.
SCRIPT = """
import os, signal, sys, threading, time
from pathlib import Path
import numpy as np
from tqdm import tqdm
# its own lock is shared with the children, and who is killed does not give it back
tqdm.set_lock(threading.RLock())
sys.path.insert(0, sys.argv[1])
from ibukit.design.privic import Privic
from ibukit.files import atomic
from test_privic_file import run

def child(work):
    number = os.fork()
    if not number:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return number
"""

AT_RANDOM = """
folder, moments = Path(sys.argv[2]), np.random.default_rng()  # any moment must do
run(folder / "whole", 40)
kills, path = 0, folder / "killed-0"
while kills < 50:
    there, here = os.pipe()
    number = child(lambda: run(path, 40, [lambda loop: os.write(here, b".")]))
    os.close(here)
    for _ in range(moments.integers(5)):
        os.read(there, 1)  # a cycle is finished, or all are
    time.sleep(0.01 * moments.random() ** 2)
    os.kill(number, signal.SIGKILL)  # not waited for yet, so the number is still its own
    status = os.waitpid(number, 0)[1]
    os.close(there)
    if os.WIFSIGNALED(status):
        kills += 1
        print(path.name, Privic.load(path).cycle if path.exists() else -1)
    else:
        assert os.WEXITSTATUS(status) == 0
        path = folder / f"killed-{int(path.name[7:]) + 1}"
run(path, 40)
"""

AT_EVERY_LINE = """
folder = Path(sys.argv[2])

def dying(line):
    left = line
    def trace(frame, event, arg):
        nonlocal left
        code = frame.f_code
        if code.co_filename != atomic.__file__ or code.co_name not in ("replace", "_flush_folder"):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    return trace

def work(path, line):
    sys.settrace(dying(line))
    run(path, 1)

run(folder / "whole", 1)  # compiled code is loaded here, once for all children
line, killed = 0, True
while killed:
    path = folder / f"line-{line}"
    killed = os.WIFSIGNALED(os.waitpid(child(lambda: work(path, line)), 0)[1])
    line += 1
(folder / "lines").write_text(str(line))
"""


def forked(script, folder):
    here = str(Path(__file__).parent)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }  # threads do not survive a fork
    call = [sys.executable, "-c", SCRIPT + script, here, str(folder)]
    return subprocess.run(
        call, capture_output=True, text=True, check=True, env=environment, timeout=900
    ).stdout


def test_a_loop_killed_fifty_times_at_random_ends_at_the_same_bits(tmp_path):
    kills = [line.split() for line in forked(AT_RANDOM, tmp_path).splitlines()]
    assert len(kills) == 50
    cycles = [int(cycle) for _, cycle in kills]
    assert len(set(cycles)) > 10  # they fell in the midst of the work
    whole = (tmp_path / "whole").read_bytes()
    finished = {name for name, _ in kills}
    assert {(tmp_path / name).read_bytes() == whole for name in finished} == {True}
    for before, after in itertools.pairwise(kills):
        assert before[0] != after[0] or int(before[1]) <= int(after[1])  # no cycle is lost


def test_a_kill_at_any_line_that_writes_leaves_the_old_file_or_the_new(tmp_path):
    forked(AT_EVERY_LINE, tmp_path)
    expected = states(tmp_path / "expected", 3)
    killed = [tmp_path / f"line-{line}" for line in range(int((tmp_path / "lines").read_text()))]
    held = [
        expected.index(path.read_bytes()) if path.exists() else -1 for path in killed
    ]  # an error for anything else
    assert held == sorted(held)
    assert set(held) == {-1, 0, 1}
    assert len(held) > 20
    left = [path.with_name(f"{path.name}.part") for path in killed]
    assert any(part.exists() and path.exists() for path, part in zip(killed, left, strict=True))
    for path, part in zip(killed, left, strict=True):
        run(path, 3)
        assert path.read_bytes() == expected[3]
        assert not part.exists()


def test_every_byte_counts(tmp_path):
    loop = ik.Privic(2, ibu_steps=2).run([30, 20], 1, seed=1)
    path = tmp_path / "state"
    loop.save(path)
    content = path.read_bytes()
    assert len(content) < 1500
    for place in [*range(120), *range(120, len(content), 5)]:
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises((ik.errors.ForeignFile, ik.errors.DataChanged), match="path must be"):
            ik.Privic.load(path)
    for length in range(0, len(content), 5):
        path.write_bytes(content[:length])
        with pytest.raises((ik.errors.ForeignFile, ik.errors.DataChanged), match="path must be"):
            ik.Privic.load(path)
    path.write_bytes(content + b"\n")
    with pytest.raises(ik.errors.DataChanged, match="SHA-256"):
        ik.Privic.load(path)
    path.write_bytes(content)
    assert_same(ik.Privic.load(path), loop)


def sealed(content, version=1):
    return (
        f"ibukit Privic {version} sha256 {hashlib.sha256(content).hexdigest()}\n".encode() + content
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not; name another file"),
        (b"lat,lon\n48.8,2.3\n", "is not; name another file"),
        (b'{"versions": {}, "seed": 1}\n', "is not; name another file"),
        (sealed(b"{}\n", version=2), "version 1, .* is of version 2; read it with the release"),
        (sealed(b"{}\n"), "the content of .* is not: KeyError"),
        (sealed(b"nothing of ours"), "the content of .* is not: JSONDecodeError"),
        (
            sealed(json.dumps({"arrays": ["distributions"]}).encode()),
            "the content of .* is not: ValueError",
        ),
    ],
)
def test_foreign_files_are_refused_and_left_alone(content, message, tmp_path):
    path = tmp_path / "state"
    path.write_bytes(content)
    for attempt in (ik.Privic.load, run):
        with pytest.raises(ik.errors.ForeignFile, match=message):
            attempt(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": 1.0}, "beta is 0.9 there, 1.0 here"),
        ({"ba_steps": None}, "ba_steps is 4 there, None here"),
        ({"ibu_steps": 7}, "ibu_steps is 6 there, 7 here"),
        ({"restart": True}, "restart is False there, True here"),
        ({"combine": "average"}, "combine is 'last' there, 'average' here"),
        ({"tol": 1e-6}, "tol is 1e-09 there, 1e-06 here"),
        ({"start": ik.normalize(np.arange(1, 21))}, "start is another"),
        ({"ba_start": ik.uniform(20)}, "ba_start is another"),
        ({"alphabet": 20}, r"alphabet is Grid\(4, 5.* there, Line\(0, 19\) here"),
    ],
)
def test_a_file_of_other_arguments_is_refused_and_left_alone(change, message, tmp_path):
    path = tmp_path / "state"
    run(path, 2)
    before = path.read_bytes()
    arguments = {"alphabet": GRID, "beta": 0.9, "ba_steps": 4, "ibu_steps": 6, "path": path}
    with pytest.raises(ik.errors.ForeignFile, match=message):
        ik.Privic(**arguments | change)
    assert path.read_bytes() == before
    assert ik.Privic(**arguments).cycle == 2


def test_no_file_is_no_loop(tmp_path):
    with pytest.raises(FileNotFoundError):
        ik.Privic.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        begun(path=tmp_path / "no folder" / "state")


def test_labels_that_cannot_be_written_are_named(tmp_path):
    loop = ik.Privic(ik.Alphabet(np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")))
    with pytest.raises(TypeError, match="alphabet must be an Alphabet of strings or numbers"):
        loop.save(tmp_path / "state")
    assert not (tmp_path / "state").exists()
