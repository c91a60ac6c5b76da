"""The linear algebra of a Newton step: (M diag(w) M^T + H + diag(d)) x = r by Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.limits import max_factorised_order
from ibukit._ground.typing import override
from ibukit.channels import DenseChannel
from ibukit.channels.dense import lower_gram
from ibukit.solvers.interior_point_model import Iterate, Model, QuadraticTerm, System

# Solves a system for a right-hand side.
LinearSolve = Callable[[Floats], Floats]

# A secret whose d exceeds its diagonal entry of M diag(w) M^T by this factor hardly depends on the
# others, so its equation is solved alone.
SHRINK_ABOVE = 1e3
# Relative increases of the diagonal that are tried until a Cholesky factor exists.
RIDGES = (1e-15, 1e-12, 1e-9, 1e-7)
# Entries of the rows of a support, 128 MB, beyond which g = 1 is not solved on it.
MAX_SUPPORT_ENTRIES = 2**24
# A fitted probability below this counts as 0: the reciprocal of its square would overflow.
MIN_FITTED = 1e-150
# Smallest weight that is inverted; its reciprocal is a double.
MIN_WEIGHT = 1e-300
# Secrets up to which any system may be solved in the secrets: it takes two milliseconds.
MIN_K_WITHOUT_REPORTS = 300
# Secrets for each report up to which a system may be solved in the secrets, if the system in the
# reports has no factor. The time then grows by about the square of this number.
MAX_SECRETS_PER_REPORT = 4


def can_solve_in_secrets(k: int, s: int) -> bool:
    """True if a system of order k fits in memory, and s is not much smaller."""
    return k <= min(max_factorised_order(), max(MAX_SECRETS_PER_REPORT * s, MIN_K_WITHOUT_REPORTS))


class Support(NamedTuple):
    """A channel on some secrets alone: both linear maps, and the lower triangle of a gram."""

    forward: Callable[[Floats], Floats]
    adjoint: Callable[[Floats], Floats]
    gram: Callable[[Floats], Floats]


class NormalEquations(Model):
    """A channel whose normal equations can be formed, with a largest entry of 1 in each column."""

    def gram(self, w: Floats, rows: Ints | None) -> Floats:
        """M diag(w) M^T on some rows (None for all); only the lower triangle need be right."""
        total = np.zeros((self.k, self.k), order="F")
        self.channel.add_gram(total, w)
        return total if rows is None else np.asfortranarray(total[np.ix_(rows, rows)])

    def support(self, which: Ints) -> Support | None:
        """The system g = 1 on some secrets; None if their rows would take too much memory."""
        if len(which) * self.channel.size > MAX_SUPPORT_ENTRIES:
            return None
        rows = DenseChannel(self.rows(which))
        return Support(rows.forward, rows.adjoint, lambda w: lower_gram(rows.columns, w))

    def diagonal(self, w: Floats) -> Floats:
        """Upper bound on the diagonal of M diag(w) M^T: entries are at most 1, so M^2 <= M."""
        return self.adjoint(w)

    @override
    def cross_over(self, q: Floats, theta: Floats, s: Floats, tol: float) -> tuple[float, Floats]:
        return cross_over(self, q, theta, s, tol)

    @override
    def system(self, point: Iterate, quadratic: QuadraticTerm, shrink: bool) -> System | None:
        solve = self.factor(point.lam / point.nu, point.s / point.theta, quadratic, shrink)
        return None if solve is None else lambda r, start, centring: solve(r)

    def factor(
        self, w: Floats, d: Floats, quadratic: QuadraticTerm, shrink: bool
    ) -> LinearSolve | None:
        """A solver of (M diag(w) M^T + H + diag(d)) x = r; None if no ridge makes it definite.

        Near a solution most d = s / theta are huge. With `shrink` these secrets are solved for one
        by one, and a Cholesky factor is computed for the others only.
        """
        own = (
            self.diagonal(w)
            if quadratic.hessian is None
            else self.diagonal(w) + quadratic.hessian.diagonal()
        )
        kept = np.flatnonzero(d < SHRINK_ABOVE * own) if shrink else None
        if kept is None or not 0 < len(kept) < 0.9 * self.k:
            return cholesky(lambda: self._normal(w, d, quadratic, None))
        inner = cholesky(lambda: self._normal(w, d[kept], quadratic, kept))
        if inner is None:
            return None
        alone = d + own

        def solve(r: Floats) -> Floats:
            # One step of block Gauss-Seidel: first the secrets that are alone, then the others,
            # given what these changed in the fit. The coupling that is left out is below 1e-3.
            x = r / alone
            x[kept] = 0
            coupling = self.adjoint(w * self.forward(x))
            if quadratic.hessian is not None:
                coupling = coupling + quadratic.hessian @ x
            x[kept] = inner(r[kept] - coupling[kept])
            return x

        return solve

    def _normal(self, w: Floats, d: Floats, quadratic: QuadraticTerm, rows: Ints | None) -> Floats:
        normal = self.gram(w, rows)
        if quadratic.hessian is not None:
            normal = normal + (
                quadratic.hessian if rows is None else quadratic.hessian[np.ix_(rows, rows)]
            )
        normal.flat[:: len(normal) + 1] += d
        return normal


@dataclass(frozen=True, eq=False)
class DenseModel(NormalEquations):
    """A dense matrix, shape (k, s)."""

    matrix: Floats
    by_reports: bool = True
    """True to solve in the reports if they are few: fast, but digits cancel where d is tiny."""

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return len(self.matrix)

    @cached_property
    def channel(self) -> DenseChannel:  # type: ignore[override]
        """The matrix as a channel."""
        return DenseChannel(self.matrix)

    @override
    def forward(self, theta: Floats) -> Floats:
        return theta @ self.matrix

    @override
    def adjoint(self, w: Floats) -> Floats:
        return self.matrix @ w

    @override
    def gram(self, w: Floats, rows: Ints | None) -> Floats:
        return lower_gram(self.matrix if rows is None else self.matrix[rows], w)

    @override
    def accurate(self) -> DenseModel:
        return DenseModel(self.matrix, by_reports=not can_solve_in_secrets(*self.matrix.shape))

    @override
    def factor(
        self, w: Floats, d: Floats, quadratic: QuadraticTerm, shrink: bool
    ) -> LinearSolve | None:
        if quadratic.is_present or not self.by_reports or self.matrix.shape[1] > 0.7 * self.k:
            return super().factor(w, d, quadratic, shrink)
        # By the Woodbury identity, with D = diag(d) and W = diag(w),
        # (D + M W M^T)^-1 r = D^-1 (r - M (W^-1 + M^T D^-1 M)^-1 M^T D^-1 r).
        by_reports = cholesky(lambda: self._normal_of_reports(w, d))
        if by_reports is None:
            return None

        def once(r: Floats) -> Floats:
            return (r - self.adjoint(by_reports(self.forward(r / d)))) / d

        def solve(r: Floats) -> Floats:
            x = once(r)
            # Where d is tiny the subtraction cancels; one step of iterative refinement brings the
            # digits back.
            return x + once(r - self.adjoint(w * self.forward(x)) - d * x)

        return solve

    def _normal_of_reports(self, w: Floats, d: Floats) -> Floats:
        root = self.matrix / np.sqrt(d)[:, None]
        normal = dsyrk(1.0, root.T, lower=1)
        normal.flat[:: len(normal) + 1] += 1 / np.maximum(w, MIN_WEIGHT)
        return normal


def cross_over(
    model: NormalEquations,
    q: Floats,
    theta: Floats,
    s: Floats,
    tol: float,
    solve: LinearSolve | None = None,
) -> tuple[float, Floats]:
    """Guess the support from theta > s and solve g = 1 on it by Newton's method; zeros elsewhere.

    Secrets that would become negative leave the support, and the secret with the largest g > 1
    enters it. `solve` is the system of the first step, if it is known. Returns max g - 1 and the
    distribution; (inf, theta) if that does not work.
    """
    failure = (np.inf, theta)
    on = theta > s
    point = np.where(on, theta, 0.0)
    for _ in range(6):
        size = int(on.sum())
        support = model.support(np.flatnonzero(on)) if 0 < size <= len(q) else None
        if support is None:
            return failure
        reached = _newton(support, q, point[on] / point.sum(), solve)
        solve = None
        if reached is None:
            return failure
        x, negative = reached
        point = np.zeros(model.k)
        point[on] = x
        if not negative:
            g = model.adjoint(q / model.forward(point / point.sum()))
            if g.max() - 1 <= tol:
                return float(g.max() - 1), point / point.sum()
            violator = int(g.argmax())
            point[violator] = max(point[violator], 1e-12)
        on = point > 1e-14 * point.max()
        point = np.where(on, point, 0.0)
    return model.excess(q, point / point.sum()), point / point.sum()


def _newton(
    support: Support, q: Floats, x: Floats, solve: LinearSolve | None = None
) -> tuple[Floats, bool] | None:
    """Solve M (q / x M) = 1 for x; return x and whether it stopped at a negative coordinate.

    The Jacobian of M (q / x M) is -M diag(q / (x M)^2) M^T, so a step solves one definite system.
    """
    worst_before = np.inf
    for _ in range(8):
        nu = support.forward(x)
        if nu.min() < MIN_FITTED:
            return None
        residual = support.adjoint(q / nu) - 1
        worst = float(np.abs(residual).max())
        if worst < 1e-13:
            break
        # A factor is used again as long as it gains two digits a step.
        if solve is None or worst > 1e-2 * worst_before:
            solve = cholesky(lambda: support.gram(q / nu**2))  # noqa: B023 (called at once)
            if solve is None:
                return None
        worst_before = worst
        change = solve(residual)
        too_far = -float((change / x).min())
        if too_far > 1:
            # All secrets that the whole step would make negative leave at once. A secret that
            # leaves wrongly comes back, as its g exceeds 1.
            return np.where(x + change > 0, np.maximum(x + change / too_far, 0), 0.0), True
        x = np.maximum(x + change, 0)
    return x, False


def cholesky(build: Callable[[], Floats]) -> LinearSolve | None:
    """A solver from the lower triangle of a matrix, with the smallest ridge that it needs."""
    for ridge in RIDGES:
        # The factor overwrites the matrix, so it is built anew for each ridge; one is nearly always
        # enough.
        normal = build()
        normal.flat[:: len(normal) + 1] *= 1 + ridge
        factor, failed = dpotrf(normal, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return lambda r: dpotrs(factor, r, lower=1)[0]
    return None
