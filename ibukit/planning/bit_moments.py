"""The best estimators from reports of exchangeable bits, and how their variances curve, as `ascent` needs them.

With J, f and s as in `information.bits` and C the inverse of J on the directions that keep the sum,

    l = C w,   u = l . f / s,   v = w . l,

and the curvature of -v is 2 (E[f f^T u^2 / s] - R C R) with R = E[f f^T u / s].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.fisher_information.bits import BitInformation, Tilted
from ibukit.planning.ascent import Point


class BitMoments(BitInformation):
    """A mechanism whose reports are rows of bits, as `ascent` climbs it."""

    def at(self, theta: Floats, w: Floats) -> Point:
        """The l and C of one question, and the second moments of its u + w . theta, which is unbiased."""
        covariance = self.covariance(theta)
        known = float(theta @ w[:, 0])
        weights = covariance @ (w[:, 0] - known)
        moments = np.zeros(self.k)
        for bits in self.tilted(theta):
            level, spread, along = _of_sum(bits, weights)
            about = (1 + bits.mean) * (level**2 + spread)[:, None] + along
            moments += np.real((bits.weight * bits.t) @ about)
        slopes = moments + 2 * known * w[:, 0] - known**2
        variance = float(weights @ (w[:, 0] - known))
        return Point(weights[:, None], slopes[:, None], np.array([variance]), covariance)

    def curvature(self, theta: Floats, point: Point, w: Floats) -> Floats:
        """2 (E[f f^T u^2 / s] - R C R)."""
        weights = point.estimators[:, 0]
        squares, products = np.zeros((self.k, self.k)), np.zeros((self.k, self.k))
        for bits in self.tilted(theta):
            level, spread, along = _of_sum(bits, weights)
            products += _products(bits, bits.weight * bits.t, level, weights)
            squares += _squares(bits, bits.weight * bits.t**2 / 2, level, spread, along, weights)
        assert point.basis is not None
        return np.asarray(2 * (squares - products @ point.basis @ products))


def _of_sum(bits: Tilted, weights: Floats) -> tuple[Any, Any, Any]:
    """Mean and variance of g = weights . f, and E[(f_x - its mean) g^2]."""
    level, spread = bits.mean @ weights, bits.square @ weights**2
    along = 2 * level[:, None] * weights * bits.square + weights**2 * bits.third
    return level, spread, along


def _products(bits: Tilted, rule: Any, level: Any, weights: Floats) -> Floats:
    """The sum of E[f_x f_y g] over the nodes."""
    cross = (rule[:, None] * weights * bits.square).T @ bits.mean
    part = ((rule * level)[:, None] * bits.mean).T @ bits.mean + cross + cross.T
    own = bits.square * level[:, None] + weights * bits.third
    part[np.diag_indices(len(part))] += rule @ own
    return np.asarray(np.real(part))


def _squares(
    bits: Tilted, rule: Any, level: Any, spread: Any, along: Any, weights: Floats
) -> Floats:
    """The sum of E[f_x f_y g^2] over the nodes."""
    size = level**2 + spread
    moved = weights * bits.square
    cross = (rule[:, None] * along).T @ bits.mean
    part = (
        ((rule * size)[:, None] * bits.mean).T @ bits.mean
        + cross
        + cross.T
        + 2 * (rule[:, None] * moved).T @ moved
    )
    # of one bit there is the fourth moment, and not twice the product of two second ones
    own = (
        bits.square * (size[:, None] - weights * moved) + 2 * level[:, None] * weights * bits.third
    )
    own = own + weights**2 * bits.fourth - 2 * moved**2
    part[np.diag_indices(len(part))] += rule @ own
    return np.asarray(np.real(part))
