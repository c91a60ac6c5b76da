"""Measure how often intervals hold if the matrix was measured, on repeated trials and reports.

    python scripts/measured_matrix_coverage.py [--methods wald profile ...] [--matrices test ...]
    [--draws 1000] [--jobs 1] [--to FILE]

Writes data/measured-matrix-coverage.csv. The settings are four confusion matrices, crossed with
three shares of the first secret, two numbers of trials of each secret and two numbers of reports,
and the design of the study of Santa Clara. Each setting has a row for each method, about the share
of the first secret. "known" methods are given the shares of the trials as if these were the
probabilities. Guaranteed intervals and posteriors take a fifth of the draws. Bootstraps take fewer
still, and only few trials with many reports, where the trials matter most. Rows that the file has
are kept, and each row is written as soon as it is measured, so an interrupted run goes on where it
stopped. Draw i of a setting has the same trials and reports for every method, from the seed (SEED,
matrix, share, trials, n, i).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import beta
from tqdm import tqdm

import ibukit as ik
from ibukit.domain.linear_functionals import normal_quantile

FILE = Path(__file__).resolve().parents[1] / "data" / "measured-matrix-coverage.csv"
SEED, LEVEL, DRAWS = 2026, 0.95, 1000
MATRICES: dict[str, list[list[float]]] = {
    # Sensitivity and specificity, about 103 of 122 and 399 of 401.
    "Santa Clara": [[0.845, 0.155], [0.005, 0.995]],
    "test": [[0.85, 0.15], [0.02, 0.98]],
    "weak test": [[0.7, 0.3], [0.1, 0.9]],
    "classifier": [[0.85, 0.1, 0.05], [0.05, 0.85, 0.1], [0.05, 0.1, 0.85]],
    "weak classifier": [[0.6, 0.25, 0.15], [0.2, 0.6, 0.2], [0.15, 0.25, 0.6]],
}
# The share of the first secret; of three secrets, the second has .3.
SHARES = {"none": 0.0, "rare": 0.02, "common": 0.2}
SHARES_OF_STUDY = {"none": 0.0, "rare": 0.012, "common": 0.2}
TRIALS, SIZES = (50, 500), (300, 3_000)
TRIALS_OF_STUDY, SIZE_OF_STUDY = (122, 401), 3_330
SETTING = ("matrix", "share", "trials", "n")
COLUMNS = (*SETTING, "truth", "method", "level", "draws", "covered", "error", "width")
# Fractions of the draws that a method takes, because of its time for one interval.
METHODS = {
    "known wald": 1.0,
    "known profile": 1.0,
    "known auto": 1.0,
    "known guaranteed": 0.2,
    "Rogan-Gladen": 1.0,
    "Lang-Reiczigel": 1.0,
    "posterior": 0.2,
    "wald": 1.0,
    "profile": 1.0,
    "guaranteed": 0.2,
    "bootstrap": 0.15,
}
# Methods that are measured only for two secrets with two reports; one of them is the default for a
# known matrix.
OF_TWO = ("Rogan-Gladen", "Lang-Reiczigel", "posterior", "profile", "known auto")
RESAMPLES, MATRIX_DRAWS, PLACES = 199, 200, 2001
# An end that touches the truth covers it, however the last digit falls.
TOUCHES = 1e-9

Counts = NDArray[np.int64]


class Setting(NamedTuple):
    """A matrix, the true share of the first secret, trials of each secret, and reports."""

    matrix: str
    share: str
    trials: str
    n: int

    @property
    def rows(self) -> NDArray[Any]:
        """The true matrix."""
        return np.array(MATRICES[self.matrix])

    @property
    def theta(self) -> NDArray[Any]:
        """The true distribution."""
        first = (SHARES_OF_STUDY if self.matrix == "Santa Clara" else SHARES)[self.share]
        return np.array([first, 1 - first] if len(self.rows) == 2 else [first, 0.3, 0.7 - first])

    def has(self, method: str) -> bool:
        """Return whether the method is measured here."""
        if method == "bootstrap":
            return self.n >= max(SIZES) and self.trials != str(max(TRIALS))
        return method not in OF_TWO or len(self.rows) == 2

    def draw(self, i: int) -> tuple[Counts, Counts]:
        """Return the trials and the reports of draw i."""
        place = list(MATRICES).index(self.matrix), list(SHARES).index(self.share)
        trials = [int(each) for each in self.trials.split("+")]
        rng = np.random.default_rng([SEED, *place, trials[0], self.n, i])
        of_trials = rng.multinomial(trials, self.rows)
        return of_trials, rng.multinomial(self.n, ik.quantize(self.theta @ self.rows))


def settings() -> Iterator[Setting]:
    """Yield all settings."""
    for matrix in MATRICES:
        for share in SHARES:
            if matrix == "Santa Clara":
                yield Setting(matrix, share, "+".join(map(str, TRIALS_OF_STUDY)), SIZE_OF_STUDY)
                continue
            for trials in TRIALS:
                for n in SIZES:
                    yield Setting(matrix, share, str(trials), n)


def rogan_gladen(trials: Counts, reports: Counts) -> tuple[float, float]:
    """Return Rogan and Gladen's estimate and its variance by the delta method."""
    (ill, well), n = trials.sum(axis=1), reports.sum()
    sensitivity, false, p = trials[0, 0] / ill, trials[1, 0] / well, reports[0] / n
    slope = sensitivity - false
    share = (p - false) / slope
    variance = p * (1 - p) / n
    variance += share**2 * sensitivity * (1 - sensitivity) / ill
    variance += (1 - share) ** 2 * false * (1 - false) / well
    return share, variance / slope**2


