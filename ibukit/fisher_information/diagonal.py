"""Information of k-RR in O(k): on the directions that keep the sum it is a diagonal matrix.

M = off + (diagonal - off) I, and off adds nothing to v M if sum v = 0. So v J v^T = sum_x d_x v_x^2
with d_x = sum_z (diagonal - off)^2 counts_z / p_z^2 over the reports z = x, of one mechanism or of
several with different epsilons. With a = 1 / d its inverse on these directions is diag(a) - a a^T /
sum a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.channels import facts
from ibukit.fisher_information.dense import root_weights
from ibukit.tally.tally import Tally

# Relative tolerance for calling weights equal.
WEIGHT_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class DiagonalInformation:
    """Information v J v^T = sum_x v_x^2 / a_x; a_x is inf if nobody reported x."""

    a: Floats

    def variances(self) -> Floats:
        """Variances a_x sum_y!=x a_y / sum_y a_y, in positive terms, and limits for infinite a."""
        unseen = np.isinf(self.a)
        # If two secrets are unseen they can exchange their mass, and no other secret is affected.
        if unseen.sum() > 1:
            return self.a
        largest = int(self.a.argmax())
        most, rest = self.a[largest], float(np.delete(self.a, largest).sum())
        if np.isinf(most):
            return np.where(unseen, rest, self.a)
        total = most + rest
        others = total - self.a
        # For the largest a this difference would lose the digits of the rest.
        others[largest] = rest
        return self.a * (others / total) if total > 0 else np.zeros(len(self.a))

    def variances_of_sums(self, weights: Floats) -> Floats:
        """Variances sum_x a_x (w_x - m)^2 for rows w, m the mean of w under a, and their limits."""
        unseen = np.isinf(self.a)
        finite = np.where(unseen, 0.0, self.a)
        # The unseen secrets take the mass that is left, so m is the mean of their weights.
        if unseen.any():
            middle = weights[:, unseen].mean(axis=1)
        else:
            middle = weights @ (finite / finite.sum()) if finite.any() else np.zeros(len(weights))
        found = ((weights - middle[:, None]) ** 2) @ finite
        # Integer weights are compared exactly, sums of others up to rounding.
        spread = np.ptp(weights[:, unseen], axis=1) if unseen.any() else np.zeros(len(weights))
        return np.where(spread > WEIGHT_TOLERANCE * np.abs(weights).max(axis=1), np.inf, found)

    def covariance(self) -> Floats:
        """Covariance diag(a) - a a^T / sum a, and its limits."""
        unseen = np.isinf(self.a)
        finite = np.where(unseen, 0.0, self.a)
        if not unseen.any():
            total = self.a.sum()
            found = -np.outer(self.a, self.a / total) if total > 0 else np.zeros((len(self.a),) * 2)
        elif unseen.sum() == 1:
            found = -(np.outer(unseen, finite) + np.outer(finite, unseen))
        else:
            found = np.zeros((len(self.a),) * 2)
            found[unseen] = found[:, unseen] = np.inf
        np.fill_diagonal(found, self.variances())
        return found + 0.0


def pooled_randomized_response(tally: Tally, theta: Floats) -> DiagonalInformation | None:
    """Information of a tally whose mechanisms are all k-RR, otherwise None."""
    # Precisions add up over the mechanisms, and a is their inverse.
    precision = np.zeros(tally.k)
    for part in tally.parts:
        krr = facts.as_response(part.channel)
        if krr is None:
            return None
        contrast = krr.diagonal - krr.off
        precision[krr.reports] += (contrast * root_weights(part.counts, krr.forward(theta))) ** 2
    with np.errstate(divide="ignore"):
        return DiagonalInformation(1 / precision)
