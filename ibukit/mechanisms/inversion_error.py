"""What matrix inversion through a mechanism makes of each report, and so its mean squared error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.errors import NotInvertible
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.categorical.independent_bits import is_bits
from ibukit.mechanisms.categorical.randomized_response import RandomizedResponse
from ibukit.mechanisms.numeric.truncated_geometric import TruncatedGeometric

# off the unit matrix by more than rounding
BIASED = 1e-8


@dataclass(frozen=True)
class InversionError:
    """The error n E ||v - theta||_2^2 of raw INV as constant + slope . theta - ||theta||^2."""

    constant: float
    slope: Floats

    def at(self, theta: Floats) -> float:
        """The error where the secrets have the distribution theta."""
        return self.constant + float(self.slope @ theta - theta @ theta)


def inversion_error(mechanism: Mechanism) -> InversionError:
    """From sum_z (theta M)_z ||r_z||^2 - ||theta||^2, r_z the row of M^-1, or of an estimate of its own, for report z.

    O(k) for k-RR, unary encodings, subset selection and truncated geometric noise; raises
    NotInvertible.
    """
    # by the exact type: a class that inherits from one of these may have another law
    if is_bits(mechanism):
        # m_y = q + d theta_y: sum m (1 - m) / d^2 = k q (1 - q) / d^2 + (1 - 2 q) / d - ||theta||^2
        q, d = mechanism.p_zero, mechanism.contrast
        slope = np.full(mechanism.k, (1 - 2 * q) / d)
        return InversionError(mechanism.k * q * (1 - q) / d**2, slope)
    if not isinstance(mechanism, FiniteMechanism):
        raise NotInvertible(
            f"{mechanism} has no square channel matrix, so matrix inversion does not apply"
        )
    if type(mechanism) is RandomizedResponse:
        a = inverse_contrast(mechanism.k, mechanism.epsilon)
        # a^2 (1 - ||theta M||^2) with (theta M)_z = lie + theta_z / a
        lie = mechanism.lie
        constant = a**2 * (1 - mechanism.k * lie**2)
        return InversionError(constant, np.full(mechanism.k, -2 * a * lie))
    norms = (
        _geometric_norms(mechanism) if type(mechanism) is TruncatedGeometric else _norms(mechanism)
    )
    return InversionError(0.0, mechanism.adjoint(norms))


def inverse_contrast(k: int, epsilon: float) -> float:
    """(e^eps + k - 1) / (e^eps - 1), what INV under k-RR multiplies deviations by."""
    return float((1 + (k - 1) * np.exp(-epsilon)) / -np.expm1(-epsilon))


def _norms(mechanism: FiniteMechanism) -> Floats:
    """||r_z||^2 of each report; NotInvertible where a mechanism's own estimate is biased."""
    if type(mechanism).invert is FiniteMechanism.invert:
        rows = mechanism._right_inverse
    else:
        reports = mechanism._all_reports
        rows = np.array(
            [mechanism.invert(reports[z : z + 1], np.ones(1)) for z in range(len(reports))]
        )
        off = float(np.abs(mechanism.matrix() @ rows - np.eye(mechanism.k)).max())
        if off > BIASED:
            raise NotInvertible(
                f"the estimate of {mechanism} is biased, of a secret by up to {off:.3g}: its error does not fall with "
                "the number of reports as that of an inverse does"
            )
    return np.asarray((rows**2).sum(axis=1))


def _geometric_norms(mechanism: TruncatedGeometric) -> Floats:
    """||r_z||^2 from the tridiagonal inverse: (1 - a^2) c_z r_z has 1 + a^2 (1 at the ends) between -a and -a."""
    a = mechanism.decay
    own = np.full(mechanism.k, 1 + a * a)
    own[[0, -1]] = 1
    beside = np.full(mechanism.k, 2 * a * a)
    beside[[0, -1]] = a * a
    return np.asarray(
        (own**2 + beside) / (-np.expm1(-2 * mechanism.epsilon) * mechanism._factors) ** 2
    )
