"""Write the page *A sheet for a class of twenty*, which prints on two sheets of paper.

    python scripts/class_sheet.py

A class has so few outcomes that all of them are counted, with exact binomial probabilities; a
simulation through the package is printed with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import binom

import ibukit as ik
from chapter_openings import ROOT
from cheat_sheet import table

FILE = ROOT / "book" / "class-sheet.md"
N, GROUPS, RED = 20, 5, 6  # people, groups to count in, red cards
REDS = (0, 2, 4, 6, 8, 10)
SEED, CLASSES = 1, 10_000  # of the simulation
FAR = 0.2  # distance from the truth beyond which a finding is far off
COIN = ik.RandomizedResponse(["no", "yes"], epsilon=np.log(3))
STYLE = """```{raw} html
<style>
.tally td { height: 2rem; min-width: 4.5rem; }
@media print {
  .bd-article { line-height: 1.3; zoom: .78; }
  .bd-article :is(h1, h2) { margin-block: .5rem; }
  .tally td { height: 3.2rem; }
  .bd-article :is(td, th, td *) { line-height: 1.2 !important; margin-block: 0 !important; }
  .bd-article table:not(.tally) :is(td, th) { padding-block: .1rem !important; }
  .bd-article #for-the-teacher { break-before: page; }
}
</style>
```"""


class Outcome(NamedTuple):
    """The findings of a class in which this many people say "yes"."""

    inverse: float
    step: float
    gap: float
    mle: float
    ends: tuple[float, float]


class Expected(NamedTuple):
    """The findings of classes by their number of red cards."""

    mean: float
    nine_in_ten: tuple[int, int]
    negative: float
    far: float
    covered: float


def outcome(yes: int) -> Outcome:
    """The numbers of one outcome, by the package."""
    tally = COIN.tally_counts([N - yes, yes])
    estimate = ik.mle(tally)
    low, high = estimate.interval(0.95, of="yes")
    return Outcome(
        ik.inv(tally, post="none")["yes"],
        ik.ibu(tally, stop=ik.Steps(1))["yes"],
        ik.gap(tally, [0.5, 0.5]),
        estimate["yes"],
        (float(low), float(high)),
    )


OUTCOMES = [outcome(yes) for yes in range(N + 1)]


def law(red: int) -> np.ndarray:
    """The probabilities that 0 to N people say "yes", if `red` of them have a red card."""
    true, false = binom(red, 0.75), binom(N - red, 0.25)
    return np.convolve(true.pmf(range(red + 1)), false.pmf(range(N - red + 1)))


def expected(red: int) -> Expected:
    """The distribution of what a class finds, over all outcomes."""
    p, truth = law(red), red / N
    total = np.cumsum(p)
    holds = [low <= truth <= high for low, high in (each.ends for each in OUTCOMES)]
    inverse = np.array([each.inverse for each in OUTCOMES])
    return Expected(
        float(p @ np.arange(N + 1)),
        (int(np.searchsorted(total, 0.05)), int(np.searchsorted(total, 0.95))),
        float(p @ (inverse < -1e-9)),
        float(p @ (abs(inverse - truth) > FAR + 1e-9)),
        float(p @ holds),
    )


def simulated(red: int) -> tuple[float, float]:
    """The share of simulated classes whose inversion is below zero, and its standard error."""
    secrets = np.tile(["yes"] * red + ["no"] * (N - red), CLASSES)
    reports = np.asarray(COIN.randomize(secrets, np.random.default_rng(SEED)))
    yes = (reports.reshape(CLASSES, N) == "yes").sum(axis=1)
    share = np.mean([OUTCOMES[each].inverse < -1e-9 for each in yes])
    return float(share), float(np.sqrt(share * (1 - share) / CLASSES))


def percent(share: float, places: int = 0) -> str:
    """A share as people read it."""
    text = f"{100 * share:.{places}f}"
    return f"{'0' if float(text) == 0 else text.replace('-', '−')} %"


def tally() -> str:
    """The empty table that a class fills in."""
    empty = "<td></td>" * 3
    names = [*(f"Group {i + 1}" for i in range(GROUPS)), "The class"]
    rows = "\n".join(f'<tr><th scope="row">{name}</th>{empty}</tr>' for name in names)
    titles = "".join(f'<th scope="col">{title}</th>' for title in ("", "no", "yes", "people"))
    return (
        f'```{{raw}} html\n<table class="table tally">\n<thead><tr>{titles}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table>\n```"
    ).replace('<th scope="col"></th>', "<td></td>")


def what_to_expect() -> str:
    """The findings of classes by their number of red cards."""
    rows: list[tuple[str, ...]] = []
    for red in REDS:
        found = expected(red)
        rows.append(
            (
                str(red),
                f"{found.mean:.0f}",
                "{} to {}".format(*found.nine_in_ten),
                percent(found.negative),
                percent(found.far),
                percent(found.covered),
            )
        )
    titles = ("Red cards", '"Yes" on average', '"Yes" in 9 of 10 classes', "Estimate below 0")
    return table(
        (*titles, f"More than {100 * FAR:.0f} points off", "Interval covers the truth"), rows
    )


def every_outcome() -> str:
    """The results of a class for every number of people who say "yes"."""
    rows: list[tuple[str, ...]] = [
        (
            str(yes),
            percent(each.inverse),
            percent(each.step, 1),
            f"{each.gap:.3f}",
            percent(each.mle),
            f"{100 * each.ends[0]:.0f} to {percent(each.ends[1])}",
        )
        for yes, each in enumerate(OUTCOMES)
    ]
    return table(('"Yes"', "INV", "One step", "Gap of 50 %", "MLE", "95 % interval"), rows)


def text() -> str:
    """The page."""
    spread = 100 * 2 * np.sqrt(3 / 16 / N)  # in points
    share, error = simulated(RED)
    found = expected(RED)
    off = float(law(RED) @ [abs(each.inverse - RED / N) > 0.1 - 1e-9 for each in OUTCOMES])
    lower = 100 * 2 * 0.25 / (N / 2)  # in points: two people, "yes" of a quarter of them
    people = ik.plan(COIN, width=0.2, of="yes", near=[1 - RED / N, RED / N]).n
    return f"""# A sheet for a class of twenty

