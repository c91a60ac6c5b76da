"""Make what a release consists of in dist/, and try it where this tree is not.

    python scripts/release.py [--html _build/html] [--out dist] [--tools PYTHON]

The wheel and the source archive are built and checked by twine. Each is installed, with the newest
dependencies that it allows, into a fresh environment, where the first example of its own README is
run in an empty folder. The size of the wheel's environment is printed. The script and the tests of
the conda recipe are run on the source archive; the recipe's requirements come from the index of
Python in the place of conda's channels. The built book becomes an archive whose bytes do not depend
on when or where it was packed. A bill of materials (CycloneDX) lists what the environment of the
wheel holds. SHA256SUMS lists all these files. The first thing that is wrong ends the run with exit
code 1. Nothing is published: a maintainer does that by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "packaging" / "recipe.yaml"
# what conda calls otherwise, and what an environment has before anything is installed
ELSEWHERE = {"matplotlib-base": "matplotlib"}
BIN = Path(sys.executable).parent
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive can hold


class Refused(Exception):
    """Why there is no release."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """The output of a command, run without the variables that might point to this tree."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**clean, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(f"{' '.join(map(str, command[:4]))} ... failed\n{done.stdout}{done.stderr}")
    return done.stdout


def version_of_the_tree() -> str:
    """The version, after checks that the changelog has it and that the tree is as committed."""
    version = str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]["version"])
    newest = re.search(
        r"^## \[?(\d[^\] ]*)", (ROOT / "CHANGELOG.md").read_text("utf8"), re.MULTILINE
    )
    if newest is None or newest[1] != version:
        raise Refused(
            f"CHANGELOG.md begins with version {newest and newest[1]}, pyproject.toml says"
            f" {version}"
        )
    if changed := run("git", "status", "--short"):
        raise Refused(f"these files are not as committed; commit or remove them first:\n{changed}")
    return version


def book(html: Path, archive: Path) -> None:
    """Pack the built book: the same bytes for the same pages."""
    pages = sorted(path for path in html.rglob("*") if path.is_file() and path.name != ".buildinfo")
    if html / "index.html" not in pages:
        raise Refused(f"there is no book in {html}; run `make book`")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in pages:
            entry = zipfile.ZipInfo(f"{archive.stem}/{path.relative_to(html).as_posix()}", EARLIEST)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(entry, path.read_bytes())


def examples(text: str) -> list[str]:
    """The Python examples of a README."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def readme_of(built: Path, python: Path) -> str:
    """The README that the installed package carries, as an index would show it."""
    ask = "import importlib.metadata as m; print(m.metadata('ibukit').get_payload())"
    return run(python, "-I", "-c", ask, cwd=built.parent)


def install_and_try(built: Path, folder: Path) -> Path:
    """Install one file into a fresh environment, run its README's example, return that Python."""
    home = folder / built.suffix[1:]
    run(BIN / "uv", "venv", "-q", "-p", sys.executable, home)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(BIN / "uv", "pip", "install", "-q", "-p", python, built)
    empty = folder / f"empty-{built.suffix[1:]}"
    empty.mkdir()
    found = examples(readme_of(built, python))
    if not found:
        raise Refused(f"the README inside {built.name} has no example")
    said = run(python, "-I", "-c", found[0] + "\nprint(ik.__file__)", cwd=empty)
    if not Path(said.splitlines()[-1]).is_relative_to(home):
        raise Refused(f"the example imported {said.splitlines()[-1]}, not what was installed")
    printed = "\n".join(said.splitlines()[:-1])
    print(
        f"{built.name}: installed in a fresh environment; the README's first example"
        f" prints\n{printed}"
    )
    return python


def sizes(site: Path) -> dict[str, float]:
    """Megabytes of each package of an environment, the largest first, with its libraries."""
    found: dict[str, int] = {}
    for path in site.rglob("*"):
        if path.is_file() and not path.is_symlink():
            package = path.relative_to(site).parts[0].removesuffix(".libs")
            found[package] = found.get(package, 0) + path.stat().st_size
    return {name: found[name] / 1e6 for name in sorted(found, key=found.__getitem__, reverse=True)}


