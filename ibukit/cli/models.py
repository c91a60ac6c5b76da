"""Make a mechanism from options: by name, from a matrix, or from a file of parameters."""

from __future__ import annotations

import argparse
import csv
import inspect
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ibukit import mechanisms
from ibukit._ground.arguments import brief
from ibukit._ground.extras import missing_extra
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.grid import Grid
from ibukit.mechanisms import MatrixMechanism, Mechanism

# Common short names of mechanisms, each with the hyphenated name of its class.
SHORT = {
    "k-rr": "randomized-response",
    "geometric": "linear-geometric",
    "laplace": "linear-laplace",
}
SHORT |= {"oue": "optimized-unary-encoding", "olh": "local-hashing", "she": "histogram-encoding"}
SHORT |= {"cms": "count-mean-sketch", "hcms": "hadamard-count-mean-sketch"}
# Options of whole numbers and of numbers, which a file of parameters may hold as well.
WHOLE, NUMBERS = ("k", "first", "rows", "cols"), ("epsilon", "cell_size")
# Number of values that a file of parameters may hold: a label for each of many secrets.
MAX_VALUES = 10**6
OF_ALPHABET = ("labels", "k", "first", "rows", "cols", "cell_size", "bounds")


def named_mechanisms() -> dict[str, Callable[..., Mechanism]]:
    """Return every mechanism whose first argument is an alphabet, by its hyphenated names."""
    named: dict[str, Callable[..., Mechanism]] = {}
    for name, thing in vars(mechanisms).items():
        # Abstract base classes, and mechanisms that are made from other arguments, have no name
        # here.
        kind = (
            inspect.isclass(thing)
            and issubclass(thing, Mechanism)
            and not inspect.isabstract(thing)
        )
        if kind and next(iter(inspect.signature(thing).parameters), None) == "alphabet":
            named[re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()] = thing
    return named | {short: named[long] for short, long in SHORT.items()}


def mechanism_of(options: argparse.Namespace) -> Any:
    """Return the mechanism, or a function from epsilon to it if a column holds the epsilons."""
    name = options.mechanism
    parameters: dict[str, Any] = {}
    if name.endswith((".yaml", ".yml", ".json")):
        name, parameters = _fill_in(options, Path(name))
    epsilon_column = getattr(options, "epsilon_column", None)
    if name.endswith((".csv", ".npy")):
        if name != options.mechanism:
            raise ValueError(
                f"{options.mechanism} must name a mechanism and no other file, got {name!r}: say "
                f"--mechanism {name}"
            )
        _refuse(
            options,
            ("epsilon", "epsilon_column", *OF_ALPHABET[1:]),
            f"--mechanism {name}, a matrix",
        )
        labels = None if options.labels is None else _labels(options.labels)
        return matrix_of(Path(name), labels)
    # Any other name must be that of a mechanism.
    known = named_mechanisms()
    if name not in known:
        raise ValueError(
            f"--mechanism must be a matrix (.csv, .npy), parameters (.yaml, .json) or one of "
            f"{', '.join(sorted(known))}, got {name!r}; reports of survey designs are read in "
            "Python, by Tally.from_table"
        )
    # The constructor tells which parameters it needs; the command line has no list of its own.
    alphabet = alphabet_of(options)
    accepted = inspect.signature(known[name]).parameters
    required = [each.name for each in list(accepted.values())[1:] if each.default is each.empty]
    missing = [each for each in required if each not in ("epsilon", *parameters)]
    if missing:
        raise ValueError(
            f"{name} needs {', '.join(missing)}: give --mechanism a file of parameters (.yaml, "
            ".json) that has them"
        )
    if "epsilon" not in accepted:
        _refuse(options, ("epsilon", "epsilon_column"), f"{name}, which has no such parameter")
        return known[name](alphabet, **parameters)
    if epsilon_column is not None:
        _refuse(options, ("epsilon",), "--epsilon-column")
        return lambda epsilon: known[name](alphabet, epsilon, **parameters)
    if options.epsilon is None:
        other = ", or --epsilon-column" if hasattr(options, "epsilon_column") else ""
        raise ValueError(f"--epsilon must be given for {name}{other}")
    return known[name](alphabet, epsilon=options.epsilon, **parameters)


