"""Unfolding: how many of each secret there were, given counts of their reports and a background."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import SUM_TOLERANCE, Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import aligned_counts
from ibukit.domain.linear_functionals import LinearFunctionals
from ibukit.domain.matrices import read_matrix
from ibukit.errors import AlphabetMismatch, ConvergenceError, InvalidDistribution
from ibukit.estimate import Estimate, Status
from ibukit.estimators._poisson import Signal, maximise_signal
from ibukit.estimators._poisson_steps import stopped_signal
from ibukit.estimators.iterative_update import ibu
from ibukit.estimators.maximum_likelihood import mle
from ibukit.estimators.stopping import EarlyRule, StoppingRule
from ibukit.fisher_information import (
    covariance_of_all,
    delta_method_covariance,
    delta_method_variances,
)
from ibukit.identification.maximisers import determined_probabilities
from ibukit.mechanisms import MatrixMechanism
from ibukit.mechanisms.matrix_entries import (
    MAX_ROUNDING,
    cause_of_sums,
    if_transposed,
)
from ibukit.tally.tally import Tally, make_tally_part


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

    over all :math:`\lambda_{x} \ge 0`: counts :math:`n_{z}` are Poisson with the means
    :math:`\nu_{z}`, :math:`\lambda_{x}` is the expected number of the secret x, and :math:`b_{z}`
    are expected from elsewhere. Without a background this is `mle`, and the distribution
    :math:`\lambda / \sum \lambda` also maximises the likelihood given the number of counts.

    Parameters
    ----------
    counts : array_like, dict or Series, shape (m,)
        How often each report was seen. Weights or expected counts will do as well as whole numbers.
        Labels of a dict or a Series are those of the reports.
    matrix : array_like, DataFrame, scipy sparse matrix or MatrixMechanism, shape (k, m)
        :math:`M_{xz}=P(\text{seen as }z\mid x)`, a row for each secret and a column for each
        report, as `MatrixMechanism` takes it. A row that sums to less than 1 is taken as it is: its
        secret is seen with that probability.
    efficiency : array_like or True, optional
        The probability that each secret is seen. The rows must sum to these, or each to 1 (as for
        `MatrixMechanism`). By default, and with True, what the rows sum to.
    background : array_like, dict or Series, shape (m,), optional
        Expected counts from elsewhere, known and not negative.
    tol : float
        Certified nats per report, as for `mle`.
    strict : bool
        Raise where `tol` is missed, or `stop` was not met.
    stop : Steps, Gap, Change or Discrepancy, optional
        Take D'Agostini's and Richardson and Lucy's steps from a flat start of as many secrets as
        there are counts, and stop by this rule, as `ibu` does: `Steps(4)` is what most programs of
        unfolding call four iterations. By default the maximum is found. With a background
        `Discrepancy` is refused.

    Returns
    -------
    Unfolded
        An `Estimate` with `counts`, `count_errors()`, `total` and `expected`. `gap` bounds how far
        the Poisson likelihood is from its maximum over all :math:`\lambda`, in nats per report, and
        `log_likelihood` is that likelihood without :math:`\log n_{z}`!. Where the background alone
        explains the counts best, `total` and all `counts` are 0; no distribution is then
        determined, and the uniform one stands for all.

    Raises
    ------
    InvalidDistribution
        If `matrix` or `efficiency` is not as above; also if the columns sum to 1 where the rows do
        not: it is then transposed, or `efficiency=True` says that it is not.
    AlphabetMismatch
        If there is not one count or background for each report, or a label is unknown.
    ImpossibleReport
        If neither a secret nor the background can produce a report that was seen.
    ValueError
        If a count or a background is negative or not finite, or all counts are 0 without a
        background.
    ConvergenceError
        If `strict` and `tol` was missed; carries the best as ``.estimate``.

    Notes
    -----
    Let :math:`\mu_{x} = \lambda_{x}\,e_{x}` be the numbers seen, T their sum, G =
    :math:`\max_{x} g_x` with :math:`g_x=\sum_z n_z M_{xz}/(e_x\nu_z)`, and
    :math:`c = \sum_{z} n_{z}\,b_{z} / \nu_{z}`. For any :math:`\mu^*`, by Jensen,
    :math:`\sum_z n_z\log(\nu^*_z/\nu_z)\le n\log\bigl((TG+c)/n\bigr)`, and the largest value of
    this less T* - T is :math:`n\,\log G - n + c / G + T` (for :math:`c \le n\,G`): the gap. For a
    given T the problem is that of `mle` with the matrix M / e + b / T, and T is found from T = n -
    c.

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
    mechanism, unit = _as_response(matrix, efficiency)
    labels = mechanism.report_alphabet
    observed = np.asarray(aligned_counts("counts", counts, labels, weighted=True))
    added = None if background is None else _complete_background(background, labels)
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
            f"tol={tol:g} was not certified, the best gap is {unfolded.gap:.3g}; take a larger "
            "tol, or strict=False for the best found",
            unfolded,
        )
    return unfolded


def _as_response(matrix: Any, efficiency: Any) -> tuple[MatrixMechanism, float]:
    """Return the response as a mechanism, and the unit in which its rows are at most 1."""
    if isinstance(matrix, MatrixMechanism):
        if efficiency is not None:
            raise ValueError(
                "efficiency must be left out where matrix is a MatrixMechanism, which knows its own"
            )
        return matrix, 1.0
    unit = 1.0
    if efficiency is None:
        rows = read_matrix(matrix).rows
        largest = rows.sum(axis=1).max()
        # Without efficiencies the Poisson model needs no rows below 1: numbers of secrets are then
        # in another unit.
        exceeds = 1 + MAX_ROUNDING < largest < math.inf and (rows >= 0).all()
        if exceeds and not (cause_of_sums(rows) or if_transposed(rows)):
            unit = float(largest)
            matrix = matrix / unit if hasattr(matrix, "columns") else rows / unit
    mechanism = MatrixMechanism(matrix, efficiency=True if efficiency is None else efficiency)
    cause = cause_of_sums(mechanism.matrix()) if efficiency is None else ""
    if cause:
        raise InvalidDistribution(
            f"matrix must have a row for each secret, with the probabilities of its reports: "
            f"{cause}; pass efficiency=True if its rows do sum to the probabilities of being seen"
        )
    # Foreign programs write the response with a column for each secret: its columns sum to 1.
    columns = mechanism.matrix().sum(axis=0)
    if (
        efficiency is None
        and mechanism.efficiency is not None
        and np.abs(columns - 1).max() <= SUM_TOLERANCE
    ):
        raise InvalidDistribution(
            "matrix must have a row for each secret, and its columns sum to 1 where its rows do "
            "not: is it transposed? Pass matrix.T; or efficiency=True if its rows sum to the "
            "probabilities of being seen"
        )
    return mechanism, unit


def tally_of(mechanism: MatrixMechanism, counts: Floats) -> Tally:
    """Return the tally of counts that may be weights."""
    # Whole counts become integers, so that what needs numbers of people is available.
    whole = (counts == np.rint(counts)).all() and counts.max() < 2.0**53
    return Tally(
        (
            make_tally_part(
                mechanism, np.arange(mechanism.m), counts.astype(np.int64) if whole else counts
            ),
        )
    )


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
        raise ValueError("counts must not all be 0 with stop: no step leads from a start of none")
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
    # Where there is no signal all distributions are as likely.
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


def _complete_background(background: Any, labels: Alphabet) -> Floats:
    """Return the background in the order of the reports; a missing one is an error, not 0."""
    if isinstance(background, Mapping) or hasattr(background, "reindex"):
        known = set(dict(background.items()))
        for label in labels.values.tolist():
            if label not in known:
                raise AlphabetMismatch(
                    f"background must have a number for each report, got none for {label!r}"
                )
    return np.asarray(aligned_counts("background", background, labels, weighted=True))
