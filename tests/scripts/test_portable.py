"""`make portable` says what it ran:
a machine that was not emulated and a test that failed both end it with 1.
"""

import pytest

import arm
import portable
import versions
from portable import MACHINES, Machine

FEATURES = ["X86_V3", "X86_V4", "AVX512_ICL"]
BY_NAME = {machine.name: machine for machine in MACHINES}


def seen(machine, **otherwise):
    """What a probe finds where a machine is emulated as asked."""
    on = [
        name
        for name in FEATURES
        if name not in machine.environment(FEATURES).get("NPY_DISABLE_CPU_FEATURES", "")
    ]
    found = {
        "blas": [machine.blas or "Zen"],
        "simd": on,
        "numba": machine.numba or "host",
        "noise": bool(machine.noise),
    }
    return found | otherwise


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_what_is_as_asked_is_taken_and_what_is_not_is_named(machine):
    assert machine.missed(seen(machine)) == ""
    assert "rounding noise" in machine.missed(seen(machine, noise=not machine.noise))
    if machine.blas:
        assert "OpenBLAS runs Cooperlake" in machine.missed(seen(machine, blas=["Cooperlake"]))
    if machine.numba:
        assert "numba compiles for host" in machine.missed(seen(machine, numba="host"))
    if machine.simd in ("none", "avx2"):
        assert "numpy still uses X86_V4" in machine.missed(seen(machine, simd=["X86_V4"]))


def test_an_old_processor_has_no_wide_instructions_and_a_noisy_one_keeps_all():
    old = BY_NAME["prescott"].environment(FEATURES)
    assert old["NPY_DISABLE_CPU_FEATURES"].split() == FEATURES
    assert (old["OPENBLAS_CORETYPE"], old["NUMBA_CPU_NAME"], old["OMP_NUM_THREADS"]) == (
        "Prescott",
        "generic",
        "1",
    )
    assert (
        BY_NAME["haswell"].environment(FEATURES)["NPY_DISABLE_CPU_FEATURES"].split() == FEATURES[1:]
    )
    noisy = BY_NAME["noise-2"].environment(FEATURES)
    assert noisy["IBUKIT_ROUNDING_NOISE"] == "2"
    assert "NPY_DISABLE_CPU_FEATURES" not in noisy
    assert BY_NAME["as-it-is"].environment(FEATURES) == {}


@pytest.mark.parametrize("passes", [True, False])
def test_a_failing_test_is_named_and_fails_the_run(passes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(portable, "ROOT", tmp_path)
    monkeypatch.setattr(portable, "OUT", tmp_path / "out")
    monkeypatch.setattr(portable, "probe", lambda environment: seen(Machine("here")))
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    assert {passes}\n", "utf8")
    assert portable.run(Machine("here"), FEATURES, 1, ["test_it.py"]) is passes
    said = capsys.readouterr().out
    assert f"{int(passes)} passed" in said
    assert ("FAILED test_it::test_it" in said) is not passes


def test_a_machine_that_is_not_there_ends_with_1(monkeypatch, capsys):
    monkeypatch.setattr(
        portable, "probe", lambda environment: seen(Machine("here"), blas=["Cooperlake"])
    )
    assert not portable.run(BY_NAME["prescott"], FEATURES, 1, [])
    assert "NOT EMULATED: OpenBLAS runs Cooperlake, not Prescott" in capsys.readouterr().out


def test_an_unknown_name_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["portable.py", "--only", "vax"])
    with pytest.raises(SystemExit):
        portable.main()
    assert "got vax" in capsys.readouterr().err


@pytest.mark.parametrize("script", [arm, portable, versions], ids=lambda script: script.__name__)
def test_tests_that_are_not_there_are_refused_before_anything_is_made(script, monkeypatch, capsys):
    for name in ("probe", "make", "fetch"):
        monkeypatch.setattr(script, name, pytest.fail, raising=False)
    named = "tests/scripts/test_portable.py::test_an_unknown_name_is_refused tests/gone"
    monkeypatch.setattr("sys.argv", [f"{script.__name__}.py", "--tests", named])
    with pytest.raises(SystemExit):
        script.main()
    assert capsys.readouterr().err.endswith("files or folders of tests, got tests/gone\n")


def test_the_named_tests_alone_are_run(monkeypatch):
    given = []
    monkeypatch.setattr(portable, "probe", lambda environment: seen(Machine("here")))
    monkeypatch.setattr(portable, "run", lambda *arguments: given.append(arguments[-1]) or True)
    arguments = ["--only", "as-it-is", "--tests", "tests/bayes tests/tally", "-x"]
    monkeypatch.setattr("sys.argv", ["portable.py", *arguments])
    assert portable.main() == 0
    assert given == [["tests/bayes", "tests/tally", "-x"]]
