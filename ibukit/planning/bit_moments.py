"""Best estimators from reports of exchangeable bits, and the curvature of their variances.

With J, f and s as in `fisher_information.bits` and C the inverse of J on the directions that keep
the sum, a question w has

    l = C w,   the best estimator u = l . f / s,   and the variance v = w . l.

The second derivatives of -v are 2 (E[f f^T u^2 / s] - R C R) with R = E[f f^T u / s]. All
expectations are integrals over one variable t, along which the bits are independent (`tilted`), so
they need moments of sums of independent bits only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.fisher_information.bits import BitInformation, TiltedBits
from ibukit.planning.ascent import Point


class BitMoments(BitInformation):
    """The variance surface of a mechanism whose reports are rows of bits, see `ascent`."""

    def at(self, theta: Floats, w: Floats) -> Point:
        """Return l, C and the variance of one question, and the second moments of its estimator."""
        covariance = self.covariance(theta)
        known = float(theta @ w[:, 0])
        weights = covariance @ (w[:, 0] - known)
        moments = np.zeros(self.k)
        for bits in self.tilted(theta):
            mean, variance_of_sum, along = _of_sum(bits, weights)
            about = (1 + bits.mean) * (mean**2 + variance_of_sum)[:, None] + along
            moments += np.real((bits.weight * bits.t) @ about)
        slopes = moments + 2 * known * w[:, 0] - known**2
        variance = float(weights @ (w[:, 0] - known))
        return Point(weights[:, None], slopes[:, None], np.array([variance]), covariance)

    def curvature(self, theta: Floats, point: Point, w: Floats) -> Floats:
        """Return the second derivatives of -v, 2 (E[f f^T u^2 / s] - R C R)."""
        weights = point.estimators[:, 0]
        squares, products = np.zeros((self.k, self.k)), np.zeros((self.k, self.k))
        for bits in self.tilted(theta):
            mean, variance_of_sum, along = _of_sum(bits, weights)
            products += _products(bits, bits.weight * bits.t, mean, weights)
            squares += _squares(
                bits, bits.weight * bits.t**2 / 2, mean, variance_of_sum, along, weights
            )
        assert point.basis is not None
        return 2 * (squares - products @ point.basis @ products)


def _of_sum(bits: TiltedBits, weights: Floats) -> tuple[Any, Any, Any]:
    """Return mean and variance of g = weights . f, and E[(f_x - E f_x) g^2]."""
    mean, variance_of_sum = bits.mean @ weights, bits.square @ weights**2
    along = 2 * mean[:, None] * weights * bits.square + weights**2 * bits.third
    return mean, variance_of_sum, along


def _products(bits: TiltedBits, rule: Any, mean: Any, weights: Floats) -> Floats:
    """Return the sum of E[f_x f_y g] over the nodes of the integral."""
    # For x != y only g's own terms in f_x and f_y are correlated with them; the diagonal has the
    # second and third central moments of one bit instead.
    cross = (rule[:, None] * weights * bits.square).T @ bits.mean
    part = ((rule * mean)[:, None] * bits.mean).T @ bits.mean + cross + cross.T
    own = bits.square * mean[:, None] + weights * bits.third
    part[np.diag_indices(len(part))] += rule @ own
    return np.real(part)


def _squares(
    bits: TiltedBits, rule: Any, mean: Any, variance_of_sum: Any, along: Any, weights: Floats
) -> Floats:
    """Return the sum of E[f_x f_y g^2] over the nodes of the integral."""
    size = mean**2 + variance_of_sum
    moved = weights * bits.square
    cross = (rule[:, None] * along).T @ bits.mean
    part = (
        ((rule * size)[:, None] * bits.mean).T @ bits.mean
        + cross
        + cross.T
        + 2 * (rule[:, None] * moved).T @ moved
    )
    # On the diagonal, x = y, the fourth moment of one bit replaces twice the product of two second
    # ones.
    own = bits.square * (size[:, None] - weights * moved) + 2 * mean[:, None] * weights * bits.third
    own = own + weights**2 * bits.fourth - 2 * moved**2
    part[np.diag_indices(len(part))] += rule @ own
    return np.real(part)