def say_sizes(python: Path) -> None:
    """Print what the environment of the wheel weighs, and its heaviest packages."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = sizes(Path(run(python, "-I", "-c", ask).strip()))
    heaviest = ", ".join(f"{name} {found[name]:.0f}" for name in list(found)[:6])
    print(f"installed: {sum(found.values()):.0f} MB; {heaviest}")


def requirements(recipe: dict[str, Any]) -> list[str]:
    """The requirements of the recipe, by their names in the Python index."""
    asked = recipe["requirements"]["host"] + recipe["requirements"]["run"]
    pairs = [
        (name, bound)
        for name, _, bound in (line.partition(" ") for line in asked)
        if name != "python"
    ]
    return [f"{ELSEWHERE.get(name, name)}{bound}" for name, bound in pairs]


def try_recipe(archive: Path, folder: Path) -> None:
    """Run the recipe's script on the unpacked archive, and then its tests."""
    recipe = yaml.safe_load(RECIPE.read_text("utf8"))
    named = recipe["source"]["path"].replace("${{ version }}", recipe["context"]["version"])
    if Path(named).name != archive.name:
        raise Refused(f"the recipe takes {named}, the archive is {archive.name}")
    home = folder / "recipe"
    run(BIN / "uv", "venv", "-q", "-p", sys.executable, home)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(BIN / "uv", "pip", "install", "-q", "-p", python, *requirements(recipe))
    shutil.unpack_archive(archive, folder / "unpacked", filter="data")
    script = recipe["build"]["script"].replace("${{ PYTHON }}", str(python)).split()
    run(*script, cwd=folder / "unpacked" / archive.name.removesuffix(".tar.gz"))
    empty = folder / "empty-recipe"
    empty.mkdir()
    for test in recipe["tests"]:
        for module in test.get("python", {}).get("imports", []):
            run(python, "-I", "-c", f"import {module}", cwd=empty)
        if test.get("python", {}).get("pip_check"):
            run(python, "-m", "pip", "check", cwd=empty)
        for line in test.get("script", []):
            command, *words = line.split()
            print(
                f"the recipe's test: {line}:"
                f" {run(python.with_name(command), *words, cwd=empty).strip()}"
            )


def sums(out: Path) -> None:
    """Write the SHA-256 of each file."""
    files = sorted(path for path in out.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (out / "SHA256SUMS").write_text("".join(lines), "utf8")
    print(*lines, sep="", end="")


def release(html: Path, out: Path, tools: Path) -> None:
    """Make and try everything."""
    version = version_of_the_tree()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    built = sorted(out.glob("*.whl")) + sorted(out.glob("*.tar.gz"))
    if [file.name.split("-")[1].removesuffix(".tar.gz") for file in built] != [version, version]:
        raise Refused(
            f"expected a wheel and an archive of {version}, found {[file.name for file in built]}"
        )
    book(html, out / f"ibukit-{version}-book.zip")
    print(run(tools, "-m", "twine", "check", "--strict", *built), end="")
    with tempfile.TemporaryDirectory() as folder:
        python, _ = (install_and_try(file, Path(folder)) for file in built)
        say_sizes(python)
        try_recipe(built[1], Path(folder))
        bill = out / f"ibukit-{version}.cdx.json"
        about = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "library")
        run(
            tools,
            "-m",
            "cyclonedx_py",
            "environment",
            "--output-reproducible",
            *about,
            "-o",
            bill,
            python,
        )
    sums(out)


def main() -> int:
    """Carry out the command line; 1 where something is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument(
        "--tools", type=Path, default=ROOT / "_build" / "release" / "venv" / "bin" / "python"
    )
    arguments = parser.parse_args()
    try:
        release(arguments.html.resolve(), arguments.out.resolve(), arguments.tools.absolute())
    except Refused as reason:
        print(f"no release: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
