"""Smoothers: a penalised likelihood, a smoothed EM, and a prior of few parameters.

    .venv/bin/python -m benchmarks.smoothers [REPETITIONS]

The penalised likelihood is `ibukit.smooth`. The settings are the ages and Manhattan, at four noise
levels each, with every weight chosen from the reports alone. Writes results/smoothers.csv: the
earth mover's distance of each estimate to the truth, with its standard error. Only this comparison
needs the rivals, so their code is here. The penalty was chosen on these eight settings; *How far
should IBU run?* tries others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.interpolate import BSpline
from scipy.linalg import expm
from scipy.optimize import minimize
from scipy.special import softmax

import ibukit as ik

RESULTS = Path(__file__).parent / "results" / "smoothers.csv"
SEED, REPETITIONS, FOLDS = 2026, 10, 5
LEVELS = {"adult_ages": (0.01, 0.05, 0.1, 0.3), "gowalla_manhattan": (0.2, 0.5, 1.0, 2.0)}
# bandwidths of the smoothed EM, in steps of the line or cells; sizes of the spline bases of the
# prior
BANDWIDTHS = np.geomspace(0.02, 6, 18)[::-1]
ON_A_LINE = (5, 6, 8, 10, 13, 17, 22, 30)
ON_A_MAP = ((4, 4), (6, 5), (8, 6), (11, 8), (14, 10), (18, 13))
MAX_STEPS, STILL = 3000, 1e-6
RIDGE = 1.0


def folds(counts: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split the reports at random into parts, each of which is held out once.

    The same counts are always split in the same way.
    """
    rng, left = np.random.default_rng(0), counts.copy()
    for i in range(FOLDS):
        held = rng.binomial(left, 1 / (FOLDS - i))
        left -= held
        yield counts - held, held


def log_likelihood(theta: np.ndarray, matrix: np.ndarray, counts: np.ndarray) -> float:
    return float(counts @ np.log(theta @ matrix))


def smoothed_em(tally: ik.Tally, by: str) -> np.ndarray:
    """Silverman et al. 1990: theta <- (theta g) S to a fixed point.

    S is a Gaussian kernel on the neighbours.
    """
    matrix, counts = tally.matrix(), tally.counts
    kernels = gaussian_kernels(tally.alphabet)
    path = [ik.uniform(tally.k)]
    for kernel in kernels:  # from the widest, each from the one before
        path.append(fixed_point(matrix, counts, kernel, path[-1]))
    path = path[1:]
    if by == "discrepancy":  # the widest whose fit is as good as chance allows
        best = float(counts @ np.log(counts / counts.sum()))
        deviances = [2 * (best - log_likelihood(theta, matrix, counts)) for theta in path]
        return path[next((i for i, d in enumerate(deviances) if d <= len(counts) - 1), -1)]
    scores = np.zeros(len(path))
    for kept, held in folds(counts):
        for i, (kernel, theta) in enumerate(zip(kernels, path, strict=True)):
            scores[i] += log_likelihood(fixed_point(matrix, kept, kernel, theta), matrix, held)
    return path[int(scores.argmax())]


def fixed_point(
    matrix: np.ndarray, counts: np.ndarray, kernel: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    q = counts / counts.sum()
    for _ in range(MAX_STEPS):
        moved = (theta * (matrix @ (q / (theta @ matrix)))) @ kernel
        if np.abs(moved - theta).sum() < STILL:
            return moved
        theta = moved
    return theta


@cache
def gaussian_kernels(alphabet: ik.Alphabet) -> list[np.ndarray]:
    if isinstance(alphabet, ik.Grid):
        along = [path_laplacian(n) for n in (alphabet.n_rows, alphabet.n_cols)]
        laplacian = np.kron(along[0], np.eye(alphabet.n_cols)) + np.kron(
            np.eye(alphabet.n_rows), along[1]
        )
    else:
        laplacian = path_laplacian(len(alphabet))
    return [expm(-(width**2) / 2 * laplacian) for width in BANDWIDTHS]


def path_laplacian(n: int) -> np.ndarray:
    steps = np.diff(np.eye(n), axis=0)
    return np.asarray(steps.T @ steps)


def few_parameters(tally: ik.Tally, by: str) -> np.ndarray:
    """Efron 2016: theta = softmax(B a), with B splines and a ridge on the length of a.

    The reports decide how many splines there are.
    """
    matrix, counts = tally.matrix(), tally.counts
    bases = spline_bases(tally.alphabet)
    found = [fitted(matrix, counts, basis, np.full(basis.shape[1], 1e-3)) for basis in bases]
    thetas = [softmax(basis @ a) for basis, a in zip(bases, found, strict=True)]
    scores = np.zeros(len(bases))
    if by == "AIC":
        scores += [
            log_likelihood(t, matrix, counts) - b.shape[1]
            for t, b in zip(thetas, bases, strict=True)
        ]
    else:
        for kept, held in folds(counts):
            again = [
                softmax(b @ fitted(matrix, kept, b, a)) for b, a in zip(bases, found, strict=True)
            ]
            scores += [log_likelihood(theta, matrix, held) for theta in again]
    return thetas[int(scores.argmax())]


def fitted(
    matrix: np.ndarray, counts: np.ndarray, basis: np.ndarray, start: np.ndarray
) -> np.ndarray:
    def objective(a: np.ndarray) -> tuple[float, np.ndarray]:
        theta = softmax(basis @ a)
        p = theta @ matrix
        length = np.sqrt(a @ a + 1e-12)
        slope = theta * (matrix @ (counts / p) - counts.sum())
        return -float(counts @ np.log(p)) + RIDGE * length, -(basis.T @ slope) + RIDGE * a / length

    return np.asarray(
        minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 400}).x
    )


