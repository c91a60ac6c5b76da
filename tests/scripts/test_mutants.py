"""`make mutants`: which faults are planted, and that those found,
harmless and endless are told apart.
"""

import ast
import csv
from pathlib import Path

import pytest

import kernel_coverage
import mutants
import pytest_server
import source_faults

SOURCE = '''"""A docstring < with 1 + 1."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import that


def f(x: "list[1]", é=2) -> int:
    """Sum > 0."""
    if x[0] == 0 or é < 3:  # a comment + another
        raise ValueError(f"x is {x + 1}")
    for i in range(len(x) - 1):
        x[i] += 0.5 * max(x[i:])
        x.sort()
    return -x
'''


def test_every_kind_of_fault_is_planted_where_it_stands():
    found = {(fault.line, fault.old, fault.new) for fault in source_faults.faults(SOURCE)}
    condition = "x[0] == 0 or é < 3"
    expected = {
        (8, "2", "3"),
        (8, "2", "(1)"),
        (10, condition, f"(not ({condition}))"),
        *{(10, old, new) for old, new in [("==", "!="), ("or", "and"), ("<", "<=")]},
        *{(10, old, new) for old, new in [("0", "1"), ("0", "(-1)"), ("3", "4"), ("3", "(2)")]},
        (11, 'raise ValueError(f"x is {x + 1}")', "pass"),
        *{(12, old, new) for old, new in [("-", "+"), ("1", "2"), ("1", "(0)")]},
        (13, "x[i] += 0.5 * max(x[i:])", "pass"),
        *{
            (13, old, new)
            for old, new in [("0.5", "(0.5 * 2)"), ("*", "/"), ("max", "min"), ("i", "(i + 1)")]
        },
        (14, "x.sort()", "pass"),
        (15, "-x", "(x)"),
    }
    assert found == expected


def test_a_planted_text_differs_in_its_stretch_alone():
    for fault in source_faults.faults(SOURCE):
        text = fault.planted(SOURCE)
        ast.parse(text)
        assert text[: fault.start] == SOURCE[: fault.start]
        assert text.endswith(SOURCE[fault.start + len(fault.old) :])
    with pytest.raises(ValueError, match="the text has changed"):
        source_faults.faults(SOURCE)[0].planted(SOURCE[1:])


@pytest.fixture
def tree(tmp_path):
    """A package, in which some faults are found and one changes nothing."""
    source = "def f(n):\n    i = 0\n    if i < n:\n        i += 2\n    return max(i, i)\n"
    files = {
        "ibukit/privacy/m.py": source,
        "tests/test_m.py": "def test():\n    assert m.f(4) == 2\n",
    }
    files["tests/test_m.py"] = "from ibukit.privacy import m\n\n\n" + files["tests/test_m.py"]
    files["tests/nearest_tests.csv"] = "module,tests\nprivacy/m,m\n"
    files |= {"tests/conftest.py": "", "ibukit/__init__.py": "", "ibukit/privacy/__init__.py": ""}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf8")
    return tmp_path


def drawn(tree, old):
    return next(
        mutant for mutant in mutants.sample(tree, ["privacy"], 100, 0) if mutant.fault.old == old
    )


def test_a_fault_is_found_or_survives_and_the_copy_is_as_before(tree, monkeypatch):
    monkeypatch.setenv(
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"
    )  # none is needed, and they take a second
    monkeypatch.delenv(
        "IBUKIT_ROUNDING_NOISE", raising=False
    )  # the package below has nothing that could be noisy
    server = pytest_server.PytestServer(foreign=())
    monkeypatch.setattr(mutants, "server", lambda: server)
    source = (tree / "ibukit/privacy/m.py").read_text("utf8")
    tests = mutants.nearest(tree)["ibukit/privacy/m.py"]
    assert mutants.run(tree, tests, 0.001, False).kind == "endless"
    for old, verdict in [
        ("i += 2", mutants.Verdict("found", ("tests/test_m.py::test",))),
        ("max", mutants.Verdict("survived")),
    ]:
        with mutants.planted(tree, drawn(tree, old)):
            assert (tree / "ibukit/privacy/m.py").read_text("utf8") != source
            assert mutants.run(tree, tests, 60.0, False) == verdict
        assert (tree / "ibukit/privacy/m.py").read_text("utf8") == source
    server.close()


