"""Ask mypy about a piece of code that uses the package."""

import os
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).resolve().parents[1]


def said_of(code, folder):
    """What mypy says about some code, which is written to code.py in a folder."""
    (folder / "code.py").write_text(code, "utf8")
    with pytest.MonkeyPatch.context() as patch:
        # Of this directory mypy keeps what it knows of the package, so that it takes seconds.
        patch.chdir(ROOT)
        patch.setitem(os.environ, "MYPYPATH", str(ROOT))
        said, errors, _ = api.run(["--no-error-summary", str(folder / "code.py")])
    assert not errors
    return said
