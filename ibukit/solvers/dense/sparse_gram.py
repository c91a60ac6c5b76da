"""M diag(w) M^T of a sparse matrix: linear in w, so one sparse product makes it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_matrix

from ibukit._ground.arguments import Floats

# entries from which a product of BLAS costs more than to look for another way
MANY_ENTRIES = 2**14
# a pair of entries in a sparse product costs as much as so many multiplications in BLAS; to list it
# costs more once
PAIR = 200


class SparseGram:
    """Products of all pairs of a report's entries: a column a report, a row a pair of secrets."""

    def __init__(self, pairs: csc_matrix, k: int):
        self.pairs = pairs
        self.k = k

    @classmethod
    def of(cls, matrix: Floats) -> SparseGram | None:
        """None where the entries are too many."""
        k, s = matrix.shape
        if k * s < MANY_ENTRIES:
            return None
        there = matrix != 0  # of truth values they are counted and found in a quarter of the time
        # by the mean number of a report's entries there are at least so many pairs
        if np.count_nonzero(there) ** 2 * PAIR > 2 * (k * s) ** 2:
            return None
        report, secret = np.divmod(np.flatnonzero(there.T), k)
        order = np.arange(len(report))
        ends = np.cumsum(np.bincount(report, minlength=s))
        partners = ends[report] - order  # itself, and those of the same report below it
        done = np.cumsum(partners)
        if done[-1] * PAIR > k * k * s:
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
        return np.asarray(self.pairs @ w).reshape((self.k, self.k), order="F")
