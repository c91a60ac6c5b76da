"""The promises of the project's own files:
commands that exist, one version, a clean lock, nothing of one machine.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import yaml

import ibukit

ROOT = Path(__file__).resolve().parents[2]
MADE = {
    ".git",
    ".venv",
    "_build",
    "dist",
    "__pycache__",
    ".hypothesis",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
}
TEXTS = ["README.md", "CONTRIBUTING.md", "book/index.md", "book/index.ipynb"]
FIVE_PAPERS = {
    "elsalamouny2025consistency": "2508.09980",
    "kacem2018geometric": "10.1145/3264820.3264827",
    "elsalamouny2023freewill": "2208.11268",
    "lopuhaa2020improving": "1911.10499",
    "biswas2022privic": "2206.10525",
}


def read(name: str) -> str:
    return (ROOT / name).read_text("utf8")


def committed() -> list[Path]:
    """The files under version control; in an unpacked archive, all that `make` did not make."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0:
        return [
            path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()
        ]
    return [p for p in ROOT.rglob("*") if p.is_file() and not MADE & set(p.relative_to(ROOT).parts)]


def targets() -> set[str]:
    """The targets a reader may call."""
    (phony,) = re.findall(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)
    return set(phony.split())


def commands(text: str) -> set[str]:
    """Every target in a text that stands in code: `make book` inline, or a line of a block."""
    return set(re.findall(r"(?:`|^\s*)make ([a-z-]+)", text, re.MULTILINE))


WORKFLOWS = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / ".github" / "workflows").glob("*.yml")
)


@pytest.mark.parametrize(
    "name", [name for name in [*TEXTS, ".ci/run", *WORKFLOWS] if (ROOT / name).exists()]
)
def test_every_make_command_in_the_texts_exists(name):
    text = read(name).replace("${{ matrix.task }}", "slow")
    found = commands(re.sub("step make|- run: make", "make", text).replace('"', "\n"))
    assert found <= targets()
    assert found or name.startswith("book/")


def test_the_workflows_are_thin_and_call_targets_that_exist():
    tasks = yaml.safe_load(read(".github/workflows/weekly.yml"))["jobs"]["weekly"]["strategy"][
        "matrix"
    ]["task"]
    assert set(tasks) <= targets()
    for name in WORKFLOWS:
        for job in yaml.safe_load(read(name))["jobs"].values():
            steps = [step["run"] for step in job["steps"] if "run" in step]
            assert steps
            assert all(re.fullmatch(r"make [^\n]*", step) for step in steps), name


def test_help_lists_every_target():
    shown = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"^ +make ([a-z-]+) +\S", shown, re.MULTILINE)) == targets()


def test_the_lock_holds_names_and_versions_only():
    lines = read("requirements.lock").splitlines()
    pattern = re.compile(r"[a-z0-9][a-z0-9.-]*==[0-9][0-9a-z.]*( ; [a-z_]+ [^/@]*)?")
    assert [line for line in lines if not pattern.fullmatch(line)] == []
    assert len(lines) > 50


SEALED = ["requirements.hashes", "packaging/release.hashes", "packaging/uv.hashes"]


