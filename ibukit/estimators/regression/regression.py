"""`Regression`: coefficients of a multinomial logit, with errors, intervals and predictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, stdtr

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, ReadOnlyArrays
from ibukit._ground.threads import one_thread
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.domain.status import Status
from ibukit.errors import ConvergenceError, WeightsRefused
from ibukit.estimators.regression.averages import (
    marginal_effects,
    mean_probabilities,
    probability_gradients,
)
from ibukit.estimators.regression.covariance import FLAT_EIGENVALUE
from ibukit.estimators.regression.fitted import Fitted
from ibukit.estimators.regression.inputs import column, labels_of
from ibukit.estimators.regression.likelihood import probabilities
from ibukit.estimators.regression.profile import HigherPoint, profile_end

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("wald", "profile")


@dataclass(frozen=True, eq=False, repr=False)
class Regression(ReadOnlyArrays):
    """The result of `regress`: coefficients of covariates for each secret.

    Attributes
    ----------
    coefficients : ndarray, shape (d + 1, k - 1)
        Changes of the log-odds of each secret against the baseline, per unit of each variable: a
        row for each of `variables`, the intercept first, and a column for each of `secrets`.
    variables : tuple of str
        Names of the rows.
    secrets : tuple
        Labels of the columns: all secrets but the first.
    alphabet : Alphabet
        All secrets; the first is the baseline, whose coefficients are 0.
    log_likelihood : float
        Log-probability of the reports, in nats; if they are weighted, the weighted sum.
    gradient : float
        Largest component of the gradient of the log-likelihood, per report, by the coefficients of
        the orthonormal design (columns of mean square 1, whose span is that of the covariates). It
        is 0 at a stationary point.
    eigenvalues : ndarray, shape (p,)
        Eigenvalues of the observed information per report in the same units, in rising order. All
        are positive at a proper maximum.
    n : int or float
        Number of reports, or the sum of their weights.
    n_iter : int
        Steps taken.
    status : Status

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
    >>> reports = ["no"] * 350 + ["yes"] * 150 + ["no"] * 250 + ["yes"] * 250
    >>> found = ik.regress(np.repeat([0, 1], 500), reports, mechanism)
    >>> found.local_maximum, found.predict([0, 1]).round(3).tolist()
    (True, [[0.763, 0.237], [0.5, 0.5]])
    """

    coefficients: Floats
    variables: tuple[str, ...]
    secrets: tuple[Any, ...]
    alphabet: Alphabet
    log_likelihood: float
    gradient: float
    eigenvalues: Floats
    n: float
    n_iter: int
    status: Status
    _fitted: Fitted = field(repr=False)

    @property
    def local_maximum(self) -> bool:
        """True if the certificate proves a local maximum, at which the information is positive.

        False if the iterations missed a stationary point, or if the point is only stationary,
        because some direction is flat or leads upwards. The likelihood is not concave, so no
        certificate excludes a higher maximum elsewhere; another `start` of `regress` may look for
        one.
        """
        return self.status is Status.CONVERGED and bool(self.eigenvalues[0] > FLAT_EIGENVALUE)

    def covariance(self) -> Floats:
        """Return covariances of the coefficients, shape (p, p); inf where nothing is known.

        They are in the order of `to_frame`: all variables of the first secret, then those of the
        next. They are the inverse of the observed information; for weighted or clustered reports
        they are the sandwich, and with replicate weights the scale of these times the sum of
        squared deviations of the estimates.

        Raises
        ------
        SeparatedDesign, WeightsRefused
            If there is no estimate with one of the replicate weights.

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
        >>> reports = ["no"] * 350 + ["yes"] * 150 + ["no"] * 250 + ["yes"] * 250
        >>> ik.regress(np.repeat([0, 1], 500), reports, mechanism).covariance().round(4)
        array([[ 0.0221, -0.0221],
               [-0.0221,  0.0359]])
        """
        with one_thread():
            return self._fitted.covariance.of(self._fitted.every_coefficient)

    def standard_errors(self) -> Floats:
        """Return standard errors of `coefficients`, of their shape; inf where nothing is known."""
        return self._in_shape(self._errors)

    def interval(self, level: float = 0.95, method: str = "wald") -> tuple[Floats, Floats]:
        r"""Return the ends of an interval of each coefficient, both of their shape.

        - ``"wald"``: the estimate -+ z standard errors, with z the normal quantile. If the errors
          come from the design of a survey, z is the quantile of Student's distribution. Its degrees
          of freedom are the number of units (clusters, or reports) minus that of strata, or the
          number of replicates minus 1.
        - ``"profile"``: the values at which twice the fall of the log-likelihood, maximised over
          all other coefficients, stays below :math:`z^{2}`. Its level is closer to `level` where
          reports are few; an end is infinite where the likelihood never falls that far.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1; it holds in the limit of many reports, for each coefficient.
        method : {"wald", "profile"}

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or if the method is none of these.
        WeightsRefused
            If reports are weighted or clustered and the method is "profile": their likelihood has
            no such level.
        ConvergenceError
            If the profile finds a higher likelihood; the message gives its coefficients as `start`
            for `regress`.

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
        >>> reports = ["no"] * 350 + ["yes"] * 150 + ["no"] * 250 + ["yes"] * 250
        >>> found = ik.regress(np.repeat([0, 1], 500), reports, mechanism)
        >>> for method in ("wald", "profile"):
        ...     lower, upper = found.interval(method=method)
        ...     print(f"{lower[1, 0]:.3f} to {upper[1, 0]:.3f}")
        0.796 to 1.538
        0.804 to 1.549
        """
        z = self._quantile(level)
        if not arguments.is_one_of(method, METHODS):
            raise ValueError(f"method must be {arguments.choices(METHODS)}, got {method!r}")
        if method == "wald":
            half = z * self.standard_errors()
            return self.coefficients - half, self.coefficients + half
        if self._fitted.survey is not None:
            raise WeightsRefused(
                "method must be 'wald' for weighted or clustered reports, got 'profile': their "
                "likelihood is not that of independent reports"
            )
        with one_thread():
            ends = [self._profile(row, z) for row in range(len(self._errors))]
        lower, upper = np.array(ends).T
        return self._in_shape(lower), self._in_shape(upper)

    def to_frame(self, level: float = 0.95, method: str = "wald") -> pd.DataFrame:
        """Return a row for each secret and variable: coefficient, error, interval and p-value.

        Parameters
        ----------
        level, method
            As `interval` takes them.

        Returns
        -------
        pandas.DataFrame
            Columns ``coefficient``, ``standard_error``, ``z``, ``p_value`` (for the hypothesis that
            the coefficient is 0, two-sided, by Wald, with the distribution of `interval`),
            ``lower`` and ``upper``. Index: (secret, variable).

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
        >>> reports = ["no"] * 350 + ["yes"] * 150 + ["no"] * 250 + ["yes"] * 250
        >>> frame = ik.regress(np.repeat([0, 1], 500), reports, mechanism).to_frame()
        >>> print(frame[["coefficient", "standard_error", "z"]].round(2))
                          coefficient  standard_error     z
        secret variable
        yes    intercept        -1.17            0.15 -7.85
               x1                1.17            0.19  6.16
        """
        lower, upper = self.interval(level, method)
        z, survey = self.coefficients / self.standard_errors(), self._fitted.survey
        tail = ndtr(-np.abs(z))
        if survey is not None:
            tail = stdtr(survey.degrees_of_freedom, -np.abs(z))
        columns = {
            "coefficient": self.coefficients,
            "standard_error": self.standard_errors(),
            "z": z,
            "p_value": 2 * tail,
            "lower": lower,
            "upper": upper,
        }
        rows = [(secret, name) for secret in self.secrets for name in self.variables]
        return _frame(columns, rows, ["secret", "variable"])

    def predict(self, X: Any) -> Floats:
        """Return the probability of each secret for people with these covariates, shape (m, k).

        Parameters
        ----------
        X : array_like or frame, shape (m, d)
            As `regress` takes it; if `regress` was given a formula, a frame with the columns of the
            formula.

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
        >>> reports = ["no"] * 350 + ["yes"] * 150 + ["no"] * 250 + ["yes"] * 250
        >>> ik.regress(np.repeat([0, 1], 500), reports, mechanism).predict([1, 2]).round(3)
        array([[0.5  , 0.5  ],
               [0.237, 0.763]])
        """
        columns = self._fitted.covariates.read(X)
        with one_thread():
            return probabilities(columns, self._fitted.coefficients)

    def prediction_errors(self, X: Any) -> Floats:
        """Return standard errors of `predict`, by the delta method, shape (m, k).

        Parameters
        ----------
        X : array_like or frame, shape (m, d)
            As `predict` takes it.

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
        >>> reports = ["no"] * 350 + ["yes"] * 150 + ["no"] * 250 + ["yes"] * 250
        >>> ik.regress(np.repeat([0, 1], 500), reports, mechanism).prediction_errors([1]).round(4)
        array([[0.0294, 0.0294]])
        """
        columns = self._fitted.covariates.read(X)
        with one_thread():
            _, gradients = probability_gradients(columns, self._fitted.coefficients)
            return self._fitted.errors(gradients)

    def predict_groups(self, groups: Any, level: float = 0.95) -> pd.DataFrame:
        """Return the mean prediction over the respondents of each group, with errors.

        Parameters
        ----------
        groups : str or sequence, n labels
            The group of each respondent, or a column of `data` that names it.
        level : float
            Of the intervals, strictly between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            Columns ``probability``, ``standard_error``, ``lower`` and ``upper``. Intervals are by
            Wald and the delta method, cut to [0, 1], and hold for people with the covariates of the
            respondents. Index: (group, secret).

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
        >>> reports = ["no"] * 350 + ["yes"] * 150 + ["no"] * 250 + ["yes"] * 250
        >>> found = ik.regress(np.repeat([0, 1], 500), reports, mechanism)
        >>> groups = np.repeat(["young", "old"], 500)
        >>> print(found.predict_groups(groups)[["probability", "standard_error"]].round(3))
                      probability  standard_error
        group secret
        young no            0.763           0.027
              yes           0.237           0.027
        old   no            0.500           0.029
              yes           0.500           0.029
        """
        z, fitted = self._quantile(level), self._fitted
        values = column("groups", groups, fitted.data)
        labels = labels_of("groups", values, fitted.n_rows)
        members: dict[Any, list[int]] = {}
        for place, row in enumerate(fitted.kept.tolist()):
            members.setdefault(labels[row], []).append(place)
        found, errors = [], []
        with one_thread():
            for places in members.values():
                weights = fitted.likelihood.weights[places]
                mean, gradients = mean_probabilities(
                    fitted.columns[places], fitted.coefficients, weights / weights.sum()
                )
                found.append(mean)
                errors.append(fitted.errors(gradients))
        columns = _with_ends("probability", np.concatenate(found), np.concatenate(errors), z)
        columns["lower"] = np.maximum(columns["lower"], 0.0)
        columns["upper"] = np.minimum(columns["upper"], 1.0)
        rows = [(group, secret) for group in members for secret in self._labels]
        return _frame(columns, rows, ["group", "secret"])

    def marginal_effects(self, level: float = 0.95) -> pd.DataFrame:
        r"""Return average marginal effects of each variable on each secret's probability.

        They are averages over the respondents, by their weights, of the derivatives
        :math:`\partial P(s\mid x_i)/\partial x_{ij}`, and sum to 0 over the secrets. Errors are by
        the delta method, for people with the covariates of the respondents. A column of a formula
        is a variable of its own; for an interaction or a polynomial, differences of `predict`
        therefore say more.

        Parameters
        ----------
        level : float
            Of the intervals, strictly between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            Columns ``effect``, ``standard_error``, ``lower`` and ``upper`` (Wald). Index: (secret,
            variable), of all secrets and all variables but the intercept.

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
        >>> reports = ["no"] * 350 + ["yes"] * 150 + ["no"] * 250 + ["yes"] * 250
        >>> found = ik.regress(np.repeat([0, 1], 500), reports, mechanism)
        >>> print(found.marginal_effects()[["effect", "standard_error"]].round(3))
                         effect  standard_error
        secret variable
        no     x1        -0.252           0.035
        yes    x1         0.252           0.035
        """
        z, fitted = self._quantile(level), self._fitted
        shares = fitted.likelihood.weights / fitted.likelihood.total
        with one_thread():
            effects, gradients = marginal_effects(fitted.columns, fitted.coefficients, shares)
            errors = fitted.errors(gradients)
        rows = [(secret, name) for secret in self._labels for name in self.variables[1:]]
        columns = _with_ends("effect", effects.ravel(), errors.ravel(), z)
        return _frame(columns, rows, ["secret", "variable"])

    @property
    def _labels(self) -> tuple[Any, ...]:
        """Labels of all secrets."""
        return labels_in(self.alphabet)

    @cached_property
    def _errors(self) -> Floats:
        """Standard errors in the order of `covariance`, shape (p,)."""
        with one_thread():
            return self._fitted.covariance.standard_errors(self._fitted.every_coefficient)

    def _quantile(self, level: float) -> float:
        """Half-width of an interval in standard errors; Student's if these come from a design."""
        level, survey = arguments.fraction("level", level, "()"), self._fitted.survey
        return normal_quantile(level) if survey is None else survey.quantile(level)

    def _in_shape(self, values: Floats) -> Floats:
        """Numbers in the order of `covariance` as an array of the shape of the coefficients."""
        return values.reshape(self.coefficients.shape[::-1]).T

    def _profile(self, row: int, z: float) -> tuple[float, float]:
        fitted, error = self._fitted, float(self._errors[row])
        if not np.isfinite(error):
            return -np.inf, np.inf
        a = fitted.every_coefficient[row]
        tangent = fitted.covariance.matrix @ a / error**2
        estimate = float(self.coefficients.T.ravel()[row])
        try:
            lower, upper = (
                profile_end(fitted.likelihood, fitted.inner, a, tangent, side * z * error, z)
                for side in (-1, 1)
            )
        except HigherPoint as higher:
            start = (higher.coefficients @ fitted.to_covariates.T).T
            raise ConvergenceError(
                "regress found a local maximum that is not the largest, as the profile shows: "
                f"call it with start={start.round(4).tolist()}",
                self,
            ) from None
        return estimate + lower, estimate + upper

    def __repr__(self) -> str:
        kind = "a local maximum" if self.local_maximum else "no proven maximum"
        return (
            f"Regression({len(self.variables)} variables, {len(self.secrets) + 1} secrets, "
            f"n={self.n:.6g}, {kind}, gradient={self.gradient:.1e})"
        )


def labels_in(alphabet: Alphabet) -> tuple[Any, ...]:
    """Return the labels of an alphabet; cells of a grid are tuples."""
    labels = alphabet.labels_of(np.arange(len(alphabet)))
    return tuple(map(tuple, labels.tolist())) if labels.ndim == 2 else tuple(labels.tolist())


def _with_ends(name: str, values: Floats, errors: Floats, z: float) -> dict[str, Floats]:
    return {
        name: values,
        "standard_error": errors,
        "lower": values - z * errors,
        "upper": values + z * errors,
    }


def _frame(columns: dict[str, Floats], rows: list[Any], names: list[str]) -> pd.DataFrame:
    import pandas as pd

    # Coefficients have a row for each variable, and the index runs over the secrets first.
    flat = {name: values.T.ravel() for name, values in columns.items()}
    return pd.DataFrame(flat, index=pd.MultiIndex.from_tuples(rows, names=names))
