r"""The profile likelihood of Poisson counts over a background.

The region is {lambda >= 0 : l(lambda) >= max l - z^2 / 2}, with l = sum_z n_z log nu_z - nu_z and
nu = lambda M + b. l is concave and the region convex. In terms of the numbers seen, mu_x = lambda_x
e_x, the point of the region with the largest c . mu has a multiplier t of the slack s = l - floor
and multipliers y of mu, which fulfil, with the gradient g of l,

    c + t g + y = 0,  mu_x y_x = r,  t s = r,

at r = 0. Newton's method follows the solutions as r falls to 0 (a primal-dual interior-point
method). At any point, l lies below its tangent, so that every mu' of the region has g . mu' >= g .
mu - s, and where c + t g <= 0

    c . mu' <= -t g . mu' <= t (s - g . mu).

This proves a bound, whatever the point is; for the solution with r it is c . mu + (k + 1) r.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ibukit._ground.arguments import Floats, readable
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.errors import TooLarge
from ibukit.intervals.line_maximum import least_maximum
from ibukit.intervals.poisson.model import PoissonModel

# Number of secrets up to which a dense matrix is factorised at every step; more are refused, as
# they would take hours.
MAX_SECRETS = 1000
# A bracket of an end is closed at this width, relative to the number, or to 1 for shares.
ENDS_MEET = 1e-9
# An end below this share of the number at the start of the path counts as 0.
NEGLIGIBLE_SHARE = 1e-2
# Nats within which the maximum of l is found. A lower one makes the region larger, which is safe.
MAXIMUM_TOLERANCE = 1e-9
# Largest number of Newton steps for one end, and share of r that the next step aims at: the first
# share after a step that went at least half of its way, the second after other steps.
MAX_STEPS, SHARE_LEFT, SHARE_LEFT_IF_SHORT = 120, 0.1, 0.6
# A step goes at most this share of the way to the boundary, and is halved at most so many times.
SHARE_OF_THE_WAY, MAX_HALVINGS = 0.9, 40
# On the way to the maximum of l, and to the centre of the region: the factor by which the weight of
# l grows, the squared Newton decrement at which a point counts as near the path, and the share of
# the gain promised by its slope that a step must reach.
GROWTH, NEAR_THE_PATH, SUFFICIENT_GAIN = 10.0, 0.05, 0.1


class _Point(NamedTuple):
    """Numbers seen with the slack l - floor and the gradient of l."""

    mu: Floats
    slack: float
    gradient: Floats
    nu: Floats


class _Iterate(NamedTuple):
    """A point of the region with its multipliers."""

    point: _Point
    t: float
    y: Floats
    length: float
    """Length of the step that led here, at most 1."""


class _Bracket(NamedTuple):
    attained: float
    bound: float


class PoissonProfile:
    """{lambda >= 0 : l(lambda) >= max l - z^2 / 2}."""

    def __init__(self, model: PoissonModel, level: float):
        k = len(model.response)
        if k > MAX_SECRETS:
            raise TooLarge(
                f"profile intervals of {readable(k)} secrets over a background would take hours "
                f'(at most {MAX_SECRETS}): take method="wald", or fewer bins'
            )
        seen = model.counts > 0
        self._rows = np.ascontiguousarray(model.among_seen[:, seen])
        self._n, self._b = model.counts[seen], model.background[seen]
        self._efficiency = model.efficiency
        # Differences of l are taken from here, as l itself has far more digits before the point.
        self._base = self._at(np.full(k, max(self._n.sum() - self._b.sum(), 1.0) / k), None)
        self._half = normal_quantile(level) ** 2 / 2
        # Every search begins at the centre of the region.
        self._start = self._centre(self._find_maximum())
        self._most_seen = self._bound_on_seen()
        self._least_total: float | None = None

    def highest_number(self, w: Floats) -> float:
        """Return an upper bound on w . lambda."""
        return self.number_bracket(w).bound

    def highest_share(self, w: Floats) -> float:
        """Return an upper bound on w . lambda / sum lambda."""
        least, range_ = float(w.min()), float(np.ptp(w))
        return least + range_ * self.share_bracket((w - least) / range_).bound

    def number_bracket(self, w: Floats) -> _Bracket:
        """Return a number w . lambda that is attained and one that is not exceeded."""
        c = w / self._efficiency
        if not c.any():
            return _Bracket(0.0, 0.0)
        now, bound, attained = self._first(c), math.inf, -math.inf
        typical = float(np.abs(c) @ self._start.mu)
        for _ in range(MAX_STEPS):
            attained = max(attained, float(c @ now.point.mu))
            bound = min(bound, self._bound(now, c))
            if bound - attained <= ENDS_MEET * max(abs(attained), NEGLIGIBLE_SHARE * typical):
                break
            now = self._step(now, c)
        return _Bracket(attained, bound)

    def share_bracket(self, w: Floats) -> _Bracket:
        """Return a share that is attained and one that is not exceeded, for weights from 0 to 1.

        The share is at most v if (w - v) . lambda <= 0 on the region. At each step v is raised to
        the share that is attained. With an upper bound B on (w - v) . lambda and a lower bound T >
        0 on sum lambda, the share is at most v + B / T.
        """
        total = self._total_from_below()
        # The region may contain lambda = 0, no signal at all, and then every share is possible.
        if total <= 0:
            return _Bracket(1.0, 1.0)
        now, bound, attained = None, 1.0, 0.0
        for _ in range(MAX_STEPS):
            numbers = (self._start if now is None else now.point).mu / self._efficiency
            attained = max(attained, float(w @ numbers / numbers.sum()))
            c = (w - attained) / self._efficiency
            now = self._first(c) if now is None else now
            bound = min(bound, attained + max(self._bound(now, c), 0.0) / total)
            if bound - attained <= ENDS_MEET:
                break
            now = self._step(now, c)
        return _Bracket(attained, bound)

    def _total_from_below(self) -> float:
        """Return a lower bound on sum lambda over the region; 0 if it may hold no signal."""
        if self._least_total is None:
            nothing = self._at(np.zeros(len(self._rows)), self._base)
            self._least_total = (
                0.0 if nothing.slack >= 0 else -self.highest_number(-np.ones(len(self._efficiency)))
            )
        return self._least_total

    def _bound(self, now: _Iterate, c: Floats) -> float:
        """Return an upper bound on c . mu over the region, whatever the point is.

        For every t >= 0 the bound is t (s - g . mu) + U max(0, max_x c_x + t g_x), because sum mu
        <= U.
        """
        point = now.point
        beyond = point.slack - float(point.gradient @ point.mu)
        heights = np.concatenate([self._most_seen * c, [0.0]])
        slopes = np.concatenate([self._most_seen * point.gradient, [0.0]]) + beyond
        return least_maximum(heights, slopes, now.t)

    def _bound_on_seen(self) -> float:
        """Return an upper bound U on sum mu over the region.

        By Jensen l(mu) - l(base) <= n log((T G + c) / n) - T + T_0, with T = sum mu, the largest
        ratio G = max_x sum_z n_z M_xz / nu_z and c = sum_z n_z b_z / nu_z. The right side falls in
        T beyond T = n - c / G.
        """
        base, n = self._base, float(self._n.sum())
        largest = float((base.gradient + 1).max())
        c, seen = float(self._n @ (self._b / base.nu)), float(base.mu.sum())

        def may_be(total: float) -> bool:
            mean = (total * largest + c) / n if n else 1.0
            return n * math.log(mean) - total + seen >= -self._half

        high = max(n, seen) + self._half + 1
        while may_be(high):
            high *= 2
        return high

    def _at(self, mu: Floats, base: _Point | None) -> _Point:
        """Return a point with its slack, which is NaN or below 0 outside the region."""
        nu = mu @ self._rows + self._b
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            gradient = self._rows @ (self._n / nu) - 1
            if base is None:
                return _Point(mu, 0.0, gradient, nu)
            # l - l(base) = sum_z n_z (log(1 + d_z) - d_z) + g(base) . (mu - mu_base), with d the
            # relative changes of nu.
            change = mu - base.mu
            d = change @ self._rows / base.nu
            rise = float(self._n @ (np.log1p(d) - d)) + float(base.gradient @ change)
        return _Point(mu, self._half + rise, gradient, nu)

    def _find_maximum(self) -> _Point:
        """Set the base to the maximum of l, and return a point well inside the region.

        The maximisers of tau l + sum_x log mu_x are followed; l is at most k / tau below its
        maximum there.
        """
        k = len(self._rows)
        on_the_way = self._base
        tau = k / max(self._n.sum(), 1.0)
        while True:
            self._base = self._centre_maximum(self._base, tau)
            # The last point from which the maximum is a quarter of the region's depth away.
            if k / tau >= self._half / 4:
                on_the_way = self._base
            if k / tau <= MAXIMUM_TOLERANCE:
                break
            tau *= GROWTH
        # Towards the maximum all points are in the region.
        mu = on_the_way.mu
        while True:
            point = self._at(mu, self._base)
            if point.slack >= self._half / 2:
                return point
            mu = (mu + self._base.mu) / 2

    def _centre_maximum(self, point: _Point, tau: float) -> _Point:
        for _ in range(MAX_STEPS):
            scaled = point.mu[:, None] * self._rows * (np.sqrt(tau * self._n) / point.nu)
            slope = tau * point.mu * point.gradient + 1
            move = _newton(scaled, 1.0, np.zeros_like(slope), slope)
            decrement = float(slope @ move)
            if decrement <= NEAR_THE_PATH:
                break
            length = _longest(move)
            for _ in range(MAX_HALVINGS):
                new = self._at(point.mu * (1 + length * move), point)
                gain = tau * (new.slack - self._half) + float(np.log1p(length * move).sum())
                if gain >= SUFFICIENT_GAIN * length * decrement:
                    break
                length /= 2
            else:
                break
            point = new
        return point

    def _centre(self, point: _Point) -> _Point:
        """Return about the maximiser of log s + sum_x log mu_x, from a point of the region."""
        for _ in range(MAX_STEPS):
            mu, slack = point.mu, point.slack
            scaled = mu[:, None] * self._rows * (np.sqrt(self._n / slack) / point.nu)
            of_slack = mu * point.gradient / slack
            move = _newton(scaled, 1.0, of_slack, of_slack + 1)
            decrement = float((of_slack + 1) @ move)
            if decrement <= NEAR_THE_PATH:
                break
            length = _longest(move)
            for _ in range(MAX_HALVINGS):
                new = self._at(mu * (1 + length * move), self._base)
                if new.slack >= (1 - SHARE_OF_THE_WAY) * slack:
                    gain = math.log(new.slack / slack) + float(np.log1p(length * move).sum())
                    if gain >= SUFFICIENT_GAIN * length * decrement:
                        break
                length /= 2
            else:
                break
            point = new
        return point

    def _first(self, c: Floats) -> _Iterate:
        """Return the centre of the region with multipliers of about the right size."""
        # At the centre g / s + 1 / mu = 0. The multipliers r / s and r / mu fulfil c + t g + y = 0
        # up to c itself, which moves the centre by about one Newton decrement.
        point = self._start
        scaled = point.mu[:, None] * self._rows * (np.sqrt(self._n / point.slack) / point.nu)
        slope = point.mu * c
        move = _newton(scaled, 1.0, point.mu * point.gradient / point.slack, slope)
        # Where rounding leaves no Newton step, any multipliers above 0 will do.
        r = math.sqrt(max(float(slope @ move), 0.0)) or float(np.abs(slope).max())
        return _Iterate(point, r / point.slack, r / point.mu, 1.0)

    def _step(self, now: _Iterate, c: Floats) -> _Iterate:
        """Return the next point on the way to the largest c . mu.

        Let r be the mean of t s and the mu_x y_x, times the share to aim at. Then dmu solves

            (t A + diag(y / mu) + t / s g g^T) dmu = c + (r / s) g + r / mu,

        with A = M diag(n / nu^2) M^T; then t + dt = (r - t g . dmu) / s and y + dy = (r - y dmu) /
        mu.
        """
        point, t, y = now.point, now.t, now.y
        mu, slack, gradient = point.mu, point.slack, point.gradient
        left = SHARE_LEFT if now.length >= 0.5 else SHARE_LEFT_IF_SHORT
        r = left * (float(y @ mu) + t * slack) / (len(mu) + 1)
        scaled = mu[:, None] * self._rows * (np.sqrt(t * self._n) / point.nu)
        move = _newton(
            scaled,
            y * mu,
            mu * gradient * math.sqrt(t / slack),
            mu * (c + r / slack * gradient) + r,
        )
        new_t = (r - t * float(gradient @ (mu * move))) / slack
        new_y = r / mu - y * move
        # No number, multiplier or slack loses more than a share of its distance to 0.
        length = min(_longest(move), _longest(new_y / y - 1), _longest(np.array([new_t / t - 1])))
        for _ in range(MAX_HALVINGS):
            new = self._at(mu * (1 + length * move), self._base)
            if new.slack >= (1 - SHARE_OF_THE_WAY) * slack:
                break
            length /= 2
        else:
            return now
        return _Iterate(new, t + length * (new_t - t), y + length * (new_y - y), length)


def _newton(scaled: Floats, diagonal: Floats | float, along: Floats, slope: Floats) -> Floats:
    """Solve (D + S S^T + a a^T) move = slope, which is positive definite; 0 if rounding fails."""
    matrix = scaled @ scaled.T
    matrix += along[:, None] * along
    entries = matrix.ravel()[:: len(matrix) + 1]
    entries += diagonal
    if not entries.min() > 0:
        return np.zeros_like(slope)
    # Rows and columns are scaled to a diagonal of 1.
    units = 1 / np.sqrt(entries)
    matrix *= units[:, None] * units
    factor, failed = dpotrf(matrix, lower=1)
    if failed:
        return np.zeros_like(slope)
    move, _ = dpotrs(factor, units * slope, lower=1)
    return np.asarray(units * move)


def _longest(move: Floats) -> float:
    """Return the length of a step, at most 1, that keeps every number above 0."""
    fastest = float(-move.min())
    return 1.0 if fastest <= SHARE_OF_THE_WAY else SHARE_OF_THE_WAY / fastest
