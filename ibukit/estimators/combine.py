"""Combine mechanisms: by averaging estimates, or by one estimate for the average mechanism."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit.domain.distributions import project_to_simplex
from ibukit.errors import ConvergenceError, NotInvertible
from ibukit.estimate import Estimate, Status
from ibukit.estimators.certificate import as_estimate, certified_on_or_off_simplex
from ibukit.estimators.inversion import NAMES, inv
from ibukit.estimators.iterative_update import ibu
from ibukit.estimators.maximum_likelihood import mle
from ibukit.mechanisms.categorical.independent_bits import IndependentBits
from ibukit.mechanisms.inversion_error import inversion_error
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.mechanisms.mixtures.average import average_mechanism
from ibukit.mechanisms.report_columns import columns_of
from ibukit.tally.likelihood_rows import require_law
from ibukit.tally.tally import Tally, TallyPart, check_tally, make_tally_part

Estimator = Callable[..., Estimate | ArrayLike]

WEIGHTS = {"users": "n_A / n", "variance": "inverse variances"}
# The status of a combination is the first of these that one of the groups has.
WORST_FIRST = (
    Status.MAX_ITER,
    Status.OUT_OF_REACH,
    Status.STOPPED,
    Status.CONVERGED,
    Status.CLOSED_FORM,
)


def combine_results(
    tally: Tally,
    estimator: Estimator = inv,
    weights: Literal["users", "variance"] = "users",
    project: bool = False,
    strict: bool | None = None,
    **options: Any,
) -> Estimate:
    r"""Combine results: the average of one estimate for each mechanism.

    The papers call it :math:`[\mathrm{INV}]_{R}`, :math:`[\mathrm{RAP}]_{R}` or
    :math:`[\mathrm{IBU}]_{R}`.

    .. math:: \theta=\sum_A w_A\,\mathrm{estimator}(\text{reports of }A).

    With ``weights="users"`` the weights are :math:`w_A=n_A/n`, as in the paper:
    ``combine_results(tally, inv, post="normalize")`` and ``combine_results(tally, ibu, stop=...)``
    are its :math:`[\mathrm{INV}]_{R}` and :math:`[\mathrm{IBU}]_{R}`, and `inv` on RAPPOR tallies
    is its :math:`[\mathrm{RAP}]_{R}`. A very private mechanism then counts as much as a less
    private one, whose estimate may be a thousand times as precise.

    With ``weights="variance"`` :math:`w_{A}` is proportional to :math:`n_{A} / e_{A}`, with
    :math:`e_{A}` the exact `theory.inv_squared_error` of the mechanism where the secrets are
    uniform. Of all fixed weights, these have the least expected squared error for uniform secrets.
    Averages of raw INV stay unbiased, so project only once, at the end. This takes the distribution
    nearest to the average:
    ``combine_results(tally, inv, weights="variance", post="none", project=True)``.

    Parameters
    ----------
    tally : Tally
        Pooled, ``t1 + t2 + ...``; the reports of one mechanism are a group.
    estimator : callable
        A function from a tally to an `Estimate` or a distribution: `inv`, `ibu`, `mle`, `smooth` or
        your own.
    weights : {"users", "variance"}
    project : bool
        Take the point of the simplex that is nearest to the average.
    strict : bool, optional
        If True, raise where the estimator misses its goal on a group; if False, never raise. By
        default raise where the estimator itself raises, as `mle` does and `ibu` does not.
    **options
        Handed to the estimator. An option with the name of a parameter above has to go into a
        partial: ``partial(estimator, weights=...)``.

    Returns
    -------
    Estimate
        ``log_likelihood`` and ``gap`` are those of the average under all the reports, each through
        its own mechanism: the gap says what GIBU could gain. ``n_iter`` is summed over the groups;
        ``status`` is that of the worst group, or OFF_SIMPLEX for an average of raw INV off the
        simplex.

    Raises
    ------
    ConvergenceError
        If a goal was missed (see `strict`); carries the combination of the best estimates of all
        groups.
    NotInvertible
        If a mechanism cannot be inverted, for `inv` or for the inverse variances.
    ValueError
        If `weights` is unknown, if reports are weighted (the subclass `WeightsRefused`), or where
        the estimator raises it.

    References
    ----------
    .. [freewill] ElSalamouny and Palamidessi, arXiv:2208.11268, eqs. (7) and (8).

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> rng, line = np.random.default_rng(1), ik.Line(0, 9)
    >>> truth = ik.normalize(np.arange(1, 11))
    >>> counts = rng.multinomial(5000, truth)
    >>> mechanisms = [ik.RandomizedResponse(line, epsilon) for epsilon in (0.2, 1.0, 5.0)]
    >>> tally = sum(mechanism.simulate(counts, rng) for mechanism in mechanisms)
    >>> papers = combine_results(tally, ik.inv, post="project")
    >>> ours = combine_results(tally, ik.inv, weights="variance", post="none", project=True)
    >>> for estimate in (papers, ours, ik.mle(tally)):
    ...     print(round(ik.total_variation(estimate.distribution, truth), 3))
    0.207
    0.009
    0.01
    """
    _check(estimator)
    if not arguments.is_one_of(weights, WEIGHTS):
        raise ValueError(f'weights must be "users" or "variance", got {weights!r}')
    projected = arguments.flag("project", project)
    parts = check_tally(tally).parts
    # The weights of the groups are their shares of the users, divided by n times the variance of
    # raw INV if variances are to count.
    shares = np.array([part.n / tally.n for part in parts])
    if weights == "variance":
        errors = np.array([_squared_error_of_inv(part) for part in parts])
        # Next to an estimate without an error, as of a single secret, others count for nothing.
        shares = shares / errors if errors.all() else shares * (errors == 0)
        shares /= shares.sum()
    outcomes = [_run(estimator, Tally((part,)), options, strict) for part in parts]
    estimates = [outcome.estimate for outcome in outcomes]
    # Raw INV may leave the simplex, and so may the average; `project` puts it back at the end.
    average = np.zeros(tally.k)
    for share, estimate in zip(shares, estimates, strict=True):
        average += share * estimate.distribution
    reached = {estimate.status for estimate in estimates}
    status = next((status for status in WORST_FIRST if status in reached), Status.CLOSED_FORM)
    steps = sum(estimate.n_iter for estimate in estimates)
    method = f"[{_name(estimator, estimates, parts)}]_R, weights: {WEIGHTS[weights]}"
    method += ", projected" if projected else ""
    vector = project_to_simplex(average) if projected else average
    combined = certified_on_or_off_simplex(tally, vector, status, steps, method)
    return _raise_if_missed(combined, outcomes)


def combine_mechanisms(
    tally: Tally, estimator: Estimator = inv, *, strict: bool | None = None, **options: Any
) -> Estimate:
    r"""Combine mechanisms: one estimate for the average mechanism of all reports.

    The papers call it :math:`[\mathrm{INV}]_{M}`, :math:`[\mathrm{RAP}]_{M}` or
    :math:`[\mathrm{IBU}]_{M}`.

    The estimator takes all reports as if all came through A[n]. :math:`A[n]=\sum_A\frac{n_A}{n}\,A`
    is the average mechanism, and q[n] holds the frequencies of all reports together.
    :math:`[\mathrm{INV}]_{M}` solves :math:`v\,A[n]=q[n]` and is unbiased, since q[n] has the mean
    :math:`\theta` A[n], although no report has that law. :math:`[\mathrm{RAP}]_{M}` does the same
    bit by bit. :math:`[\mathrm{IBU}]_{M}` maximises :math:`\sum_z q[n]_z\,\log(\theta A[n])_z`,
    which is not the likelihood of these reports: the estimate may be consistent, but it ignores
    which report came through which mechanism. ``ibu(tally)`` and ``mle(tally)`` (GIBU) take this
    into account.

    Parameters
    ----------
    tally : Tally
        Pooled, over mechanisms with the same reports; see `average_mechanism`.
    estimator : callable
        A function from a tally of one mechanism to an `Estimate` or a distribution: `inv`, `ibu`,
        `mle` or your own. For unary encodings it must be `inv`, or a function that returns the
        estimate of `inv`.
    strict : bool, optional
        As for `combine_results`.
    **options
        Handed to the estimator: ``post="normalize"``, ``stop=Steps(1000)``.

    Returns
    -------
    Estimate
        ``log_likelihood`` and ``gap`` are those under all the reports, each through its own
        mechanism: the gap says what GIBU could gain. ``status`` and ``n_iter`` are the estimator's
        own, except that ``status`` is OFF_SIMPLEX off the simplex.

    Raises
    ------
    ConvergenceError
        If the estimator missed its goal (see `strict`); carries its best estimate, with the gap
        under all reports.
    AlphabetMismatch
        If the mechanisms do not have the same reports.
    NotInvertible
        If the average cannot be inverted, though each mechanism may be.
    ValueError
        If unary encodings are to be combined for an estimator other than `inv`: the bits of their
        average are not those of any encoding, so there is no likelihood to maximise; or if reports
        are weighted (the subclass `WeightsRefused`).

    References
    ----------
    .. [freewill] ElSalamouny and Palamidessi, arXiv:2208.11268, eqs. (9), (10), (13) and (17).

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> rng, line = np.random.default_rng(1), ik.Line(0, 9)
    >>> counts = rng.multinomial(5000, ik.normalize(np.arange(1, 11)))
    >>> mechanisms = [ik.RandomizedResponse(line, epsilon) for epsilon in (0.2, 1.0, 5.0)]
    >>> tally = sum(mechanism.simulate(counts, rng) for mechanism in mechanisms)
    >>> combine_mechanisms(tally, ik.inv, post="project").method
    '[INV-P]_M'
    >>> together, apart = combine_mechanisms(tally, ik.mle), ik.mle(tally)
    >>> together.gap > 1e-3 > apart.gap
    True
    """
    _check(estimator)
    parts = check_tally(tally).parts
    together = Tally((_under_average_mechanism(tally),)) if len(parts) > 1 else tally
    outcome = _run(estimator, together, options, strict)
    estimate = outcome.estimate
    unary = any(isinstance(part.mechanism, IndependentBits) for part in parts)
    # Decided from the returned method, so wrappers around `inv` are accepted.
    if unary and len(parts) > 1 and estimate.method not in NAMES:
        raise ValueError(
            "estimator must be inv, or call it, for several unary encodings, got "
            f"{estimator!r}: their average is a unary encoding for each bit alone, but not for "
            "whole reports, so it has no likelihood; for the maximum likelihood of all reports use "
            "ibu(tally) or mle(tally)"
        )
    method = f"[{_name(estimator, [estimate], parts)}]_M"
    # Likelihood and gap are computed anew, under each report's own mechanism.
    vector = np.array(estimate.distribution)
    combined = certified_on_or_off_simplex(tally, vector, estimate.status, estimate.n_iter, method)
    return _raise_if_missed(combined, [outcome])


def _under_average_mechanism(tally: Tally) -> TallyPart:
    """Return all reports as if all came through the average mechanism."""
    shares = [part.n / tally.n for part in tally.parts]
    mechanisms: list[Any] = [part.mechanism for part in tally.parts]
    require_law(mechanisms, "an average of its mechanisms")
    average = average_mechanism(mechanisms, shares)
    reports = [part.reports for part in tally.parts]
    if isinstance(average, MatrixMechanism):
        # Rows of bits become the numbers of their columns.
        reports = list(map(columns_of, mechanisms, reports))
    return make_tally_part(average, np.concatenate(reports), tally.counts)


def _squared_error_of_inv(part: TallyPart) -> float:
    """Return the exact squared error of `inv` at uniform secrets, times the number of reports."""
    mechanism: Any = part.mechanism
    try:
        error = inversion_error(mechanism)
    except NotInvertible as reason:
        raise NotInvertible(
            f'weights="variance" needs mechanisms that can be inverted: {reason}; use '
            'weights="users", or mle(tally)'
        ) from None
    return error.at(np.full(len(error.slope), 1 / len(error.slope)))


def _check(estimator: Any) -> None:
    if not callable(estimator):
        raise TypeError(
            "estimator must be a function from a tally to an estimate, such as inv or mle, got "
            f"{estimator!r}"
        )


class _Outcome(NamedTuple):
    """The estimate of one group of reports."""

    estimate: Estimate
    missed: str | None
    """Message of the error to raise, or None if the goal was met."""


def _run(
    estimator: Estimator, tally: Tally, options: dict[str, Any], strict: bool | None
) -> _Outcome:
    # An error of the estimator is kept here; at the end `strict` decides whether it counts.
    missed = None
    try:
        returned = estimator(tally, **options)
    except ConvergenceError as error:
        returned, missed = error.estimate, str(error)
    except TypeError as error:
        raise TypeError(
            f"estimator must take a tally, and the options by their names: {error}"
        ) from error
    estimate = as_estimate(returned, tally, "what the estimator returns", "")
    # With None the estimator decides: if it raises an error itself, the error is raised again.
    must = strict is not None and arguments.flag("strict", strict)
    if must and missed is None and estimate.status in (Status.MAX_ITER, Status.OUT_OF_REACH):
        missed = f"{estimate.method}: {estimate.status.value}"
    return _Outcome(estimate, None if strict is not None and not must else missed)


def _raise_if_missed(combined: Estimate, outcomes: Sequence[_Outcome]) -> Estimate:
    """Return the combination, or raise the error that carries it."""
    missed = [outcome.missed for outcome in outcomes if outcome.missed is not None]
    if missed:
        raise ConvergenceError(
            f"estimator missed its goal on {len(missed)} of {len(outcomes)} groups: {missed[0]}; "
            "strict=False returns the combination all the same",
            combined,
        )
    return combined


def _function(estimator: Estimator) -> Any:
    """Return the function inside partials."""
    return _function(estimator.func) if isinstance(estimator, partial) else estimator


def _name(estimator: Estimator, estimates: Sequence[Estimate], parts: Sequence[TallyPart]) -> str:
    """Return INV-N, RAP-P, IBU, MLE, or the function's own name."""
    # Estimates by `inv` name their post-processing, the same for all groups.
    name, *others = {estimate.method for estimate in estimates}
    if name in NAMES and not others:
        unary = all(isinstance(part.mechanism, IndependentBits) for part in parts)
        return name.replace("INV", "RAP") if unary else name
    function = _function(estimator)
    known = {ibu: "IBU", mle: "MLE"}
    return known.get(function) or str(getattr(function, "__name__", type(function).__name__))
