"""Findings of the model checks for summaries; long simulations are left out."""

from __future__ import annotations

from collections.abc import Iterator

from ibukit.model_checks.draws import checked_tally
from ibukit.model_checks.fit import fit_test
from ibukit.model_checks.model_check import ModelCheck
from ibukit.model_checks.pool import pool_test
from ibukit.tally.tally import Tally

# Number of secrets times distinct reports up to which drawing takes seconds at most. In larger
# tallies only those deviations are found that a bound makes clear.
MAX_ENTRIES_DRAWN = 2**16
# Number of mechanisms up to which drawing is as quick: each draw makes a tally for each of them.
MAX_PARTS_DRAWN = 200
# The least p-value that this number of draws can give is the one that is called surprising.
DRAWS = 99


def findings(tally: Tally) -> Iterator[str]:
    """Yield what a reader of the estimate should know; nothing if no check applies.

    For one mechanism this is a misfit; for a pool it is also whether its parts agree.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
    >>> list(findings(mechanism.tally_counts([1900, 600])))
    []
    """
    try:
        checked_tally(tally)
    except ValueError:
        # Weights, likelihoods and sums of bits do not say what else might have been observed, and
        # files of reports may not say how probable each is.
        return
    is_short = (
        tally.k * len(tally.counts) <= MAX_ENTRIES_DRAWN and len(tally.parts) <= MAX_PARTS_DRAWN
    )
    draws = DRAWS if is_short else 0
    checks: list[ModelCheck] = [fit_test(tally, draws)]
    if len(tally.parts) > 1:
        checks.append(pool_test(tally, draws))
    yield from (check.reason for check in checks if check.is_surprising)
    if len(checks) > 1 and not checks[-1].is_surprising:
        yield checks[-1].reason
