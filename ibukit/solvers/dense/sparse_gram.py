"""M diag(w) M^T of a sparse matrix: it is linear in w, so one sparse product gives all entries."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_matrix

from ibukit._ground.arguments import Floats

# Entries from which a product by BLAS costs more than the search for zeros.
MIN_ENTRIES = 2**14
# A pair of entries in a sparse product costs as much as 200 multiplications in BLAS. Listing the
# pair, which is done once, costs more.
COST_OF_PAIR = 200


class SparseGram:
    """Products of all pairs of a report's entries: a column for a report, a row for a pair."""

    def __init__(self, pairs: csc_matrix, k: int):
        self.pairs = pairs
        self.k = k

    @classmethod
    def of(cls, matrix: Floats) -> SparseGram | None:
        """List the pairs of a matrix; None if they are so many that BLAS is faster."""
        k, s = matrix.shape
        if k * s < MIN_ENTRIES:
            return None
        # Counting booleans takes a quarter of the time. If a report has m nonzero entries on
        # average, there are at least s m^2 / 2 pairs (Jensen).
        nonzero = matrix != 0
        if np.count_nonzero(nonzero) ** 2 * COST_OF_PAIR > 2 * (k * s) ** 2:
            return None
        report, secret = np.divmod(np.flatnonzero(nonzero.T), k)
        # Each entry is paired with itself and with those after it in the same report.
        order = np.arange(len(report))
        ends = np.cumsum(np.bincount(report, minlength=s))
        partners = ends[report] - order
        done = np.cumsum(partners)
        if done[-1] * COST_OF_PAIR > k * k * s:
            return None
        second = np.arange(done[-1]) - np.repeat(done - partners - order, partners)
        value = matrix[secret, report]
        place = (secret[second] + np.repeat(secret * k, partners)).astype(np.int32)
        starts = np.concatenate([[0], done[ends - 1]]).astype(np.int32)
        return cls(
            csc_matrix(
                (np.repeat(value, partners) * value[second], place, starts), (k * k, s), copy=False
            ),
            k,
        )

    def lower(self, w: Floats) -> Floats:
        """The lower triangle, in Fortran order."""
        return (self.pairs @ w).reshape((self.k, self.k), order="F")
