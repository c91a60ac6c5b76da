"""Systems (M diag(w) M^T + diag(d)) x = r of a path on one matrix, in memory that is used again.

The same system has three forms: in all secrets; in the secrets whose d is not much larger than
their own entry of M diag(w) M^T, with the others one by one; and in the reports, by the Woodbury
identity: (diag(1/w) + M^T diag(1/d) M) v = M^T (r / d), then x = (r - M v) / d.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.limits import max_factorised_order
from ibukit.solvers._normal_equations import (
    MIN_WEIGHT,
    SHRINK_ABOVE,
    LinearSolve,
    can_solve_in_secrets,
    cholesky,
)
from ibukit.solvers.dense.sparse_gram import SparseGram

# Reports for each secret below which the system in the reports is faster: it costs s^2 k + s^3 / 3
# multiplications, and the system in the secrets k^2 s + k^3 / 3.
MAX_REPORTS_PER_SECRET = 0.85
# Number of secrets from which on it saves time to solve for some of them one by one.
MIN_K_TO_SHRINK = 48
# If some d is below this, the solution by reports cancels so many digits that it is refined.
MIN_D_WITHOUT_REFINEMENT = 1e-6
# A d below this share of the secret's own entry of M diag(w) M^T is rounding.
MIN_D_RATIO = 1e-15


class Systems:
    """Systems of one matrix, shape (k, s), in C order."""

    def __init__(self, matrix: Floats):
        self.matrix = matrix
        self._by_reports = True
        k, s = matrix.shape
        self._sparse = (
            SparseGram.of(matrix)
            if MAX_REPORTS_PER_SECRET * k <= s and k <= max_factorised_order()
            else None
        )
        self._scaled = np.empty_like(matrix)
        self._memory: dict[int, tuple[Floats, Floats]] = {}

    def solver(self, w: Floats, d: Floats, shrink: bool) -> LinearSolve | None:
        """The cheapest form that can be factorised; None if none can, even with a ridge."""
        k, s = self.matrix.shape
        kept, alone = self._kept(w, d) if shrink and k >= MIN_K_TO_SHRINK else (None, d)
        if (
            self._by_reports
            and self._sparse is None
            and s < MAX_REPORTS_PER_SECRET * (k if kept is None else len(kept))
        ):
            solve = self._in_reports(w, d)
            if solve is not None:
                return solve
            # The system in the reports would also fail further on, where some d are smaller still.
            self._by_reports = False
        if not can_solve_in_secrets(k, s):
            return None
        if kept is None:
            return self._in_secrets(w, d)
        return self._in_some(w, d, kept, alone)

    def _kept(self, w: Floats, d: Floats) -> tuple[Ints | None, Floats]:
        """Secrets that need a common system, None for all; and the divisors of the others."""
        # Entries are at most 1, so this is an upper bound on the diagonal of M diag(w) M^T.
        own = np.dot(self.matrix, w)
        kept = np.flatnonzero(d < SHRINK_ABOVE * own)
        return (kept, d + own) if 0 < len(kept) < 0.9 * len(d) else (None, d)

    def _square(self, n: int) -> tuple[Floats, Floats]:
        """Memory for a matrix of order n in Fortran order, and its diagonal."""
        if n not in self._memory:
            matrix = np.empty((n, n), order="F")
            self._memory[n] = matrix, matrix.reshape(-1, order="F")[:: n + 1]
        return self._memory[n]

    def _in_secrets(self, w: Floats, d: Floats) -> LinearSolve | None:
        normal, diagonal = self._square(len(d))

        def build() -> Floats:
            if self._sparse is not None:
                lower = self._sparse.lower(w)
                lower.reshape(-1, order="F")[:: len(d) + 1] += d
                return lower
            root = np.multiply(self.matrix, np.sqrt(w), out=self._scaled)
            # In place; the last arguments are trans, lower, overwrite_c.
            dsyrk(1.0, root.T, 0.0, normal, 1, 1, 1)
            np.add(diagonal, d, out=diagonal)
            return normal

        return _factorised(build)

    def _in_some(self, w: Floats, d: Floats, kept: Ints, alone: Floats) -> LinearSolve | None:
        rows, matrix = self.matrix[kept], self.matrix

        def build() -> Floats:
            if self._sparse is not None:
                normal = np.asfortranarray(self._sparse.lower(w)[np.ix_(kept, kept)])
            else:
                normal = dsyrk(1.0, (rows * np.sqrt(w)).T, trans=1, lower=1)
            normal.reshape(-1, order="F")[:: len(kept) + 1] += d[kept]
            return normal

        inner = _factorised(build)
        if inner is None:
            return None

        def solve(r: Floats) -> Floats:
            # One step of block Gauss-Seidel: first the secrets that are alone, then the others,
            # given what these changed in the fit. The coupling that is left out is below 1e-3.
            x = r / alone
            x[kept] = 0
            x[kept] = inner(r[kept] - np.dot(rows, w * np.dot(x, matrix)))
            return x

        return solve

    def _in_reports(self, w: Floats, d: Floats) -> LinearSolve | None:
        matrix = self.matrix
        normal, diagonal = self._square(matrix.shape[1])
        if not can_solve_in_secrets(*matrix.shape):
            # A much smaller d would be lost beside its secret's own entry. Here entries are sums of
            # 1 / d, in which the others would be lost beside it.
            d = np.maximum(d, MIN_D_RATIO * np.dot(matrix, w))
        root = np.divide(matrix, np.sqrt(d)[:, None], out=self._scaled)
        dsyrk(1.0, root.T, 0.0, normal, 0, 1, 1)
        np.add(diagonal, 1 / np.maximum(w, MIN_WEIGHT), out=diagonal)
        factor, failed = dpotrf(normal, 1, 0, 1)
        if failed:
            return None

        def once(r: Floats) -> Floats:
            return (r - np.dot(matrix, dpotrs(factor, np.dot(r / d, matrix), 1)[0])) / d

        if d.min() > MIN_D_WITHOUT_REFINEMENT:
            return once

        def refined(r: Floats) -> Floats:
            # One step of iterative refinement.
            x = once(r)
            return x + once(r - np.dot(matrix, w * np.dot(x, matrix)) - d * x)

        return refined


def _factorised(build: Callable[[], Floats]) -> LinearSolve | None:
    """A solver by Cholesky without a ridge, which nearly always works, or with the smallest one."""
    factor, failed = dpotrf(build(), 1, 0, 1)
    if failed:
        return cholesky(build)
    return lambda r: dpotrs(factor, r, 1)[0]
