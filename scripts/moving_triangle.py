"""The computation of the moving triangle by ibukit: a likelihood, its maxima, a walk of IBU.

`world` returns what the script ``moving-triangle.js`` computes for the same choice, so that the
still picture is the first of the script's pictures and ``scripts/check_moving_figures.py`` can
compare the two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import ibukit as ik

HIGH = math.sqrt(3) / 2
Place = tuple[float, float]


def place(theta: np.ndarray) -> Place:
    """Where a distribution stands: the corners are 1 at the left, 2 at the top, 3 at the right."""
    return float(theta[2] + theta[1] / 2), float(theta[1] * HIGH)


def tally_of(spec: dict[str, Any], choice: dict[str, Any]) -> ik.Tally | None:
    """The reports that are chosen; None if there are none."""
    counts = [choice[name] for name in ("one", "two", "three")]
    return (
        ik.MatrixMechanism(spec["matrices"][choice["mechanism"]]).tally_counts(counts)
        if sum(counts)
        else None
    )


def start_of(spec: dict[str, Any], choice: dict[str, Any]) -> np.ndarray:
    """The distribution at which the walk begins."""
    up = spec["shares"][choice["up"]]
    right = (1 - up) * spec["shares"][choice["right"]]
    return np.array([1 - up - right, up, right])


def maxima(tally: ik.Tally | None) -> np.ndarray:
    """The ends of the set of maxima, shape (1 to 3, 3), in the order of the script."""
    if tally is None:
        return np.eye(3)
    found = ik.theory.mle_set(tally)
    if found.unique:
        return found.estimate.distribution[None, :]
    way = np.cross(np.ones(3), tally.matrix()[:, 0])
    return found.points[np.argsort(found.points @ way)]


def likelihood(tally: ik.Tally, theta: np.ndarray) -> float:
    """The log-likelihood in nats per report."""
    return float(tally.frequencies @ np.log(tally.forward(theta)))


def region(tally: ik.Tally, centre: np.ndarray, level: float) -> list[Place]:
    """The border of the distributions whose likelihood is at least a level.

    They are a convex set, so each ray from the centre leaves it once.
    """
    q, matrix = tally.frequencies, tally.matrix()
    x, y = place(centre)

    def leave(angle: float) -> Place:
        up = math.sin(angle) / HIGH
        right = math.cos(angle) - up / 2
        way = np.array([-up - right, up, right])
        falling = way < -1e-15
        last = max(0.0, float(np.min(-centre[falling] / way[falling])))
        inside = last
        if q @ np.log((centre + last * way) @ matrix) < level:
            inside, outside = 0.0, last
            for _ in range(40):
                middle = (inside + outside) / 2
                if q @ np.log((centre + middle * way) @ matrix) >= level:
                    inside = middle
                else:
                    outside = middle
        return x + inside * math.cos(angle), y + inside * math.sin(angle)

    border: list[Place] = []

    def between(angle: float, first: Place, other: float, last: Place, depth: int) -> None:
        if depth == 0 or math.dist(first, last) < 0.015:
            return
        middle = (angle + other) / 2
        there = leave(middle)
        between(angle, first, middle, there, depth - 1)
        border.append(there)
        between(middle, there, other, last, depth - 1)

    for i in range(36):
        angle = i * math.pi / 18
        here = leave(angle)
        border.append(here)
        between(angle, here, angle + math.pi / 18, leave(angle + math.pi / 18), 9)
    return border


def walk(tally: ik.Tally | None, start: np.ndarray, kept: list[int], last: int) -> list[np.ndarray]:
    """The distributions after the steps that are kept, up to the last."""
    if tally is None or not last:
        return [start]
    steps = sorted({n for n in kept if 0 < n < last} | {last})
    return [start, *(ik.ibu(tally, start=start, stop=ik.Steps(n)).distribution for n in steps)]


def world(spec: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any]:
    """All that the picture and its sentence show."""
    tally, ends = tally_of(spec, choice), maxima(tally_of(spec, choice))
    path = walk(tally, start_of(spec, choice), spec["kept"], spec["steps"][choice["steps"]])
    now, centre = path[-1], ends.mean(axis=0)
    top = 0.0 if tally is None else likelihood(tally, centre)
    found = {
        "start": [place(path[0])],
        "now": [place(now)],
        "walk": [place(theta) for theta in path],
        "ends": [place(end) for end in ends],
        "shares": ", ".join(f"{100 * share:.1f}" for share in now),
        "missing": f"{0.0 if tally is None else max(0.0, top - likelihood(tally, now)):.4f}",
        "gap": f"{0.0 if tally is None else ik.gap(tally, now):.4f}",
        "maxima": spec["words"][len(ends) - 1],
    }
    for i, deficit in enumerate(spec["deficits"]):
        whole = [place(corner) for corner in np.eye(3)]
        found[f"region{i}"] = (
            whole if tally is None else region(tally, centre, top - deficit / tally.n)
        )
    return found
