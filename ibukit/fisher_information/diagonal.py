"""The information of k-RR, in O(k): on the directions that keep the sum it is a diagonal matrix.

M = off + (diagonal - off) I, and off adds nothing to v M where sum v = 0. So v J v^T = sum_x d_x
v_x^2 with d_x = sum_z (diagonal - off)^2 counts_z / p_z^2 over the reports z = x, of one mechanism
or of several with different epsilons. With a = 1 / d its inverse on these directions is diag(a) - a
a^T / sum a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.channels import facts
from ibukit.fisher_information.dense import root_weights
from ibukit.tally.tally import Tally

# weights that differ by less, of the largest, are the same number in other words
SAME_WEIGHT = 1e-12


@dataclass(frozen=True, eq=False)
class Diagonal:
    """v J v^T = sum_x v_x^2 / a_x; a_x is inf where nobody reported x."""

    a: Floats

    def variances(self) -> Floats:
        """a_x sum_y!=x a_y / sum_y a_y, no term of which is negative, and its limits for infinite a."""
        unseen = np.isinf(self.a)
        if unseen.sum() > 1:  # they can be exchanged for each other, and for nothing else
            return self.a
        largest = int(self.a.argmax())
        most, rest = self.a[largest], float(np.delete(self.a, largest).sum())
        if np.isinf(most):
            return np.where(unseen, rest, self.a)
        total = most + rest
        others = total - self.a
        others[largest] = rest  # a difference would lose its digits
        return np.asarray(self.a * (others / total) if total > 0 else np.zeros(len(self.a)))

    def of_sums(self, weights: Floats) -> Floats:
        """Sum a_x (w_x - m)^2 for each row w, with m the mean of w under a, and its limits for infinite a."""
        unseen = np.isinf(self.a)
        finite = np.where(unseen, 0.0, self.a)
        if unseen.any():  # those that nobody reported take what mass is left
            middle = weights[:, unseen].mean(axis=1)
        else:
            middle = weights @ (finite / finite.sum()) if finite.any() else np.zeros(len(weights))
        found = ((weights - middle[:, None]) ** 2) @ finite
        # whole weights are told apart exactly, and sums of others to rounding
        spread = np.ptp(weights[:, unseen], axis=1) if unseen.any() else np.zeros(len(weights))
        return np.where(spread > SAME_WEIGHT * np.abs(weights).max(axis=1), np.inf, found)

    def covariance(self) -> Floats:
        """Diag(a) - a a^T / sum a, and its limits."""
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
        return np.asarray(found + 0.0)


def pooled_responses(tally: Tally, theta: Floats) -> Diagonal | None:
    """The information of a tally all of whose mechanisms are k-RR, else None."""
    precision = np.zeros(tally.k)
    for part in tally.parts:
        krr = facts.as_response(part.channel)
        if krr is None:
            return None
        contrast = krr.diagonal - krr.off
        precision[krr.reports] += (contrast * root_weights(part.counts, krr.forward(theta))) ** 2
    with np.errstate(divide="ignore"):
        return Diagonal(1 / precision)
