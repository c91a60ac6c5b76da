"""`make arm` says what it needs, what it emulated and what failed there."""

import sys

import pytest

import arm
from arm import PROCESSORS, Processor

PLAIN = PROCESSORS[0]
RIGHT = {"machine": "aarch64", "versions": "numpy 2", "blas": ["cortexa57"], "error": 1e-7}


def test_what_has_to_be_installed_is_named_in_one_sentence(monkeypatch, capsys):
    assert arm.missing(lambda program: "/usr/bin/" + program) == ""
    assert arm.missing(lambda program: None) == (
        "make arm needs qemu-user-static and mmdebstrap: "
        "on Debian, apt-get install qemu-user-static mmdebstrap"
    )
    sentence = arm.missing({"mmdebstrap": "/usr/bin/mmdebstrap"}.get)
    assert (
        sentence == "make arm needs qemu-user-static: on Debian, apt-get install qemu-user-static"
    )
    monkeypatch.setattr(arm, "missing", lambda: sentence)
    monkeypatch.setattr(arm, "fetch", pytest.fail)
    monkeypatch.setattr(sys, "argv", ["arm.py"])
    assert arm.main() == 1
    assert capsys.readouterr().err == sentence + "\n"


def test_a_folder_of_folders_is_run_in_pieces(tmp_path):
    for name in ("a/b/test_1.py", "a/b/test_2.py", "a/c/test_3.py", "a/test_4.py", "a/data/d.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert arm.pieces(["a/", "a/b/test_1.py"], tmp_path) == [
        "a/b",
        "a/c",
        "a/test_4.py",
        "a/b/test_1.py",
    ]
    assert all((arm.ROOT / piece).exists() for piece in arm.pieces(arm.SAMPLE))


@pytest.mark.parametrize(
    ("error", "said"), [(1e-7, "right"), (0.27, "wrong by 27%"), (9.0, "not finite")]
)
def test_a_wrong_library_is_named(error, said):
    line = arm.say(RIGHT | {"error": error}, PLAIN)
    assert line.endswith(f"OpenBLAS for cortexa57, single precision {said}")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A processor that is this one, with a folder for what is run."""
    monkeypatch.setattr(arm, "ROOT", tmp_path)
    monkeypatch.setattr(arm, "OUT", tmp_path / "out")
    monkeypatch.setattr(arm, "python_of", lambda processor: sys.executable)
    monkeypatch.setattr(arm, "environment", lambda processor: dict(arm.os.environ))
    monkeypatch.setattr(arm, "pieces", list)
    return tmp_path


def test_pieces_that_passed_are_left_out_and_one_that_fails_ends_with_1(here, capsys):
    for name, passes in (("good", True), ("bad", False)):
        (here / f"test_{name}.py").write_text(f"def test_it():\n    assert {passes}\n", "utf8")
    both = ["test_good.py", "test_bad.py"]
    assert not arm.run(PLAIN, both, False, [])
    said = capsys.readouterr().out
    assert "single precision right" in said
    assert "FAILED test_bad::test_it" in said
    assert "1 of 2 pieces passed" in said
    (here / "test_bad.py").write_text("def test_it():\n    pass\n", "utf8")
    assert arm.run(PLAIN, both, True, [])
    said = capsys.readouterr().out
    assert "plain-test_good: has passed before" in said
    assert "plain-test_bad" in said
    assert "2 of 2 pieces passed" in said


def test_a_processor_that_cannot_be_emulated_is_named(here, monkeypatch, capsys):
    monkeypatch.setattr(arm, "PROBE", "raise SystemExit('unable to find CPU model')")
    assert not arm.run(Processor("new", "armv99", "not yet"), [], False, [])
    assert "new        NOT EMULATED: unable to find CPU model" in capsys.readouterr().out


def test_an_interpreter_is_a_script_and_keeps_its_own_loops(tmp_path, monkeypatch):
    monkeypatch.setattr(arm, "OUT", tmp_path)
    text = arm.python_of(PLAIN).read_text("utf8")
    assert text.startswith("#!/bin/sh\nexec qemu-aarch64-static -cpu cortex-a57 -L ")
    assert text.endswith('/debian/usr/bin/python3.11" "$@"\n')
    caches = {arm.environment(each)["NUMBA_CACHE_DIR"] for each in PROCESSORS}
    assert len(caches) == len(PROCESSORS)


def test_what_is_there_is_not_fetched_again(tmp_path):
    made = []
    for version in ("1", "1", "2"):
        arm._once(tmp_path / "site", version, lambda to: made.append(to.name))
    assert made == ["site", "site"]


def test_an_unknown_name_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["arm.py", "--only", "vax"])
    with pytest.raises(SystemExit):
        arm.main()
    assert "got vax" in capsys.readouterr().err
