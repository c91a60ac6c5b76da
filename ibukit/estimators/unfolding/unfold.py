"""Unfolding: how many of each secret there were, given counts of their reports and a background."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.errors import ConvergenceError
from ibukit.estimate import Status
from ibukit.estimators.iterative_update import ibu
from ibukit.estimators.maximum_likelihood import mle
from ibukit.estimators.stopping import EarlyRule, StoppingRule
from ibukit.estimators.unfolding.inputs import (
    read_background,
    read_counts,
    read_response,
    tally_of,
)
from ibukit.estimators.unfolding.poisson import Signal, maximise_signal
from ibukit.estimators.unfolding.poisson_steps import stopped_signal
from ibukit.estimators.unfolding.unfolded import Unfolded
from ibukit.mechanisms import MatrixMechanism


def unfold(
    counts: Any,
    matrix: Any,
    efficiency: Any = None,
    background: Any = None,
    *,
    tol: float = 1e-9,
    strict: bool = True,
    stop: StoppingRule | EarlyRule | None = None,
) -> Unfolded:
    r"""Unfold counts: the most likely numbers behind them, with a proof.

    Maximise

    .. math:: \sum_z n_z\log\nu_z-\nu_z,\qquad\nu=\lambda M+b,

    over all :math:`\lambda_{x} \ge 0`. The counts :math:`n_{z}` are Poisson with the means
    :math:`\nu_{z}`; :math:`\lambda_{x}` is the expected number of the secret x, and :math:`b_{z}`
    is the count expected from elsewhere. Without a background this is `mle`, and the distribution
    :math:`\lambda / \sum \lambda` also maximises the likelihood given the number of counts.

    Parameters
    ----------
    counts : array_like, dict or Series, shape (m,)
        How often each report was seen. Weights or expected counts will do as well as whole numbers.
        Labels of a dict or a Series are those of the reports. A histogram of two dimensions has the
        shape of the reported bins of a `matrix` of four dimensions, or of the Grid of reports. The
        labels of a frame are matched with the MultiIndex that the columns of `matrix` then have.
    matrix : array_like, DataFrame, scipy sparse matrix or MatrixMechanism, shape (k, m)
        :math:`M_{xz}=P(\text{seen as }z\mid x)`, a row for each secret and a column for each
        report, as `MatrixMechanism` takes it. A row that sums to less than 1 is taken as it is: its
        secret is seen with that probability. Rows may sum to more than 1, as effective areas do:
        secrets are then counted in another unit. For bins of two dimensions the matrix has four:
        true row and column, then reported row and column; ``counts.reshape(rows, columns)`` of the
        result gives the numbers in the true bins. The matrix is taken as exactly known: errors and
        intervals reflect only the counts, and do not grow with the error of a matrix that was
        measured or simulated. `MatrixMechanism.from_trials` keeps that error, for `mle` of its
        tallies.
    efficiency : array_like or True, optional
        The probability that each secret is seen. The rows must sum to these probabilities, or each
        row to 1 (as for `MatrixMechanism`). By default, and with True, the efficiencies are the
        sums of the rows.
    background : array_like, dict or Series, shape (m,), optional
        Expected counts from elsewhere, known and not negative.
    tol : float
        The maximum is certified to within `tol` nats per report, as for `mle`.
    strict : bool
        Raise where `tol` is missed, or where `stop` was not met.
    stop : Steps, Gap, Change or Discrepancy, optional
        Take the steps of Richardson and Lucy, which are also D'Agostini's, from a flat start whose
        total is the sum of the counts, and stop by this rule, as `ibu` does: `Steps(4)` is what
        most unfolding programs call four iterations. Errors and intervals are those of the
        likelihood, not the spread of estimates that stop early. By default the maximum is found.
        With a background `Discrepancy` is refused.

    Returns
    -------
    Unfolded
        An `Estimate` with `counts`, `count_errors()`, `count_intervals()`, `total` and `expected`.
        `gap` bounds how far the Poisson likelihood is from its maximum over all :math:`\lambda`, in
        nats per report, and `log_likelihood` is the logarithm of that likelihood without the terms
        :math:`\log n_{z}`!. Where the background alone explains the counts best, `total` and all
        `counts` are 0; no distribution is then determined, and the uniform one stands for all.

    Raises
    ------
    InvalidDistribution
        If `matrix` or `efficiency` is not as above; or if the columns of `matrix` sum to 1 and the
        rows do not, because it has then probably been transposed by mistake; `efficiency=True` says
        that it has not been.
    MatrixUncertain
        If `matrix` is a mechanism made by `MatrixMechanism.from_trials`.
    AlphabetMismatch
        If there is not one count or background for each report, or a label is unknown.
    ImpossibleReport
        If neither a secret nor the background can produce a report that was seen.
    ValueError
        If a count or a background is negative or not finite, or if all counts are 0 and there is no
        background.
    ConvergenceError
        If `strict` and `tol` was missed; carries the best as ``.estimate``.

    Notes
    -----
    Let :math:`\mu_{x} = \lambda_{x}\,e_{x}` be the numbers seen, T their sum, G =
    :math:`\max_{x} g_x` with :math:`g_x=\sum_z n_z M_{xz}/(e_x\nu_z)`, and
    :math:`c = \sum_{z} n_{z}\,b_{z} / \nu_{z}`. For any :math:`\mu^*`, by Jensen,
    :math:`\sum_z n_z\log(\nu^*_z/\nu_z)\le n\log\bigl((TG+c)/n\bigr)`, and the largest value of
    this bound less T* - T is :math:`n\,\log G - n + c / G + T` (for :math:`c \le n\,G`): the gap.
    For a given T the problem is that of `mle` with the matrix M / e + b / T, and T is found from T
    = n - c.

    References
    ----------
    .. [cowan] Cowan, "Statistical Data Analysis", chapter 11, Oxford 1998.
    .. [dagostini] D'Agostini, "A multidimensional unfolding method based on Bayes' theorem", Nucl.
       Instrum. Meth. A 362, 1995.

    Examples
    --------
    >>> import ibukit as ik
    >>> response = [[0.6, 0.2], [0.1, 0.3]]
    >>> ik.unfold([70, 50], response).distribution.round(6)
    array([0.5, 0.5])
    >>> ik.unfold([80, 80], response, background=[10, 30]).counts.round(4)
    array([100., 100.])
    """
    tol = arguments.positive("tol", tol)
    mechanism, unit = read_response(matrix, efficiency)
    labels = mechanism.report_alphabet
    observed = read_counts(counts, labels)
    added = None if background is None else read_background(background, labels)
    if added is None or not added.any():
        if not observed.any():
            raise ValueError("counts must not all be 0: there is nothing to unfold")
        unfolded = _without_background(mechanism, observed, tol, stop)
    elif stop is None:
        unfolded = _with_background(mechanism, observed, added, tol)
    else:
        unfolded = _stopped(mechanism, observed, added, stop, unit)
    if unit != 1:
        unfolded = replace(unfolded, total=unfolded.total / unit, unit=unit)
    if arguments.flag("strict", strict) and stop is not None:
        if unfolded.status not in (Status.CONVERGED, Status.STOPPED):
            raise ConvergenceError(
                f"stop={stop} was not met (gap {unfolded.gap:.3g}); loosen the rule, or leave stop "
                "out for the maximum",
                unfolded,
            )
    elif strict and unfolded.gap > tol:
        raise ConvergenceError(
            f"tol={tol:g} was not certified: the best gap is {unfolded.gap:.3g}; take a larger "
            "tol, or strict=False for the best found",
            unfolded,
        )
    return unfolded


def _without_background(
    mechanism: MatrixMechanism,
    observed: Floats,
    tol: float,
    stop: StoppingRule | EarlyRule | None,
) -> Unfolded:
    tally = tally_of(mechanism, observed)
    estimate = mle(tally, tol, strict=False) if stop is None else ibu(tally, stop=stop)
    # The Poisson likelihood is the multinomial one times that of the number n of counts, whose
    # maximum is n log n - n: both are maximal at the same distribution.
    n = float(tally.n)
    seen = (
        1.0 if mechanism.efficiency is None else float(estimate.distribution @ mechanism.efficiency)
    )
    return Unfolded(
        distribution=estimate.distribution,
        log_likelihood=estimate.log_likelihood + n * float(np.log(n)) - n,
        gap=estimate.gap,
        status=estimate.status,
        n_iter=estimate.n_iter,
        method="unfold" + estimate.method[3:],
        alphabet=mechanism.alphabet,
        tally=tally,
        total=n / seen,
        mechanism=mechanism,
        observed=arguments.frozen(observed),
    )


def _with_background(
    mechanism: MatrixMechanism, observed: Floats, background: Floats, tol: float
) -> Unfolded:
    best = maximise_signal(mechanism.among_seen.matrix(), observed, background)
    status = Status.CONVERGED if best.gap <= tol else Status.MAX_ITER
    return _over_background(mechanism, observed, background, best, status, "unfold")


def _stopped(
    mechanism: MatrixMechanism,
    observed: Floats,
    background: Floats,
    stop: StoppingRule | EarlyRule,
    unit: float,
) -> Unfolded:
    if not observed.any():
        raise ValueError("counts must not all be 0 with stop: steps from a start of 0 stay at 0")
    efficiency = np.ones(mechanism.k) if mechanism.efficiency is None else mechanism.efficiency
    found = stopped_signal(
        mechanism.among_seen.matrix(), efficiency, observed, background, stop, unit
    )
    reached = Status.STOPPED if found.early else Status.CONVERGED
    return _over_background(
        mechanism,
        observed,
        background,
        found.signal,
        reached if found.met else Status.MAX_ITER,
        f"unfold, {stop}",
    )


def _over_background(
    mechanism: MatrixMechanism,
    observed: Floats,
    background: Floats,
    signal: Signal,
    status: Status,
    method: str,
) -> Unfolded:
    # The solvers work on the secrets that are seen; dividing by the efficiencies gives all.
    numbers = signal.seen if mechanism.efficiency is None else signal.seen / mechanism.efficiency
    total = float(numbers.sum())
    # Without a signal all distributions are equally likely.
    distribution = numbers / total if total else np.full(mechanism.k, 1 / mechanism.k)
    return Unfolded(
        distribution=arguments.frozen(distribution),
        log_likelihood=signal.log_likelihood,
        gap=signal.gap,
        status=status,
        n_iter=signal.n_iter,
        method=f"{method}, with a background",
        alphabet=mechanism.alphabet,
        total=total,
        mechanism=mechanism,
        observed=arguments.frozen(observed),
        background=arguments.frozen(background),
    )
