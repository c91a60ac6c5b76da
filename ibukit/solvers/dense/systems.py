"""Systems (M diag(w) M^T + diag(d)) x = r of a path on one matrix, in memory that is reused.

Three forms of the same system: in all secrets; in those whose d is not much larger than their own
entry of M diag(w) M^T, the others one by one; and in the reports, (diag(1/w) + M^T diag(1/d) M) v =
M^T r / d, where x = (r - M v) / d.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from ibukit._ground.arguments import Floats, Ints
from ibukit.solvers._normal_equations import (
    MAX_SECRETS_SQUARED,
    MIN_WEIGHT,
    SHRINK_ABOVE,
    Solver,
    cholesky,
)
from ibukit.solvers.dense.sparse_gram import SparseGram

# times the secrets, the reports below which the system is one in the reports: it costs s^2 k + s^3
# / 3, the other k^2 s + k^3 / 3
FEW_REPORTS = 0.85
# secrets from which it is worth looking for those that can be solved for one by one
MANY_SECRETS = 48
# a d below this takes so many digits from a solution by reports that a refinement brings them back
CANCELS_BELOW = 1e-6


class Systems:
    """Of one matrix, shape (k, s), in C order."""

    def __init__(self, matrix: Floats):
        self.matrix = matrix
        self._by_reports = True
        k, s = matrix.shape
        self._sparse = (
            SparseGram.of(matrix) if FEW_REPORTS * k <= s and k <= MAX_SECRETS_SQUARED else None
        )
        self._scaled = np.empty_like(matrix)
        self._memory: dict[int, tuple[Floats, Floats]] = {}

    def solver(self, w: Floats, d: Floats, shrink: bool) -> Solver | None:
        """The cheapest that holds; None where none does even with a ridge."""
        k, s = self.matrix.shape
        kept, alone = self._kept(w, d) if shrink and k >= MANY_SECRETS else (None, d)
        if (
            self._by_reports
            and self._sparse is None
            and s < FEW_REPORTS * (k if kept is None else len(kept))
        ):
            found = self._in_reports(w, d)
            if found is not None:
                return found
            self._by_reports = False  # nor will it hold further on, where some d are smaller still
        if k > MAX_SECRETS_SQUARED:
            return None
        if kept is None:
            return self._in_secrets(w, d)
        return self._in_some(w, d, kept, alone)

    def _kept(self, w: Floats, d: Floats) -> tuple[Ints | None, Floats]:
        """Return the secrets of the common system (None: all) and the divisors of the others."""
        own = np.dot(
            self.matrix, w
        )  # at least the diagonal of M diag(w) M^T: entries are at most 1
        kept = np.flatnonzero(d < SHRINK_ABOVE * own)
        return (kept, d + own) if 0 < len(kept) < 0.9 * len(d) else (None, d)

    def _square(self, n: int) -> tuple[Floats, Floats]:
        """Memory for a matrix of order n in Fortran order, and its diagonal."""
        if n not in self._memory:
            whole = np.empty((n, n), order="F")
            self._memory[n] = whole, whole.reshape(-1, order="F")[:: n + 1]
        return self._memory[n]

    def _in_secrets(self, w: Floats, d: Floats) -> Solver | None:
        normal, diagonal = self._square(len(d))

        def build() -> Floats:
            if self._sparse is not None:
                lower = self._sparse.lower(w)
                lower.reshape(-1, order="F")[:: len(d) + 1] += d
                return lower
            half = np.multiply(self.matrix, np.sqrt(w), out=self._scaled)
            dsyrk(1.0, half.T, 0.0, normal, 1, 1, 1)  # in place: trans, lower, overwrite_c
            np.add(diagonal, d, out=diagonal)
            return normal

        return _factorised(build)

    def _in_some(self, w: Floats, d: Floats, kept: Ints, alone: Floats) -> Solver | None:
        rows, matrix = self.matrix[kept], self.matrix

        def build() -> Floats:
            if self._sparse is not None:
                normal = np.asfortranarray(self._sparse.lower(w)[np.ix_(kept, kept)])
            else:
                normal = np.asarray(dsyrk(1.0, (rows * np.sqrt(w)).T, trans=1, lower=1))
            normal.reshape(-1, order="F")[:: len(kept) + 1] += d[kept]
            return normal

        inner = _factorised(build)
        if inner is None:
            return None

        def solve(r: Floats) -> Floats:
            # the large secrets see what the small ones did to the fit; the small ones' own coupling
            # is below 1e-3
            x = r / alone
            x[kept] = 0
            x[kept] = inner(r[kept] - np.dot(rows, w * np.dot(x, matrix)))
            return x

        return solve

    def _in_reports(self, w: Floats, d: Floats) -> Solver | None:
        matrix = self.matrix
        normal, diagonal = self._square(matrix.shape[1])
        half = np.divide(matrix, np.sqrt(d)[:, None], out=self._scaled)
        dsyrk(1.0, half.T, 0.0, normal, 0, 1, 1)
        np.add(diagonal, 1 / np.maximum(w, MIN_WEIGHT), out=diagonal)
        factor, failed = dpotrf(normal, 1, 0, 1)
        if failed:
            return None

        def once(r: Floats) -> Floats:
            return np.asarray((r - np.dot(matrix, dpotrs(factor, np.dot(r / d, matrix), 1)[0])) / d)

        if d.min() > CANCELS_BELOW:
            return once

        def refined(r: Floats) -> Floats:
            x = once(r)
            return x + once(r - np.dot(matrix, w * np.dot(x, matrix)) - d * x)

        return refined


def _factorised(build: Callable[[], Floats]) -> Solver | None:
    """By Cholesky as it is, which nearly always holds, or with the smallest ridge that it needs."""
    factor, failed = dpotrf(build(), 1, 0, 1)
    if failed:
        return cholesky(build)
    return lambda r: np.asarray(dpotrs(factor, r, 1)[0])
