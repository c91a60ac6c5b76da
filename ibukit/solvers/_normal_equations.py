"""The linear algebra of a Newton step: (M diag(w) M^T + H + diag(d)) x = r, for channels with few enough secrets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from ibukit._validate import Floats, Ints

Solver = Callable[[Floats], Floats]

# secrets whose d exceeds so many times their own diagonal entry of M diag(w) M^T are solved for one by one
SHRINK_ABOVE = 1e3
# secrets up to which a matrix of their number squared is affordable though the reports are fewer
MOST_SECRETS_SQUARED = 5000
RIDGES = (1e-15, 1e-12, 1e-9, 1e-7)


@dataclass(frozen=True)
class Curved:
    """The quadratic part 1/2 theta H theta + (c - 1) . theta of an objective; absent for a plain likelihood."""

    hessian: Floats | None
    c: Floats

    @classmethod
    def none(cls, k: int) -> Curved:
        """No quadratic part."""
        return cls(None, np.ones(k))

    @property
    def present(self) -> bool:
        """Whether there is one."""
        return self.hessian is not None

    def apply(self, x: Floats) -> Floats | float:
        """H x."""
        return 0.0 if self.hessian is None else self.hessian @ x

    def slope(self, theta: Floats) -> Floats:
        """C + H theta: what M lam may be at most."""
        return self.c if self.hessian is None else self.c + self.hessian @ theta


class Model(ABC):
    """A channel on the seen reports, each column scaled to a largest entry of about 1."""

    k: int

    @abstractmethod
    def forward(self, theta: Floats) -> Floats:
        """Theta M."""

    @abstractmethod
    def adjoint(self, w: Floats) -> Floats:
        """M w."""

    @abstractmethod
    def gram(self, w: Floats, rows: Ints | None) -> Floats:
        """M diag(w) M^T on given rows (all for None); only the lower triangle need be right."""

    @abstractmethod
    def diagonal(self, w: Floats) -> Floats:
        """The diagonal of M diag(w) M^T, or something at least as large."""

    @abstractmethod
    def rows(self, which: Ints) -> Floats:
        """Rows of M as an array."""

    def accurate(self) -> Model:
        """The same with the most accurate factorisation that is affordable."""
        return self

    def excess(self, q: Floats, theta: Floats) -> float:
        """Max g - 1 at a distribution."""
        nu = self.forward(theta)
        if nu.min() <= 0:
            return np.inf
        return float(self.adjoint(q / nu).max() - 1)

    def factor(self, w: Floats, d: Floats, curved: Curved, shrink: bool) -> Solver | None:
        """A solver of (M diag(w) M^T + H + diag(d)) x = r by Cholesky; None if it fails even with a ridge of 1e-7."""
        own = self.diagonal(w) if curved.hessian is None else self.diagonal(w) + curved.hessian.diagonal()
        kept = np.flatnonzero(d < SHRINK_ABOVE * own) if shrink else None
        if kept is None or not 0 < len(kept) < 0.9 * self.k:
            return cholesky(lambda: self._normal(w, d, curved, None))
        inner = cholesky(lambda: self._normal(w, d[kept], curved, kept))
        if inner is None:
            return None
        alone = d + own

        def solve(r: Floats) -> Floats:
            # the large secrets see what the small ones did to the fit; the small ones' own coupling is below 1e-3
            x = r / alone
            x[kept] = 0
            felt = self.adjoint(w * self.forward(x))
            if curved.hessian is not None:
                felt = felt + curved.hessian @ x
            x[kept] = inner(r[kept] - felt[kept])
            return x

        return solve

    def _normal(self, w: Floats, d: Floats, curved: Curved, rows: Ints | None) -> Floats:
        normal = self.gram(w, rows)
        if curved.hessian is not None:
            normal = normal + (curved.hessian if rows is None else curved.hessian[np.ix_(rows, rows)])
        normal.flat[:: len(normal) + 1] += d
        return normal


@dataclass(frozen=True, eq=False)
class Dense(Model):
    """A matrix, shape (k, s)."""

    matrix: Floats
    by_reports: bool = True
    """Whether to solve a system in the reports where they are few: quick, but it cancels where d is tiny."""

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return len(self.matrix)

    def forward(self, theta: Floats) -> Floats:
        """Theta M."""
        return np.asarray(theta @ self.matrix)

    def adjoint(self, w: Floats) -> Floats:
        """M w."""
        return np.asarray(self.matrix @ w)

    def gram(self, w: Floats, rows: Ints | None) -> Floats:
        """By the symmetric rank-s update of BLAS."""
        half = (self.matrix if rows is None else self.matrix[rows]) * np.sqrt(w)
        return np.asarray(dsyrk(1.0, half.T, trans=1, lower=1))

    def diagonal(self, w: Floats) -> Floats:
        """An upper bound: entries are at most 1, so their squares are at most themselves."""
        return np.asarray(self.matrix @ w)

    def rows(self, which: Ints) -> Floats:
        """Rows of the matrix."""
        return self.matrix[which]

    def accurate(self) -> Dense:
        """With a system in the secrets, unless they are too many."""
        return Dense(self.matrix, by_reports=self.k > MOST_SECRETS_SQUARED)

    def factor(self, w: Floats, d: Floats, curved: Curved, shrink: bool) -> Solver | None:
        """Where reports are few, a system in the reports: (diag(1/w) + M^T diag(1/d) M) u = M^T r / d gives x."""
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
        normal.flat[:: len(normal) + 1] += 1 / w
        return normal


def cholesky(build: Callable[[], Floats]) -> Solver | None:
    """A solver from the lower triangle of a positive definite matrix, with the smallest ridge that it needs."""
    for ridge in RIDGES:
        normal = build()  # anew for each ridge, because the factor takes its place; nearly always once
        normal.flat[:: len(normal) + 1] *= 1 + ridge
        factor, failed = dpotrf(normal, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return lambda r: np.asarray(dpotrs(factor, r, lower=1)[0])
    return None
