"""Shokri's mechanism: the time of its linear programme in each form, and the rank of the result.

    .venv/bin/python -m benchmarks.shokri [LIMIT]

The alphabets are lines and grids of growing size, with a uniform prior and Euclidean loss; times
are CPU seconds. A form that took more than LIMIT seconds (5) is left out on the next size, where it
would take ten to thirty times as long. Writes results/shokri.csv; its last rows are the ten bounds
of the paper on San Francisco.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.optimize import linprog

import ibukit as ik
from benchmarks.measure import clocked

RESULTS = Path(__file__).parent / "results" / "shokri.csv"
LIMIT = 5.0
PROBLEMS = [("line", ik.Line(0, k - 1)) for k in (20, 50, 100)]
PROBLEMS += [("grid", ik.Grid(*shape)) for shape in ((4, 6), (6, 8), (8, 12), (12, 16))]
# shares of the largest useful loss: Table VIII goes from 4 to 112 per cent of that loss on the
# line, and from 8 to 77 per cent on the map
SHARES = (0.08, 0.4, 0.8)
BOUNDS_ON_THE_MAP = np.arange(3, 31, 3) / 10
NEIGHBOURS, MAX_NEW = 8, 4
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def all_guesses(alphabet: ik.Alphabet, bound: float, table: Callable, method: str) -> np.ndarray:
    """The programme as the paper prints it: k^2 guesses of k entries each."""
    loss = alphabet.distances()
    k = len(loss)
    # variables: A by columns, then the adversary's least loss after each report
    expected = sparse.block_diag([sparse.csr_array(-loss.T)] * k)
    beaten = sparse.hstack([expected, sparse.kron(sparse.eye_array(k), np.ones((k, 1)))])
    spent = sparse.csr_array(np.append(loss.T.ravel() / k, np.zeros(k))[None])
    sums = sparse.hstack([sparse.eye_array(k)] * k + [sparse.csr_array((k, k))])
    rows, right = sparse.vstack([beaten, spent]), np.append(np.zeros(k * k), bound)
    found = linprog(
        np.repeat([0.0, -1.0], [k * k, k]),
        table(rows),
        right,
        table(sums),
        np.ones(k),
        method=method,
    )
    return found.x[: k * k].reshape(k, k).T


def as_dense(rows: sparse.sparray) -> np.ndarray:
    return rows.toarray()


def mirrored(grid: ik.Grid, bound: float) -> np.ndarray:
    """An optimum that is symmetric about both axes, found with a quarter of the variables.

    Both sides must be even. The mean of an optimum and its mirror images is optimal, so a symmetric
    optimum exists. As in the package it is a feasible point of the optima; the nearest guesses come
    first, and then those that are missing.
    """
    loss = grid.distances()
    k, unit = len(grid), loss.max()
    cells = np.arange(k).reshape(grid.n_rows, grid.n_cols)
    images = np.array([c.ravel() for c in (cells, cells[::-1], cells[:, ::-1], cells[::-1, ::-1])])
    quarter = cells[: grid.n_rows // 2, : grid.n_cols // 2].ravel()
    m = len(quarter)
    # variables: A_xy for all x and the y of a quarter, by columns; row x is that of its image in
    # the quarter, mirrored
    row_of = np.searchsorted(quarter, images.min(axis=0))
    sums = sparse.csr_array(
        (np.ones(k * m), (np.tile(row_of, m), np.arange(k * m))), shape=(m, k * m)
    )
    spent = sparse.csr_array((loss[:, quarter] / unit / m).T.ravel()[None])
    rows_eq, right_eq = (
        sparse.csc_array(sparse.vstack([sums, spent])),
        np.append(np.ones(m), bound / unit),
    )
    guesses = np.zeros((m, k), dtype=bool)
    np.put_along_axis(
        guesses,
        np.argsort(loss[quarter], axis=1, kind="stable")[:, 1 : 1 + NEIGHBOURS],
        True,
        axis=1,
    )
    while True:
        y, z = np.nonzero(guesses)
        gains = ((loss[:, quarter[y]] - loss[:, z]) / unit).T.ravel()
        places = np.repeat(np.arange(len(y)), k), (y[:, None] * k + np.arange(k)).ravel()
        rows = sparse.csc_array((gains, places), shape=(len(y), k * m))
        found = linprog(
            np.zeros(k * m),
            rows,
            np.zeros(len(y)),
            rows_eq,
            right_eq,
            method="highs-ds",
            options=TIGHT,
        )
        part = found.x.reshape(m, k).T
        costs = part.T @ loss
        missing = costs < costs[np.arange(m), quarter][:, None] - 1e-9 * unit
        if not missing.any():
            break
        cheapest = np.argsort(costs, axis=1, kind="stable")[:, :MAX_NEW]
        new = np.zeros_like(guesses)
        np.put_along_axis(new, cheapest, np.take_along_axis(missing, cheapest, axis=1), axis=1)
        guesses |= new
    matrix = np.empty((k, k))
    for image in images:
        matrix[np.ix_(image, image[quarter])] = part
    return matrix


def ours(alphabet: ik.Alphabet, bound: float, choice: str) -> np.ndarray:
    return ik.shokri(ik.uniform(len(alphabet)), alphabet, bound, choice=choice).matrix()


FORMS: dict[str, Callable[[ik.Alphabet, float], np.ndarray]] = {
    "all guesses, dense, simplex": lambda a, b: all_guesses(a, b, as_dense, "highs-ds"),
    "all guesses, dense, interior point": lambda a, b: all_guesses(a, b, as_dense, "highs-ipm"),
    "all guesses, sparse, simplex": lambda a, b: all_guesses(a, b, sparse.csc_array, "highs-ds"),
    "all guesses, sparse, interior point": lambda a, b: all_guesses(
        a, b, sparse.csc_array, "highs-ipm"
    ),
    "ibukit, vertex": lambda a, b: ours(a, b, "vertex"),
    "near guesses, mirror images": mirrored,
    "ibukit, least information": lambda a, b: ours(a, b, "least-information"),
}


def row(form: str, shape: str, alphabet: ik.Alphabet, bound: float) -> dict[str, object]:
    """Seconds, both losses of the cleaned matrix less the optimum, and the rank of the matrix."""
    prior = ik.uniform(len(alphabet))
    matrix, seconds = clocked(lambda: FORMS[form](alphabet, bound))
    matrix = np.maximum(matrix, 0) / np.maximum(matrix, 0).sum(axis=1, keepdims=True)
    mechanism = ik.MatrixMechanism(matrix, alphabet)
    return {
        "alphabet": shape,
        "k": len(alphabet),
        "bound": round(bound, 4),
        "form": form,
        "seconds": float(f"{seconds:.2g}"),
        "quality_off": float(f"{ik.privacy.quality_loss(mechanism, prior) - bound:.0e}"),
        "privacy_off": float(f"{ik.privacy.adversary_loss(mechanism, prior) - bound:.0e}"),
        "rank": int(np.linalg.matrix_rank(matrix)),
    }


def measured(limit: float, problems: list[tuple[str, ik.Alphabet]] = PROBLEMS) -> pd.DataFrame:
    rows, too_slow = [], set()
    for kind, alphabet in problems:
        most = float(alphabet.distances().mean(axis=0).min())
        shape = (
            f"{alphabet.n_rows} x {alphabet.n_cols}" if isinstance(alphabet, ik.Grid) else "line"
        )
        for share in SHARES:
            for form in FORMS:
                if (kind, form) in too_slow or (
                    form == "near guesses, mirror images" and kind == "line"
                ):
                    continue
                rows.append(row(form, shape, alphabet, share * most))
        slow = [one["form"] for one in rows if one["k"] == len(alphabet) and one["seconds"] > limit]
        too_slow.update((kind, form) for form in slow)
    return pd.DataFrame(rows)


def the_map() -> pd.DataFrame:
    """All ten bounds in the two ways that are quick enough."""
    alphabet = ik.datasets.load_gowalla("san_francisco").alphabet
    forms = ("near guesses, mirror images", "ibukit, least information")
    return pd.DataFrame(
        [row(form, "San Francisco", alphabet, b) for b in BOUNDS_ON_THE_MAP for form in forms]
    )


if __name__ == "__main__":
    table = pd.concat([measured(float(sys.argv[1]) if len(sys.argv) > 1 else LIMIT), the_map()])
    table.to_csv(RESULTS, index=False)
    print(table.to_string())
