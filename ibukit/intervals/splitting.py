"""A random part of the reports to look at, so that the others can be judged by what it shows."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.solvers import Problem, best_found
from ibukit.tally.tally import Tally, TallyPart

# reports from which numpy draws no hypergeometric numbers
MAX_DRAWN = 10**9
# nats per report: any estimate is a valid guess
GUESS_WITHIN = 1e-9


def split(tally: Tally, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """How often each seen report is in a random `share` of all, and in the rest; each has at least one report."""
    if tally.n < 2:
        raise ValueError(f"tally must have at least 2 reports to be split in two, got {tally.n}")
    if tally.n < MAX_DRAWN:
        wanted = min(max(round(share * tally.n), 1), tally.n - 1)
        chosen = rng.multivariate_hypergeometric(tally.counts, wanted)
    else:
        chosen = rng.binomial(
            tally.counts, share
        )  # each report by itself, which is as good a split
    return chosen, tally.counts - chosen


def tally_of(tally: Tally, counts: Ints) -> Tally:
    """The tally of some of the reports, counts of shape (s,) with at least one above 0."""
    parts = []
    starts = np.cumsum([len(part.counts) for part in tally.parts])[:-1]
    for part, own in zip(tally.parts, np.split(counts, starts), strict=True):
        seen = own > 0
        if seen.any():
            parts.append(TallyPart(part.mechanism, part.reports[seen], own[seen]))
    return Tally(tuple(parts))


def guess(tally: Tally) -> Floats:
    """The estimate from a part of the reports, with as much of the uniform distribution as one more person is.

    So every report has a probability, and the likelihood of the part falls by at most one nat.
    """
    theta = best_found(Problem(tally.operator, tally.counts, tally.n), GUESS_WITHIN).theta
    return np.asarray((tally.n * theta + 1 / tally.k) / (tally.n + 1))
