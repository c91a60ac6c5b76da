"""``ibukit plan``: number of reports needed for intervals of a given width, or for a test."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit.cli.models import mechanism_of, rows_of
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.distributions import normalize
from ibukit.domain.grid import Grid
from ibukit.errors import NotInvertible
from ibukit.planning import Plan, PowerPlan, plan
from ibukit.tables.places import codes_of_cells, read_pairs
from ibukit.tables.report_codes import codes_of_values, numbers_in_rows

# Names that the column of amounts may have in a file of counts; if none has one, it is the last.
AMOUNTS = ("probability", "count")


def run(options: argparse.Namespace) -> None:
    """Print the plan, one number on each line."""
    mechanism = mechanism_of(options)
    alphabet = mechanism.alphabet
    weights = None if options.of is None else _region(options.of, alphabet)
    near = None if options.near is None else _near(Path(options.near), alphabet)
    planned = plan(
        mechanism,
        options.width,
        options.level,
        weights,
        near,
        difference=options.difference,
        power=options.power,
        groups=options.groups,
    )
    print(f"secrets: {mechanism.k}")
    print(
        f"width: {planned.target:{'.4g' if isinstance(planned, PowerPlan) else 'g'}}, "
        f"at level {planned.level:g}"
    )
    each = ""
    if isinstance(planned, PowerPlan):
        print(f"difference: {planned.difference:g}, found with probability {planned.power:g}")
        each = " in each of two groups" if planned.groups == 2 else " in one group"
    print(f"reports needed: {planned.n}{each}, {_where(planned, options.near)}")
    if planned.gap > 1e-6:
        print(f"of these at most {planned.gap:.2%} too many")
    if weights is None:
        label = alphabet.labels_of(np.array([planned.question])).tolist()[0]
        print(
            f"least certain: {label} where its probability is "
            f"{planned.distribution[planned.question]:.4g}"
        )
    # A mechanism without an inverse has only the first of the two errors.
    for estimator, name in (("mle", "maximum likelihood"), ("inv", "matrix inversion")):
        try:
            error = f"{planned.error(planned.n, estimator):.4g}"
        except NotInvertible:
            error = "does not apply"
        print(f"root mean square error of {name}, all secrets together: {error}")


def _where(planned: Plan, file: str | None) -> str:
    return "whatever the distribution" if planned.worst_case else f"near the distribution in {file}"


def _region(text: str, alphabet: Alphabet) -> Floats:
    """Return weights that are 1 for the named labels and 0 for the others."""
    labels = np.array([label.strip() for label in text.split(",")], dtype=object)
    if isinstance(alphabet, Grid):
        raise ValueError(
            "--of must name labels or whole numbers, which the cells of a grid are not: use "
            "ik.plan(of=...)"
        )
    codes = codes_of_values(labels, alphabet, textual=True)
    if (codes < 0).any():
        raise ValueError(f"--of must name secrets, got {labels[codes < 0][0]!r}")
    weights = np.zeros(len(alphabet))
    weights[codes] = 1.0
    return weights


def _near(path: Path, alphabet: Alphabet) -> Floats:
    """Return the distribution in a CSV file: labels or cells, then counts or probabilities."""
    rows = rows_of(path)
    # Cells of a grid have two columns, row and column.
    wide = 2 if isinstance(alphabet, Grid) else 1
    if len(rows) < 2 or len(rows[0][1]) <= wide:
        raise ValueError(
            f"{path} must have a line of column names, and lines with {wide} column(s) of labels "
            "and counts"
        )
    names = [name.strip().lower() for name in rows[0][1]]
    # Counts and probabilities are treated alike: they are divided by their sum.
    amount = next((names.index(name) for name in AMOUNTS if name in names), len(names) - 1)
    total = np.zeros(len(alphabet))
    seen: set[int] = set()
    codes = _codes([row[:wide] for _, row in rows[1:]], names[:wide], alphabet)
    for (line, row), code in zip(rows[1:], codes.tolist(), strict=True):
        where = f"line {line} of {path}"
        if len(row) != len(names):
            raise ValueError(f"{where} must have {len(names)} fields, but it has {len(row)}")
        if code < 0:
            raise ValueError(f"{where}: {','.join(row[:wide])!r} is not one of the secrets")
        if code in seen:
            raise ValueError(f"{where}: {','.join(row[:wide])!r} occurs twice")
        seen.add(code)
        total[code] = _amount(row[amount], where)
    return normalize(total)


def _codes(labels: list[list[str]], names: list[str], alphabet: Alphabet) -> NDArray[np.int64]:
    if not isinstance(alphabet, Grid):
        return codes_of_values(
            np.array([row[0].strip() for row in labels], dtype=object), alphabet, textual=True
        )
    pairs = np.full((len(labels), 2), "", dtype=object)
    for index, row in enumerate(labels):
        pairs[index, : len(row)] = row
    # Labels that are not pairs of numbers keep the code -1, and are named by the caller.
    numbers = numbers_in_rows(pairs)
    whole = np.isfinite(numbers).all(axis=1)
    codes = np.full(len(labels), -1, dtype=np.int64)
    codes[whole] = codes_of_cells(read_pairs(numbers[whole], names, alphabet), alphabet)
    return codes


def _amount(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{where}: must be a count or a probability, got {text!r}")
    return number