def lang_reiczigel(trials: Counts, reports: Counts) -> tuple[float, float]:
    """Return Lang and Reiczigel's limits: the delta method with pseudo-counts, and a shift."""
    z = normal_quantile(LEVEL)
    more = trials + 1.0
    # z^2 reports are added, half of them positive.
    share, variance = rogan_gladen(more, reports + z**2 / 2)
    (ill, well), (sensitivity, false) = more.sum(axis=1), more[:, 0] / more.sum(axis=1)
    shift = 2 * z**2 * share * sensitivity * (1 - sensitivity) / ill
    shift -= 2 * z**2 * (1 - share) * false * (1 - false) / well
    half = z * np.sqrt(variance)
    return share + shift - half, share + shift + half


def posterior(trials: Counts, reports: Counts) -> tuple[float, float]:
    """Return the shortest interval of the posterior of the share, all priors uniform.

    The matrix is averaged over equally spaced quantiles of the posterior that the trials alone
    give. The quantiles of its two rows are paired in a fixed random order, and each pair is
    weighted by the likelihood of the reports.
    """
    spaced = (np.arange(MATRIX_DRAWS) + 0.5) / MATRIX_DRAWS
    other = np.random.default_rng(SEED).permutation(spaced)
    of_ill, of_well = (
        beta.ppf(each, *(row + 1)) for each, row in zip((spaced, other), trials, strict=True)
    )
    shares = (np.arange(PLACES) + 0.5) / PLACES
    p = of_well + (of_ill - of_well) * shares[:, None]
    fits = xlogy(reports[0], p) + xlogy(reports[1], 1 - p)
    weights = np.exp(fits - fits.max()).sum(axis=1)
    mass = np.r_[0.0, np.cumsum(weights / weights.sum())]
    edges = np.linspace(0, 1, PLACES + 1)
    # For each edge, the first one above it with enough mass between the two; the last edges have
    # none.
    last = np.searchsorted(mass, mass + LEVEL - TOUCHES)
    starts = np.flatnonzero(last <= PLACES)
    best = starts[np.argmin(edges[last[starts]] - edges[starts])]
    return float(edges[best]), float(edges[last[best]])


def interval(trials: Counts, reports: Counts, method: str, seed: int) -> tuple[float, float]:
    """Return the interval of a method; not a number where no distribution fits the reports."""
    if method == "Rogan-Gladen":
        share, variance = rogan_gladen(trials, reports)
        half = normal_quantile(LEVEL) * np.sqrt(variance)
        return max(share - half, 0.0), min(share + half, 1.0)
    if method == "Lang-Reiczigel":
        lower, upper = lang_reiczigel(trials, reports)
        return min(max(lower, 0.0), 1.0), max(min(upper, 1.0), 0.0)
    if method == "posterior":
        return posterior(trials, reports)
    known = method.startswith("known ")
    mechanism = (
        ik.MatrixMechanism(trials / trials.sum(axis=1, keepdims=True))
        if known
        else ik.MatrixMechanism.from_trials(trials)
    )
    estimate = ik.mle(mechanism.tally_counts(reports))
    options: dict[str, Any] = {"method": method.removeprefix("known ")}
    if method == "bootstrap":
        options |= {"draws": RESAMPLES, "seed": seed}
    try:
        return estimate.interval(LEVEL, of=np.eye(len(trials))[0], **options)
    except ValueError as error:
        if "does not fit" not in str(error):
            raise
        return np.nan, np.nan


def measure(setting: Setting, method: str, draws: int) -> dict[str, Any]:
    """Return the row of a setting and a method."""
    truth = setting.theta[0]
    ends = np.array([interval(*setting.draw(i), method, i) for i in range(draws)])
    held = (ends[:, 0] <= truth + TOUCHES) & (truth - TOUCHES <= ends[:, 1])
    # Half a draw is added to those that hold and half to those that miss, so that no error is 0.
    share = (held.sum() + 0.5) / (draws + 1)
    return setting._asdict() | {
        "truth": f"{truth:g}",
        "method": method,
        "level": LEVEL,
        "draws": draws,
        "covered": held.mean(),
        "error": f"{np.sqrt(share * (1 - share) / draws):.5f}",
        "width": f"{np.nanmean(ends[:, 1] - ends[:, 0]):.6f}",
    }


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows that a file has, none if it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write all rows at once: if this is interrupted, the earlier file remains."""
    new = path.with_suffix(".part")
    with new.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(sorted(rows, key=_order))
    new.replace(path)


def key(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the columns that say which setting and method a row is about."""
    return tuple(str(row[name]) for name in (*SETTING, "method"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the rows that are missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--matrices", nargs="+", choices=MATRICES, default=list(MATRICES))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--to", type=Path, default=FILE)
    chosen = parser.parse_args(arguments)
    rows = read(chosen.to)
    done = {key(row) for row in rows}
    with ProcessPoolExecutor(chosen.jobs) as pool:
        running = [
            pool.submit(measure, setting, method, round(chosen.draws * METHODS[method]))
            for method in chosen.methods
            for setting in settings()
            if setting.matrix in chosen.matrices and setting.has(method)
            if (*map(str, setting), method) not in done
        ]
        for one in tqdm(as_completed(running), total=len(running), disable=None):
            rows.append(one.result())
            write(chosen.to, rows)


def _order(row: dict[str, Any]) -> tuple[int, ...]:
    of_shares = list(SHARES).index(row["share"])
    place = list(MATRICES).index(row["matrix"]), of_shares, len(row["trials"]), int(row["n"])
    return (*place, list(METHODS).index(row["method"]))


if __name__ == "__main__":
    main()
