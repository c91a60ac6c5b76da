"""Write the page *Cheat sheet*, which prints on one sheet of paper.

    python scripts/cheat_sheet.py

The calls are those of the page *Which estimator should I use?* and of *From a task to a function*.
What intervals cover is counted in *How sure can we be?*, and the errors of mechanisms are computed.
"""

from __future__ import annotations

import ibukit as ik
from chapter_openings import ROOT, glued

FILE = ROOT / "book" / "cheat-sheet.md"
K, EPSILON, N = 10, 1.0, 10_000
CALLS = {
    "To count the reports of a table or file": "t = ik.Tally.from_table(table, mechanism)",
    "The distribution, with a proof that no other fits better": "ik.mle(t)",
    "The distribution, if neighbouring shares are similar": 'ik.smooth(t, of="frequencies")',
    "The distribution, under a prior that you can defend": "ik.posterior_mean(t, alpha)",
    "An interval for each share, or for a sum": "estimate.interval(0.95, of=[...])",
    "A band for all shares at once": "estimate.band(0.95)",
    "To compare two groups, or two dates": "ik.compare(t1, t2)",
    "How many people you need": "ik.plan(mechanism, width=0.02).n",
    "To know if reports can reveal the distribution": "ik.theory.identifiable(mechanism)",
    "All distributions that fit best": "ik.theory.mle_set(t)",
    "A test of whether the model fits": "estimate.fit_test()",
    "To correct counts that a detector has blurred": "ik.unfold(counts, matrix)",
    "Reports that leave a device": "mechanism.release(secrets)",
}
METHODS = {
    "auto": "`auto`, the default",
    "profile": "`profile`, the textbook method",
    "wald": "`wald`, ± 1.96 standard errors",
    "bootstrap": "`bootstrap`",
    "calibrated": "`calibrated`, by simulation",
    "guaranteed": "`guaranteed`, for every truth and size",
}
MECHANISMS = (
    (ik.RandomizedResponse(K, EPSILON), "one label"),
    (ik.SubsetSelection(K, EPSILON), "a set of labels"),
    (ik.OptimizedUnaryEncoding(K, EPSILON), "a row of bits"),
    (ik.Rappor(K, EPSILON), "a row of bits"),
    (ik.HadamardResponse(K, EPSILON), "a column's number"),
    (ik.TruncatedGeometric(ik.Line(0, K - 1), EPSILON), "a whole number"),
    (ik.TruncatedPlanarGeometric(ik.Grid(2, K // 2), EPSILON), "a cell"),
)


STYLE = """```{raw} html
<style>
@media print {
  .bd-article { line-height: 1.3; zoom: .72; }
  .bd-article :is(h1, h2) { margin-block: .4rem; }
  .bd-article :is(td, th, td *) {
    line-height: 1.2 !important;
    margin-block: 0 !important;
    padding-block: .1rem !important;
  }
}
</style>
```"""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def calls() -> str:
    """Which call answers which question."""
    return table(("You want", "Call"), [(task, f"`{call}`") for task, call in CALLS.items()])


def intervals() -> str:
    """The coverage of each method of an interval where 95 % were asked for."""
    found = glued("how-sure")
    rows = [
        (words, found[f"worst_{name}"], found[f"typical_{name}"], found[f"cost_{name}"])
        for name, words in METHODS.items()
    ]
    return table(
        ("Method", "Least coverage", "Typical coverage", "Width, relative to `profile`"), rows
    )


def errors() -> str:
    """The level of each mechanism and the error of a share."""
    rows = []
    for mechanism, report in MECHANISMS:
        mse = ik.theory.asymptotic_mse(mechanism, ik.uniform(K))
        error = f"{100 * (mse / K / N) ** 0.5:.2g} %"
        level = ik.privacy.epsilon_ldp(mechanism)
        rows.append((f"`ik.{type(mechanism).__name__}`", report, f"{level:.2g}", error))
    return table(
        ("Mechanism", "A report is", "ε between any two secrets", "Error of a share"), rows
    )


def text() -> str:
    """The page."""
    n = glued("how-sure")["n_questions"]
    return f"""# Cheat sheet

{STYLE}

Every estimate begins with a mechanism and a tally:

```python
import ibukit as ik

mechanism = ik.RandomizedResponse(["bike", "bus", "car"], epsilon=1)
t = mechanism.tally(["bus", "bus", "bike", "car"])
estimate = ik.mle(t)
```

## Which call

{calls()}

## Coverage of 95 % intervals

{{doc}}`chapters/how-sure` counts the coverage of each method in up to {n} cases, each with a
mechanism, a true distribution, a number of people and a share to be estimated.

{intervals()}

## Mechanisms

The errors are for {K} equally common secrets, {N:,} reports and ε = {EPSILON:g}. For
geometric noise ε is per step, so distant secrets are protected less than near ones.

{errors()}
"""


if __name__ == "__main__":
    FILE.write_text(text(), "utf8")
    print(f"wrote {FILE.name}")
