"""The figures that move the ages: epsilon and steps, from hump to comb, the penalty, one person."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

import ibukit as ik
from moving_parts import SHARE, axis, plain, plain_power, rounded, table

SEED = 1  # the seed of the landing page
LEVELS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)  # epsilon of the ages, nats per year
FEW_STEPS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
# ten for each power of ten, rounded enough to be read
MANY_STEPS = sorted({round(float(f"{10 ** (i / 10):.2g}")) for i in range(54)} | {300, 300_000})
YEARS = {x: str(x) for x in (0, 20, 40, 60, 80)}


def reports_of_ages(epsilon: float) -> tuple[ik.TruncatedGeometric, np.ndarray]:
    """The mechanism on the ages, and the same reports of 48,842 people as on the landing page."""
    ages = ik.datasets.load_adult_ages()
    mechanism = ik.TruncatedGeometric(ages.alphabet, epsilon=epsilon)
    return mechanism, mechanism.randomize(
        np.repeat(np.arange(100), ages.counts), np.random.default_rng(SEED)
    )


def walk(tally: ik.Tally, steps: Iterable[int]) -> list[ik.Estimate]:
    """IBU after each number of steps, each from where the last one ended."""
    path: list[ik.Estimate] = []
    for before, now in pairwise((0, *steps)):
        start = ik.uniform(tally.k) if not path else np.maximum(path[-1].distribution, 1e-300)
        path.append(ik.ibu(tally, start=start, stop=ik.Steps(now - before)))
    return path


def ages_panel(top: float, ticks: dict[float, str], height: int, label: str) -> dict[str, Any]:
    """The axes of a picture of the ages, with the true ones."""
    truth = ik.datasets.load_adult_ages().distribution
    marks = [
        {
            "kind": "area",
            "look": "truth",
            "key": "true ages",
            "x": list(range(100)),
            "y": rounded(truth),
        }
    ]
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


def hump_panel(told: list[Any], colour: str) -> dict[str, Any]:
    """A panel with the true ages and each level's reports, ready for a curve of this colour."""
    label = (
        "The shares of the ages from 0 to 99. Grey: the true ages, a hump between 17 and 90."
        f" Dotted: the reports, spread over all ages. {colour}: the estimate, close to the grey"
        " hump."
    )
    panel = ages_panel(0.045, {0: "0", 0.02: "0.02", 0.04: "0.04"}, 230, label)
    panel["marks"].append(curve("reports", "reports", table("epsilon", told)))
    return panel


def epsilon_control() -> dict[str, Any]:
    """The slider of the levels, which starts at the level of the landing page."""
    return {
        "name": "epsilon",
        "label": "ε (nats per year)",
        "values": [f"{x:g}" for x in LEVELS],
        "start": LEVELS.index(0.05),
    }


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
        emds.append(
            [f"{ik.emd(e.distribution, ages.distribution, ages.alphabet):.2f}" for e in path]
        )
        gaps.append([plain(e.gap) for e in path])
    panel = hump_panel(told, "Green")
    panel["marks"].append(curve("IBU", "IBU estimate", table("epsilon steps", curves)))
    return {
        "title": "The ages: epsilon and the number of steps",
        "controls": [
            epsilon_control(),
            {
                "name": "steps",
                "label": "steps of IBU",
                "values": [f"{n:,}" for n in FEW_STEPS],
                "start": 5,
            },
        ],
        "panels": [panel],
        "said": {
            "text": (
                "With ε = {epsilon} the reports are {raw} years from the true distribution (EMD)."
                " After {steps} steps the estimate is {emd} years from it; its gap is {gap} nats"
                " per report."
            ),
            "values": {
                "raw": table("epsilon", raw),
                "emd": table("epsilon steps", emds),
                "gap": table("epsilon steps", gaps),
            },
        },
    }


