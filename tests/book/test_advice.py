"""The page of all advice says no more than the chapter that counts it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest

import ibukit_claims as claims
import moving_landing
from chapter_openings import glued

BOOK = Path(__file__).resolve().parents[2] / "book"
ADVICE = (BOOK / "which-estimator.md").read_text("utf8")


def cells(stem: str) -> list[Any]:
    folder = BOOK if stem == "index" else BOOK / "chapters"
    return nbformat.read(folder / f"{stem}.ipynb", 4).cells


def row(case: str) -> str:
    [found] = [line for line in ADVICE.splitlines() if line.startswith(f"| {case}")]
    return found


def test_the_counts_of_the_advice_are_those_of_the_chapter():
    of = glued("what-to-run")
    alike = row("Neighbouring values (ages, places) have similar shares, and you want the freq")
    assert f"in {of['n_alike_good']} of {of['n_alike']} settings" in alike
    heaped = row("Heaps on a smooth curve")
    assert 'ik.smooth(t, of="frequencies")' in heaped
    assert f"never more than {of['heap_gain']} % closer" in heaped
    assert f"in one of them the MLE's error was {of['heap_loss']} times the smoother's" in heaped
    few = row("A few values account for nearly everybody")
    assert "`ik.mle(t)`" in few
    assert f"in {of['n_few']} of {of['n_few']} settings" in few


def test_the_chart_draws_the_calls_that_the_table_gives():
    chart = (BOOK / "schematics" / "decision-tree.svg").read_text("utf8")
    drawn = "".join(re.findall(r"<tspan[^>]*>([^<]*)</tspan>", chart))
    of_chart = set(re.findall(r"ik\.\w+", drawn))
    of_table = set(re.findall(r"ik\.\w+", "".join(re.findall(r"^\|.*$", ADVICE, re.MULTILINE))))
    assert of_chart == of_table - {"ik.surveys"}
    assert "heaps" not in chart


@pytest.mark.parametrize("page", ["your-own-data", "what-to-run", "which-estimator"])
def test_a_page_that_pools_names_the_assumption_its_test_and_the_remedy(page):
    text = ADVICE
    if page != "which-estimator":
        text = "\n".join(c["source"] for c in cells(page) if c["cell_type"] == "markdown")
    assert re.search(r"(has|had) nothing to do with the secret", text)
    for word in ("pool_test", "ik.combine_results", "sec-choice", "evidence-own-choice"):
        assert word in text, word


def test_the_curve_of_the_landing_page_needs_no_truth_and_its_numbers_come_from_code():
    drawing = inspect.getsource(moving_landing.ages_reconstructed)
    assert "estimate = ik.smooth(mechanism.tally(reports))" in drawing
    for cell in (cell for cell in cells("index") if cell["cell_type"] == "code"):
        assert "ik.smooth(tally, " not in cell["source"]
        assert "ik.smooth(again, " not in cell["source"]
    prose = "\n".join(c["source"] for c in cells("index") if c["cell_type"] == "markdown")
    for name in ("steps", "smooth", "ibu"):
        assert f"{{glue:text}}`index_{name}`" in prose
    # a number of steps of ik.mle that is typed is another one after the next change of a solver
    typed = (
        r"(method|ik\.mle|ibukit\.mle)\W+takes (\d+|two|three|four|five|six|seven|eight|nine|ten)"
    )
    assert not re.search(typed, prose)
    answer = cells("fast-ibu")[0]["source"]
    assert "`ik.mle` needs {glue:text}`mle_default`" in answer


def test_the_curve_that_is_drawn_is_no_luck_and_the_stop_that_knew_the_truth_is_no_better():
    of = glued("index")
    (ours, error), (stopped, other) = (
        map(float, of[name].split(" ± ")) for name in ("index_smooth", "index_ibu")
    )
    assert claims.agrees("similar", ours / stopped, np.hypot(error / ours, other / stopped))
    # the run on the page is one of the usual ones, neither the best nor the worst
    assert abs(float(of["index_off"]) - ours) < 3 * error * np.sqrt(int(of["index_reps"]))
    assert float(of["index_off"]) < float(of["index_worst"])
    # "to within a year", says the page
    assert float(of["index_worst"]) < 1


def test_the_interval_that_the_landing_page_prints_holds_the_truth_and_not_the_reports():
    [printed] = [
        output["text"]
        for cell in cells("index")
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
    ]
    _, low, high, truth, reports = map(float, re.findall(r"\d+(?:\.\d)?", printed))
    assert low < truth < high < reports
