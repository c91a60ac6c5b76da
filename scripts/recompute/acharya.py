"""Read the errors stored with the program of Acharya, Sun and Zhang into data/published.

python scripts/recompute/acharya.py [--from FOLDER] [--to FOLDER]

They keep a MATLAB file a run, with the mean errors of 30 repetitions at 20 numbers of people; we
take the last, of a million. Of the runs, those whose distribution is fixed, with 100 or 1,000
secrets and epsilon 0.5, 1, 2 and 5; where one was made twice, the first. The rows of the claim take
the place of those that the table has.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _download import obtain, options, write
from scipy.io import loadmat

REPOSITORY = "https://raw.githubusercontent.com/zitengsun/hadamard_response/"
COMMIT = "3c05fe45d53aeedbf8c241f46ef219b80fa5ffe8"
CLAIM, LEVELS, PEOPLE, REPETITIONS = "Acharya2019-runs", ("0.5", "1", "2", "5"), 1_000_000, 30
# by distribution and number of secrets: the day and minute at which the run of each level ended
RUNS = {
    ("geometric 0.8", 100): ("01_28_04_25", "01_28_05_31", "01_28_06_38", "01_28_07_45"),
    ("two steps", 100): ("01_27_10_33", "01_27_11_39", "01_27_12_46", "01_27_13_55"),
    ("uniform", 100): ("01_27_05_08", "01_27_06_13", "01_27_07_19", "01_27_08_25"),
    ("Zipf 1", 100): ("01_27_17_13", "01_27_18_20", "01_27_19_30", "01_27_20_38"),
    ("geometric 0.8", 1000): ("01_26_19_36", "01_26_23_10", "01_27_02_44", "01_27_06_43"),
    ("geometric 0.98", 1000): ("01_29_16_02", "01_29_19_35", "01_29_23_04", "01_30_02_33"),
    ("uniform", 1000): ("01_28_04_56", "01_28_08_24", "01_28_11_52", "01_28_15_20"),
    ("Zipf 0.5", 1000): ("01_30_09_33", "01_30_13_04", "01_30_16_39", "01_30_20_07"),
    ("Zipf 1", 1000): ("01_27_10_57", "01_27_14_27", "01_27_17_57", "01_27_22_35"),
}
PROTOCOLS = {"k-RR": "rr", "RAPPOR": "rappor", "subset selection": "subset", "Hadamard": "hr"}
TOLERANCE = ("relative", "0.06")


def shares(distribution: str, k: int) -> np.ndarray:
    """The distribution of that name, which a file must have been made with."""
    name, _, parameter = distribution.rpartition(" ")
    made = {
        "geometric": lambda: float(parameter) ** np.arange(k),
        "Zipf": lambda: 1 / np.arange(1, k + 1) ** float(parameter),
        "two": lambda: np.repeat([1.0, 3.0], k // 2),
        "": lambda: np.ones(k),
    }[name]()
    return np.asarray(made / made.sum())


def names() -> Iterator[tuple[str, int, str, str]]:
    """Distribution, secrets, level and file of each run."""
    for (distribution, k), ends in RUNS.items():
        kind = distribution.split()[0].capitalize() if distribution != "two steps" else "Two_steps"
        for level, end in zip(LEVELS, ends, strict=True):
            yield distribution, k, level, f"data_{kind}_k_{k}_eps_{level}_{end}.mat"


def errors(path: Path, distribution: str, k: int, level: str) -> dict[str, float]:
    """The mean l1 error of each protocol for a million people, if the file is of that run."""
    stored = {
        name: values.ravel()
        for name, values in loadmat(str(path)).items()
        if not name.startswith("__")
    }
    said = [stored[name][-1] for name in ("absz", "privacy", "repetition", "indices")]
    if said != [k, float(level), REPETITIONS, PEOPLE]:
        raise ValueError(
            f"{path.name} must be of {k} secrets at {level}, {REPETITIONS} repetitions of a million"
            f" people, got {said}"
        )
    if not np.allclose(stored["prob"], shares(distribution, k), rtol=1e-9):
        raise ValueError(
            f"{path.name} must be of the distribution {distribution}, and has another one"
        )
    return {protocol: float(stored[f"{name}_error"][-1]) for protocol, name in PROTOCOLS.items()}


def main() -> None:
    """Write the rows of these runs into the table of the paper, in the place of the old ones."""
    chosen = options(__doc__ or "", [name for *_, name in names()])
    table = chosen.to / "published" / "protocols.csv"
    with table.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    made = []
    for distribution, k, level, name in names():
        found = errors(
            obtain(f"{REPOSITORY}{COMMIT}/Data/{name}", None, chosen.folder), distribution, k, level
        )
        setting = f"{distribution}, k = {k}, eps = {level}"
        for protocol, error in found.items():
            compared = ["", "text", "", REPETITIONS, *TOLERANCE, "reproduced", ""]
            made.append(
                [
                    CLAIM,
                    f"Data/{name}",
                    setting,
                    f"l1 error after norm-mul, {protocol}",
                    f"{error:#.4g}",
                    *compared,
                ]
            )
    first = next(i for i, row in enumerate(rows) if row[0] == CLAIM)
    others = [row for row in rows if row[0] != CLAIM]
    write(table, header, [*others[:first], *made, *others[first:]])


if __name__ == "__main__":
    main()
