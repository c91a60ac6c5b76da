"""A statistician's path: README and *Which estimator* lead to a weighted estimate in few lines."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ibukit as ik

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "which-estimator.md").read_text("utf8")
MAX_LINES = 15  # lines


def test_the_pages_lead_to_the_chapter():
    assert "A survey with a secret" in (ROOT / "README.md").read_text("utf8")
    assert "{doc}`chapters/survey`" in PAGE


def test_the_lines_of_the_page_make_a_weighted_estimate_with_an_interval(
    tmp_path, monkeypatch, capsys
):
    """By the closed form of the crosswise design, with the weights of two strata."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(code.splitlines()) <= MAX_LINES
    counts = {("a", 4.0): (300, 500), ("b", 1.0): (350, 400)}
    rows = [
        (stratum, weight, report)
        for (stratum, weight), each in counts.items()
        for report, count in zip(("different", "same"), each, strict=True)
        for _ in range(count)
    ]
    table = pd.DataFrame(rows, columns=["stratum", "weight", "report"])
    table.loc[len(table)] = ["a", 4.0, None]
    table.to_csv(tmp_path / "survey.csv", index=False)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, "which-estimator.md", "exec"), names)
    assert capsys.readouterr().out
    same = (4 * 500 + 400) / (4 * 800 + 750)
    estimate = names["estimate"]
    assert estimate["yes"] == pytest.approx((same - 0.75) / -0.5, abs=1e-8)
    low, high = estimate.interval(0.95, of="yes")
    total = 4 * 800 + 750
    variance = sum(
        (weight / total) ** 2 * n * (share * (1 - share)) * n / (n - 1)
        for (_, weight), each in counts.items()
        for n, share in [(sum(each), each[1] / sum(each))]
    )
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(variance) / 0.5, rel=0.01)
    assert isinstance(names["tally"], ik.Tally)
    assert dict(names["tally"].dropped) == {"missing": 4.0}


def test_frames_of_estimates_become_tables_of_a_paper():
    """By pandas, which needs Jinja; labels with signs of LaTeX are escaped on request."""
    tally = ik.RandomizedResponse(["R&D", "50 %"], epsilon=2.0).tally_counts([600, 400])
    frame = ik.mle(tally).to_frame()
    text = frame.to_latex(float_format="%.3f", escape=True)
    assert r"R\&D & 0.631" in text
    assert r"50 \% & 0.369" in text
