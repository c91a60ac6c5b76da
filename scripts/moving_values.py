"""The figures that move a few values: the best mechanism for some, and the triangle of three."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

import ibukit as ik
from moving_parts import axis, plain, table


def threshold_questions(k: int, epsilon: float) -> ik.MatrixMechanism:
    """The answers to "at least 1?", ..., "at least k - 1?", each by randomised response."""
    truth = np.tri(k, k - 1, -1)
    sheets = np.array(list(product((0, 1), repeat=k - 1)))
    right = 1 / (1 + np.exp(-epsilon))
    return ik.MatrixMechanism(
        np.where(truth[:, None] == sheets, right, 1 - right).prod(axis=2), ik.Line(0, k - 1)
    )


SIZES = range(3, 9)
PRIVACY = (0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)  # nats per step
SIMPLE = {
    "geometric": ik.TruncatedGeometric,
    "questions": threshold_questions,
    "k-RR": ik.RandomizedResponse,
}


def best_mechanism() -> dict[str, Any]:
    """The simple mechanism with the least error, beside the best of all mechanisms."""
    losses = {
        "squared error": (ik.theory.asymptotic_mse, "mse"),
        "EMD": (ik.theory.asymptotic_emd, "emd"),
    }
    cells = list(product(range(len(SIZES)), range(len(PRIVACY))))
    won: dict[str, list[list[Any]]] = {name: [] for name in ("optimal", *SIMPLE)}
    texts: dict[str, list[Any]] = {name: [] for name in ("winner", "least", *SIMPLE)}
    for limit, criterion in losses.values():
        words: dict[str, Any] = {}
        for i, j in cells:
            k, level = SIZES[i], PRIVACY[j]
            theta = ik.uniform(k)
            errors = {name: limit(kind(k, level), theta) for name, kind in SIMPLE.items()}
            least = ik.optimal_private(theta, k, level, criterion).value
            first = min(errors, key=errors.__getitem__)
            is_best = errors["geometric"] < least * (1 + 1e-6)
            words[i, j] = "optimal" if is_best else first, least, errors
        for name, places in won.items():
            places.append([[i, j] for i, j in cells if words[i, j][0] == name])

        def grid(of: Callable[[Any], str], words: dict[str, Any] = words) -> list[list[str]]:
            return [[of(words[i, j]) for j in range(len(PRIVACY))] for i in range(len(SIZES))]

        called = {
            "optimal": "the geometric mechanism is the best of all private mechanisms",
            "geometric": "the geometric mechanism is the best of the three",
            "questions": "the questions are the best of the three",
            "k-RR": "k-RR is the best of the three",
        }
        texts["winner"].append(grid(lambda cell, called=called: called[cell[0]]))
        texts["least"].append(grid(lambda cell: plain(cell[1])))
        for name in SIMPLE:
            texts[name].append(grid(lambda cell, name=name: plain(cell[2][name])))
    keys = {
        "optimal": ("geometric, the best of all", "first"),
        "geometric": ("geometric", "shade"),
        "questions": ("questions", "second"),
        "k-RR": ("k-RR", "grey"),
    }
    marks: list[dict[str, Any]] = [
        {"kind": "tiles", "look": look, "at": table("loss", won[name])}
        | ({"key": key} if any(won[name]) else {})
        for name, (key, look) in keys.items()
    ]
    frame = [[[[i, j]] for j in range(len(PRIVACY))] for i in range(len(SIZES))]
    marks.append({"kind": "frame", "look": "first", "at": table("k epsilon", frame)})
    return {
        "title": "The best mechanism, by the number of values and epsilon",
        "controls": [
            {
                "name": "loss",
                "label": "error",
                "kind": "select",
                "values": list(losses),
                "start": 0,
            },
            {
                "name": "k",
                "label": "values k",
                "values": [str(k) for k in SIZES],
                "at": list(range(len(SIZES))),
                "start": 0,
            },
            {
                "name": "epsilon",
                "label": "ε (nats per step)",
                "values": [f"{x:g}" for x in PRIVACY],
                "at": list(range(len(PRIVACY))),
                "start": PRIVACY.index(0.1),
            },
        ],
        "panels": [
            {
                "label": (
                    "A table of squares, the number of values across and epsilon upwards. With a"
                    " small epsilon the threshold questions have the least error of three"
                    " mechanisms, with a large one the geometric."
                ),
                "height": 300,
                "x": axis(
                    -0.5,
                    len(SIZES) - 0.5,
                    {i: str(k) for i, k in enumerate(SIZES)},
                    "number of values k",
                ),
                "y": axis(
                    -0.5,
                    len(PRIVACY) - 0.5,
                    {j: f"{x:g}" for j, x in enumerate(PRIVACY)},
                    "ε (nats per step)",
                ),
                "marks": marks,
                "pad": {"x": "k", "y": "epsilon", "hover": True},
            }
        ],
        "said": {
            "text": (
                "With {k} values and ε = {epsilon}, {winner}. In the limit, N times the squared"
                " error or √N times the EMD is {geometric} for the geometric mechanism, {questions}"
                " for the questions and {krr} for k-RR; the least of any private mechanism is"
                " {least}."
            ),
            "values": {
                name.replace("k-RR", "krr"): table("loss k epsilon", values)
                for name, values in texts.items()
            },
        },
    }


def triangle() -> dict[str, Any]:
    """Three secrets and a few reports; all of it is computed on the page."""
    mechanisms = {
        "it seldom reports the truth (0.1, 0.45, 0.45)": [
            [0.1, 0.45, 0.45],
            [0.45, 0.1, 0.45],
            [0.45, 0.45, 0.1],
        ],
        "1 and 3 are reported alike": [[0.45, 0.1, 0.45], [0.05, 0.9, 0.05], [0.45, 0.1, 0.45]],
        "randomised response, 60 % report the truth": [
            [0.6, 0.2, 0.2],
            [0.2, 0.6, 0.2],
            [0.2, 0.2, 0.6],
        ],
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
        "The triangle of all distributions of three secrets. Shaded: where the likelihood of the"
        " reports is close to its maximum. Orange: all maxima. Green: the steps of IBU from its"
        " start to the maxima."
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
            {
                "name": "mechanism",
                "label": "mechanism",
                "kind": "select",
                "values": list(mechanisms),
                "start": 0,
            },
            {"name": "one", "label": "reports of 1", "values": counts, "start": 0, "size": "third"},
            {"name": "two", "label": "reports of 2", "values": counts, "start": 3, "size": "third"},
            {
                "name": "three",
                "label": "reports of 3",
                "values": counts,
                "start": 0,
                "size": "third",
            },
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
            {
                "name": "steps",
                "label": "steps of IBU",
                "values": [f"{n:,}" for n in steps],
                "start": 9,
            },
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
            "text": (
                "After {steps} steps IBU gives the secrets 1, 2 and 3 the shares {shares} %. These"
                " are {missing} nats per report below the maximum, and their gap says: at most"
                " {gap}. {maxima}"
            ),
            "values": {name: {"is": name} for name in ("shares", "missing", "gap", "maxima")},
        },
    }
