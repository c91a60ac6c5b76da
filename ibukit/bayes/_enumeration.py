"""Exact posterior by enumeration: a mixture of Dirichlet distributions over all split matrices."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit._ground.compositions import compositions
from ibukit.bayes._marginals import Marginals
from ibukit.errors import TooLarge
from ibukit.tally.tally import Tally

# Number of splits that are listed: 2 million take 16 MB for each secret, and a few seconds.
MAX_SPLITS = 2 * 10**6
# Numbers that are kept, of all splits and secrets or of the laws of the totals: 1 GB.
MAX_ENTRIES = 2**27


def n_splits(counts: Ints, k: int) -> int:
    """Number of ways to divide the s_y reports y among the k secrets, for all y together."""
    return math.prod(math.comb(int(s) + k - 1, k - 1) for s in counts)


def posterior_by_splits(tally: Tally, alpha: Floats) -> Marginals:
    """Exact posterior as a mixture over all splits r of the reports by secret.

    The weight of a split is prod_y [s_y! / prod_x r_yx! prod_x M_xy^r_yx] B(alpha + t(r)) /
    B(alpha).
    """
    n, k = tally.n, tally.k
    terms = n_splits(tally.counts, k)
    # The law of a single secret's total has n + 1 entries, too, though there is one split.
    entries = max(terms, n + 1) * k
    if terms > MAX_SPLITS or entries > MAX_ENTRIES:
        raise TooLarge(
            f"method='enumerate' would list {readable(terms)} splits of n = {n} reports of {k} "
            f"secrets (at most {MAX_SPLITS:.0e}), which take {readable(8 * entries)} bytes (at "
            f"most {8 * MAX_ENTRIES:.2g}); take method='exact', which needs the totals alone, or "
            "method='gibbs' with an rng"
        )
    totals, log_weights = np.zeros((1, k), dtype=np.int64), np.zeros(1)
    for column, s in zip(tally.matrix().T, tally.counts, strict=True):
        split = compositions(int(s), k)
        log_weight = (
            gammaln(s + 1) - gammaln(split + 1).sum(axis=1) + xlogy(split, column).sum(axis=1)
        )
        # Outer sum over the reports so far and the splits of this one: totals and log-weights add
        # up.
        totals = (totals[:, None] + split).reshape(-1, k)
        log_weights = np.add.outer(log_weights, log_weight).ravel()
    log_weights += _log_beta(alpha + totals) - _log_beta(alpha)
    log_evidence = float(logsumexp(log_weights))
    weights = np.exp(log_weights - log_evidence)
    # The law of each total is the sum of the weights of the splits with that total.
    shares = np.array(
        [np.bincount(totals[:, x], weights=weights, minlength=n + 1) for x in range(k)]
    )
    return Marginals(shares, alpha, log_evidence + float(tally.counts @ tally.log_scale))


def _log_beta(alpha: Floats) -> Floats:
    return gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1))