def hump_to_comb() -> dict[str, Any]:
    """One tally of the ages from the first step of IBU to the 300,000th: curve and error."""
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
        "The shares of the ages. Grey: the true ages, a hump. Green: the estimate. It is flat at"
        " the first step, follows the hump after a few hundred and is a comb of spikes at the end.",
    )
    shape["marks"].append(
        curve("IBU", "IBU", table("steps", [rounded(e.distribution) for e in path]))
    )
    error = {
        "label": (
            "The distance of the estimate to the truth against the number of steps, both axes"
            " logarithmic. It falls from 11 years to less than one, and rises again towards that of"
            " the maximum of the likelihood."
        ),
        "height": 240,
        "x": axis(0.8, 400_000, {1: "1", 100: "100", 10_000: "10,000"}, "steps of IBU", log=True),
        "y": axis(
            0.4,
            15,
            {0.5: "0.5", 1: "1", 2: "2", 5: "5", 10: "10"},
            "EMD to the truth (years)",
            log=True,
        ),
        "marks": [
            {"kind": "level", "look": "MLE", "key": "MLE", "y": round(off_most, 3)},
            {
                "kind": "line",
                "look": "IBU",
                "x": MANY_STEPS,
                "y": rounded(off, 0.001),
                "unit": 0.001,
            },
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
            "text": (
                "After {steps} steps the estimate is {emd} years from the true distribution (EMD),"
                " and its gap is {gap} nats per report. The highest share is {highest} %. The MLE"
                " is {mle} years from the truth."
            ),
            "values": {
                "emd": table("steps", [f"{x:.2f}" for x in off]),
                "gap": table("steps", [plain(e.gap) for e in path]),
                "highest": table("steps", [f"{100 * e.distribution.max():.1f}" for e in path]),
                "mle": f"{off_most:.2f}",
            },
        },
    }


def penalty() -> dict[str, Any]:
    """The smoother on the reports of the landing page, from no penalty to an overwhelming one."""
    ages = ik.datasets.load_adult_ages()
    mechanism, reports = reports_of_ages(0.05)
    tally = mechanism.tally(reports)
    weights = [float(f"{10 ** (i / 5):.2g}") for i in range(-10, 36)]
    fits = [ik.smooth(tally, penalty=float(x)) for x in weights]
    off = [ik.emd(e.distribution, ages.distribution, ages.alphabet) for e in fits]
    chosen, auto, most = ik.choose_penalty(tally), ik.smooth(tally), ik.mle(tally)
    off_most = ik.emd(most.distribution, ages.distribution, ages.alphabet)
    below = [(most.log_likelihood - e.log_likelihood) for e in fits]
    shape = ages_panel(
        0.06,
        {x / 100: f"{x / 100:g}" for x in (0, 2, 4, 6)},
        240,
        "The shares of the ages. Grey: the true ages, a hump. Pink: the smooth estimate. With a"
        " small penalty it has spikes, with a large one it is flat; in between it follows the"
        " hump.",
    )
    shape["marks"].append(
        curve("smooth", "smooth", table("penalty", [rounded(e.distribution) for e in fits]))
    )
    ticks = {0.01: "0.01", 1: "1", 100: "100", 10**4: "10⁴", 10**6: "10⁶"}
    places = {
        "x": table("penalty", weights),
        "y": table("penalty", rounded(off, 0.001)),
        "unit": 0.001,
    }
    error = {
        "label": (
            "The distance of the smooth estimate to the truth against the penalty, both axes"
            " logarithmic. It has a minimum in between, near the penalty that the reports choose."
        ),
        "height": 240,
        "x": axis(0.006, 2e7, ticks, "penalty ρ", log=True),
        "y": axis(
            0.3,
            15,
            {0.5: "0.5", 1: "1", 2: "2", 5: "5", 10: "10"},
            "EMD to the truth (years)",
            log=True,
        ),
        "marks": [
            {"kind": "level", "look": "MLE", "key": "MLE", "y": round(off_most, 3)},
            {
                "kind": "upright",
                "look": "grey",
                "key": "chosen by the reports",
                "x": float(f"{chosen:.3g}"),
            },
            {
                "kind": "line",
                "look": "smooth",
                "x": weights,
                "y": rounded(off, 0.001),
                "unit": 0.001,
            },
            {"kind": "dot", "look": "smooth", **places},
        ],
        "pad": {"x": "penalty"},
    }
    nearest = int(np.abs(np.log(np.array(weights) / chosen)).argmin())
    return {
        "title": "The penalty of the smoother on the ages",
        "controls": [
            {
                "name": "penalty",
                "label": "penalty ρ",
                "values": [f"{x:,g}" if x < 10**6 else plain_power(x) for x in weights],
                "at": weights,
                "start": nearest,
            }
        ],
        "play": "penalty",
        "panels": [shape, error],
        "said": {
            "text": (
                "With the penalty {penalty} the estimate is {emd} years from the true distribution"
                " (EMD), and its log-likelihood is {below} nats below the maximum. The reports"
                " choose the penalty {chosen}, whose estimate is {auto} years off; the MLE is {mle}"
                " years off."
            ),
            "values": {
                "emd": table("penalty", [f"{x:.2f}" for x in off]),
                "below": table("penalty", [f"{x:,.0f}" if x >= 10 else f"{x:.1f}" for x in below]),
                "chosen": plain(chosen),
                "auto": f"{ik.emd(auto.distribution, ages.distribution, ages.alphabet):.2f}",
                "mle": f"{off_most:.2f}",
            },
        },
    }