def test_a_test_that_fails_anyway_finds_nothing(tree, monkeypatch):
    """Runs as they would come out, where the second test always fails."""

    def run(tree, arguments, limit, plain):
        text = (tree / "ibukit/privacy/m.py").read_text("utf8")
        if "<=" in text:
            return mutants.Verdict("found", ("tests/test_m.py::right",))
        if "pass" in text:
            return mutants.Verdict("endless")
        if "+= 3" in text:  # what is imported fails
            return mutants.Verdict("found")
        if "min" in text:
            return mutants.Verdict("survived")
        return mutants.Verdict("found", ("tests/test_m.py::wrong",))

    monkeypatch.setattr(mutants, "run", run)
    mutants.failing.cache_clear()
    kinds = mutants.judge(
        [drawn(tree, old) for old in ("<", "max", "0", "i += 2", "2")],
        tree,
        mutants.nearest(tree),
        1.0,
    )
    assert list(kinds.values()) == ["found", "survived", *["undecided"] * 3]


def test_the_copy_follows_the_tree(tree, tmp_path_factory):
    to = tmp_path_factory.mktemp("copy")
    mutants.copy(tree, to)
    (tree / "ibukit/privacy/m.py").write_text("x = 1\n", "utf8")
    (tree / "tests/conftest.py").unlink()
    mutants.copy(tree, to)
    assert (to / "ibukit/privacy/m.py").read_text("utf8") == "x = 1\n"
    assert not (to / "tests/conftest.py").exists()


def test_a_sample_is_that_of_its_seed(tree):
    first, again, other = (mutants.sample(tree, ["privacy"], 4, seed) for seed in (0, 0, 1))
    assert [str(m) for m in first] == [str(m) for m in again] != [str(m) for m in other]
    assert len(first) == 4
    assert mutants.sample(tree, ["solvers"], 4, 0) == []


def test_a_fault_stays_in_its_sample_when_other_code_changes(tree):
    before = {mutant.name for mutant in mutants.sample(tree, ["privacy"], 4, 0)}
    (tree / "ibukit/privacy/a.py").write_text("x = 1 + 2\n", "utf8")
    after = {mutant.name for mutant in mutants.sample(tree, ["privacy"], 4, 0)}
    kept = {name for name in after if name[0] == "ibukit/privacy/m.py"}
    assert kept <= before
    assert len(kept) > 0


def test_faults_by_hand_are_planted_where_their_text_stands_once(tree):
    rows = ["i += 2,i += 3", "i,j", "gone,here"]
    table = ["file,text,becomes", *(f"ibukit/privacy/m.py,{row}" for row in rows)]
    (tree / "tests/planted_faults.csv").write_text("\n".join(table) + "\n", "utf8")
    (mutant,) = mutants.by_hand(tree, [])
    assert mutant.lines == ("i += 2", "i += 3")
    with mutants.planted(tree, mutant):
        assert "i += 3\n" in (tree / "ibukit/privacy/m.py").read_text("utf8")
    assert mutants.by_hand(tree, ["solvers"]) == []


def test_most_faults_by_hand_are_faults_of_today():
    with (mutants.ROOT / "tests/planted_faults.csv").open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = mutants.by_hand(mutants.ROOT, [])
    # A row lapses where its text is rewritten; when many have, others should be planted.
    assert len(found) >= 0.8 * len(rows) >= 64
    for mutant in found:
        assert mutant.fault.old != mutant.fault.new
        assert mutants.is_program(mutant.fault.planted(mutant.text)), mutant.file


