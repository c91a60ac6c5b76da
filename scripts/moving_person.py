"""The figure that moves one person: the age, its reports, and the posterior of a report."""

from __future__ import annotations

from typing import Any

import numpy as np

import ibukit as ik
from moving_ages import YEARS, ages_panel, curve
from moving_parts import axis, rounded, table


def person() -> dict[str, Any]:
    """The law of the reports of an age, and the posterior of the age given a report."""
    ages = ik.datasets.load_adult_ages()
    line, prior = ages.alphabet, ages.distribution
    mechanisms = {
        "geometric, ε = 0.05 per year": ik.TruncatedGeometric(line, epsilon=0.05),
        "geometric, ε = 0.2 per year": ik.TruncatedGeometric(line, epsilon=0.2),
        "exponential, ε = 0.2 per year": ik.Exponential(line, epsilon=0.2),
        "k-RR, ε = 2": ik.RandomizedResponse(line, epsilon=2.0),
    }
    who, reports = list(range(17, 90, 4)), list(range(0, 100, 4))
    rows, posteriors, near, means, sds = [], [], [], [], []
    for mechanism in mechanisms.values():
        M = mechanism.matrix()
        joint = prior[:, None] * M
        post = [joint[:, z] / joint[:, z].sum() for z in reports]
        rows.append([rounded(M[x]) for x in who])
        near.append([f"{100 * M[x, max(0, x - 5) : x + 6].sum():.0f}" for x in who])
        posteriors.append([rounded(p) for p in post])
        middle = [p @ line.values for p in post]
        means.append([f"{m:.1f}" for m in middle])
        sds.append(
            [
                f"{np.sqrt(p @ (line.values - m) ** 2):.1f}"
                for p, m in zip(post, middle, strict=True)
            ]
        )
    ticks = {x / 100: f"{x / 100:g}" for x in (0, 2, 4, 6, 8)}
    row = {
        "label": (
            "The probability of each report for a person of the chosen age. With the geometric"
            " mechanism it falls from the age to both sides; what falls outside is reported as 0"
            " or 99."
        ),
        "height": 220,
        "x": axis(0, 99, YEARS, "reported age"),
        "y": axis(0, 0.1, ticks | {0.1: "0.1"}, "probability of the report"),
        "marks": [
            {
                "kind": "upright",
                "look": "second",
                "key": "the person's age",
                "x": table("age", who),
            },
            curve("first", "reports of this person", table("mechanism age", rows)),
        ],
        "pad": {"x": "age"},
    }
    posterior = ages_panel(
        0.06,
        {x / 100: f"{x / 100:g}" for x in (0, 2, 4, 6)},
        220,
        "The distribution of the ages of all people, grey, and of those with the chosen report,"
        " blue: near the report the blue curve is higher than the grey area.",
    )
    posterior["x"]["title"] = "age"
    posterior["y"]["title"] = "probability of the age"
    posterior["marks"] += [
        {"kind": "upright", "look": "grey", "key": "the report", "x": table("report", reports)},
        curve(
            "posterior mean", "ages of those who report this", table("mechanism report", posteriors)
        ),
    ]
    posterior["pad"] = {"x": "report"}
    before = prior @ line.values
    spread = np.sqrt(prior @ (line.values - before) ** 2)
    return {
        "title": "One person, one mechanism: what is reported, and what a report says",
        "controls": [
            {
                "name": "mechanism",
                "label": "mechanism",
                "kind": "select",
                "values": list(mechanisms),
                "start": 0,
            },
            {
                "name": "age",
                "label": "age of the person",
                "values": [str(x) for x in who],
                "at": who,
                "start": 1,
            },
            {
                "name": "report",
                "label": "a report",
                "values": [str(z) for z in reports],
                "at": reports,
                "start": 15,
            },
        ],
        "panels": [row, posterior],
        "said": {
            "text": (
                "With probability {near} % a person aged {age} reports an age at most 5 years off."
                " Those who report {report} are {mean} years old on average, with a standard"
                " deviation of {sd}; for all people these numbers are {before} and {spread}."
            ),
            "values": {
                "near": table("mechanism age", near),
                "mean": table("mechanism report", means),
                "sd": table("mechanism report", sds),
                "before": f"{before:.1f}",
                "spread": f"{spread:.1f}",
            },
        },
    }
