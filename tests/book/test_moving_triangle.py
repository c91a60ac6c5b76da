"""The triangle that moves: what the page computes is what ibukit computes."""

import json
import shutil
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import ibukit as ik
import moving_triangle

ROOT = Path(__file__).resolve().parents[2]
SPEC = json.loads((ROOT / "book" / "moving" / "triangle.json").read_text("utf8"))
MATRICES = [np.array(matrix) for matrix in SPEC["matrices"]]
COUNTS = [(0, 3, 0), (1, 4, 1), (5, 2, 0), (20, 1, 7)]
STARTS = [[0.02, 0.96, 0.02], [0.5, 0.2, 0.3]]
SCRIPT = (ROOT / "book" / "_static" / "moving-triangle.js").read_text("utf8")
# likelihood, gap, maxima of each case, and the distribution after 1, 10 and 300 steps
RUN = """cases => cases.map(({ matrix, counts, start }) => {
  const { seen, likelihood, step, gap, maxima } = window.ibukitMoving.triangle;
  const reports = seen(matrix, counts);
  let theta = start;
  const walk = [];
  for (let i = 1; i <= 300; i++) {
    theta = step(reports, theta);
    if ([1, 10, 300].includes(i)) walk.push(theta);
  }
  const found = { likelihood: likelihood(reports, start), gap: gap(reports, start) };
  return { ...found, maxima: maxima(reports), walk };
})"""
TOL = 1e-9


@pytest.fixture(scope="module")
def run():
    """Run the script of the page in Chromium, on cases."""
    found = next(
        (
            path
            for name in ("chromium", "chromium-browser", "google-chrome")
            if (path := shutil.which(name))
        ),
        None,
    )
    if found is None:
        pytest.skip(
            "there is no Chromium to run the script in; `make browser` needs one and checks the"
            " same"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()

        def cases(script, given):
            page.goto("about:blank")
            page.add_script_tag(content=script)
            return page.evaluate(RUN, given)

        yield cases
        browser.close()


GRID = [
    {"matrix": matrix.tolist(), "counts": counts, "start": start}
    for matrix, counts, start in product(MATRICES, COUNTS, STARTS)
]


@cache
def known(i):
    """What ibukit computes in a case:
    the tally, numbers and walk at the start, the best likelihood, the maxima.
    """
    case = GRID[i]
    tally, start = (
        ik.MatrixMechanism(case["matrix"]).tally_counts(case["counts"]),
        np.array(case["start"]),
    )
    walk = [ik.ibu(tally, start=start, stop=ik.Steps(n)).distribution for n in (1, 10, 300)]
    ends = moving_triangle.maxima(tally)
    numbers = moving_triangle.likelihood(tally, start), ik.gap(tally, start)
    return tally, numbers, walk, moving_triangle.likelihood(tally, ends[0]), ends


def wrong(i, got):
    """The names of what differs from ibukit's by more than 1e-9."""
    tally, (likely, gap), walk, best, wanted = known(i)
    ends = np.array(got["maxima"])
    off = {
        "likelihood": abs(got["likelihood"] - likely),
        "gap": abs(got["gap"] - gap),
        "step": np.abs(np.array(got["walk"]) - walk).max(),
        "maxima": max(abs(moving_triangle.likelihood(tally, end) - best) for end in ends),
        "certificate": max(ik.gap(tally, end) for end in ends),
    }
    # places, where the likelihood is flat: to the width that mle_set calls a point
    same = ends.shape == wanted.shape and np.abs(ends - wanted).max() < 1e-6
    return [name for name, far in off.items() if not far <= TOL] + ([] if same else ["ends"])


def test_the_script_computes_what_ibukit_does(run):
    results = run(SCRIPT, GRID)
    assert {i: found for i, got in enumerate(results) if (found := wrong(i, got))} == {}
    assert {len(got["maxima"]) for got in results} == {1, 2}


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("q * Math.log(", "q * Math.log2(", "likelihood"),
        ("g * theta[x]", "g ** 0.9 * theta[x]", "step"),
        ("Math.max(...ratios(", "Math.min(...ratios(", "gap"),
        ("i < 60", "i < 8", "certificate"),
        ("[plus(best, edge(best, back), back)", "[best", "ends"),
    ],
)
def test_a_wrong_script_is_found(run, old, new, name):
    assert SCRIPT.count(old) == 1
    found = [wrong(i, got) for i, got in enumerate(run(SCRIPT.replace(old, new), GRID))]
    assert any(name in names for names in found)


def test_regions_have_the_level_on_their_border():
    tally = ik.MatrixMechanism(MATRICES[2]).tally_counts([5, 2, 3])
    centre = moving_triangle.maxima(tally).mean(axis=0)
    level = moving_triangle.likelihood(tally, centre) - 0.5 / tally.n
    for x, y in moving_triangle.region(tally, centre, level):
        up = y / moving_triangle.HIGH
        theta = np.array([1 - x - up / 2, up, x - up / 2])
        assert theta.min() > -1e-9
        on_the_edge = theta.min() < 1e-9
        assert on_the_edge or abs(moving_triangle.likelihood(tally, theta) - level) < 1e-9


def test_without_reports_all_is_equally_likely():
    choice = {"mechanism": 0, "one": 0, "two": 0, "three": 0, "up": 3, "right": 3, "steps": 9}
    world = moving_triangle.world(SPEC, choice)
    assert world["now"] == world["start"]
    assert world["maxima"] == SPEC["words"][2]
    assert len(world["region0"]) == 3
