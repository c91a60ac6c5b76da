"""The data of a regression at its maximum, in the coordinates in which it was found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ibukit._ground.arguments import Floats, Ints, ReadOnlyArrays
from ibukit.estimators.regression.covariance import Covariance
from ibukit.estimators.regression.design import Covariates
from ibukit.estimators.regression.likelihood import Likelihood
from ibukit.estimators.regression.sampling import replicate_deviations
from ibukit.tally.survey import Survey


@dataclass(frozen=True, eq=False)
class Fitted(ReadOnlyArrays):
    """A maximum with its data, from which errors, intervals and predictions are computed.

    Parameters
    ----------
    likelihood : Likelihood
        In the orthonormal design Q, with X = Q R.
    inner : ndarray, shape (k - 1, d + 1)
        Coefficients of Q.
    observed : ndarray, shape (p, p)
        Their observed information.
    columns : ndarray, shape (n, d + 1)
        The design X, the intercept first.
    triangle : ndarray, shape (d + 1, d + 1)
        R.
    covariates : Covariates
    secrets : tuple
        Labels of all secrets but the first.
    survey : Survey or None
        Weights, strata and clusters, if some are given.
    n_rows : int
        Number of rows that were given.
    kept : ndarray of int, shape (n,)
        The rows of the respondents with positive weight.
    data : frame or None
    """

    likelihood: Likelihood
    inner: Floats
    observed: Floats
    columns: Floats
    triangle: Floats
    covariates: Covariates
    secrets: tuple[Any, ...]
    survey: Survey | None
    n_rows: int
    kept: Ints
    data: Any

    @cached_property
    def to_covariates(self) -> Floats:
        """R^-1: coefficients of X are these rows times the inner ones."""
        found: Floats = solve_triangular(self.triangle, np.eye(len(self.triangle)))
        return found

    @cached_property
    def coefficients(self) -> Floats:
        """Coefficients of X, a row for each secret but the first, shape (k - 1, d + 1)."""
        found: Floats = self.inner @ self.to_covariates.T
        return found

    @cached_property
    def covariance(self) -> Covariance:
        """Covariance of the inner coefficients, by the design of the survey if there is one."""
        survey, total = self.survey, self.likelihood.total
        base = Covariance.at(self.observed, total)
        if survey is None:
            return base
        if len(survey.replicates):
            # Along a flat direction a replicate's estimate may end anywhere.
            moved = replicate_deviations(
                self.likelihood,
                self.inner,
                survey.replicates,
                self.to_covariates,
                self.covariates.names,
                self.secrets,
            )
            moved = moved - moved @ base.flat @ base.flat.T
            return replace(base, matrix=survey.scale * (moved.T @ moved))
        scores = survey.covariance(self.likelihood.scores(self.inner))
        return Covariance.at(self.observed, total, scores)

    @cached_property
    def every_coefficient(self) -> Floats:
        """Gradients of the coefficients of X by the inner ones, shape (p, p)."""
        found: Floats = np.kron(np.eye(len(self.inner)), self.to_covariates).astype(np.float64)
        return found

    def errors(self, gradients: Floats) -> Floats:
        """Return standard errors of functions by their gradients in coefficients of X, (..., p)."""
        by_secret = gradients.reshape(*gradients.shape[:-1], *self.inner.shape)
        inner: Floats = (by_secret @ self.to_covariates).reshape(gradients.shape)
        return self.covariance.standard_errors(inner)
