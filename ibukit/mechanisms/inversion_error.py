r"""Mean squared error of matrix inversion (INV) through a mechanism.

INV gives each report z an estimate :math:`r_z`, which is row z of :math:`M^{-1}` or comes from the
mechanism's own unbiased estimator, and averages these estimates over the reports. So the estimate v
from n reports has

.. math:: n\,\mathbb E\lVert v-\theta\rVert_2^2=\sum_z(\theta M)_z\lVert
r_z\rVert^2-\lVert\theta\rVert^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.errors import NotInvertible
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.categorical.independent_bits import is_bits
from ibukit.mechanisms.categorical.randomized_response import RandomizedResponse
from ibukit.mechanisms.numeric.truncated_geometric import TruncatedGeometric

# An estimator whose mean is off the truth by more than this is biased: rounding errors are far
# smaller.
BIAS_TOLERANCE = 1e-8


@dataclass(frozen=True)
class InversionError:
    r"""The error of raw INV times n: constant + slope . theta - :math:`\lVert\theta\rVert_2^2`."""

    constant: float
    slope: Floats

    def at(self, theta: Floats) -> float:
        """The error, times n, if the secrets have the distribution theta."""
        return self.constant + float(self.slope @ theta - theta @ theta)


def inversion_error(mechanism: Mechanism) -> InversionError:
    """The mean squared error of INV as a function of the secrets' distribution.

    It takes O(k) for k-RR, unary encodings, subset selection and truncated geometric noise.
    NotInvertible is raised if INV does not apply.
    """
    # Closed forms hold for the exact type: a class that inherits may have another law.
    if is_bits(mechanism):
        # Bit y is 1 with probability m_y = q + d theta_y, and INV estimates (bit - q) / d. The sum
        # of the variances m (1 - m) / d^2 is
        #     k q (1 - q) / d^2 + (1 - 2 q) / d - ||theta||^2,
        # whose middle term is a slope that is the same for all secrets, since theta sums to 1.
        q, d = mechanism.p_zero, mechanism.contrast
        slope = np.full(mechanism.k, (1 - 2 * q) / d)
        return InversionError(mechanism.k * q * (1 - q) / d**2, slope)
    if not isinstance(mechanism, FiniteMechanism):
        raise NotInvertible(
            f"{mechanism} has no square channel matrix, so matrix inversion does not apply"
        )
    if type(mechanism) is RandomizedResponse:
        # The inverse is a (I - lie J), J of ones only, and reports have the probabilities
        # (theta M)_z = lie + theta_z / a. The error a^2 (1 - ||theta M||^2) is, written out,
        #     a^2 (1 - k lie^2) - 2 a lie - ||theta||^2.
        a, lie = inverse_contrast(mechanism.k, mechanism.epsilon), mechanism.lie
        constant = a**2 * (1 - mechanism.k * lie**2)
        return InversionError(constant, np.full(mechanism.k, -2 * a * lie))
    if type(mechanism) is TruncatedGeometric:
        norms = _geometric_norms(mechanism)
    else:
        norms = _norms(mechanism)
    return InversionError(0.0, mechanism.adjoint(norms))


def inverse_contrast(k: int, epsilon: float) -> float:
    """The factor (e^eps + k - 1) / (e^eps - 1) by which INV under k-RR multiplies deviations."""
    return float((1 + (k - 1) * np.exp(-epsilon)) / -np.expm1(-epsilon))


def _norms(mechanism: FiniteMechanism) -> Floats:
    """Squared norm of the estimate from each report; NotInvertible if the estimator is biased."""
    if type(mechanism).invert is FiniteMechanism.invert:
        rows = mechanism._right_inverse
    else:
        # The mechanism's own estimator is linear in the frequencies, so its values at single
        # reports say all; it is unbiased if the matrix maps them to the unit matrix.
        reports = mechanism._all_reports
        rows = np.array(
            [mechanism.invert(reports[z : z + 1], np.ones(1)) for z in range(len(reports))]
        )
        bias = float(np.abs(mechanism.matrix() @ rows - np.eye(mechanism.k)).max())
        if bias > BIAS_TOLERANCE:
            raise NotInvertible(
                f"the estimate of {mechanism} is biased, by up to {bias:.3g} for a secret, so that "
                "more reports do not bring its error to 0, as they do for an inverse"
            )
    return (rows**2).sum(axis=1)


def _geometric_norms(mechanism: TruncatedGeometric) -> Floats:
    """Squared norms of the rows of the tridiagonal inverse of truncated geometric noise."""
    # With a = e^-eps, row z of (1 - a^2) c_z M^-1 has 1 + a^2 on the diagonal (1 at the two ends)
    # and -a on both sides of it.
    a = mechanism.decay
    diagonal = np.full(mechanism.k, 1 + a * a)
    diagonal[[0, -1]] = 1
    neighbours = np.full(mechanism.k, 2 * a * a)
    neighbours[[0, -1]] = a * a
    scale = -np.expm1(-2 * mechanism.epsilon) * mechanism._factors
    return (diagonal**2 + neighbours) / scale**2
