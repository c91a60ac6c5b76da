"""Questions for the page *Try your own counts*, and what ibukit answers to them.

A form is what a reader fills in, all of it text. `random_cases` makes forms together with the
tallies that ibukit has for them; `HOSTILE` holds forms that the page must refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

import ibukit as ik

Form = dict[str, Any]
# Nats per report, and shares: the page and the package agree to this.
TOLERANCE = 1e-9
# The package's own ends of intervals are proved from outside, up to 1e-9.
INTERVAL_TOLERANCE = 1e-6
IBU_RUNGS = {1: 1, 6: 10, 12: 100}  # positions of the slider, and the steps that they stand for
EMPTY: Form = {
    "kind": "counts",
    "data": "",
    "column": "0",
    "heading": False,
    "mechanism": "krr",
    "epsilon": "1",
    "labels": "",
    "first": "0",
    "last": "9",
    "matrix": "",
    "level": "0.95",
}
# the functions of the page, from forms to numbers; a refusal is its sentence and its field
ANSWER = """forms => {
  const kit = globalThis.ibukitTry;
  return forms.map(form => {
    try {
      const problem = kit.problem(form), best = kit.maximum(problem.rows, problem.q);
      const set = kit.maximisers(problem, best), walk = kit.ibu.walk(problem.rows, problem.q);
      return {
        labels: problem.labels, theta: [...best.theta], gap: best.gap, unique: set.unique,
        lower: [...set.lower], upper: [...set.upper],
        intervals: problem.labels.map((_, x) => kit.profile(problem, best, x)),
        steps: RUNGS.map(i => [...walk(i)]),
        gaps: RUNGS.map(i => kit.ibu.gap(problem.rows, problem.q, walk(i))),
        fit: kit.fit(problem, best), python: kit.python(problem, 10, set.unique),
      };
    } catch (error) {
      if (!(error instanceof kit.Refusal)) throw error;
      return { refusal: error.message, field: error.field };
    }
  });
}""".replace("RUNGS", str([*IBU_RUNGS]))


@dataclass
class Case:
    """A form, and the tally that it describes."""

    form: Form
    tally: ik.Tally
    # computed once, however many answers are compared
    known: dict[str, Any] = field(default_factory=dict)


def lines(names: Any, counts: Any) -> str:
    """Names and counts as a reader pastes them."""
    return "\n".join(f"{name}, {count}" for name, count in zip(names, counts, strict=True))


def _response(rng: Generator, n: int, epsilon: float) -> Case:
    labels = [f"value {i}" for i in range(int(rng.integers(2, 12)))]
    mechanism = ik.RandomizedResponse(ik.Alphabet(labels), epsilon)
    counts = rng.multinomial(n, _truth(rng, len(labels)) @ mechanism.matrix())
    form = EMPTY | {"data": lines(labels, counts), "epsilon": repr(epsilon)}
    return Case(form, mechanism.tally_counts(counts))


def _geometric(rng: Generator, n: int, epsilon: float, kind: str) -> Case:
    k, first = int(rng.integers(2, 25)), int(rng.integers(-5, 60))
    line = ik.Line(first, first + k - 1)
    secrets = rng.choice(np.arange(first, first + k), p=_truth(rng, k), size=n)
    mechanism: Any = {"cut": ik.TruncatedGeometric, "uncut": ik.LinearGeometric}[kind](
        line, epsilon
    )
    reports = mechanism.randomize(secrets, rng)
    form = EMPTY | {
        "mechanism": kind,
        "epsilon": repr(epsilon),
        "first": str(first),
        "last": str(first + k - 1),
    }
    if rng.random() < 0.3:  # one report in each line, in the second column of a table
        table = [f"{i};{z}" for i, z in enumerate(reports)]
        form |= {"kind": "reports", "column": "1", "heading": True}
        form["data"] = "\n".join(["person;place", *table])
    else:
        form["data"] = lines(*np.unique(reports, return_counts=True))
    return Case(form, mechanism.tally(reports))


def _matrix(rng: Generator, n: int, epsilon: float) -> Case:
    k, m = int(rng.integers(2, 12)), int(rng.integers(2, 12))
    rows = rng.dirichlet(np.full(m, min(epsilon, 1.0)), size=k)
    if rng.random() < 0.3:  # the last two rows do not add to what the first two can tell
        rows[-1] = rows[:2].mean(axis=0)
    rows /= rows.sum(axis=1, keepdims=True)
    reports = [f"report {z}" for z in range(m)]
    mechanism = ik.MatrixMechanism(rows, reports=reports)
    counts = rng.multinomial(n, _truth(rng, k) @ rows)
    text = "\n".join(", ".join(map(repr, row)) for row in rows.tolist())
    form = EMPTY | {"mechanism": "matrix", "matrix": text, "data": lines(reports, counts)}
    return Case(form, mechanism.tally_counts(counts))


def _truth(rng: Generator, k: int) -> Any:
    return rng.dirichlet(np.full(k, 0.7))


def random_cases(number: int, seed: int = 0) -> Iterator[Case]:
    """Forms of all mechanisms, from 10 to 100,000 reports."""
    rng = np.random.default_rng(seed)
    for i in range(number):
        n = int(10 ** rng.uniform(1, 5))
        epsilon = round(float(10 ** rng.uniform(-0.7, 0.6)), 4)
        kind = ("krr", "cut", "uncut", "matrix")[i % 4]
        if kind == "krr":
            yield _response(rng, n, epsilon)
        elif kind == "matrix":
            yield _matrix(rng, n, epsilon)
        else:
            yield _geometric(rng, n, epsilon, kind)


def edge_cases() -> Iterator[Case]:
    """Forms that would show errors of rounding in doubles, or a search that goes astray."""
    three = ik.RandomizedResponse(ik.Alphabet(["a", "b", "c"]), 1.0)
    for counts in ([10**12 - 5, 3, 2], [1, 0, 0], [10**11, 10**11, 1]):
        yield Case(EMPTY | {"data": lines("abc", counts)}, three.tally_counts(counts))
    for epsilon in ("0.000001", "0.01", "36"):
        counts = [40, 30, 20, 10, 5]
        krr = ik.RandomizedResponse(ik.Alphabet(list("abcde")), float(epsilon))
        form = EMPTY | {"data": lines("abcde", counts), "epsilon": epsilon}
        yield Case(form, krr.tally_counts(counts))
        line = ik.TruncatedGeometric(ik.Line(0, 4), float(epsilon))
        own = {"data": lines(range(5), counts), "mechanism": "cut", "last": "4"}
        yield Case(form | own, line.tally_counts(counts))
    far = ik.LinearGeometric(ik.Line(0, 9), 3.0)
    form = EMPTY | {"mechanism": "uncut", "epsilon": "3", "data": lines([-50, 4, 60], [3, 2, 1])}
    yield Case(form, far.tally([-50] * 3 + [4] * 2 + [60]))
    # a value that no report points to, and a matrix that tells nothing
    for rows in (np.eye(3), np.full((4, 3), 1 / 3)):
        text = "\n".join(" ".join(map(repr, row)) for row in rows.tolist())
        form = EMPTY | {"mechanism": "matrix", "matrix": text, "data": lines("abc", [10, 5, 0])}
        yield Case(form, ik.MatrixMechanism(rows).tally_counts([10, 5, 0]))


def differences(case: Case, answer: Form) -> list[str]:
    """The differences from ibukit above the tolerances."""
    if "refusal" in answer:
        return [f"refused: {answer['refusal']}"]
    known, tally = case.known or _known(case), case.tally
    found = known["set"]
    theta = np.array(answer["theta"])
    off = {
        "gap": max(abs(answer["gap"] - ik.gap(tally, theta / theta.sum())), answer["gap"]),
        "interval": np.abs(np.array(answer["intervals"]).T - known["interval"]).max(),
        "range": np.abs([found.lower - answer["lower"], found.upper - answer["upper"]]).max(),
        "IBU": np.abs(np.array(answer["steps"]) - known["steps"]).max(),
        "gap of IBU": np.abs(np.array(answer["gaps"]) - known["gaps"]).max(),
    }
    if found.unique:
        off["estimate"] = np.abs(found.estimate.distribution - theta).max()
    most = {"interval": INTERVAL_TOLERANCE, "range": 10 * TOLERANCE}
    wrong = [
        f"{name} off by {by:.2g}" for name, by in off.items() if not by <= most.get(name, TOLERANCE)
    ]
    if abs(answer["fit"] - known["fit"]) > TOLERANCE:
        wrong.append(f"fit: {answer['fit']}, and it is {known['fit']}")
    if answer["unique"] != found.unique:
        wrong.append(f"unique: {answer['unique']}, and it is {found.unique}")
    return wrong


def _known(case: Case) -> dict[str, Any]:
    found = ik.theory.mle_set(case.tally)  # whose estimate is the finest that there is
    walk = [ik.ibu(case.tally, stop=ik.Steps(n)) for n in IBU_RUNGS.values()]
    case.known = {
        "set": found,
        "interval": np.array(found.estimate.interval(0.95, method="profile")),
        "steps": np.array([estimate.distribution for estimate in walk]),
        "gaps": np.array([estimate.gap for estimate in walk]),
        "fit": found.estimate.fit_test(draws=0).p_value,
    }
    return case.known


class Hostile(NamedTuple):
    """A change of a form, the field that the refusing sentence belongs to, and a word of it."""

    change: Form
    field: str
    word: str


GOOD = EMPTY | {"data": "a, 5\nb, 3"}
TWO_ROWS = {"mechanism": "matrix", "data": "a, 5\nb, 3"}
LINE = {"mechanism": "cut", "data": "0, 5\n3, 2"}
HOSTILE = {
    "nothing": Hostile({"data": " \n"}, "data", "Type, paste or load"),
    "negative": Hostile({"data": "a, 5\nb, -3"}, "data", "cannot be negative"),
    "NaN": Hostile({"data": "a, 5\nb, NaN"}, "data", "is not a number"),
    "NaN first": Hostile({"data": "a, nan\nb, 5"}, "data", "is not a number"),
    "infinite": Hostile({"data": "a, 5\nb, Infinity"}, "data", "is not a number"),
    "text": Hostile({"data": "a, 5\nb, many"}, "data", "is not a number"),
    "1e308": Hostile({"data": "a, 5\nb, 1e308"}, "data", "write a smaller one"),
    "sum too large": Hostile({"data": "a, 1e12\nb, 1e12"}, "data", "Python package"),
    "a fraction": Hostile({"data": "a, 5\nb, 2.5"}, "data", "a whole number"),
    "no count": Hostile({"data": "a, 5\nb"}, "data", "has no count"),
    "no value": Hostile({"data": "a, 5\n, 3"}, "data", "has no value"),
    "thousands with commas": Hostile({"data": "a, 1,200\nb, 3"}, "data", "3 parts"),
    "doubled": Hostile({"data": "a, 5\nb, 3\na, 1"}, "data", "lines 1 and 3"),
    "all zero": Hostile({"data": "a, 0\nb, 0"}, "data", "All counts are 0"),
    "one value": Hostile({"data": "a, 5"}, "data", "at least two"),
    "long label": Hostile({"data": f"{'a' * 5000}, 5\nb, 3"}, "data", "shorten it"),
    "thousands of lines": Hostile(
        {"data": lines(range(5000), range(5000))}, "data", "different reports"
    ),
    "many values": Hostile({"data": lines(range(300), range(300))}, "data", "takes 200"),
    "many in a line": Hostile({"data": "1," * 5000}, "data", "parts"),
    "no epsilon": Hostile({"epsilon": ""}, "epsilon", "above 0"),
    "epsilon of 0": Hostile({"epsilon": "0"}, "epsilon", "from 0.000001"),
    "negative epsilon": Hostile({"epsilon": "-1"}, "epsilon", "from 0.000001"),
    "huge epsilon": Hostile({"epsilon": "1e308"}, "epsilon", "to 36"),
    "endless epsilon": Hostile({"epsilon": "1e999"}, "epsilon", "to 36"),
    "a label is missing": Hostile({"labels": "a, c"}, "labels", "add it"),
    "labels doubled": Hostile({"labels": "a, b, a"}, "labels", "list it once"),
    "words on a line": Hostile(LINE | {"data": "bus, 5\ncar, 3"}, "data", "choose k-RR"),
    "outside the line": Hostile(LINE | {"data": "0, 5\n12, 3"}, "data", "lies outside"),
    "ends exchanged": Hostile(LINE | {"first": "9", "last": "0"}, "last", "exchange"),
    "no end": Hostile(LINE | {"last": ""}, "last", "Write the last value"),
    "an end of text": Hostile(LINE | {"first": "x"}, "first", "write a whole number"),
    "an endless line": Hostile(LINE | {"last": "1e15"}, "last", "takes 200"),
    "twice the same place": Hostile(LINE | {"data": "1, 5\n1.0, 3"}, "data", "two ways"),
    "no matrix": Hostile(TWO_ROWS, "matrix", "Paste the matrix"),
    "rows that do not sum to 1": Hostile(
        TWO_ROWS | {"matrix": "0.5, 0.4\n0.5, 0.5"}, "matrix", "must sum to 1"
    ),
    "a negative entry": Hostile(
        TWO_ROWS | {"matrix": "1.5, -0.5\n0.5, 0.5"}, "matrix", "from 0 to 1"
    ),
    "NaN in the matrix": Hostile(TWO_ROWS | {"matrix": "nan, 1\n0, 1"}, "matrix", "from 0 to 1"),
    "text in the matrix": Hostile(TWO_ROWS | {"matrix": "0, 1\n1, zero"}, "matrix", "from 0 to 1"),
    "ragged rows": Hostile(TWO_ROWS | {"matrix": "0.5, 0.5\n1"}, "matrix", "one number for each"),
    "one row": Hostile(TWO_ROWS | {"matrix": "0.5, 0.5"}, "matrix", "at least two"),
    "a heading alone": Hostile(TWO_ROWS | {"matrix": "a, b"}, "matrix", "no row of numbers"),
    "thousands of columns": Hostile(
        TWO_ROWS | {"matrix": "\n".join([", ".join(["0.0002"] * 5000)] * 2)}, "matrix", "columns"
    ),
    "another number of columns": Hostile(
        TWO_ROWS | {"matrix": "0.2, 0.3, 0.5\n0.1, 0.2, 0.7"}, "matrix", "3 columns"
    ),
    "a report without a column": Hostile(
        TWO_ROWS | {"matrix": ", a, c\nx, 0.5, 0.5\ny, 0.1, 0.9"}, "matrix", "has no column"
    ),
    "a name twice": Hostile(
        TWO_ROWS | {"matrix": ", a, b\nx, 0.5, 0.5\nx, 0.1, 0.9"}, "matrix", "occurs twice"
    ),
    "an impossible report": Hostile(
        TWO_ROWS | {"matrix": "1, 0\n1, 0"}, "matrix", "holds zeros only"
    ),
    "an empty column": Hostile(
        {"kind": "reports", "column": "1", "data": "a,\nb,1"}, "data", "no report in column 2"
    ),
    "a heading and no reports": Hostile(
        {"kind": "reports", "heading": True, "data": "answer"}, "data", "below the first line"
    ),
}


def refused(name: str, answer: Form) -> list[str]:
    """The faults of the answer to a hostile form."""
    wanted, sentence = HOSTILE[name], answer.get("refusal", "")
    if not sentence:
        return [f"{name}: not refused"]
    wrong = [] if wanted.word in sentence else [f"{name}: no {wanted.word!r} in {sentence!r}"]
    if answer.get("field", wanted.field) != wanted.field:
        wrong.append(f"{name}: of the field {answer['field']}, not {wanted.field}")
    if sentence[-1] != "." or ". " in sentence or len(sentence) > 220:
        wrong.append(f"{name}: not one short sentence: {sentence!r}")
    return wrong
