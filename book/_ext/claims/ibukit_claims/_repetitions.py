"""Studies of many repetitions: distances are read from data/repetitions, or else computed."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground.arguments import Floats
from ibukit.datasets import DATA
from ibukit.evaluation import replicate
from ibukit.mechanisms import FreeWill, Mechanism
from ibukit.tally.tally import Tally
from ibukit_claims._code import code_of
from ibukit_claims._setting import is_published

if TYPE_CHECKING:
    import pandas as pd

    from ibukit.domain.distributions import Population

# what a row is about: the people (a digest of their counts), the seed, the noise with its levels,
# and the estimator
ASKED = ("people", "seed", "mechanism", "levels", "estimator")
# and `code`, a digest of what makes the numbers: a row made by other code is an error
KEPT = (*ASKED, "code", "n", "epsilon", "stop", "status", "repetitions", "mean", "error", "emd")
# the columns of losses that a chapter computes in its own way: what is computed of which reports (a
# digest of their counts), with a row for each column of the losses
COMPUTED = ("what", "reports", "column", "code", "repetitions", "mean", "error", "values")
FOLDER = DATA / "repetitions"
SAME = ["mechanism", "epsilon", "estimator", "stop", "repetition", "emd", "status"]


class OtherCode(ValueError):
    """The kept numbers were made by other code than the chapter's present code."""


def repeated(
    chapter: str,
    population: Population,
    mechanisms: Sequence[Mechanism | FreeWill],
    estimators: Mapping[str, Callable[..., Any]],
    repetitions: int,
    seed: int,
) -> pd.DataFrame:
    """Repeat an experiment of a chapter, or read what was kept of it.

    The distances of a mechanism are read from data/repetitions/<chapter>.csv if the file has at
    least as many repetitions of every estimator, by name, with the same people, levels and seed.
    Otherwise `ik.replicate` makes them, with two processes. The file is made by
    scripts/repetitions.py. It has a digest of each estimator: of its code, as far as that stands in
    the chapter, and of the arguments and functions that it is given there.

    Parameters
    ----------
    chapter : str
        The name of its file, without the ending.
    population, mechanisms, estimators, repetitions, seed
        As in `ik.replicate`.

    Returns
    -------
    pandas.DataFrame
        The rows of `ik.replicate` and of its columns mechanism, epsilon, estimator, stop,
        repetition, emd (in the file with at least six digits) and status.

    Raises
    ------
    OtherCode
        If the code of an estimator of this name has changed since the file was made. After
        ``published(False)`` the distances are computed instead.

    Examples
    --------
    >>> from functools import partial
    >>> import ibukit as ik
    >>> ages = ik.datasets.load_adult_ages()
    >>> krr = ik.RandomizedResponse(ages.alphabet, 2.0)
    >>> inversion = {"INV-P": partial(ik.inv, post="project")}
    >>> found = repeated("comparison", ages, [krr], inversion, repetitions=3, seed=7)
    >>> made = ik.replicate(ages, [krr], inversion, repetitions=3, seed=7)
    >>> bool(np.allclose(found["emd"], made["emd"], rtol=1e-5))
    True
    """
    import pandas as pd

    kept, codes = (
        _read(FOLDER / f"{chapter}.csv", ASKED),
        {name: code_of(of) for name, of in estimators.items()},
    )
    frames = []
    for mechanism in mechanisms:
        about = asked(population, mechanism, seed)
        rows = [_same(kept.get((*about, name)), codes[name], chapter, name) for name in estimators]
        found = [
            _repetitions(row, repetitions)
            for row in rows
            if row and int(row["repetitions"]) >= repetitions
        ]
        if len(found) < len(estimators):
            found = [
                replicate(population, [mechanism], estimators, repetitions, seed, n_jobs=2)[SAME]
            ]
        frames += found
    return pd.concat(frames, ignore_index=True)


