"""Profile-likelihood intervals of single coefficients.

The ends of the interval of b = a . beta are where twice the fall of the profile likelihood, max
{l(beta) : a . beta = b}, reaches z^2. Each value of the profile is a maximum along the directions
orthogonal to a, sought from the maximum at a value nearby.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from scipy.linalg import null_space

from ibukit._ground.arguments import Floats
from ibukit.estimators.regression.likelihood import Likelihood
from ibukit.estimators.regression.newton import maximise

# Doublings of the distance from the estimate, at first Wald's, before an end is infinite.
MAX_DOUBLINGS = 12
MAX_STEPS = 200
# Gradient per report at a value of the profile; the value's error is of the gradient's square.
GRADIENT_TARGET = 1e-9
# Error of an end, relative to the half-width of Wald's interval.
END_TOLERANCE = 1e-9
# Relative rise above the maximum beyond which it is not rounding but another maximum.
ROUNDING = 1e-9


class HigherPoint(Exception):
    """Signal that the profile rises above the maximum, with the coefficients where it does."""

    def __init__(self, coefficients: Floats) -> None:
        super().__init__("higher likelihood")
        self.coefficients = coefficients


def profile_end(
    likelihood: Likelihood,
    coefficients: Floats,
    a: Floats,
    tangent: Floats,
    distance: float,
    z: float,
) -> float:
    """Return how far a . beta can move from its estimate, to the side of the sign of `distance`.

    Parameters
    ----------
    likelihood, coefficients
        The likelihood, and where it is maximal.
    a : ndarray, shape (p,)
        Weights of the coefficients.
    tangent : ndarray, shape (p,)
        How the other coefficients move with a . beta, to first order: a . tangent is 1.
    distance : float
        Where the search begins: the half-width of Wald's interval, with its sign.
    z : float
        The normal quantile.
    """
    basis = null_space(a[None])
    top = likelihood.value(coefficients)
    near = {0.0: coefficients}

    def fall(offset: float) -> float:
        """Return the root of twice the fall of the profile likelihood, minus z."""
        known = min(near, key=lambda other: abs(other - offset))
        start = near[known] + (offset - known) * tangent.reshape(coefficients.shape)
        found = maximise(likelihood, start, MAX_STEPS, basis, GRADIENT_TARGET)
        near[offset] = found.coefficients
        if found.derivatives.value > top + ROUNDING * (1 + abs(top)):
            raise HigherPoint(found.coefficients)
        # The root of the fall is nearly linear in the offset.
        return math.sqrt(max(0.0, 2 * (top - found.derivatives.value))) - z

    inner, outer = 0.0, distance
    for _ in range(MAX_DOUBLINGS):
        if fall(outer) >= 0:
            return float(
                scipy.optimize.brentq(fall, inner, outer, xtol=END_TOLERANCE * abs(distance))
            )
        inner, outer = outer, 2 * outer
    return math.copysign(np.inf, distance)
