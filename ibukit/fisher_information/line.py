"""Information of geometric noise on a line in O(k): the kernel has a tridiagonal inverse.

With K_xz = decay^|x - z| and the reports' scales cancelled, J = K diag(1/a) K^T, where a_z = (theta
K)_z^2 / counts_z is inf at the positions that nobody reported. A direction v is written y = v K:
then v = y K^-1, v J v^T = sum_z y_z^2 / a_z, and sum v = u . y with u = K^-1 1, all of whose
entries are positive. With kappa the rows of K^-1, theta_x is kappa_x . y plus any multiple beta of
u . y = 0, so that its variance is

    V_xx = min over beta of sum_z a_z (kappa_xz - beta u_z)^2 ,

For an unseen z, where a is infinite, beta must be kappa_xz / u_z: if there is no such beta for all
unseen z, the variance is inf. kappa_x has three entries, and the sum over all other z is beta^2
times that of a_z u_z^2, so that no nearly equal numbers are subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import diags_array

from ibukit._ground.arguments import Floats
from ibukit.channels import facts
from ibukit.fisher_information.dense import root_weights
from ibukit.tally.tally import Tally

# Quotients kappa_xz / u_z with a relative difference up to this are the same beta but for rounding.
BETA_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class LineInformation:
    """Information of one geometric mechanism: `roots` are sqrt(a), inf where nothing was seen."""

    roots: Floats
    decay: float

    def variances(self) -> Floats:
        """Variances V_xx, shape (k,)."""
        beta, undetermined = self._betas()
        own = np.where(np.isinf(self.roots), 0.0, self.roots)
        whole = (own * self._u) ** 2
        # Sum of a_z u_z^2 over all z except x and its two neighbours, from both ends.
        below, above = np.cumsum(whole), np.cumsum(whole[::-1])[::-1]
        far = np.r_[0.0, 0.0, below[:-2]][: len(own)] + np.r_[above[2:], 0.0, 0.0][-len(own) :]
        variances = beta**2 * far
        for step, entries in self._row():
            variances += (
                _neighbour_values(own, step) * (entries - beta * _neighbour_values(self._u, step))
            ) ** 2
        return np.where(undetermined, np.inf, variances)

    def covariance(self) -> Floats:
        """Covariance sum_z a_z (kappa_xz - beta_x u_z) (kappa_yz - beta_y u_z), shape (k, k)."""
        beta, undetermined = self._betas()
        a = np.where(np.isinf(self.roots), 0.0, self.roots) ** 2
        (_, left), (_, middle), (_, right) = self._row()
        bands: Any = [left[1:], middle, right[:-1]]
        inverse: Any = diags_array(bands, offsets=[-1, 0, 1]).tocsr()
        shared = inverse @ (a * self._u)
        found = (inverse @ diags_array(a) @ inverse.T).toarray()
        found += np.outer(beta, float(a @ self._u**2) * beta - shared) - np.outer(shared, beta)
        np.fill_diagonal(found, self.variances())
        found[undetermined] = found[:, undetermined] = np.inf
        return found

    def variances_of_sums(self, weights: Floats) -> Floats | None:
        """Variances sum_z a_z (sum_x w_x (kappa_xz - beta_x u_z))^2; None if a beta is missing."""
        beta, undetermined = self._betas()
        if undetermined.any():
            return None
        a = np.where(np.isinf(self.roots), 0.0, self.roots) ** 2
        centred = weights - weights.mean(
            axis=1, keepdims=True
        )  # a constant costs digits and changes nothing
        (_, left), (_, middle), (_, right) = self._row()
        # Product with the tridiagonal K^-1, by its three diagonals.
        moved = centred * middle
        moved[:, :-1] += centred[:, 1:] * left[1:]
        moved[:, 1:] += centred[:, :-1] * right[:-1]
        return (moved - np.outer(centred @ beta, self._u)) ** 2 @ a

    @property
    def _loss(self) -> float:
        """Value of 1 - decay^2."""
        return (1 - self.decay) * (1 + self.decay)

    @property
    def _u(self) -> Floats:
        """Vector u = K^-1 1: (1 - decay) / (1 + decay), and 1 / (1 + decay) at the ends."""
        u = np.full(len(self.roots), (1 - self.decay) / (1 + self.decay))
        u[0] = u[-1] = 1 / (1 + self.decay) if len(u) > 1 else 1.0
        return u

    def _row(self) -> tuple[tuple[int, Floats], ...]:
        """The three entries of each row of K^-1: left of x, at x, right of it; 0 outside."""
        k = len(self.roots)
        side, middle = (
            np.full(k, -self.decay / self._loss),
            np.full(k, (1 + self.decay**2) / self._loss),
        )
        middle[0] = middle[-1] = 1 / self._loss if k > 1 else 1.0
        left, right = side.copy(), side
        left[0] = right[-1] = 0.0
        return (-1, left), (0, middle), (1, right)

    def _betas(self) -> tuple[Floats, Floats]:
        """The best beta for each x, and a mask of those that have none."""
        unseen = np.isinf(self.roots)
        if not unseen.any():
            a, u = self.roots**2, self._u
            shared = sum(_neighbour_values(a * u, step) * entries for step, entries in self._row())
            return np.asarray(shared / float(a @ u**2)), unseen
        # Each of the up to three unseen neighbours of x requires the beta that its quotient gives;
        # there is such a beta if these quotients agree.
        least, most, near = (
            np.full(len(unseen), np.inf),
            np.full(len(unseen), -np.inf),
            np.zeros(len(unseen), int),
        )
        for step, entries in self._row():
            here = _neighbour_values(unseen, step) & (entries != 0)
            quotient = entries / np.where(here, _neighbour_values(self._u, step), 1.0)
            near += here
            least, most = (
                np.where(here, np.minimum(least, quotient), least),
                np.where(here, np.maximum(most, quotient), most),
            )
        # An unseen position that is no neighbour has kappa = 0, and so requires beta = 0.
        mixed = (near > 0) & (
            (near < unseen.sum()) | (most - least > BETA_TOLERANCE * np.abs(most))
        )
        return np.where((near > 0) & ~mixed, most, 0.0), mixed


def _neighbour_values(values: Floats, step: int) -> Floats:
    """Value of each position's neighbour at x + step, 0 beyond the ends."""
    moved = np.zeros_like(values)
    if step:
        moved[max(-step, 0) : len(values) - max(step, 0)] = values[
            max(step, 0) : len(values) - max(-step, 0)
        ]
    else:
        moved[:] = values
    return moved


def line_information(tally: Tally, theta: Floats) -> LineInformation | None:
    """Information of a tally of one geometric mechanism on a line, otherwise None."""
    line = facts.as_line(tally.operator)
    if line is None:
        return None
    precision = np.zeros(tally.k)
    weights = root_weights(tally.counts, line.unit_columns().forward(theta))
    np.add.at(precision, line.positions, weights**2)
    with np.errstate(divide="ignore"):
        return LineInformation(1 / np.sqrt(precision), line.decay)
