"""Primal-dual interior point for one planar channel of convolutions, at grids of tens of thousands of cells.

The steps are those of `interior_point` (see there for the optimality conditions): both linear maps hold along the
path, `lam nu = q` is a second complementarity, and each step solves with

    H = diag(s / theta) + M diag(lam / nu) M^T

twice. H is never formed: conjugate gradients need two convolutions an iteration, and `_plane_preconditioner` keeps them
to about twenty. A solution need only be as exact as the step deserves: its residual is compared with mu, and what is
left of it is a change of theta s that the next step puts right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibukit._validate import Floats
from ibukit.channels.plane import PlaneChannel
from ibukit.solvers._plane_cross_over import conjugate_gradients, cross_over, excess_of
from ibukit.solvers._plane_preconditioner import Preconditioner
from ibukit.solvers.interior_point import length

LEAST_COORDINATE = 1e-150
STALLED = 8


@dataclass(frozen=True)
class Settings:
    """How boldly to go."""

    em_steps: int
    uniform_share: float
    residual: float
    share: float
    max_iter: int


TRIES = (
    Settings(em_steps=30, uniform_share=0.1, residual=0.1, share=0.995, max_iter=60),
    Settings(em_steps=5, uniform_share=0.5, residual=0.01, share=0.9, max_iter=100),
)


@dataclass(frozen=True)
class Point:
    """Theta and lam with what belongs to them: nu = theta M and s = 1 - M lam."""

    theta: Floats
    nu: Floats
    lam: Floats
    s: Floats


@dataclass(frozen=True)
class Direction:
    """A change of each part of a point."""

    theta: Floats
    nu: Floats
    lam: Floats
    s: Floats


def maximise(channel: PlaneChannel, q: Floats, tol: float) -> tuple[Floats, int]:
    """The maximiser of q . log(theta M) over the simplex, to max g - 1 <= tol or as far as it gets; and the steps."""
    k = len(channel.factor)
    preconditioner = Preconditioner(channel)
    best, steps = (np.inf, np.full(k, 1 / k)), 0
    for settings in TRIES:
        found, taken = _one_try(channel, q, tol, preconditioner, settings)
        steps += taken
        best = min(best, found, key=lambda point: point[0])
        if best[0] <= tol:
            break
    return best[1], steps


def _one_try(
    channel: PlaneChannel, q: Floats, tol: float, preconditioner: Preconditioner, settings: Settings
) -> tuple[tuple[float, Floats], int]:
    point = _start(channel, q, settings)
    squared = channel.squared()
    best, stalled = (np.inf, point.theta), 0
    for step in range(settings.max_iter):
        on_simplex = point.theta / point.theta.sum()
        excess = excess_of(channel, q, on_simplex)
        stalled = 0 if excess < best[0] else stalled + 1
        best = min(best, (excess, on_simplex), key=lambda found: found[0])
        if best[0] <= tol:
            return cross_over(channel, q, point.theta, point.s, preconditioner, tol) or best, step
        if stalled > STALLED:
            return best, step
        normal = squared.adjoint(point.lam / point.nu)
        normal = np.maximum(normal, 1e-12 * normal.max())
        if not preconditioner.factor(point.s / point.theta, normal):
            return best, step
        moved = _step(channel, q, point, preconditioner, settings)
        if moved is None:
            return best, step
        point = moved
    return best, settings.max_iter


def _start(channel: PlaneChannel, q: Floats, settings: Settings) -> Point:
    k = len(channel.factor)
    theta = np.full(k, 1 / k)
    for _ in range(settings.em_steps):
        theta = theta * channel.adjoint(q / channel.forward(theta))
    theta = (1 - settings.uniform_share) * theta / theta.sum() + settings.uniform_share / k
    nu = channel.forward(theta)
    g = channel.adjoint(q / nu)
    margin = 1.1 * max(float(g.max()), 1.0)
    return Point(theta, nu, q / nu / margin, 1 - g / margin)


def _step(
    channel: PlaneChannel, q: Floats, point: Point, preconditioner: Preconditioner, settings: Settings
) -> Point | None:
    """One predictor and corrector after Mehrotra; None where numbers give out."""
    theta, nu, lam, s = point.theta, point.nu, point.lam, point.s
    mu = float((theta * s).mean())

    def direction(r_q: Floats, r_c: Floats, start: Floats | None, residual: float) -> Direction:
        rhs = r_c / theta + channel.adjoint(r_q / nu)
        d_theta = conjugate_gradients(
            lambda p: s / theta * p + channel.adjoint(lam / nu * channel.convolve(p)),
            rhs,
            start,
            preconditioner.solve,
            lambda rest: float(np.abs(theta * rest).max()) <= residual,
        )
        d_nu = channel.convolve(d_theta)
        d_lam = (r_q - lam * d_nu) / nu
        d_s = -channel.adjoint(d_lam)
        # where theta is the smaller, its own row of the system gives it with more digits
        return Direction(np.where(s > theta, (r_c - theta * d_s) / s, d_theta), d_nu, d_lam, d_s)

    predicted = direction(q - lam * nu, -theta * s, None, settings.residual * mu)
    primal, dual = _lengths(point, predicted, 1.0)
    ahead = float(((theta + primal * predicted.theta) * (s + dual * predicted.s)).mean())
    centring = min((max(ahead, 0.0) / mu) ** 3, 1.0)
    change = direction(
        q - lam * nu - predicted.lam * predicted.nu,
        centring * mu - theta * s - predicted.theta * predicted.s,
        predicted.theta,
        settings.residual * mu * max(centring, 0.05),
    )
    primal, dual = _lengths(point, change, 0.9 if min(primal, dual) < 0.9 else settings.share)
    if not np.isfinite(primal + dual):
        return None
    theta = np.maximum(theta + primal * change.theta, LEAST_COORDINATE)
    return Point(
        theta,
        np.maximum(channel.forward(theta), LEAST_COORDINATE),
        np.maximum(lam + dual * change.lam, LEAST_COORDINATE),
        np.maximum(s + dual * change.s, LEAST_COORDINATE),
    )


def _lengths(point: Point, change: Direction, share: float) -> tuple[float, float]:
    """How far theta, and how far lam and s, may go."""
    dual = min(length(point.s, change.s, share), length(point.lam, change.lam, share))
    return length(point.theta, change.theta, share), dual
