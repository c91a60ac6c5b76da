"""A random part of the reports to look at, so that the others can be judged by what it shows."""

from __future__ import annotations

import numpy as np

from ibukit import _validate
from ibukit._validate import Floats, Ints
from ibukit.solvers import Problem, best_found
from ibukit.tally import Part, Tally

# reports from which numpy draws no hypergeometric numbers
MOST_DRAWN = 10**9
# nats per report: any estimate is a valid guess
GUESS_WITHIN = 1e-9
# uniform share of a guess, so that every report has a probability
UNSEEN_SHARE = 0.01


def generator(seed: int) -> np.random.Generator:
    """Of the random splits."""
    return np.random.Generator(np.random.PCG64(_validate.whole("seed", seed, 0)))


def split(tally: Tally, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """How often each seen report is in a random `share` of all, and in the rest; each has at least one report."""
    if tally.n < 2:
        raise ValueError(f"tally must have at least 2 reports to be split in two, got {tally.n}")
    if tally.n < MOST_DRAWN:
        wanted = min(max(round(share * tally.n), 1), tally.n - 1)
        chosen = rng.multivariate_hypergeometric(tally.counts, wanted)
    else:
        chosen = rng.binomial(tally.counts, share)  # each report by itself, which is as good a split
    return chosen, tally.counts - chosen


def tally_of(tally: Tally, counts: Ints) -> Tally:
    """The tally of some of the reports, counts of shape (s,) with at least one above 0."""
    parts = []
    starts = np.cumsum([len(part.counts) for part in tally.parts])[:-1]
    for part, own in zip(tally.parts, np.split(counts, starts), strict=True):
        seen = own > 0
        if seen.any():
            parts.append(Part(part.mechanism, part.reports[seen], own[seen]))
    return Tally(tuple(parts))


def guess(tally: Tally) -> Floats:
    """The estimate from a part of the reports, with a little of the uniform distribution."""
    theta = best_found(Problem(tally.operator, tally.counts, tally.n), GUESS_WITHIN).theta
    return (1 - UNSEEN_SHARE) * theta + UNSEEN_SHARE / tally.k
