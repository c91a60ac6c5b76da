"""The exact posterior of sums of probabilities, where there is one."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.bayes.sums.response import MIN_OFF_DIAGONAL, ResponseSums
from ibukit.bayes.sums.two_secrets import TwoSecrets
from ibukit.channels import facts
from ibukit.domain.linear_functionals import LinearFunctionals
from ibukit.tally.tally import Tally


def exact_ends(
    sums: ResponseSums | TwoSecrets, functionals: LinearFunctionals, level: float
) -> tuple[Floats, Floats]:
    """Return the ends of equal-tailed intervals of functionals of two values each."""
    tail = (1 - level) / 2
    ends = []
    for w in functionals.each():
        least, most = float(w.min()), float(w.max())
        quantiles = sums.quantiles(w == most, [tail, 1 - tail]) if most > least else np.zeros(2)
        ends.append(least + (most - least) * quantiles)
    lower, upper = np.array(ends).reshape(-1, 2).T
    return lower, upper


def exact_sums(tally: Tally, alpha: Floats) -> ResponseSums | TwoSecrets | None:
    """Return the exact posterior of sums of probabilities, None if there is none.

    If no reports get lost, there is one in two cases: if k-RR is the only mechanism, or if there
    are two secrets.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([500, 300, 200])
    >>> sums = exact_sums(tally, np.ones(3))
    >>> sums.quantiles(np.array([True, True, False]), [0.05, 0.95]).round(3)
    array([0.947, 0.999])
    """
    if tally.efficiency is not None or tally.k == 1:
        return None
    channel = facts.as_response(tally.operator)
    if channel is not None and channel.off >= MIN_OFF_DIAGONAL:
        return ResponseSums.of(channel, tally.counts, alpha)
    return TwoSecrets(tally.matrix(), alpha, tally.counts) if tally.k == 2 else None
