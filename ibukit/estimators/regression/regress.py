"""Fit a multinomial logit of the secrets on covariates, through the mechanism of the reports."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.domain.status import Status
from ibukit.errors import ConvergenceError, TooLarge
from ibukit.estimators.regression.design import read_design, whitened
from ibukit.estimators.regression.fitted import Fitted
from ibukit.estimators.regression.inputs import (
    column,
    likelihood_rows,
    mechanisms_of,
    weights_of,
)
from ibukit.estimators.regression.likelihood import Likelihood
from ibukit.estimators.regression.newton import maximise
from ibukit.estimators.regression.regression import Regression, labels_in
from ibukit.estimators.regression.sampling import survey_of
from ibukit.estimators.regression.separation import refuse_if_separated

# Largest number of coefficients: more would take minutes, and more memory than a laptop has.
MAX_COEFFICIENTS = 2000
# Largest start for a unit of an orthonormal covariate: at odds of e^100 a probability rounds to 1.
MAX_START = 100.0


def regress(
    X: Any,
    reports: Any,
    mechanism: Any,
    data: Any = None,
    *,
    by: Any = None,
    weights: Any = None,
    strata: Any = None,
    clusters: Any = None,
    replicate_weights: Any = None,
    codes: bool = False,
    start: Any = None,
    max_iter: int = 500,
    tol: float = 1e-9,
    strict: bool = True,
) -> Regression:
    r"""Regress secrets on covariates: a multinomial logit seen through mechanisms.

    Maximise

    .. math:: \sum_i w_i\log\sum_s P_B(s\mid x_i)\,M^{(i)}_{s z_i},\qquad
        P_B(s\mid x)=\frac{e^{x^{\top}B_s}}{\sum_t e^{x^{\top}B_t}},

    over the coefficients B of all secrets but the first, the baseline, whose coefficients are 0.
    For two secrets this is the logistic regression of randomised response.

    Parameters
    ----------
    X : array_like or frame, shape (n, d), or str
        Covariates, with a row for each respondent; an intercept is added. Together with `data` it
        may be a formula, such as ``"age + C(region)"``, as the package formulaic reads it. A
        formula is code that is run: accept none from strangers.
    reports : sequence, n reports, or str
        One report for each respondent, as `Mechanism.tally` takes them, or a column of `data`.
    mechanism : Mechanism, sequence of them, function or mapping
        One mechanism for all respondents, or a sequence with one for each, all over the same
        secrets. Together with `by`, a mapping from values to mechanisms, or a function from a value
        to a mechanism.
    data : frame, optional
        The frame with the columns that the formula uses, and with those that other arguments name
        by a string.
    by : sequence, n values, or str, optional
        Values that say which mechanism each report came through, such as its epsilon.
    weights : array_like, shape (n,), or str, optional
        Weights of a survey, finite and not negative. Standard errors are then those of the design
        (the sandwich). A weight is not a number of equal respondents: give each of these a row of
        their own. Rows of weight 0 are left out of the estimate, but belong to the sample: give
        people outside a group the weight 0 for the standard errors of this group.
    strata, clusters : sequence, n labels, or str, optional
        The stratum and the cluster in which each respondent was drawn, as for `Tally.from_table`.
        With either, standard errors are those of the design. People who report several times are
        clusters.
    replicate_weights : array_like, shape (n, R), or sequence of str, optional
        Replicates of `weights`, each already multiplied by the weight, or the columns of `data`
        that hold them. Standard errors are then computed from the estimates with each replicate,
        whatever method made the replicates: see `Tally.from_table`. Leave out strata and clusters,
        because the replicates already express them.
    codes : bool
        If True, reports that can be listed are given as places 0..m-1 in their list, not as labels.
    start : array_like, shape (d + 1, k - 1), optional
        Coefficients at which to begin; by default those of equal odds, 0.
    max_iter : int
        Largest number of steps.
    tol : float
        A point counts as stationary if its largest gradient per report, in the units of
        `Regression.gradient`, is at most `tol`.
    strict : bool
        Raise ConvergenceError if `tol` was missed, instead of returning the best point found.

    Returns
    -------
    Regression
        Its `local_maximum` says whether the point is a proven local maximum, or only stationary.

    Raises
    ------
    CollinearDesign
        If a column of the design is a combination of others.
    SeparatedDesign
        If the likelihood rises as coefficients go to infinity: some people have an estimated
        probability of 0 for a secret. This may happen with any `X` where the reports do not
        determine a distribution of the secrets, as in designs of two samples with the two answers
        of each person as secrets; the message then says so.
    ValueError, TypeError
        If arguments do not fit together, or if a value is missing.
    AlphabetMismatch
        If a report is unknown, or mechanisms are over different secrets.
    ImpossibleReport
        If no secret can produce a report.
    MissingExtra
        If `X` is a formula and formulaic is not installed.
    TooLarge
        If there are more than 2,000 coefficients, or the secrets have no end.
    WeightsRefused
        If replicate weights do not add up to about the same sum as `weights`, or are all equal to
        `weights`; if no stratum has two units; or if squares of weights leave the doubles.
    ConvergenceError
        If `strict` and `tol` was missed; carries the best as ``.estimate``.

    Notes
    -----
    The likelihood is not concave: its information is that of the secrets, which is positive, less
    what the reports withhold [louis]_. Steps are Newton's where the information is positive
    definite and those of the gradient form of EM [lange]_ elsewhere, all with a line search. The
    model of two secrets is that of [scheers]_, and of the R packages rr [blair]_, RRreg and GLMMRR
    (without random effects).

    References
    ----------
    .. [scheers] Scheers and Dayton, "Covariate randomized response models", J. Amer. Statist.
       Assoc. 83, 1988.
    .. [blair] Blair, Imai and Zhou, "Design and analysis of the randomized response technique",
       J. Amer. Statist. Assoc. 110, 2015.
    .. [lange] Lange, "A gradient algorithm locally equivalent to the EM algorithm", J. R. Statist.
       Soc. B 57, 1995.
    .. [louis] Louis, "Finding the observed information matrix when using the EM algorithm", J. R.
       Statist. Soc. B 44, 1982.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
    >>> reports = ["no"] * 350 + ["yes"] * 150 + ["no"] * 250 + ["yes"] * 250
    >>> found = ik.regress(np.repeat([0, 1], 500), reports, mechanism)
    >>> found.coefficients.round(3)
    array([[-1.167],
           [ 1.167]])
    >>> found.standard_errors().round(3)
    array([[0.149],
           [0.189]])
    """
    tol, strict = arguments.positive("tol", tol), arguments.flag("strict", strict)
    max_iter = arguments.whole("max_iter", max_iter, 1, 10**9)
    covariates, columns = read_design(X, data)
    n = len(columns)
    groups = mechanisms_of(
        mechanism,
        None if by is None else column("by", by, data),
        n,
        by if isinstance(by, str) else "by",
    )
    log_rows, at, alphabet = likelihood_rows(
        column("reports", reports, data), groups, arguments.flag("codes", codes), n
    )
    counted = weights_of(None if weights is None else column("weights", weights, data), n)
    kept = np.flatnonzero(counted > 0)
    survey = survey_of(
        counted,
        kept,
        data,
        weights=weights,
        strata=strata,
        clusters=clusters,
        replicate_weights=replicate_weights,
    )
    columns, at, counted = columns[kept], at[kept], counted[kept]
    k = log_rows.shape[1]
    if (k - 1) * columns.shape[1] > MAX_COEFFICIENTS:
        raise TooLarge(
            f"X and mechanism must have at most {MAX_COEFFICIENTS} coefficients together, got "
            f"{columns.shape[1]} columns and {k} secrets: leave columns out"
        )
    with one_thread():
        inner_columns, triangle = whitened(columns, counted, covariates.names)
        likelihood = Likelihood(inner_columns, log_rows, at, counted)
        begin = _start(start, (columns.shape[1], k - 1), triangle)
        found = maximise(likelihood, begin, max_iter)
        secrets = labels_in(alphabet)[1:]
        fitted = Fitted(
            likelihood,
            arguments.frozen(found.coefficients),
            found.derivatives.observed,
            columns,
            triangle,
            covariates,
            secrets,
            survey,
            n,
            kept,
            data,
        )
        refuse_if_separated(
            likelihood,
            found.coefficients,
            found.derivatives,
            fitted.to_covariates,
            covariates.names,
            secrets,
        )
        gradient = float(np.abs(found.derivatives.gradient).max()) / likelihood.total
        eigenvalues = eigvalsh(found.derivatives.observed / likelihood.total)
    regression = Regression(
        coefficients=arguments.frozen(fitted.coefficients.T.copy()),
        variables=covariates.names,
        secrets=secrets,
        alphabet=alphabet,
        log_likelihood=found.derivatives.value,
        gradient=gradient,
        eigenvalues=arguments.frozen(eigenvalues),
        n=len(kept) if weights is None else likelihood.total,
        n_iter=found.n_iter,
        status=Status.CONVERGED if gradient <= tol else Status.MAX_ITER,
        _fitted=fitted,
    )
    if strict and gradient > tol:
        raise ConvergenceError(
            f"tol={tol:g} was missed, the largest gradient per report is {gradient:.3g} after "
            f"{found.n_iter} steps; take a larger max_iter or tol, another start, or strict=False",
            regression,
        )
    return regression


def _start(start: Any, shape: tuple[int, int], triangle: Floats) -> Floats:
    """Return coefficients of the orthonormal design at which to begin, shape (k - 1, d + 1)."""
    if start is None:
        return np.zeros(shape[::-1])
    found = arguments.numbers("start", arguments.whole_array("start", start))
    if found.shape != shape:
        raise ValueError(
            f"start must have shape {shape}, a row for each variable and a column for each secret "
            f"but the first, got {found.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        inner: Floats = (triangle @ found).T
    if not (np.abs(inner) <= MAX_START).all():
        raise ValueError(
            f"start must be finite and give predictors of at most {MAX_START:g} or so, got "
            f"{arguments.brief(found.tolist())}"
        )
    return inner
