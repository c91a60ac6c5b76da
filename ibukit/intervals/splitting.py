"""Random splits of the reports: an estimate from one part, judged by the other."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.solvers import Problem, best_found
from ibukit.tally.tally import Tally, TallyPart

# Number of reports from which numpy refuses to draw hypergeometric numbers.
MAX_HYPERGEOMETRIC = 10**9
# Tolerance of the pilot's estimate, in nats per report. Any estimate keeps the guarantee; a better
# one only shortens intervals.
PILOT_TOLERANCE = 1e-9


def split(tally: Tally, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the counts of a random `share` of the reports and of the rest, each at least one."""
    if tally.n < 2:
        raise ValueError(f"tally must have at least 2 reports to be split in two, got {tally.n}")
    if tally.n < MAX_HYPERGEOMETRIC:
        wanted = min(max(round(share * tally.n), 1), tally.n - 1)
        chosen = rng.multivariate_hypergeometric(tally.counts, wanted)
    else:
        # Each report goes to the first part independently, which is as valid a split.
        chosen = rng.binomial(tally.counts, share)
    return chosen, tally.counts - chosen


def tally_of(tally: Tally, counts: Ints) -> Tally:
    """Return the tally of some of the reports: counts of shape (s,), at least one above 0."""
    parts = []
    starts = np.cumsum([len(part.counts) for part in tally.parts])[:-1]
    for part, own in zip(tally.parts, np.split(counts, starts), strict=True):
        seen = own > 0
        if seen.any():
            parts.append(TallyPart(part.mechanism, part.reports[seen], own[seen]))
    return Tally(tuple(parts))


def guess(tally: Tally) -> Floats:
    """Return the estimate from a part of the reports, mixed with a uniform one.

    The uniform distribution has the weight of one more person. The mixture gives every report a
    probability, and lowers the likelihood of the part by at most one nat.
    """
    problem = Problem(tally.operator, tally.counts, tally.n)
    theta = best_found(problem, PILOT_TOLERANCE).theta
    return (tally.n * theta + 1 / tally.k) / (tally.n + 1)
