"""`MLE`: the maximum likelihood estimate as an estimator of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.extras import missing_extra
from ibukit.estimators import mle, smooth
from ibukit.mechanisms import Mechanism
from ibukit.tally.likelihood import log_likelihood_of
from ibukit.tally.part import on_alphabet

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise missing_extra("importing ibukit.sklearn", "scikit-learn") from error


class MLE(BaseEstimator):  # type: ignore[misc] # it has no types
    r"""The maximum likelihood estimate of the secrets' distribution, fitted to reports.

    It maximises :math:`\sum_i\log(\theta M)_{z_i}-\lambda R(\theta)` over the simplex, with
    :math:`z_i` the reports, M the matrix of the mechanism and R Good's roughness (see `smooth`).
    Rows of X are reports, so that scikit-learn may split, search and clone as it does with any
    estimator of a density.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism through which the reports came.
    penalty : float, optional
        :math:`\lambda`, for all reports of a fit together. None, the default, means no penalty, as
        for `mle`. With a penalty the secrets must be numbers on a line or cells of a grid.
    tol : float
        The gap that is certified, in nats per report.

    Attributes
    ----------
    estimate_ : Estimate
        The estimate, with labels, certificate and intervals.
    distribution_ : ndarray, shape (k,)
        The probabilities, in the order of ``mechanism.alphabet``.
    n_features_in_ : int
        How many numbers a report has.

    Raises
    ------
    MissingExtra
        On import, if scikit-learn is not installed.
    ValueError
        Raised by `fit` and `score`, if a report is not one of the mechanism's, or is missing.

    See Also
    --------
    mle : The same estimate, from a tally.
    smooth : The estimate with the penalty, which it chooses itself.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> from sklearn.model_selection import cross_val_score
    >>> from ibukit.sklearn import MLE
    >>> mechanism = ik.RandomizedResponse(["bike", "bus", "car"], epsilon=2.0)
    >>> reports = np.array(["bus"] * 50 + ["bike"] * 30 + ["car"] * 20)
    >>> found = MLE(mechanism).fit(reports)
    >>> round(found.estimate_["bus"], 2), round(found.score(reports), 2)
    (0.58, -1.03)
    >>> shuffled = np.random.default_rng(1).permutation(reports)
    >>> cross_val_score(MLE(mechanism), shuffled, cv=3).shape
    (3,)
    """

    def __init__(
        self, mechanism: Mechanism, *, penalty: float | None = None, tol: float = 1e-9
    ) -> None:
        # scikit-learn clones by these names, so wrong arguments are reported by `fit`, not here.
        self.mechanism = mechanism
        self.penalty = penalty
        self.tol = tol

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Estimate from reports, one in each row.

        Parameters
        ----------
        X : array_like, shape (n,), (n, 1) or (n, width)
            The reports, as ``mechanism.tally`` takes them.
        y : ignored
            Not used; pipelines hand over something here.

        Returns
        -------
        MLE
            Itself.
        """
        reports = self._reports(X, first=True)
        tally = self.mechanism.tally(reports)
        self.estimate_ = (
            mle(tally, tol=self.tol)
            if self.penalty is None
            else smooth(tally, penalty=self.penalty, tol=self.tol)
        )
        self.distribution_ = self.estimate_.distribution
        return self

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean log-likelihood of reports, in nats per report; greater is better.

        It is the one at the fitted estimate, and is -inf if a report has probability 0 there.
        """
        check_is_fitted(self)
        reports = self._reports(X)
        tally = self.mechanism.tally(reports)
        theta = self.distribution_
        if tally.full_alphabet is not None:
            # An endless alphabet is cut to the span of the reports: here, to that of both samples.
            window = (self.estimate_.tally + tally).alphabet
            tally = on_alphabet(self.mechanism, window).tally(reports)
            theta = np.array([self.estimate_[label] for label in window.values.tolist()])
        with np.errstate(divide="ignore"):
            return log_likelihood_of(tally, tally.forward(theta)) / tally.n

    def _reports(self, X: Any, *, first: bool = False) -> NDArray[Any]:
        """Return the reports as the mechanism takes them; a single column becomes a sequence."""
        if not isinstance(self.mechanism, Mechanism):
            raise TypeError(
                f"mechanism must be a Mechanism, got {type(self.mechanism).__name__}; as in "
                "MLE(ik.RandomizedResponse(labels, epsilon))"
            )
        if arguments.ndim(X) < 0:
            raise ValueError("X must have rows of one length, a row for each person")
        if arguments.ndim(X) == 1:
            X = np.reshape(X, (-1, 1))
        reports: NDArray[Any] = validate_data(self, X, reset=first, dtype=None)
        return reports[:, 0] if reports.shape[1] == 1 else reports
