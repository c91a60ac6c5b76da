"""The wheel: built from the tree, installed into a fresh environment elsewhere, and used there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USE_IT = """
import json
import ibukit as ik
import ibukit_claims
ages = ik.datasets.load_adult_ages()
manhattan = ik.datasets.load_gowalla("manhattan")
estimate = ik.ibu(ik.RandomizedResponse(3, epsilon=1.0).tally_counts([50, 30, 20]))
places = [ik.__file__, ibukit_claims.__file__]
print(json.dumps([*places, ages.n, manhattan.n, len(manhattan.alphabet), estimate.gap]))
"""


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints, run where the checkout is on no path."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "COV_", "PYTEST"))
    }
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        folder,
        ROOT,
        cwd=folder,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_its_tables_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tables = {
        p.relative_to(ROOT / "data")
        for p in (ROOT / "data").rglob("*")
        if p.is_file() and "raw" not in p.parts
    }
    assert {f"ibukit/_data/{table.as_posix()}" for table in tables} <= names
    assert "ibukit/py.typed" in names
    for text in ("LICENSE", "data/README.md"):
        assert any(name.endswith(f"licenses/{text}") for name in names)
    assert {name.split("/")[0] for name in names} == {
        "ibukit",
        "ibukit_claims",
        f"{wheel.name.split('-py3')[0]}.dist-info",
    }
    assert not [name for name in names if name.endswith((".nbi", ".nbc", ".pyc"))]


def test_the_wheel_works_outside_the_checkout(wheel, tmp_path):
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=tmp_path)
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", python]
    run(*pip, "install", "-q", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    site = Path(
        run(
            python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path
        ).strip()
    )
    # numpy and the others come from this environment; a path file named in another path file is not
    # followed, so the editable ibukit of this environment stays invisible
    (site / "dependencies.pth").write_text(
        "\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    )
    origin, tool, n_ages, n_manhattan, n_cells, gap = json.loads(
        run(python, "-I", "-c", USE_IT, cwd=tmp_path)
    )
    assert Path(origin).is_relative_to(environment)
    assert Path(tool).is_relative_to(environment)
    assert (n_ages, n_manhattan, n_cells) == (48_842, 98_061, 280)
    assert 0 <= gap <= 1e-6
