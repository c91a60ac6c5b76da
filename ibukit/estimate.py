"""What every estimator returns: a distribution with the proof of how far its likelihood is from the optimum."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from importlib import import_module

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ibukit import _validate
from ibukit._efficiency import determined_among_all
from ibukit._validate import Floats, ReadOnlyArrays
from ibukit.alphabet import Alphabet
from ibukit.errors import ConvergenceError as ConvergenceError
from ibukit.information import asymptotic_variances
from ibukit.tally import Tally


class Status(Enum):
    """How an estimator ended.

    Examples
    --------
    >>> Status.CONVERGED.value
    'the stopping rule was met'
    """

    CONVERGED = "the stopping rule was met"
    STOPPED = "stopped on purpose where the rule said, without aiming at the maximum"
    MAX_ITER = "max_iter was reached before the stopping rule was met"
    OUT_OF_REACH = "no distribution meets the stopping rule, as the gap proves"
    CLOSED_FORM = "computed directly, there was nothing to iterate"
    OFF_SIMPLEX = "computed directly; the vector has negative entries or does not sum to 1: it is not a distribution"


@dataclass(frozen=True, eq=False)
class Estimate(ReadOnlyArrays):
    """An estimate of the distribution of the secrets.

    Attributes
    ----------
    distribution : ndarray, shape (k,)
        Probabilities in the alphabet's order. On the simplex unless `status` is OFF_SIMPLEX (raw matrix inversion).
    log_likelihood : float
        L = sum_z counts_z log P(z), in nats, total over all reports; -inf where a seen report has probability 0.
    gap : float
        Nats per report: no distribution has a mean log-likelihood above that of this one by more than `gap`.
        It bounds the likelihood, not the distance to the truth. inf off the simplex.
    status : Status
    n_iter : int
        Steps taken; 0 for closed forms.
    method : str
        Estimator and stopping rule.
    alphabet : Alphabet
        What the probabilities are of. If the secrets' own alphabet (``tally.full_alphabet``) is unbounded, this is a
        part of it outside which every maximum likelihood estimate is exactly 0; `gap` holds for the whole.
    tally : Tally, optional
        The reports it was computed from; standard errors and `identified` need it.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([50, 30, 20])
    >>> estimate = ik.ibu(tally)
    >>> estimate.gap <= 1e-6
    True
    """

    distribution: Floats
    log_likelihood: float
    gap: float
    status: Status
    n_iter: int
    method: str
    alphabet: Alphabet
    tally: Tally | None = field(default=None, repr=False)

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Whether the reports determine each secret's probability, shape (k,).

        They do where all MLEs agree on it (to 1e-7). A property of the reports, the same for every estimate made from
        them; computed when first asked for. Where it is False, `theory.mle_set` gives the range. True does not mean
        precise: see `standard_errors`, which are inf where the likelihood is flat around the estimate, while the
        boundary of the simplex may still single it out.

        Raises
        ------
        ValueError
            If the estimate does not know its tally.

        Examples
        --------
        >>> import ibukit as ik
        >>> merged = ik.compose(ik.RandomizedResponse(3, epsilon=1.0), [[1, 0], [0, 1], [0, 1]])
        >>> ik.ibu(merged.tally_counts([50, 50])).identified
        array([ True, False, False])
        """
        if self.tally is None:
            raise ValueError("estimate has no tally: what is identified depends on the reports it was computed from")
        return determined(self.tally, self.distribution)

    def standard_errors(self) -> Floats:
        """Asymptotic standard errors, shape (k,).

        They are the square roots of the diagonal of the inverse observed information. The information is J_xy = sum_z
        counts_z M_xz M_yz / (theta M)_z^2 on the directions that keep the sum 1: the errors of an efficient estimator
        of an interior distribution. They ignore that probabilities are not negative, so where many are estimated as 0
        they are too large; and they do not count the bias of stopping early. Where the reports seen do not determine a
        secret's probability at all, its standard error is inf.

        Returns
        -------
        ndarray, shape (k,)

        Raises
        ------
        ValueError
            If the estimate does not know its tally or is off the simplex.

        References
        ----------
        .. [louis] Louis, "Finding the observed information matrix when using the EM algorithm", JRSS B 44, 1982.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([5000, 3000, 2000])
        >>> ik.mle(tally).standard_errors().round(4)
        array([0.0137, 0.0125, 0.0115])
        """
        if self.tally is None:
            raise ValueError("estimate has no tally: standard errors need the reports it was computed from")
        if self.status is Status.OFF_SIMPLEX:
            raise ValueError("estimate is off the simplex: project it (post='project') before asking for errors")
        return np.asarray(np.sqrt(asymptotic_variances(self.tally, self.distribution)))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Wald intervals, each covering with probability about `level`.

        They are theta_x -+ c standard errors. Cut at 0 and 1, so [0, 1] where the reports do not determine a
        probability.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.

        Returns
        -------
        (lower, upper) : ndarrays, shape (k,)

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, and as `standard_errors`.

        Examples
        --------
        >>> import ibukit as ik
        >>> lower, upper = ik.mle(ik.RandomizedResponse(2, epsilon=2.0).tally_counts([600, 400])).interval(0.95)
        >>> lower.round(3), upper.round(3)
        (array([0.591, 0.329]), array([0.671, 0.409]))
        """
        margin = ndtri((1 + _validate.fraction("level", level, "()")) / 2) * self.standard_errors()
        return np.maximum(self.distribution - margin, 0), np.minimum(self.distribution + margin, 1)

    def __repr__(self) -> str:
        whole = None if self.tally is None else self.tally.full_alphabet
        where = "" if whole is None else f" on {self.alphabet!r}, 0 elsewhere on {whole!r}"
        return (
            f"Estimate({self.method}: k={len(self.distribution)}{where}, n_iter={self.n_iter}, "
            f"gap={self.gap:.3g} nats/report, log_likelihood={self.log_likelihood:.6g}, {self.status.name})"
        )


def determined(tally: Tally, theta: Floats) -> NDArray[np.bool_]:
    """Which probabilities of a maximum likelihood estimate theta all others share, shape (k,)."""
    # found by a room further down the stream, which is asked for when it is needed and not before
    found = import_module("ibukit.identification").mle_set(tally.among_seen)
    if tally.efficiency is None or found.unique:
        return np.asarray(found.identified)
    return determined_among_all(found, theta, tally.efficiency)
