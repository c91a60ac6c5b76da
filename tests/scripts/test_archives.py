"""A release: one version, a recipe with our dependencies,
an archive of the book, warnings that help.
"""

from __future__ import annotations

import ast
import hashlib
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import release
import versions

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
RECIPE = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text("utf8"))


def test_the_recipe_has_our_version_command_and_dependencies():
    assert RECIPE["context"]["version"] == PROJECT["version"]
    (command,) = RECIPE["build"]["python"]["entry_points"]
    assert command.split(" = ") == ["ibukit", PROJECT["scripts"]["ibukit"]]
    wanted = {
        "matplotlib-base" + d[10:] if d.startswith("matplotlib") else d
        for d in PROJECT["dependencies"]
    }
    listed = {line.replace(" ", "") for line in RECIPE["requirements"]["run"]}
    assert listed == wanted | {f"python{PROJECT['requires-python']}"}
    assert RECIPE["about"]["license"] == PROJECT["license"]
    assert RECIPE["about"]["license_file"] == PROJECT["license-files"]


def test_the_licence_names_those_of_the_tables():
    terms = (ROOT / "data" / "README.md").read_text("utf8").split("## Sources, terms")[1]
    named = PROJECT["license"].split(" AND ")
    assert [text for text in named if not text.startswith("LicenseRef-")] == ["MIT", "CC-BY-4.0"]
    # Each folder of tables has a paragraph; those without a licence are what the last name is for.
    for folder in (path for path in (ROOT / "data").iterdir() if path.is_dir()):
        if folder.name not in {"counterexamples", "published", "repetitions"}:
            assert f"(`{folder.name}/`)" in terms, folder.name
    assert set(re.findall(r"CC BY[-\w]* \d\.\d", terms)) == {"CC BY 4.0"}
    assert "under the MIT licence" in terms
    assert "data/README.md" in PROJECT["license-files"]


def test_the_versions_of_python_are_those_that_are_tried():
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert named == [each.name for each in versions.VERSIONS if each.resolution == "highest"]
    makefile = (ROOT / "Makefile").read_text("utf8")
    locked = re.search(r"^LOCKED_EXTRAS := (.*)$", makefile, re.MULTILINE)[1]
    tried = re.fullmatch(r"\.\[(.*)\]", versions.EXTRAS)[1].split(",")
    assert sorted(tried) == sorted(locked.replace("--extra ", "").split())


def test_the_filters_pass_what_dependencies_say_on_python_3_14():
    filters = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["pytest"][
        "ini_options"
    ]["filterwarnings"]
    patterns = [text.split(":")[1] for text in filters if text.startswith("ignore:")]
    for message in (
        r"invalid escape sequence '\d'",
        r'"\d" is an invalid escape sequence. Such sequences will not work in the future.',
        "It looks like `register_random` was passed an object that could be garbage collected",
    ):
        assert any(re.match(pattern, message) for pattern in patterns), message


def test_the_recipe_is_tried_with_our_requirements_and_on_our_archive_only(tmp_path):
    built = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["build-system"]["requires"]
    assert set(release.requirements(RECIPE)) == {*PROJECT["dependencies"], *built, "pip"}
    with pytest.raises(
        release.Refused,
        match=r"the recipe takes \.\./dist/ibukit-.*, the archive is ibukit-1\.tar\.gz",
    ):
        release.try_recipe(tmp_path / "ibukit-1.tar.gz", tmp_path)


def pages(folder: Path) -> Path:
    folder.mkdir()
    (folder / "index.html").write_text("<title>a</title>", "utf8")
    (folder / "book").mkdir()
    (folder / "book" / "page.html").write_text("<title>b</title>", "utf8")
    return folder


def test_the_archive_of_the_book_has_the_same_bytes_wherever_it_is_packed(tmp_path):
    hashes = set()
    for place in ("one", "two"):
        (tmp_path / f"made-{place}").mkdir()
        archive = tmp_path / f"made-{place}" / "ibukit-1-book.zip"
        release.book(pages(tmp_path / place), archive)
        hashes.add(hashlib.sha256(archive.read_bytes()).hexdigest())
    assert len(hashes) == 1
    assert zipfile.ZipFile(archive).namelist() == [
        "ibukit-1-book/book/page.html",
        "ibukit-1-book/index.html",
    ]


def test_a_folder_without_a_book_is_refused(tmp_path):
    with pytest.raises(release.Refused, match="make book"):
        release.book(tmp_path, tmp_path / "ibukit-1-book.zip")


def test_the_readme_begins_with_an_example_that_runs_alone():
    (first, *_) = release.examples((ROOT / "README.md").read_text("utf8"))
    tree = ast.parse(first)
    assert {
        alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    } == {"ibukit"}


def test_a_version_that_the_changelog_does_not_begin_with_is_refused(tmp_path, monkeypatch):
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (tmp_path / name).write_text((ROOT / name).read_text("utf8"), "utf8")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [0.0.9]\n", "utf8")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    with pytest.raises(release.Refused, match=r"begins with version 0\.0\.9"):
        release.version_of_the_tree()


def test_the_size_of_a_package_is_that_of_its_files_and_libraries(tmp_path, capsys, monkeypatch):
    for name, size in (("a/x.py", 2_000_000), ("a.libs/x.so", 3_000_000), ("b.py", 4_000_000)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(size))
    assert release.sizes(tmp_path) == {"a": 5.0, "b.py": 4.0}
    monkeypatch.setattr(release, "run", lambda *command: f"{tmp_path}\n")
    release.say_sizes(tmp_path / "python")
    assert capsys.readouterr().out == "installed: 9 MB; a 5, b.py 4\n"
