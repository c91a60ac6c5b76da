"""The figure that moves the mechanism of a lonely place in Paris: beta, and the share of liars."""

from __future__ import annotations

from typing import Any

import numpy as np

import ibukit as ik
from moving_parts import axis, plain, rounded, table

LONELY = 71  # the cell A of the chapter
BETAS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # per cell
LIARS = (0, 0.5, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40)  # per cent of the users
BANDS = (0.1, 0.3, 1, 3, 10, 30)  # per cent: the least of each shade
STEPS = 10  # of Blahut and Arimoto, as in the paper


def liars() -> dict[str, Any]:
    """The reports from a lonely place, while other people claim to be there."""
    grid = ik.datasets.load_gowalla("privic_paris").alphabet
    island = ik.normalize(ik.datasets.load_privic_island())
    # the published map is drawn as seen in a mirror
    places = [[int(grid.n_cols - 1 - col), int(row)] for row, col in grid.values]
    bands: list[list[list[Any]]] = [[] for _ in BANDS]
    own, exposure, away = [], [], []
    for beta in BETAS:
        rows = []
        for percent in LIARS:
            people = ik.attack.poisoned_distribution(island, LONELY, percent / 100)
            rows.append(ik.blahut_arimoto(people, grid, beta, STEPS))
        per_cent = [100 * M.matrix()[LONELY] for M in rows]
        for band, low, high in zip(bands, BANDS, (*BANDS[1:], np.inf), strict=True):
            band.append(
                [[places[z] for z in np.flatnonzero((low <= p) & (p < high))] for p in per_cent]
            )
        own.append([plain(p[LONELY]) if p[LONELY] >= 0.01 else "less than 0.01" for p in per_cent])
        exposure.append([100 * ik.privacy.exposure(M, island, LONELY) for M in rows])
        away.append([f"{ik.privacy.mean_displacement(M, LONELY):.1f}" for M in rows])
    across, up = places[LONELY]
    frame = [
        [across + 2.5 * x, up + 2.5 * y] for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))
    ]
    shades = [
        {
            "kind": "tiles",
            "look": "first",
            "opacity": round(0.15 + 0.17 * i, 2),
            "key": f"from {least:g} %",
            "at": table("beta liars", band),
        }
        for i, (least, band) in enumerate(zip(BANDS, bands, strict=True))
    ]
    city = {
        "label": (
            "A map of 11 by 15 cells: the probability that somebody at the lonely place A, in the"
            " middle of an empty square, reports each cell. Without liars the reports fall in the"
            " crowd outside; with many, on A."
        ),
        "height": 288,
        "x": axis(-0.5, grid.n_cols - 0.5, {}, "a cell is about half a kilometre wide"),
        "y": axis(-0.5, grid.n_rows - 0.5, {}, "where a person at A is reported"),
        "marks": [
            *shades,
            {"kind": "line", "look": "second", "key": "the empty square around A", "at": frame},
        ],
    }
    y = table("beta", [rounded(row, 0.01) for row in exposure])
    dot = table("beta liars", [rounded(row, 0.01) for row in exposure])
    curve = {
        "label": (
            "The exposure of the person at A against the share of liars. It rises first, and falls"
            " again where so many lie that a report of A loses its meaning."
        ),
        "height": 288,
        "x": axis(0, 40, {i: str(i) for i in (0, 10, 20, 30, 40)}, "liars (% of the users)"),
        "y": axis(0, 25, {i: str(i) for i in (0, 5, 10, 15, 20, 25)}, "exposure of A (%)"),
        "marks": [
            {"kind": "line", "look": "grey", "x": list(LIARS), "y": y, "unit": 0.01},
            {
                "kind": "dot",
                "look": "second",
                "x": table("liars", list(LIARS)),
                "y": dot,
                "unit": 0.01,
            },
        ],
        "pad": {"x": "liars"},
    }
    return {
        "title": "Reports from a lonely place in Paris, for each beta and share of liars",
        "controls": [
            {
                "name": "beta",
                "label": "β (per cell)",
                "values": [f"{x:g}" for x in BETAS],
                "start": 4,
            },
            {
                "name": "liars",
                "label": "claim to be at A",
                "values": [f"{x:g} %" for x in LIARS],
                "at": LIARS,
                "start": 2,
            },
        ],
        "play": "liars",
        "panels": [city, curve],
        "said": {
            "text": (
                "At β = {beta} and with {liars} liars, a person at A reports A with a probability"
                " of {own} %, and is reported {away} cells away on average. An observer who knows"
                " the map gives the right place a probability of {exposure} % on average."
            ),
            "values": {
                "own": table("beta liars", own),
                "away": table("beta liars", away),
                "exposure": table("beta liars", [[f"{x:.1f}" for x in row] for row in exposure]),
            },
        },
    }