def alphabet_of(options: argparse.Namespace) -> Alphabet:
    """Return the alphabet of the secrets: labels, integers or the cells of a grid."""
    if options.rows is not None or options.cols is not None:
        _refuse(options, ("labels", "k", "first"), "--rows and --cols, a grid")
        if options.rows is None or options.cols is None:
            raise ValueError("--rows and --cols must be given together")
        if options.bounds is None:
            side = 1.0 if options.cell_size is None else options.cell_size
            return Grid(options.rows, options.cols, side)
        south, north, west, east = options.bounds
        return Grid.from_bounds(
            south, north, west, east, options.rows, options.cols, options.cell_size
        )
    _refuse(
        options, ("cell_size", "bounds"), "an alphabet that is no grid (--rows and --cols make one)"
    )
    if options.labels is not None:
        _refuse(options, ("k", "first"), "--labels")
        return Alphabet(_labels(options.labels))
    if options.k is None:
        raise ValueError("--labels, --k, or --rows and --cols must say what the secrets are")
    if options.k < 1:
        raise ValueError(f"--k must be at least 1, got {options.k}")
    first = options.first or 0
    return Line(first, first + options.k - 1)


def matrix_of(path: Path, labels: list[Any] | None = None) -> MatrixMechanism:
    """Return the mechanism of a matrix file.

    A header names the reports; the first column then names the secrets, as in the file of a
    DataFrame.
    """
    reports: list[Any] | None = None
    if path.suffix == ".npy":
        try:
            # Pickled arrays could run code, so they are refused.
            matrix = np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} must be an array of numbers: {error}") from None
        if not isinstance(matrix, np.ndarray):
            raise ValueError(
                f"{path} must be one array of numbers, but it is an archive of several"
            )
    else:
        matrix, own, reports = _read_matrix(path)
        if labels is not None and own is not None:
            raise ValueError(f"--labels must be left out, {path} has its own: {own}")
        labels = own if labels is None else labels
    return MatrixMechanism(matrix, None if labels is None else Alphabet(labels), reports)


def _read_matrix(path: Path) -> tuple[Any, list[Any] | None, list[Any] | None]:
    """Return the entries, the labels of the secrets, and those of the reports."""
    rows = rows_of(path)
    if not rows:
        raise ValueError(f"{path} must hold a matrix, but it is empty")
    if len(rows[0][1]) == 1 and _number(rows[0][1][0]) is None:
        raise ValueError(
            f"line 1 of {path} must be fields with commas between them, got {rows[0][1][0]!r}"
        )
    # A corner that is not a number means that the first line and the first column are labels.
    labelled = len(rows) > 1 and _number(rows[0][1][0]) is None
    labels = [row[0].strip() for _, row in rows[1:]] if labelled else None
    header = [cell.strip() for cell in rows[0][1]]
    reports = _report_labels(header[1:]) if labelled else None
    # The first column would otherwise be taken for labels where a file has a header only.
    if labels is not None and any("." in label and _number(label) is not None for label in labels):
        raise ValueError(
            f"{path} must have the names of the secrets in its first column where line 1 names "
            f"the reports, got the number {labels[0]!r}: begin line 1 with an empty field, and the "
            "others with a name"
        )
    matrix: list[list[float | None]] = []
    for line, row in rows[labelled:]:
        numbers = [_number(cell) for cell in row[labelled:]]
        if None in numbers:
            column = numbers.index(None) + labelled
            hint = ", between commas" if ";" in row[column] or "\t" in row[column] else ""
            raise ValueError(
                f"line {line} of {path}, column {column + 1}: must be a number{hint}, got "
                f"{row[column]!r}"
            )
        if labelled and len(row) != len(header):
            raise ValueError(
                f"line {line} of {path} must have {len(header)} fields, as line 1 does, but it has "
                f"{len(row)}"
            )
        if matrix and len(numbers) != len(matrix[0]):
            raise ValueError(
                f"line {line} of {path} must have {len(matrix[0])} numbers, but it has "
                f"{len(numbers)}"
            )
        matrix.append(numbers)
    return matrix, labels, reports