def test_a_room_is_not_another_whose_name_it_begins():
    files = mutants.modules(mutants.ROOT, ["estimate", "bayes/_gibbs", "errors"])
    assert {file.split("/")[1] for file in files} == {"estimate", "bayes", "errors.py"}
    assert "ibukit/bayes/_gibbs_kernels.py" in files
    assert set(files) < set(mutants.modules(mutants.ROOT))


def test_every_folder_of_the_package_with_functions_is_a_room():
    sampled = {Path(file).parent for file in mutants.modules(mutants.ROOT)}
    every = {path.parent.relative_to(mutants.ROOT) for path in mutants.ROOT.glob("ibukit/**/*.py")}
    # these only give names of other rooms
    assert every - sampled == {Path("ibukit/surveys")}


def test_every_module_has_nearest_tests_that_exist():
    near = mutants.nearest(mutants.ROOT)
    assert set(near) == set(mutants.modules(mutants.ROOT))
    for file, tests in near.items():
        assert tests, file
        assert all((mutants.ROOT / test).is_file() for test in tests), file


def test_every_named_equivalent_is_a_fault_of_today():
    """A row whose line was changed would name nothing, or another fault."""
    named = {}
    for name in mutants.equivalents(mutants.ROOT):
        named.setdefault(name[0], set()).add(name)
    for file, rows in named.items():
        text = (mutants.ROOT / file).read_text("utf8")
        lines = {name[2] for name in rows}
        wanted = [i for i, line in enumerate(text.splitlines(), 1) if line.strip() in lines]
        every = {
            mutants.Mutant(file, fault, text).name
            for fault in source_faults.faults(text)
            if fault.line in wanted
        }
        assert rows <= every, file
    with (mutants.ROOT / "tests/equivalent_mutants.csv").open(encoding="utf8", newline="") as file:
        assert all(len(row["reason"]) > 20 for row in csv.DictReader(file))


def test_the_tests_without_jit_are_there():
    assert all((mutants.ROOT / test).is_file() for test in kernel_coverage.TESTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--n 0", "--n must be at least 1, got 0"),
        ("--room solvers,bayes", "--room must name rooms or files of ibukit/, got solvers,bayes"),
        ("--room gone bayes", "--room must name rooms or files of ibukit/, got gone"),
        ("--by-hand --room errors", "tests/planted_faults.csv has no fault for --room errors"),
    ],
)
def test_what_names_no_fault_is_refused(arguments, message, monkeypatch, capsys):
    option, *room = arguments.split("--room ")
    given = [*option.split(), *(["--room", *room] if room else [])]
    monkeypatch.setattr("sys.argv", ["mutants.py", *given])
    monkeypatch.setattr(mutants, "copy", pytest.fail)
    with pytest.raises(SystemExit):
        mutants.main()
    assert capsys.readouterr().err.endswith(f"error: {message}\n")


def test_where_no_fault_has_an_effect_none_is_missed(monkeypatch, capsys, tree):
    faults = mutants.sample(tree, ["privacy"], 3, 0)
    monkeypatch.setattr("sys.argv", ["mutants.py", "--room", "privacy"])
    monkeypatch.setattr(mutants, "sample", lambda *arguments: faults)
    monkeypatch.setattr(mutants, "copy", lambda *arguments: None)
    monkeypatch.setattr(mutants, "server", lambda: pytest_server.PytestServer(foreign=()))
    monkeypatch.setattr(mutants, "equivalents", lambda root: {m.name: "" for m in faults})
    monkeypatch.setattr(mutants, "judge", lambda chosen, *others: dict.fromkeys(chosen, "found"))
    assert mutants.main() == 0
    assert "score 100 %, seed 0: of 3 faults 0 found" in capsys.readouterr().out
    monkeypatch.setattr(mutants, "equivalents", lambda root: {})
    monkeypatch.setattr(mutants, "judge", lambda chosen, *others: dict.fromkeys(chosen, "survived"))
    assert mutants.main() == 1