def sealed(text: str) -> dict[str, list[str]]:
    """The lines of a file of hashes, and the SHA-256 of the files that each allows."""
    found: dict[str, list[str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        name, *hashes = re.split(r"\s+--hash=sha256:", line.rstrip())
        found[name] = [each for each in hashes if re.fullmatch(r"[0-9a-f]{64}", each)]
        assert len(found[name]) == len(hashes) > 0, line
    return found


def test_the_hashes_are_of_the_locked_versions():
    assert list(sealed(read("requirements.hashes"))) == read("requirements.lock").splitlines()
    assert list(sealed(read("packaging/uv.hashes"))) == [
        f"uv=={re.search(r'UV +:= (.*)', read('Makefile'))[1]}"
    ]
    tools = sealed(read("packaging/release.hashes"))
    assert set(tomllib.loads(read("pyproject.toml"))["dependency-groups"]["release"]) <= set(tools)
    locked = dict(
        line.split(" ;")[0].split("==")
        for line in read("requirements.lock").splitlines()
        if "python" not in line
    )
    both = [line for line in tools if line.split("==")[0] in locked]
    assert len(both) > 5
    assert [
        line for line in both if line.split(" ;")[0].split("==")[1] != locked[line.split("==")[0]]
    ] == []


@pytest.mark.parametrize("name", SEALED)
def test_the_hashes_name_no_address(name):
    assert not re.search(r"://|^-|@", read(name).replace("    --hash", ""), re.MULTILINE)


def test_a_line_without_its_hash_is_found():
    assert sealed("a==1 \\\n    --hash=sha256:" + "0" * 64) == {"a==1": ["0" * 64]}
    for broken in ("a==1", "a==1 --hash=sha256:" + "0" * 63, "a==1 --hash=md5:" + "0" * 32):
        with pytest.raises(AssertionError):
            sealed(broken)


def test_the_help_of_a_target_names_what_it_takes():
    rules = re.findall(r"^([a-z]+):[^\n]*?## ([^\n]*)\n((?:\t[^\n]*\n)*)", read("Makefile"), re.M)
    taken = {
        name: (set(re.findall(r"\$\(if \$\(([A-Z_]+)\)", recipe)) - {"HASHES"}, about)
        for name, about, recipe in rules
    }
    assert {"ONLY", "TESTS", "GO_ON"} == taken["arm"][0]
    for name, (variables, about) in taken.items():
        assert all(f"{variable}=" in about for variable in variables), name


def test_the_workflows_install_by_hash_only():
    for name in WORKFLOWS:
        assert yaml.safe_load(read(name))["env"] == {"HASHES": "1"}, name
    goals = [".venv/.ok", "_build/release/venv/.ok"]
    for words, times in (["HASHES=1"], 3), (["HASHES="], 0):
        shown = subprocess.run(
            ["make", "-nB", *goals, *words], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        assert len(re.findall(r"--require-hashes -r [a-z/]+\.hashes", shown)) == times
        installs = [
            line
            for line in shown.replace("\\\n", "").splitlines()
            if re.search(r"pip install", line)
        ]
        assert len(installs) == 4
        ours = [line for line in installs if "-e ." in line]  # and nothing that it depends on
        assert len(ours) == 1
        assert "--no-deps --no-build-isolation" in ours[0]


def test_the_lock_keeps_the_pins():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    locked = {line.split(" ;")[0] for line in read("requirements.lock").splitlines()}
    for extra, wanted in project["optional-dependencies"].items():
        pins = {line for line in wanted if "==" in line}
        assert extra in ("lab", "bench") or pins <= locked, extra


def test_one_version_everywhere():
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    assert str(yaml.safe_load(read("CITATION.cff"))["version"]) == version
    assert re.findall(r"^## \[?(\d[^\] ]*)", read("CHANGELOG.md"), re.MULTILINE)[0] == version
    assert ibukit.__version__ == version
    # The README's sentence about the state of this version.
    assert re.findall(r"\bVersion (\d+\.\d+\.\d+)", read("README.md")) == [version]


def test_the_citation_file_names_the_five_papers():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= set(citation)
    assert len(citation["references"]) == len(FIVE_PAPERS)
    for paper in citation["references"]:
        assert {"type", "title", "authors", "year"} <= set(paper)
    numbers = [
        str(entry)
        for paper in citation["references"]
        for entry in (paper.get("doi"), paper.get("identifiers"))
    ]
    for number in FIVE_PAPERS.values():
        assert any(number in text for text in numbers), number


def test_the_entry_for_bibtex_says_what_the_citation_file_says():
    citation = yaml.safe_load(read("CITATION.cff"))
    (entry,) = re.findall(r"^@(.*?)^\}", read("book/bibliography.md"), re.MULTILINE | re.DOTALL)
    assert entry.startswith(f"{citation['type']}{{")
    # BibTeX reads any space as one, so that a long title may be broken
    fields = {
        name: " ".join(value.split())
        for name, value in re.findall(r"^  (\w+) = \{+(.*?)\}+,$", entry, re.MULTILINE | re.DOTALL)
    }
    (year,) = re.findall(r"Copyright \(c\) (\d{4})", read("LICENSE"))
    authors = " and ".join(author["name"] for author in citation["authors"])
    wanted = {"author": authors, "title": citation["title"], "version": citation["version"]}
    assert fields == wanted | {"year": year}


@pytest.mark.parametrize("key", FIVE_PAPERS)
def test_the_bibliography_has_the_five_papers(key):
    (entry,) = re.findall(
        rf"^@\w+\{{{key},\n(.*?)^\}}", read("book/references.bib"), re.MULTILINE | re.DOTALL
    )
    assert FIVE_PAPERS[key] in entry


# Put together here, so that this file does not contain what it looks for.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.\-/])/(?:wo"
    + r"rk|ro"
    + r"ot|tm"
    + r"p|ho"
    + r"me|Us"
    + r"ers)/\w",
    "the host of a package index": r"py" + r"pi\.org|python" + r"hosted\.org|registry\.npm" + r"js",
    "an index option": r"--(?:extra-)?ind" + r"ex-url|--find-" + r"links",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_committed_file_tells_of_one_machine(what):
    pattern = re.compile(FORBIDDEN[what])
    found = []
    for path in committed():
        text = path.read_bytes().decode("utf8", errors="ignore")
        found += [f"{path.relative_to(ROOT)}: {hit.group()}" for hit in pattern.finditer(text)]
    assert found == []


def test_no_committed_file_is_empty_by_mistake():
    empty = {path.name for path in committed() if path.stat().st_size == 0}
    assert empty <= {"__init__.py", "py.typed"}


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a path of one machine", "see /wo" + "rk/main"),
        ("the host of a package index", "https://py" + "pi.org/simple"),
        ("an index option", "--extra-ind" + "ex-url x"),
    ],
)
def test_the_patterns_find_what_they_are_for(what, line):
    assert re.search(FORBIDDEN[what], line)


def test_the_code_in_the_readme_runs(tmp_path, monkeypatch):
    screens = re.findall(r"```python\n(.*?)```", read("README.md"), re.DOTALL)
    assert len(screens) == 3
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    for code in screens:
        names: dict[str, object] = {}
        exec(compile(code, "README.md", "exec"), names)
        assert names["estimate"].gap <= 1e-6
    plt.close("all")


@pytest.mark.parametrize(
    ("name", "most"), [("README.md", 150), ("CONTRIBUTING.md", 150), ("CHANGELOG.md", 120)]
)
def test_what_a_newcomer_reads_first_is_short(name, most):
    assert 50 < len(read(name).splitlines()) <= most


def test_the_extensions_of_the_book_are_small():
    lines = [len(path.read_text("utf8").splitlines()) for path in (ROOT / "book/_ext").glob("*.py")]
    assert len(lines) > 5
    assert sum(lines) <= 2520, "a well-kept extension may already do it"


def test_the_readme_installs_extras_that_exist():
    extras = set(tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"])
    named = set(re.findall(r"pip install \"\.\[(\w+)\]\"", read("README.md")))
    assert named == {"bayes", "dask", "tables"}
    assert named <= extras
