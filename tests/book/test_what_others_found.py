"""The page *What others found*: its code runs, and its table is what the code prints."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "what-others-found.md").read_text("utf8")


def test_the_code_prints_the_table_under_it(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    table = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert [int(steps.replace(",", "")) for steps, _ in table] == [int(one) for one, _ in printed]
    for (_, said), (_, found) in zip(table, printed, strict=True):
        assert float(found) == pytest.approx(float(said), abs=1.5e-3)
    some = np.count_nonzero(np.asarray(names["exact"]))
    assert f"to only {some}." in PAGE