@cache
def spline_bases(alphabet: ik.Alphabet) -> list[np.ndarray]:
    if isinstance(alphabet, ik.Grid):
        raw = [
            np.kron(splines(alphabet.n_rows, a), splines(alphabet.n_cols, b)) for a, b in ON_A_MAP
        ]
    else:
        raw = [splines(len(alphabet), many) for many in ON_A_LINE]
    bases = []
    for basis in raw:
        u, s, _ = np.linalg.svd(basis - basis.mean(axis=0), full_matrices=False)
        bases.append(u[:, s > 1e-9 * s[0]])
    return bases


def splines(n: int, many: int) -> np.ndarray:
    knots = np.r_[[0] * 3, np.linspace(0, 1, many - 2), [1] * 3]
    return np.asarray(BSpline.design_matrix((np.arange(n) + 0.5) / n, knots, 3).toarray())


ESTIMATORS = {
    "smooth": ik.smooth,
    "smoothed EM, thinning": partial(smoothed_em, by="thinning"),
    "smoothed EM, discrepancy": partial(smoothed_em, by="discrepancy"),
    "few parameters, AIC": partial(few_parameters, by="AIC"),
    "few parameters, thinning": partial(few_parameters, by="thinning"),
    "IBU, 300 steps": partial(ik.ibu, stop=ik.Steps(300)),
    "IBU, 1,000 steps": partial(ik.ibu, stop=ik.Steps(1000)),
    "IBU, discrepancy": partial(ik.ibu, stop=ik.Discrepancy(), max_iter=20_000),
    "MLE": ik.mle,
}


def measured(repetitions: int, n_jobs: int = 2) -> pd.DataFrame:
    """Mean EMD and TV with their standard errors.

    Both are also given as multiples of those of `smooth` on the same tallies.
    """
    ages, map_ = ik.datasets.load_adult_ages(), ik.datasets.load_gowalla("manhattan")
    tables = []
    for data, kind in ((ages, ik.TruncatedGeometric), (map_, ik.TruncatedPlanarGeometric)):
        mechanisms = [kind(data.alphabet, level) for level in LEVELS[data.name]]
        table = ik.replicate(data, mechanisms, ESTIMATORS, repetitions, SEED, n_jobs=n_jobs)
        tables.append(table.assign(data=data.name))
    grouped = pd.concat(tables).groupby(["data", "epsilon", "estimator"], sort=False)
    summary = grouped[["emd", "tv"]].agg(["mean", "sem"])
    summary.columns = ["_".join(names) for names in summary.columns]
    ours = summary.xs("smooth", level="estimator")
    for loss in ("emd", "tv"):
        summary[f"{loss}_ratio"] = summary[f"{loss}_mean"] / ours[f"{loss}_mean"]
    return summary.assign(repetitions=repetitions).reset_index()


if __name__ == "__main__":
    from benchmarks.smoothers import (
        measured as measured_here,  # by a name that the workers can import
    )

    table = measured_here(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS)
    table.round(4).to_csv(RESULTS, index=False)
    shown = table.pivot_table(
        index="estimator", columns=["data", "epsilon"], values="emd_ratio", sort=False
    )
    print(shown.round(2).to_string())
