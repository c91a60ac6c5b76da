"""Standard errors of all cells of a plane without a matrix, beside those found in two other ways.

    .venv/bin/python -m benchmarks.cell_errors [--quick]

The other two ways are the matrix, and one solution for each single cell. The people are those of
`benchmarks.planes`, with planar geometric noise, exactly remapped; half of them are spread evenly
over all cells, so that every report is made. Writes results/cell_errors.csv: CPU seconds for all
cells, CPU seconds for one cell alone (the mean of sixteen, solved with bounds that agree to 1e-6),
and the largest difference of the errors at the sixteen cells; and, where there are at most 5,000
secrets, the seconds of the matrix and the largest difference from its errors.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import ibukit as ik
from benchmarks.draws import SEED, _towns
from benchmarks.measure import clocked, peak_bytes
from benchmarks.run import results
from ibukit._ground.threads import one_thread
from ibukit.fisher_information import asymptotic_variances_of_sums, dense
from ibukit.fisher_information.plane_cells import plane_cell_variances

CASES = ((64, 0.2), (64, 1.0), (256, 0.2), (256, 1.0))
USERS_A_CELL, MAX_SECRETS_OF_MATRIX, N_SINGLE = 150, 5000, 16


def reports(side: int, epsilon: float) -> tuple[ik.Tally, np.ndarray]:
    """A tally of all reports, and the distribution that they come from."""
    rng = np.random.default_rng([SEED, side])
    people = _towns(
        (side, side), (side // 8, side - side // 8), 25, side * side // 40, 1.0, 9, 0.05, rng
    )
    law = ik.distributions.normalize(people) / 2 + 1 / (2 * side * side)
    mechanism = ik.TruncatedPlanarGeometric(ik.Grid(side, side), epsilon)
    return mechanism.simulate(
        rng.multinomial(USERS_A_CELL * side * side, ik.quantize(law)), rng
    ), law


def farthest_off(some: np.ndarray, others: np.ndarray) -> float:
    """The largest relative difference of standard errors, given their squares."""
    return float(f"{np.abs(np.sqrt(some / others) - 1).max():.1e}")


def measured(side: int, epsilon: float) -> dict[str, object]:
    tally, theta = reports(side, epsilon)
    found: list[tuple[np.ndarray, float]] = []
    memory = peak_bytes(lambda: found.append(clocked(lambda: plane_cell_variances(tally, theta))))
    ((variances, seconds),) = found
    # corners and a side, where the way without a matrix is least exact, and other cells
    rng = np.random.default_rng(SEED)
    edge = [0, side - 1, side * (side - 1), side * side - 1, side // 2]
    cells = np.append(edge, rng.integers(0, side * side, N_SINGLE - len(edge)))
    questions = (cells[:, None] == np.arange(side * side)) * 1.0
    single, seconds_of_single = clocked(
        lambda: asymptotic_variances_of_sums(tally, theta, questions)
    )
    row: dict[str, object] = {
        "side": side,
        "epsilon": epsilon,
        "n": tally.n,
        "seconds": float(f"{seconds:.3g}"),
        "seconds_of_one": float(f"{seconds_of_single / len(cells):.3g}"),
        "off_at_single": farthest_off(variances[cells], single),
        "megabytes": None if memory is None else round(memory / 1e6),
    }
    if side * side <= MAX_SECRETS_OF_MATRIX:
        with one_thread():
            exact, by_matrix = clocked(lambda: np.diag(dense.lower_covariance(tally, theta)))
        row |= {
            "seconds_of_matrix": float(f"{by_matrix:.3g}"),
            "off_everywhere": farthest_off(variances, exact),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="the smaller ones alone; the result stays in _build"
    )
    asked = parser.parse_args()
    path, rows = results("cell_errors", asked.quick), []
    for side, epsilon in CASES[:2] if asked.quick else CASES:
        rows.append(measured(side, epsilon))
        print(rows[-1], flush=True)
        pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main()
