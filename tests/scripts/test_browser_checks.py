"""All checks of the built book are run, and none that fails hides another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import browser_checks

USAGE = re.compile(r"^    python scripts/(\w+\.py) .*--self-test", re.M)
SCRIPTS = Path(browser_checks.__file__).parent


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A folder with a check that finds nothing, and two that find something."""
    (tmp_path / "good.py").write_text("print('nothing found')\n", "utf8")
    for name in ("bad", "worse"):
        (tmp_path / f"{name}.py").write_text(
            f"import sys\nprint('a finding of {name}', file=sys.stderr)\nsys.exit(1)\n", "utf8"
        )
    return tmp_path


def test_a_check_that_fails_hides_no_other(
    scripts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = [("good.py", "-a"), ("bad.py",), ("good.py", "-b")]
    failed = browser_checks.failures([("worse.py",)], shared, jobs=2, scripts=scripts)
    assert failed == ["worse.py", "bad.py"]
    said = re.sub(r"\d+ s", "1 s", capsys.readouterr().out)
    assert said.startswith("--- worse.py (1 s, FAILED)\na finding of worse\n")
    assert "--- good.py -a (1 s)\nnothing found\n" in said
    assert "--- bad.py (1 s, FAILED)\na finding of bad\n" in said
    assert "--- good.py -b (1 s)\nnothing found\n" in said


def test_every_check_of_a_page_is_run_and_shown_broken_pages() -> None:
    checks = {
        name for path in SCRIPTS.glob("*.py") for name in USAGE.findall(path.read_text("utf8"))
    }
    checks -= {"check_verdict_page.py"}  # `check_book` calls it, in both ways
    assert all(rest == ["--self-test"] for _, *rest in browser_checks.CONTROLS)
    assert {name for name, _ in browser_checks.CONTROLS} == checks
    commands = [browser_checks.alone(2), *browser_checks.SHARED]
    assert not any("--self-test" in rest for _, *rest in commands)
    assert {name for name, *_ in commands} == checks | {
        "first_minute.py"  # it measures, and has nothing to find
    }
