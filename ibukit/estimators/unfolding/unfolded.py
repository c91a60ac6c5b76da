"""`Unfolded`: an estimate that also knows numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.linear_functionals import LinearFunctionals
from ibukit.estimate import Estimate
from ibukit.estimators.unfolding.inputs import tally_of
from ibukit.fisher_information import (
    covariance_of_all,
    delta_method_covariance,
    delta_method_variances,
)
from ibukit.identification.maximisers import determined_probabilities
from ibukit.mechanisms import MatrixMechanism


@dataclass(frozen=True, eq=False, repr=False)
class Unfolded(Estimate):
    """The result of `unfold`: an estimate that also knows numbers.

    Attributes
    ----------
    total : float
        How many secrets there were, seen or not, background not among them.
    mechanism : MatrixMechanism
        The response matrix, with its efficiencies.
    observed : ndarray, shape (m,)
        The counts that were unfolded.
    background : ndarray, shape (m,), or None
        How many of them are expected from elsewhere.

    Examples
    --------
    >>> import ibukit as ik
    >>> unfolded = ik.unfold([70, 50], [[0.6, 0.2], [0.1, 0.3]])
    >>> unfolded.counts.round(6), unfolded.count_errors().round(1)
    (array([100., 100.]), array([16.3, 28.5]))
    """

    total: float = field(kw_only=True)
    mechanism: MatrixMechanism = field(kw_only=True)
    observed: Floats = field(kw_only=True)
    background: Floats | None = field(default=None, kw_only=True)
    unit: float = field(default=1.0, kw_only=True)
    """The matrix is that of the mechanism times this number: 1 unless its rows exceed 1."""

    @property
    def counts(self) -> Floats:
        """Estimated number of each secret, seen or not, shape (k,)."""
        return self.total * self.distribution

    @property
    def expected(self) -> Floats:
        """Expected counts of the reports, nu = lambda M + background, shape (m,)."""
        signal = self.mechanism.forward(self.unit * self.counts)
        return signal if self.background is None else signal + self.background

    @override
    def covariance(self) -> Floats:
        """Asymptotic covariances of the probabilities, shape (k, k).

        They are the inverse of the observed information on the directions that keep the sum. With a
        background they count that its share of the counts is not known exactly. inf for
        probabilities that are not determined.
        """
        # Without a background the number of events carries no information about the distribution.
        if self.background is None:
            assert self.tally is not None
            return covariance_of_all(self.tally, self.distribution)
        if not self.total:
            # Without a signal no distribution is determined, unless there is a single secret.
            k = len(self.distribution)
            return np.full((k, k), np.inf) if k > 1 else np.zeros((1, 1))
        return delta_method_covariance(self._information, self._derivatives)

    @override
    def _variances_of(self, functionals: LinearFunctionals) -> Floats:
        if self.background is None:
            return super()._variances_of(functionals)
        weights = functionals.weights
        weights = np.eye(len(self.distribution)) if weights is None else weights
        if not self.total:
            # Only sums whose terms all have the same weight are determined.
            return np.where(np.ptp(weights, axis=1) == 0, 0.0, np.inf)
        return delta_method_variances(self._information, self._derivatives, weights)

    @property
    @override
    def _n(self) -> float:
        n = float(self.observed.sum())
        return int(n) if n.is_integer() else n

    def count_errors(self) -> Floats:
        r"""Asymptotic standard errors of `counts`, shape (k,).

        They are the square roots of the diagonal of the inverse of the observed information
        :math:`\sum_{z} n_{z}\,M_{xz}\,M_{yz} / \nu_{z}^{2}` of the Poisson likelihood; inf where
        the counts do not determine a number. They take weights for numbers of events.
        """
        every_count = np.eye(len(self.distribution))
        return np.sqrt(np.diag(delta_method_covariance(self._information, every_count)))

    @cached_property
    @override
    def identified(self) -> NDArray[np.bool_]:
        """True if the counts determine each secret's probability, shape (k,).

        As for every estimate.
        """
        if self.background is None:
            assert self.tally is not None
            return determined_probabilities(self.tally, self.distribution)
        if not self.total:
            return np.full(len(self.distribution), len(self.distribution) == 1)
        # All maximisers share the expected counts, and so the expected number of signal events.
        # Given that number, each event has come from the background with a known probability: a
        # mechanism whose rows are mixed with the background.
        seen = self.expected.sum() - self.background.sum()
        response = self.mechanism.among_seen.matrix()
        mixed = (seen * response + self.background) / (seen + self.background.sum())
        mechanism = MatrixMechanism(mixed, self.alphabet, efficiency=self.mechanism.efficiency)
        return determined_probabilities(tally_of(mechanism, self.observed), self.distribution)

    @property
    def _information(self) -> Floats:
        """Observed information of the Poisson likelihood about the numbers of secrets, (k, k)."""
        # Each column M_z sqrt(n_z) / nu_z contributes its outer product.
        seen = self.observed > 0
        columns = self.mechanism.matrix()[:, seen] * (
            self.unit * np.sqrt(self.observed[seen]) / self.expected[seen]
        )
        return columns @ columns.T

    @property
    def _derivatives(self) -> Floats:
        """Derivatives of the probabilities by the numbers of secrets, shape (k, k)."""
        return (np.eye(len(self.distribution)) - self.distribution[:, None]) / self.total

    def __repr__(self) -> str:
        return f"{super().__repr__().removesuffix(')')}, total={self.total:.6g})".replace(
            "Estimate(", "Unfolded(", 1
        )