def rows_of(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file that are not empty, each with the number of its last line."""
    lines = csv.reader(io.StringIO(text_of(path)))
    try:
        return [(lines.line_num, row) for row in lines if row]
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num} of {path} cannot be read: {error}") from None


def text_of(path: Path) -> str:
    """Return the text of a file; ValueError names a file that is not UTF-8."""
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8, but {error}") from None


def _report_labels(names: list[str]) -> list[Any]:
    """Return the names of the reports; as numbers, if all of them are whole numbers."""
    # In a Parquet file the report 1 is a number; in a text file "1" stands for this number.
    numbers = [int(name) if name.isdecimal() else None for name in names]
    whole = [str(number) for number in numbers] == names
    return list(numbers) if whole else list(names)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _fill_in(options: argparse.Namespace, path: Path) -> tuple[str, dict[str, Any]]:
    """Set options from a file; return the mechanism's name and its other parameters."""
    content = _parameters(path)
    _refuse_too_many_values(path, content)
    if not isinstance(content, dict) or not isinstance(content.get("mechanism"), str):
        raise ValueError(f'{path} must hold parameters by name, "mechanism" among them')
    # YAML has names that are no text, and reads on, off, yes and no as truth values.
    for key in content:
        if not isinstance(key, str):
            raise ValueError(
                f"{path} must have texts for the names of its parameters, got {brief(key)}: put "
                "names in quotes"
            )
    own = {key.replace("-", "_"): value for key, value in content.items()}
    if len(own) < len(content):
        raise ValueError(f"{path} must have each parameter once, got {sorted(content)}")
    name: str = own.pop("mechanism")
    kind = named_mechanisms().get(name)
    accepted = set(inspect.signature(kind).parameters) - {"alphabet", "epsilon"} if kind else set()
    # The parameter `rows` of a sketch is not the option --rows of a grid.
    # Parameters of the alphabet and epsilon become options, the others go to the constructor.
    for key in [key for key in own if key in {"epsilon", *OF_ALPHABET} - accepted]:
        if getattr(options, key, None) is not None:
            raise ValueError(f"--{key.replace('_', '-')} must be left out, {path} has it")
        setattr(options, key, _checked(path, key, own.pop(key)))
    # An unknown name has no parameters, and is refused by the caller.
    if kind is not None and set(own) - accepted:
        raise ValueError(
            f"{path} must not have {sorted(set(own) - accepted)}: parameters of {name} are "
            f"{sorted({'epsilon', *OF_ALPHABET, *accepted})}"
        )
    return name, own


def _refuse_too_many_values(path: Path, content: Any) -> None:
    """Raise ValueError for more values than parameters can have; messages would show them all."""
    # In a file of YAML lists may hold one another: ten lines then stand for billions of values, or
    # for infinitely many.
    left, waiting = MAX_VALUES, [content]
    while waiting:
        value = waiting.pop()
        left -= 1
        if left < 0:
            raise ValueError(f"{path} must hold at most {MAX_VALUES} values")
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _checked(path: Path, key: str, value: Any) -> Any:
    """Return an option's value from a file, or raise an error that names the option."""
    if key in WHOLE and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{path} must have a whole number for {key}, got {brief(value)}")
    if key in NUMBERS and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise ValueError(f"{path} must have a number for {key}, got {brief(value)}")
    if key == "bounds" and not (
        isinstance(value, list)
        and len(value) == 4
        and all(type(edge) in (int, float) for edge in value)
    ):
        raise ValueError(
            f"{path} must have four numbers for bounds, south, north, west and east, got "
            f"{brief(value)}"
        )
    if key != "labels":
        return value
    # The option may name a file. A file of parameters, which somebody else may have written, may
    # not: the messages would show what is in it.
    labels = value.split(",") if isinstance(value, str) else value
    if not isinstance(labels, list) or (isinstance(value, str) and len(labels) < 2):
        raise ValueError(
            f"{path} must have a list of labels, or a text of several labels with commas between "
            f"them, got {brief(value)}; a file of parameters cannot refer to another file"
        )
    for label in labels:
        # The text of another value, such as YAML's False for no, would be in no report.
        if isinstance(label, bool) or not isinstance(label, (str, int, float)):
            raise ValueError(
                f"{path} must have texts or numbers for labels, got {brief(label)}: put labels in "
                "quotes"
            )
    return [label.strip() if isinstance(label, str) else label for label in labels]


def _parameters(path: Path) -> Any:
    text = text_of(path)
    try:
        if path.suffix == ".json":
            return json.loads(text)
        try:
            import yaml  # type: ignore[import-untyped]
        except ModuleNotFoundError as error:
            raise missing_extra(str(path), "pyyaml") from error
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _labels(given: Any) -> list[Any]:
    # A file of parameters has a list.
    if isinstance(given, (list, tuple)):
        return [str(label) for label in given]
    # Path.is_file would raise an error for a list of labels that is longer than a name may be.
    if os.path.isfile(given):
        return text_of(Path(given)).splitlines()
    return [label.strip() for label in given.split(",")]


def _refuse(options: argparse.Namespace, names: tuple[str, ...], where: str) -> None:
    for name in names:
        if getattr(options, name, None) is not None:
            raise ValueError(
                f"--{name.replace('_', '-')} does not apply with {where}: leave it out"
            )