def asked(
    population: Population, mechanism: Mechanism | FreeWill, seed: int
) -> tuple[str, str, str, str]:
    """The key of one study but for the estimator: people, seed, mechanism and levels."""
    people = hashlib.sha256(np.asarray(population.counts, dtype="<i8").tobytes()).hexdigest()[:12]
    if not isinstance(mechanism, FreeWill):
        return people, str(seed), type(mechanism).__name__, f"{mechanism.epsilon:.4g}"
    levels = [f"{one.epsilon:.4g}" for one in mechanism.mechanisms]
    if np.ptp(mechanism.shares) > 1e-9:
        levels = [
            f"{share:.4g} of {level}" for share, level in zip(mechanism.shares, levels, strict=True)
        ]
    return people, str(seed), mechanism.name, ", ".join(levels)


def remembered(
    chapter: str, what: str, tallies: Iterable[Tally], compute: Callable[[], ArrayLike]
) -> Floats:
    """Compute losses in a chapter's own way, or read those kept for the same tallies.

    They are read from data/repetitions/<chapter>.csv if it has them by this name and for exactly
    these reports. Otherwise they are computed. The file is made by scripts/repetitions.py, and has
    a digest of `compute`: of its code and of what it reads of the chapter.

    Parameters
    ----------
    chapter : str
        The name of its file, without the ending.
    what : str
        A name for what is computed, with all that the losses depend on except the tallies.
    tallies : iterable of Tally
        Tallies of one part each.
    compute : callable
        A function without arguments that returns the losses, shape (repetitions, columns).

    Returns
    -------
    numpy.ndarray
        The losses, from the file with at least six digits.

    Raises
    ------
    OtherCode
        If `compute` has changed since the file was made. After ``published(False)`` it is called.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(2, 1.0).tally_counts([7, 3])
    >>> remembered("comparison", "an example", [tally], lambda: [[0.25]]).tolist()
    [[0.25]]
    """
    reports = of_reports(tallies)
    kept = _read(FOLDER / f"{chapter}.csv", COMPUTED[:3])
    columns: list[list[float]] = []
    code = code_of(compute)
    while row := _same(kept.get((what, reports, str(len(columns)))), code, chapter, what):
        columns.append([*map(float, row["values"].split())])
    return np.array(columns).T if columns else np.asarray(compute(), dtype=float)


def of_reports(tallies: Iterable[Tally]) -> str:
    """A digest of the reports of these tallies and of how often each came."""
    found = hashlib.sha256()
    for part in (part for tally in tallies for part in tally.parts):
        found.update(np.ascontiguousarray(part.reports).tobytes())
        found.update(np.asarray(part.counts, dtype="<i8").tobytes())
    return found.hexdigest()[:12]


def _same(row: dict[str, str] | None, code: str, chapter: str, name: str) -> dict[str, str] | None:
    """The row if this code made it; None if there is no row, or outside the published setting."""
    if row is None or row["code"] == code:
        return row
    if not is_published():
        return None
    raise OtherCode(
        f"data/repetitions/{chapter}.csv keeps {name!r} as made by other code than this (digest "
        f"{row['code']}, here {code}). If the chapter is to change, make the file again: python "
        f"scripts/repetitions.py {chapter}. To try something out, give it another name, or call "
        "claims.published(False) first, and it is computed here"
    )


@lru_cache
def _read(path: Path, names: tuple[str, ...]) -> dict[tuple[str, ...], dict[str, str]]:
    """The rows of a file by these columns; none if the file lacks a column or is not there."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return (
            {tuple(row[name] for name in names): row for row in rows}
            if set(names) <= {*(rows.fieldnames or ())}
            else {}
        )


def _repetitions(row: dict[str, str], repetitions: int) -> pd.DataFrame:
    """The first repetitions in a row of the file, as a table with a row for each."""
    import pandas as pd

    status = row["status"].split()
    found = pd.DataFrame(
        {"repetition": range(repetitions), "emd": [*map(float, row["emd"].split()[:repetitions])]}
    )
    found["status"] = status * repetitions if len(status) == 1 else status[:repetitions]
    for name in ("mechanism", "estimator", "stop"):
        found[name] = row[name]
    found["epsilon"] = float(row["epsilon"] or "nan")
    return found[SAME]
