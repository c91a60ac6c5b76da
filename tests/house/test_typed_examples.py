"""What the docstrings and the README tell users to write passes their type checkers."""

import ast
import doctest
import re

from source_rules import (
    ROOT,
    SOURCES,
    name_of,
    nodes,
    nodes_of_these_tests,  # noqa: F401 - a fixture
)
from type_checker import said_of

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
# Lines that mypy rightly or unavoidably refuses, by the reason.
WAIVED = {
    "sum() begins with the number 0, and may return it": [
        'papers = combine_results(tally, ik.inv, post="project")',
        'ours = combine_results(tally, ik.inv, weights="variance", post="none", project=True)',
        "for estimate in (papers, ours, ik.mle(tally)):",
        'combine_mechanisms(tally, ik.inv, post="project").method',
        "together, apart = combine_mechanisms(tally, ik.mle), ik.mle(tally)",
    ],
    "matplotlib's axes may have no legend, and its images no array": [
        "for line in plans.plot().get_legend().get_texts():",
        "[text.get_text() for text in ax.get_legend().get_texts()]",
        "ax.images[0].get_array().shape",
    ],
    "the answer is None in other cases": [
        "sums.quantiles(np.array([True, True, False]), [0.05, 0.95]).round(3)",
        "bins_of([pd.Interval(0, 18), pd.Interval(18, 30)]).midpoints",
        "bool(answer), abs(answer.direction)",
        "shifted(np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.0, 0.0]), 0.25).round(3)",
        "solve(np.array([1.0, 1.0])).round(6), solve(np.array([1.0, 0.5])).round(6)",
    ],
    "this method reads no estimate": [
        "IntervalRequest(mechanism.tally_counts(counts), None, yes, level=0.95)",
    ],
}
# Arguments of the kinds that docstrings name, and results whose kind follows from an argument,
# where no example shows them.
KINDS = """
import datetime
import ibukit as ik
import numpy as np
import pandas as pd
labels, counts, prior = ["a", "b"], {"a": 5, "b": 5}, pd.Series({"a": 0.5, "b": 0.5})
days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]
for alphabet in (np.array(labels), pd.Index(labels), range(3), days, 3):
    ik.LocalHashing(alphabet, epsilon=1.0), ik.HadamardCountMeanSketch(alphabet, 1.0, 8, 4)
ik.Duchi(9, 1.0), ik.Piecewise(9, 1.0), ik.HybridMechanism(9, 1.0), ik.LinearLaplace(9, 1.0)
mechanism = ik.Rappor(labels, epsilon=1.0)
mechanism.tally(mechanism.release(days)), mechanism.simulate(counts, np.random.default_rng(1))
tally = mechanism.tally_counts(counts)
estimate = ik.ibu(tally, start={"a": 0.5, "b": 0.5})
ik.ibu(tally, start=estimate), ik.gap(tally, estimate), ik.emd(estimate, prior, labels)
ik.posterior(tally, {"a": 1, "b": 2}), ik.theory.asymptotic_mse(mechanism, estimate)
ik.Privic(labels, beta=1.0, start=prior).collect(tally, estimate)
ik.blahut_arimoto(estimate, labels, beta=1.0), ik.privacy.mutual_information(mechanism, prior)
ik.plan(mechanism, of=days[0], near=ik.datasets.load_adult_ages()), estimate.interval(of=days)
ik.plotting.distributions(labels, {"prior": prior, "estimate": estimate})
ik.plotting.heatmap(ik.datasets.load_gowalla("paris").alphabet, {(0, 0): 1.0})
data: ik.datasets.Dataset = ik.datasets.Dataset("mine", counts, ik.Alphabet(labels), "me")
ik.theory.mle_error_bound(mechanism, 100) + 1.0, ik.compare(tally, tally).ratio.p_value.round(2)
"""


def imports_of(code, source, module):
    """The imports that give an example the names of its module that it uses, as doctest does."""
    used = {node.id for node in nodes(code) if isinstance(node, ast.Name)}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found = {each.asname or each.name: each for each in node.names}
            node.names = [each for name, each in found.items() if name in used]
            if node.names:
                yield ast.unparse(node)
        elif used & (own := bound_by(node)):
            yield f"from {module} import {', '.join(sorted(used & own))}"


def bound_by(node):
    """The names that a statement of a module defines."""
    targets = [*getattr(node, "targets", []), getattr(node, "target", None)]
    return {getattr(node, "name", None), *(getattr(each, "id", None) for each in targets)} - {None}


def docstring_examples():
    """Each docstring's example: the name of what it is about, and its code."""
    parser = doctest.DocTestParser()
    for path in SOURCES:
        source = path.read_text("utf8")
        for node in nodes(source):
            text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            if code := "".join(each.source for each in parser.get_examples(text or "")):
                imports = imports_of(code, source, name_of(path))
                name = f"{name_of(path)}.{getattr(node, 'name', '')}".strip(".")
                yield name, [*imports, *code.splitlines()]


def readme_examples():
    readme = ROOT.joinpath("README.md").read_text("utf8")
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", readme, re.DOTALL), 1):
        yield f"README.md, {number}", code.splitlines()


def complaints(examples, folder):
    """What mypy says about the lines of examples: the example's name, the line, the complaint."""
    lines, names = ["# mypy: allow-redefinition, allow-untyped-defs"], [""]
    for number, (name, code) in enumerate(examples):
        # Each is a function, because the names of one mean nothing in another.
        lines += [f"def example_{number}() -> None:", *(f"    {line}" for line in code)]
        names += [name] * (1 + len(code))
    said = said_of("\n".join(lines) + "\n", folder)
    found = re.findall(r"code\.py:(\d+): error: (.*)", said)
    return [(names[int(at) - 1], lines[int(at) - 1].strip(), what) for at, what in found]


def test_what_docstrings_and_the_readme_show_passes_type_checkers(tmp_path):
    examples = [*docstring_examples(), *readme_examples(), ("KINDS", KINDS.splitlines())]
    found = complaints(examples, tmp_path)
    waived = {line for lines in WAIVED.values() for line in lines}
    assert [each for each in found if each[1] not in waived] == []
    assert waived <= {line for _, line, _ in found}


def test_an_argument_of_another_type_is_seen(tmp_path):
    code = ["import ibukit as ik", "ik.RandomizedResponse(3, epsilon='1')"]
    found = complaints([("right", code[:1]), ("wrong", code)], tmp_path)
    assert [(name, line) for name, line, _ in found] == [("wrong", code[1])]
