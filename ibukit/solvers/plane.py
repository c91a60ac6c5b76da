"""Primal-dual interior point for one planar channel, on grids of many thousands of cells.

The path is that of `interior_point`. Its systems

    H = diag(s / theta) + M diag(lam / nu) M^T

are never formed: conjugate gradients need two convolutions an iteration, and
`_plane_preconditioner` keeps the iterations to about twenty. The residual of a solution, times
theta, is an error in the products theta s, which the next step corrects. So conjugate gradients
stop when this error is at most a given share of each product, or of the mean of the products where
the product is smaller.

On a small grid, where a matrix fits into memory, mass on few cells is found faster by constrained
Newton steps. They are tried first, and may take a share of the work of the path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels.plane import PlaneChannel
from ibukit.solvers._plane_cross_over import conjugate_gradients, cross_over
from ibukit.solvers._plane_preconditioner import Preconditioner
from ibukit.solvers.dense import least_squares_steps
from ibukit.solvers.interior_point import Settings, maximise_model
from ibukit.solvers.interior_point_model import Iterate, Model, QuadraticTerm, System

# Guessing the support takes conjugate gradients as well, so only certified points are polished.
TRIES = (
    Settings(
        em_steps=30, uniform_share=0.1, careful=False, polish_below=0, max_iter=60, patience=12
    ),
    Settings(em_steps=5, uniform_share=0.5, careful=True, polish_below=0, max_iter=100, patience=8),
)
# Number of entries up to which a matrix is made; and number of multiplications of a large matrix
# product, for each cell, that take as long as the path.
MAX_ENTRIES, WORK_A_CELL = 2**21, 4e6


def maximise_and_tell(channel: PlaneChannel, q: Floats, tol: float) -> tuple[Floats, int, str]:
    """Maximise q . log(theta M) over the simplex.

    Return the best point, the steps taken, and the algorithm in words.
    """
    k, s = channel.k, channel.size
    if k * s <= MAX_ENTRIES and least_squares_steps.applies(k, s, tol):
        matrix = channel.matrix()
        matrix /= np.maximum.reduce(matrix, axis=0)
        sparse = least_squares_steps.maximise(matrix, q, tol, work_of_path=WORK_A_CELL * k)
        if sparse is not None and sparse.is_unique:
            return sparse.theta, sparse.steps, "constrained Newton steps"
    return *maximise(channel, q, tol), "an interior point with Fourier transforms"


def maximise(channel: PlaneChannel, q: Floats, tol: float) -> tuple[Floats, int]:
    """Return the best point on the path and the steps taken."""
    return maximise_model(PlaneModel(channel, Preconditioner(channel)), q, tol, TRIES)


@dataclass(frozen=True, eq=False)
class PlaneModel(Model):
    """A planar channel; a solution may err by the share `residual` of each product theta s."""

    channel: PlaneChannel
    preconditioner: Preconditioner
    residual: float = 0.2
    boundary_share: float = 0.99
    is_double: bool = False
    """True if no product is in single precision."""

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return self.channel.k

    @override
    def fit_of(self, change: Floats) -> Floats:
        return self.channel.convolve(change)

    @override
    def mean(self, a: Floats, b: Floats) -> float:
        return float((a * b).mean())

    @override
    def accurate(self) -> PlaneModel:
        return replace(self, residual=0.01, boundary_share=0.9, is_double=True)

    @override
    def system(self, point: Iterate, quadratic: QuadraticTerm, shrink: bool) -> System | None:
        d, w = point.s / point.theta, point.lam / point.nu
        normal = self.channel.adjoint_of_squares(w)
        if not self.preconditioner.factor(d, np.maximum(normal, 1e-12 * normal.max())):
            return None
        double = partial(self.channel.gram_product, w)
        grams = (double,) if self.is_double else (self.channel.gram_single.of(w), double)

        def solve(rhs: Floats, start: Floats | None, centring: float) -> Floats:
            # theta times the residual is the error of theta s. Some products theta s are a thousand
            # times mu, their mean, so each error is compared with the larger of its product and mu.
            allowed = (
                self.residual * max(centring, 0.05) * np.maximum(point.mu / point.theta, point.s)
            )
            x = start
            # The first pass is in single precision, the second goes on from there in double
            # precision: nearly always its first residual is small enough.
            for gram in grams:
                x = conjugate_gradients(
                    lambda p, gram=gram: d * p + gram(p),  # type: ignore[misc]
                    rhs,
                    x,
                    self.preconditioner.solve,
                    lambda residual: bool((np.abs(residual) <= allowed).all()),
                )
            assert x is not None
            return x

        return solve

    @override
    def cross_over(self, q: Floats, theta: Floats, s: Floats, tol: float) -> tuple[float, Floats]:
        return cross_over(self.channel, q, theta, s, self.preconditioner, tol)
