"""Compute the numbers of the figures that move, and write them to book/moving.

    python scripts/moving.py [NAME ...]

Each function below describes one figure: its controls, its panels, its marks and its sentence, in the form that
book/_ext/moving_shapes.py explains. The numbers are rounded to what the figure shows. The same seed gives the same
file.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import ibukit as ik

FOLDER = Path(__file__).resolve().parents[1] / "book" / "moving"
SEED = 1  # that of the landing page
SHARE = 1e-4  # in which the curves are written: less than a pixel
LEVELS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)  # epsilon of the ages, nats per year
FEW_STEPS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
# ten a decade, and round enough to be read
MANY_STEPS = sorted({round(float(f"{10 ** (i / 10):.2g}")) for i in range(54)} | {300, 300_000})
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def plain(x: float) -> str:
    """Two digits of a number; a small one as a multiple of a power of ten."""
    mantissa, exponent = f"{x:.1e}".split("e")
    if int(exponent) < -4:
        return f"{mantissa} × 10{str(int(exponent)).translate(SUPERSCRIPT)}"
    return f"{float(f'{x:.2g}'):,.{max(0, 1 - int(exponent))}f}"


def rounded(values: Iterable[float], unit: float = SHARE) -> list[int]:
    """Whole multiples of a unit."""
    return [round(float(x) / unit) for x in values]


def table(by: str, values: list[Any]) -> dict[str, Any]:
    """What depends on controls."""
    return {"by": by.split(), "values": values}


def axis(start: float, end: float, ticks: dict[float, str], title: str, log: bool = False) -> dict[str, Any]:
    """One axis."""
    return {"from": start, "to": end, "ticks": list(ticks.items()), "title": title} | ({"log": True} if log else {})


def reports_of_ages(epsilon: float) -> tuple[ik.TruncatedGeometric, np.ndarray]:
    """The mechanism on the ages, and the reports of the 48,842 people that the landing page draws, too."""
    ages = ik.datasets.load_adult_ages()
    mechanism = ik.TruncatedGeometric(ages.alphabet, epsilon=epsilon)
    return mechanism, mechanism.randomize(np.repeat(np.arange(100), ages.counts), np.random.default_rng(SEED))


def walk(tally: ik.Tally, steps: Iterable[int]) -> list[ik.Estimate]:
    """IBU after each number of steps, each from where the last one ended."""
    path: list[ik.Estimate] = []
    for before, now in pairwise((0, *steps)):
        start = ik.uniform(tally.k) if not path else np.maximum(path[-1].distribution, 1e-300)
        path.append(ik.ibu(tally, start=start, stop=ik.Steps(now - before)))
    return path


YEARS = {x: str(x) for x in (0, 20, 40, 60, 80)}


def ages_panel(top: float, ticks: dict[float, str], height: int, label: str) -> dict[str, Any]:
    """The axes of a picture of the ages, with the true ones."""
    truth = ik.datasets.load_adult_ages().distribution
    marks = [{"kind": "area", "look": "truth", "key": "true ages", "x": list(range(100)), "y": rounded(truth)}]
    return {
        "label": label,
        "height": height,
        "x": axis(0, 99, YEARS, "age (years)"),
        "y": axis(0, top, ticks, "share of the people"),
        "marks": [mark | {"unit": SHARE} for mark in marks],
    }


def curve(look: str, key: str, y: Any) -> dict[str, Any]:
    """A line over the ages."""
    return {"kind": "line", "look": look, "key": key, "x": list(range(100)), "y": y, "unit": SHARE}


def epsilon_and_steps() -> dict[str, Any]:
    """The ages: what noise does to them, and what steps of IBU bring back."""
    ages = ik.datasets.load_adult_ages()
    told, curves, emds, gaps, raw = [], [], [], [], []
    for level in LEVELS:
        mechanism, reports = reports_of_ages(level)
        q = np.bincount(reports, minlength=100) / ages.n
        path = walk(mechanism.tally(reports), FEW_STEPS)
        told.append(rounded(q))
        raw.append(f"{ik.emd(q, ages.distribution, ages.alphabet):.2f}")
        curves.append([rounded(e.distribution) for e in path])
        emds.append([f"{ik.emd(e.distribution, ages.distribution, ages.alphabet):.2f}" for e in path])
        gaps.append([plain(e.gap) for e in path])
    label = (
        "The shares of the ages from 0 to 99. Grey: the true ages, a hump between 17 and 90. Dotted: the reports, "
        "spread over all ages. Green: the estimate, close to the grey hump."
    )
    panel = ages_panel(0.045, {0: "0", 0.02: "0.02", 0.04: "0.04"}, 230, label)
    panel["marks"] += [
        curve("reports", "reports", table("epsilon", told)),
        curve("IBU", "IBU estimate", table("epsilon steps", curves)),
    ]
    return {
        "title": "The ages: epsilon and the number of steps",
        "controls": [
            {"name": "epsilon", "label": "ε (nats per year)", "values": [f"{x:g}" for x in LEVELS], "start": 3},
            {"name": "steps", "label": "steps of IBU", "values": [f"{n:,}" for n in FEW_STEPS], "start": 5},
        ],
        "panels": [panel],
        "said": {
            "text": "With ε = {epsilon} the reports are {raw} years from the true distribution (EMD). After {steps} "
            "steps the estimate is {emd} years from it; its gap is {gap} nats per report.",
            "values": {
                "raw": table("epsilon", raw),
                "emd": table("epsilon steps", emds),
                "gap": table("epsilon steps", gaps),
            },
        },
    }


def hump_to_comb() -> dict[str, Any]:
    """One tally of the ages, from the first step of IBU to the 300,000th: the curve, and its error."""
    ages = ik.datasets.load_adult_ages()
    mechanism, reports = reports_of_ages(0.05)
    tally = mechanism.tally(reports)
    path = walk(tally, MANY_STEPS)
    off = [ik.emd(e.distribution, ages.distribution, ages.alphabet) for e in path]
    most = ik.mle(tally)
    off_most = ik.emd(most.distribution, ages.distribution, ages.alphabet)
    shape = ages_panel(
        0.08,
        {x / 100: f"{x / 100:g}" for x in (0, 2, 4, 6, 8)},
        240,
        "The shares of the ages. Grey: the true ages, a hump. Green: the estimate. It is flat at the first step, "
        "follows the hump after a few hundred and is a comb of spikes at the end.",
    )
    shape["marks"].append(curve("IBU", "IBU", table("steps", [rounded(e.distribution) for e in path])))
    error = {
        "label": "The distance of the estimate to the truth against the number of steps, both axes logarithmic. It "
        "falls from 11 years to less than one, and rises again towards that of the maximum of the likelihood.",
        "height": 240,
        "x": axis(0.8, 400_000, {1: "1", 100: "100", 10_000: "10,000"}, "steps of IBU", log=True),
        "y": axis(0.4, 15, {0.5: "0.5", 1: "1", 2: "2", 5: "5", 10: "10"}, "EMD to the truth (years)", log=True),
        "marks": [
            {"kind": "level", "look": "MLE", "key": "MLE", "y": round(off_most, 3)},
            {"kind": "line", "look": "IBU", "x": MANY_STEPS, "y": rounded(off, 0.001), "unit": 0.001},
            {
                "kind": "dot",
                "look": "IBU",
                "x": table("steps", MANY_STEPS),
                "y": table("steps", rounded(off, 0.001)),
                "unit": 0.001,
            },
        ],
        "pad": {"x": "steps"},
    }
    return {
        "title": "From hump to comb: the steps of IBU on the ages",
        "controls": [
            {
                "name": "steps",
                "label": "steps of IBU",
                "values": [f"{n:,}" for n in MANY_STEPS],
                "at": MANY_STEPS,
                "start": MANY_STEPS.index(300),
            }
        ],
        "play": "steps",
        "panels": [shape, error],
        "said": {
            "text": "After {steps} steps the estimate is {emd} years from the true distribution (EMD), and its gap is "
            "{gap} nats per report. The highest share is {highest} %. The MLE is {mle} years from the truth.",
            "values": {
                "emd": table("steps", [f"{x:.2f}" for x in off]),
                "gap": table("steps", [plain(e.gap) for e in path]),
                "highest": table("steps", [f"{100 * e.distribution.max():.1f}" for e in path]),
                "mle": f"{off_most:.2f}",
            },
        },
    }


def triangle() -> dict[str, Any]:
    """Three secrets and a few reports; all of it is computed on the page."""
    mechanisms = {
        "it seldom reports the truth (0.1, 0.45, 0.45)": [[0.1, 0.45, 0.45], [0.45, 0.1, 0.45], [0.45, 0.45, 0.1]],
        "1 and 3 are reported alike": [[0.45, 0.1, 0.45], [0.05, 0.9, 0.05], [0.45, 0.1, 0.45]],
        "randomised response, 60 % report the truth": [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]],
    }
    shares = [round(0.02 * i, 2) for i in range(1, 50)]
    steps = [0, 1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1_000]
    kept = [*range(31), *range(35, 100, 5), *range(100, 500, 20), *range(500, 1_001, 50)]
    counts = [str(i) for i in range(21)]
    marks = [
        {"kind": "region", "look": "first", "at": {"is": f"region{i}"}}
        | ({"key": "at most 8 nats below"} if not i else {})
        for i in range(4)
    ]
    marks += [
        {"kind": "ends", "look": "MLE", "key": "all maxima", "at": {"is": "ends"}},
        {"kind": "line", "look": "IBU", "at": {"is": "walk"}},
        {"kind": "dots", "look": "IBU", "key": "steps of IBU", "at": {"is": "walk"}},
        {"kind": "dot", "look": "second", "key": "start", "at": {"is": "start"}},
        {"kind": "dot", "look": "IBU", "key": "end", "at": {"is": "now"}},
    ]
    label = (
        "The triangle of all distributions of three secrets. Shaded: where the likelihood of the reports is close to "
        "its maximum. Orange: all maxima. Green: the steps of IBU from its start to the maxima."
    )
    return {
        "title": "The triangle: reports, likelihood, maxima, and the walk of IBU",
        "computed": "triangle",
        "matrices": list(mechanisms.values()),
        "shares": shares,
        "steps": steps,
        "kept": kept,
        "deficits": [8, 4.5, 2, 0.5],
        "words": [
            "One distribution is more likely than all others.",
            "All distributions on the orange line are equally likely, and no other is more likely.",
            "No report has come in, so all distributions are equally likely.",
        ],
        "controls": [
            {"name": "mechanism", "label": "mechanism", "kind": "select", "values": list(mechanisms), "start": 0},
            {"name": "one", "label": "reports of 1", "values": counts, "start": 0, "size": "third"},
            {"name": "two", "label": "reports of 2", "values": counts, "start": 3, "size": "third"},
            {"name": "three", "label": "reports of 3", "values": counts, "start": 0, "size": "third"},
            {
                "name": "up",
                "label": "start: share of 2",
                "values": [f"{100 * x:.0f} %" for x in shares],
                "start": 39,
                "size": "half",
            },
            {
                "name": "right",
                "label": "of the rest: 3",
                "values": [f"{100 * x:.0f} %" for x in shares],
                "start": 14,
                "size": "half",
            },
            {"name": "steps", "label": "steps of IBU", "values": [f"{n:,}" for n in steps], "start": 9},
        ],
        "play": "steps",
        "panels": [
            {
                "label": label,
                "height": 329,
                "corners": ["all 1", "all 2", "all 3"],
                "x": {"from": 0, "to": 1},
                "y": {"from": 0, "to": 3**0.5 / 2},
                "marks": marks,
                "pad": {},
            }
        ],
        "said": {
            "text": "After {steps} steps IBU gives the secrets 1, 2 and 3 the shares {shares} %. It is {missing} nats "
            "per report below the maximum, and its gap says: at most {gap}. {maxima}",
            "values": {name: {"is": name} for name in ("shares", "missing", "gap", "maxima")},
        },
    }


FIGURES: dict[str, Callable[[], dict[str, Any]]] = {
    "epsilon-and-steps": epsilon_and_steps,
    "hump-to-comb": hump_to_comb,
    "triangle": triangle,
}


def written(spec: dict[str, Any]) -> str:
    """The text of the file: a list of numbers, or of short words, is one line."""
    text = json.dumps(spec, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: "[" + re.sub(r",\n\s*", ",", m[1]) + "]", text) + "\n"


def main() -> None:
    """Write the figures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*FIGURES, []])
    for name in parser.parse_args().names or FIGURES:
        path = FOLDER / f"{name}.json"
        path.write_text(written(FIGURES[name]()), "utf8")
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
