"""Newton systems (M diag(w) M^T + H + diag(d)) x = r of channels with few enough secrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import DenseChannel
from ibukit.channels.dense import lower_gram
from ibukit.solvers.interior_point_model import Model, Point, QuadraticTerm, System

Solver = Callable[[Floats], Floats]

# secrets whose d exceeds so many times their own diagonal entry of M diag(w) M^T are solved for one
# by one
SHRINK_ABOVE = 1e3
# secrets up to which a matrix of their number squared is affordable though the reports are fewer
MAX_SECRETS_SQUARED = 5000
RIDGES = (1e-15, 1e-12, 1e-9, 1e-7)
MAX_SUPPORT_ENTRIES = 2**24
# a fitted probability below this is as good as 0: the reciprocal of its square would not fit into a
# double
MIN_FITTED = 1e-150
# a quotient that has vanished counts as this, whose reciprocal fits
MIN_WEIGHT = 1e-300


class NormalEquations(Model):
    """A channel whose normal equations are formed; the largest entry of a column is about 1."""

    def gram(self, w: Floats, rows: Ints | None) -> Floats:
        """M diag(w) M^T on given rows (all for None); only the lower triangle need be right."""
        total = np.zeros((self.k, self.k), order="F")
        self.channel.add_gram(total, w)
        return total if rows is None else np.asfortranarray(total[np.ix_(rows, rows)])

    def diagonal(self, w: Floats) -> Floats:
        """Upper bound on the diagonal of M diag(w) M^T, because entries are at most 1."""
        return self.adjoint(w)

    @override
    def cross_over(self, q: Floats, theta: Floats, s: Floats, tol: float) -> tuple[float, Floats]:
        return cross_over(self, q, theta, s, tol)

    @override
    def system(self, point: Point, curved: QuadraticTerm, shrink: bool) -> System | None:
        solve = self.factor(point.lam / point.nu, point.s / point.theta, curved, shrink)
        return None if solve is None else lambda r, near, centring: solve(r)

    def factor(self, w: Floats, d: Floats, curved: QuadraticTerm, shrink: bool) -> Solver | None:
        """Return a Cholesky solver of the system; None if it fails even with a ridge of 1e-7."""
        own = (
            self.diagonal(w)
            if curved.hessian is None
            else self.diagonal(w) + curved.hessian.diagonal()
        )
        kept = np.flatnonzero(d < SHRINK_ABOVE * own) if shrink else None
        if kept is None or not 0 < len(kept) < 0.9 * self.k:
            return cholesky(lambda: self._normal(w, d, curved, None))
        inner = cholesky(lambda: self._normal(w, d[kept], curved, kept))
        if inner is None:
            return None
        alone = d + own

        def solve(r: Floats) -> Floats:
            # the large secrets see what the small ones did to the fit; the small ones' own coupling
            # is below 1e-3
            x = r / alone
            x[kept] = 0
            felt = self.adjoint(w * self.forward(x))
            if curved.hessian is not None:
                felt = felt + curved.hessian @ x
            x[kept] = inner(r[kept] - felt[kept])
            return x

        return solve

    def _normal(self, w: Floats, d: Floats, curved: QuadraticTerm, rows: Ints | None) -> Floats:
        normal = self.gram(w, rows)
        if curved.hessian is not None:
            normal = normal + (
                curved.hessian if rows is None else curved.hessian[np.ix_(rows, rows)]
            )
        normal.flat[:: len(normal) + 1] += d
        return normal


@dataclass(frozen=True, eq=False)
class DenseModel(NormalEquations):
    """A matrix, shape (k, s)."""

    matrix: Floats
    by_reports: bool = True
    """Solve in the space of the reports if they are few: quick, but it cancels where d is tiny."""

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return len(self.matrix)

    @cached_property
    def channel(self) -> DenseChannel:  # type: ignore[override]
        """Its columns."""
        return DenseChannel(self.matrix)

    @override
    def forward(self, theta: Floats) -> Floats:
        return np.asarray(theta @ self.matrix)

    @override
    def adjoint(self, w: Floats) -> Floats:
        return np.asarray(self.matrix @ w)

    @override
    def gram(self, w: Floats, rows: Ints | None) -> Floats:
        return lower_gram(self.matrix if rows is None else self.matrix[rows], w)

    @override
    def accurate(self) -> DenseModel:
        return DenseModel(self.matrix, by_reports=self.k > MAX_SECRETS_SQUARED)

    @override
    def factor(self, w: Floats, d: Floats, curved: QuadraticTerm, shrink: bool) -> Solver | None:
        if curved.present or not self.by_reports or self.matrix.shape[1] > 0.7 * self.k:
            return super().factor(w, d, curved, shrink)
        by_reports = cholesky(lambda: self._normal_of_reports(w, d))
        if by_reports is None:
            return None

        def once(r: Floats) -> Floats:
            return (r - self.adjoint(by_reports(self.forward(r / d)))) / d

        def solve(r: Floats) -> Floats:
            x = once(r)
            # where d is tiny the subtraction cancels: one refinement brings the digits back
            return x + once(r - self.adjoint(w * self.forward(x)) - d * x)

        return solve

    def _normal_of_reports(self, w: Floats, d: Floats) -> Floats:
        half = self.matrix / np.sqrt(d)[:, None]
        normal = np.asarray(dsyrk(1.0, half.T, lower=1))
        normal.flat[:: len(normal) + 1] += 1 / np.maximum(w, MIN_WEIGHT)
        return normal


def cross_over(
    model: Model, q: Floats, theta: Floats, s: Floats, tol: float
) -> tuple[float, Floats]:
    """Guess the support from theta > s and solve g = 1 on it by Newton's method, zeros elsewhere.

    Returns max g - 1 and the distribution, (inf, theta) where the guess leads nowhere.
    """
    nothing = (np.inf, theta)
    on = theta > s
    point = np.where(on, theta, 0.0)
    for _ in range(6):
        size = int(on.sum())
        if not 0 < size <= len(q) or size * len(q) > MAX_SUPPORT_ENTRIES:
            return nothing
        found = _newton(DenseChannel(model.rows(np.flatnonzero(on))), q, point[on] / point.sum())
        if found is None:
            return nothing
        x, negative = found
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


def _newton(support: DenseChannel, q: Floats, x: Floats) -> tuple[Floats, bool] | None:
    """Solve M (q / x M) = 1 for x; stops, saying so, where a coordinate would turn negative."""
    solve, worst_before = None, np.inf
    for _ in range(8):
        nu = support.forward(x)
        if nu.min() < MIN_FITTED:
            return None
        residual = support.adjoint(q / nu) - 1
        worst = float(np.abs(residual).max())
        if worst < 1e-13:
            break
        # a factor serves as long as it gains two digits a step
        if solve is None or worst > 1e-2 * worst_before:
            solve = cholesky(lambda: lower_gram(support.columns, q / nu**2))  # noqa: B023 (called at once)
            if solve is None:
                return None
        worst_before = worst
        change = solve(residual)
        too_far = -float((change / x).min())
        if too_far > 1:
            # what the whole step would take below 0 goes at once; who goes wrongly is taken back as
            # g there exceeds 1
            return np.where(x + change > 0, np.maximum(x + change / too_far, 0), 0.0), True
        x = np.maximum(x + change, 0)
    return x, False


def cholesky(build: Callable[[], Floats]) -> Solver | None:
    """Return a solver from the lower triangle of a definite matrix, with a ridge if needed."""
    for ridge in RIDGES:
        # anew for each ridge, because the factor takes its place; nearly always once
        normal = build()
        normal.flat[:: len(normal) + 1] *= 1 + ridge
        factor, failed = dpotrf(normal, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return lambda r: np.asarray(dpotrs(factor, r, lower=1)[0])
    return None
