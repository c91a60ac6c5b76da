"""What is asked of an estimate once it is there, by the number of secrets.

    .venv/bin/python -m benchmarks.questions [--quick]

The channels are a blur, whose matrix no solver was built for (Gaussian, with a width of a
twentieth of the line, read on as many places as there are secrets), confusion with random rows,
k-RR, geometric noise on a line, and optimised unary encoding. Writes results/questions.csv: CPU
seconds, the medians of rounds in turns, of `mle`, of `identified`, of all standard errors, of the
profile interval of one share and of `smooth` with the penalty that it chooses; and of one
factorisation, a product and a Cholesky factor of BLAS with as many rows as there are secrets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import scipy

import ibukit as ik
from benchmarks.dense_kinds import around
from benchmarks.draws import SEED
from benchmarks.measure import clocked
from benchmarks.run import results, write_rows
from ibukit._ground.threads import one_thread

SIZES = (100, 200, 400, 800)
ROUNDS, USERS = 3, 20_000


def _blur(k: int) -> np.ndarray:
    return around(k, k, lambda apart: np.exp(-((apart / 0.05) ** 2) / 2) + 1e-6)


def _confusion(k: int) -> np.ndarray:
    rows = np.random.default_rng([SEED, k]).dirichlet(np.ones(k), k)
    return np.asarray((rows + np.eye(k)) / 2)


KINDS: dict[str, Callable[[int], ik.Mechanism]] = {
    "blur": lambda k: ik.MatrixMechanism(_blur(k), alphabet=ik.Line(0, k - 1)),
    "confusion": lambda k: ik.MatrixMechanism(_confusion(k), alphabet=ik.Line(0, k - 1)),
    "k-RR": lambda k: ik.RandomizedResponse(ik.Line(0, k - 1), 5.0),
    "geometric": lambda k: ik.TruncatedGeometric(ik.Line(0, k - 1), 0.2),
    "OUE": lambda k: ik.OptimizedUnaryEncoding(ik.Line(0, k - 1), 3.0),
}


def tally(kind: str, k: int) -> ik.Tally:
    """Twenty thousand reports of two hills on a thin background."""
    x, rng = np.arange(k) / k, np.random.default_rng([SEED, k])
    hills = np.exp(-(((x - 0.3) / 0.1) ** 2)) + np.exp(-(((x - 0.7) / 0.05) ** 2)) / 2 + 0.01
    people = ik.quantize(hills / hills.sum())
    return KINDS[kind](k).simulate(rng.multinomial(USERS, people), rng)


def factorisation(k: int) -> None:
    """A product of a k x k matrix with its transpose, and the factor of the product."""
    square = np.random.default_rng(SEED).random((k, k)) + k * np.eye(k)
    with one_thread():
        scipy.linalg.cho_factor(square @ square.T, overwrite_a=True, check_finite=False)


def measured(kind: str, k: int) -> dict[str, object]:
    reports, share = tally(kind, k), np.arange(k) == k // 3
    calls: dict[str, Callable[[], object]] = {
        "mle_s": lambda: ik.mle(reports),
        # Each from a new estimate, because an estimate keeps what it has computed.
        "identified_s": lambda: ik.mle(reports).identified,
        "errors_s": lambda: ik.mle(reports).standard_errors(),
        "profile_s": lambda: ik.mle(reports).interval(of=share * 1.0, method="profile"),
        "smooth_s": lambda: ik.smooth(reports),
        "factorisation_s": lambda: factorisation(k),
    }
    rounds = [{key: clocked(call)[1] for key, call in calls.items()} for _ in range(ROUNDS)]
    seconds = {key: float(np.median([each[key] for each in rounds])) for key in calls}
    return {"kind": kind, "k": k} | {key: float(f"{value:.3g}") for key, value in seconds.items()}


def rows(sizes: tuple[int, ...]) -> Iterator[dict[str, object]]:
    for kind in KINDS:
        # So that no row includes the time of what a first call loads.
        measured(kind, 20)
        for k in sizes:
            yield measured(kind, k)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="100 and 200 secrets")
    asked = parser.parse_args()
    write_rows(rows(SIZES[:2] if asked.quick else SIZES), results("questions", asked.quick))


if __name__ == "__main__":
    main()