{STYLE}

**Question.** Can a class find out how many of its members hold a red card, if no single answer
can be trusted?

**You need** a coin for each person, {N} playing cards of which {RED} are red, and this sheet.
**Time:** 45 minutes.

## Toss and report

1. Draw a card and show it to no one. Red is the *secret*.
2. Toss the coin where no one can see it. *Heads:* your report is the truth, "yes" for a red card
   and "no" for a black one. *Tails:* toss again. Now heads means "yes" and tails means "no",
   whatever your card is.
3. Write "yes" or "no" on a slip. Count the slips of your group, then add up the groups.

{tally()}

## Work back to the cards

The class has $n$ people, and $y$ of them say "yes".

1. *Undo the coin.* About $n/4$ said "yes" because of the coin, and about $n/2$ told the truth. So
   the share of red cards is about $(y - n/4)/(n/2)$ = ______ %. Can this share be true?
2. *One step of IBU.* Guess 50 %. Then a "yes" counts as 0.75 of a red card and a "no" as 0.25.
   The new guess is $(0.75\\,y + 0.25\\,(n - y))/n$ = ______ %.
3. *The gap.* Other shares may fit the reports better than the first guess, 50 %, but by no more
   than a number called the gap. Divide the new guess by 50 %. Then subtract the new guess from
   100 %, and divide the difference by 50 %. The gap is the natural logarithm of the larger
   quotient: ______ .
4. *How sure?* The standard error of the share in item 1 is
   $2\\sqrt{{y\\,(n-y)/n}}\\,/\\,n$ = ______ .
   Twice this error on either side gives a rough interval: from ______ to ______ %.
5. *Turn the cards over.* The true share is ______ %. How far off were you?

With the package, for 12 noes and 8 yeses:

```python
import ibukit as ik

coin = ik.surveys.Warner(["no", "yes"], p=0.75)  # the truth in 3 of 4 cases
print(ik.mle(coin.tally_counts([12, 8])).to_frame(level=0.95).round(2))
```

(for-the-teacher)=
## For the teacher

Allow five minutes to explain, ten to toss and count, and fifteen to compute. Then let the groups
compare their results and turn the cards over. The numbers below are exact: they are sums of
binomial probabilities over all outcomes of {N} people. The last three columns
are percentages of classes, and their interval is the package's.

{what_to_expect()}

The estimate is right on average, but its standard deviation is {spread:.0f} points,
whatever the cards are. With {RED} red cards, {percent(off)} of the classes are off by 10 points
or more. That is the finding of the lesson: the coin protects twenty people well, and so twenty
answers say little. Pool classes: an interval 20 points wide needs {people:,} people.
In a simulation of {CLASSES:,} classes with {RED} red cards (seed {SEED}) the estimate was below 0
in {100 * share:.1f} ± {100 * error:.1f} % of the classes; the exact share is
{percent(found.negative, 1)}.

**What can go wrong**

- *Some always say "no".* Two such people with black cards lower the estimate by {lower:.0f}
  points on average. In one class you cannot see this effect; {{doc}}`chapters/survey` shows
  how two classes reveal it.
- *A coin is tossed in the open.* Then the report proves something. Begin again with new cards.
- *The round is repeated with the same cards.* Two reports about one secret can multiply the odds by
  3 × 3 = 9 instead of 3. Shuffle and deal again; then you may add up the rounds in one tally.
- *A real question.* Cards are better than real secrets: cards can be turned over. If you do ask
  a real question, choose a harmless one, and let anyone refuse.
- *More or fewer than {N} people.* The formulas hold for every $n$; the tables are for {N}.

**Every outcome.** INV undoes the coin as in item 1; items 2 and 3 explain the step and the gap.
The MLE is where IBU ends, and `to_frame` gives the interval.

{every_outcome()}

**Afterwards** read {{doc}}`chapters/start-here`, which goes on from here, then
{{doc}}`chapters/survey`. {{doc}}`chapters/how-sure` explains the interval,
and {{doc}}`chapters/how-many-people` explains the number of people.
"""


if __name__ == "__main__":
    FILE.write_text(text(), "utf8")
    print(f"wrote {FILE.name}")
