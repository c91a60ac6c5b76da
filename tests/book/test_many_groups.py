"""The page *Many groups at once*: its code runs as it stands, and its sentences hold."""

import re
from pathlib import Path

import numpy as np

import ibukit as ik

PAGE = (Path(__file__).resolve().parents[2] / "book" / "many-groups.md").read_text("utf8")


def test_the_code_runs_in_the_order_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert names["frame"].shape == (12, 4)
    assert list(names["frame"]) == ["probability", "lower", "upper", "identified"]
    assert names["frame"].index.names == ["country", "day", "label"]
    estimate = names["estimates"]["DE", "mon"]
    assert isinstance(estimate, ik.Estimate)
    assert estimate.gap < 1e-9
    assert len(names["week"]) == len(names["again"]) == 6
    assert names["again"]["NL", "wed"].n == sum(
        names["groups"]["NL", day].n for day in ("mon", "tue")
    )
    profiles = names["estimates"].to_frame(method="profile", n_jobs=2)
    assert np.abs(profiles["lower"] - names["frame"]["lower"]).max() < 0.02
