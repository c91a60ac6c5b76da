"""What every estimator returns: a distribution with the proof of how far its likelihood is from the optimum."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, ReadOnlyArrays
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.efficiency import determined_among_all
from ibukit.domain.linear_functionals import Questions, asked
from ibukit.errors import AlphabetMismatch
from ibukit.errors import ConvergenceError as ConvergenceError
from ibukit.estimate._inference import Inferred
from ibukit.estimate._saved import SavedEstimate
from ibukit.estimate.exports import named
from ibukit.fisher_information import (
    asymptotic_covariance,
    asymptotic_variances,
    asymptotic_variances_of_sums,
)
from ibukit.tally.tally import Tally


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
class Estimate(Inferred, SavedEstimate, ReadOnlyArrays):
    r"""An estimate of the distribution of the secrets.

    It answers in labels: ``estimate[label]`` is a probability, `to_series` and `to_frame` have the
    labels for an index, `plot` draws them. `distribution` is in the alphabet's order, and an
    estimate may stand wherever a distribution is asked for. Two estimates are equal if all that is
    printed of them is, and their distributions and reports are.

    Attributes
    ----------
    distribution : ndarray, shape (k,)
        Probabilities in the alphabet's order. On the simplex unless `status` is OFF_SIMPLEX (raw
        matrix inversion).
    log_likelihood : float
        :math:`L = \sum_{z} \mathrm{counts}_{z}\,\log P(z)`, in nats, total over all reports; -inf
        where a seen report has probability 0.
    gap : float
        Nats per report: no distribution has a mean log-likelihood above that of this one by more
        than `gap`. It bounds the likelihood, not the distance to the truth. inf off the simplex.
    status : Status
    n_iter : int
        Steps taken; 0 for closed forms.
    method : str
        Estimator and stopping rule.
    alphabet : Alphabet
        What the probabilities are of. If the secrets' own alphabet (``tally.full_alphabet``) is
        unbounded, this is a part of it outside which every maximum likelihood estimate is exactly
        0; `gap` holds for the whole.
    tally : Tally, optional
        The reports it was computed from; standard errors and `identified` need it.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([50, 30, 20])
    >>> estimate = ik.ibu(tally)
    >>> estimate.gap <= 1e-6
    True
    >>> mle = ik.mle(ik.RandomizedResponse(ik.Alphabet(["yes", "no"]), epsilon=2.0).tally_counts([600, 400]))
    >>> round(mle["no"], 3)
    0.369
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
    @override
    def identified(self) -> NDArray[np.bool_]:
        """Whether the reports determine each secret's probability, shape (k,).

        They do where all MLEs agree on it (to 1e-7). A property of the reports, the same for every
        estimate made from them; computed when first asked for. Where it is False, `theory.mle_set`
        gives the range. True does not mean precise: see `standard_errors`, which are inf where the
        likelihood is flat around the estimate, while the boundary of the simplex may still single
        it out.

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
        tally = self._known_tally("what is identified depends on the reports")
        # finite standard errors prove that the columns of the reports seen span all directions: L
        # is strictly concave
        if np.isfinite(vars(self).get("_variances", np.inf)).all():
            return np.ones(len(self), dtype=bool)
        return determined(tally, self.distribution)

    def standard_errors(self, of: Any = None, target: str = "distribution") -> Any:
        r"""Asymptotic standard errors, of each probability or of weighted sums.

        They are the square roots of the diagonal of the inverse observed information. The
        information is
        :math:`J_{xy} = \sum_{z} \mathrm{counts}_{z}\,M_{xz}\,M_{yz} / (\theta\,M)_{z}^{2}` on the
        directions that keep the :math:`\sum 1`: the errors of an efficient estimator of an interior
        distribution. They ignore that probabilities are not negative, so where many are estimated
        as 0 they are too large; and they do not count the bias of stopping early. Where the reports
        seen do not determine a secret's probability at all, its standard error is inf.

        Parameters
        ----------
        of : array_like of shape (k,) or (r, k), or mapping, optional
            Weights of the :math:`\sum w \cdot \theta`: one question, or one in each row; truth
            values are 0 and 1. A mapping has the weights of some labels. None: every probability,
            computed once.
        target : {"distribution", "frequencies"}
            Errors as an estimate of the distribution that people come from, or of these people's
            own frequencies F. The second are smaller: their square is w V w -
            (:math:`\sum_{x} w_{x}^{2}\,\theta_x` - :math:`(w \cdot \theta)^{2}`) / n, because the
            luck of who was asked is no error then.

        Returns
        -------
        float, or ndarray of shape (k,) or (r,)

        Raises
        ------
        ValueError
            If the estimate does not know its tally, is off the simplex, or gives a report that was
            seen probability 0; if `of` has not k finite weights, or reports may be lost and the
            target is the frequencies.
        AlphabetMismatch
            If `of` has a label that is not in the alphabet.
        TooLarge
            If they would take a matrix of more than 10,000 secrets squared, or of 5,000 where the
            reports leave something undetermined. Under k-RR, also pooled, and under geometric noise
            on a line there are closed forms, in O(k) time and memory. All cells of a larger plane
            are solved for without the matrix, each variance within a hundredth, if every report was
            seen and the noise is narrow beside the plane: 256 x 256 cells in half a minute.

        References
        ----------
        .. [louis] Louis, "Finding the observed information matrix when using the EM algorithm", JRSS B 44, 1982.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([5000, 3000, 2000])
        >>> ik.mle(tally).standard_errors().round(4)
        array([0.0137, 0.0125, 0.0115])
        >>> round(ik.mle(tally).standard_errors(of=[0, 1, 1]), 4)  # of the last two together
        0.0137
        """
        questions = asked(of, self.alphabet)
        return questions.answer(self._errors(questions, target))

    def covariance(self) -> Floats:
        r"""Asymptotic covariances of the probabilities, shape (k, k).

        All of what `standard_errors` takes the diagonal of: the inverse observed information on the
        directions that keep the sum. Each row sums to 0. The variance of
        :math:`\sum_{x} w_{x}\,\theta_x` is ``w @ covariance @ w``.

        Returns
        -------
        ndarray, shape (k, k)
            inf in the rows and columns of secrets whose probability the reports do not determine.

        Raises
        ------
        ValueError
            As `standard_errors`.
        TooLarge
            If there are more than 10,000 secrets, and as `standard_errors`.

        Examples
        --------
        >>> import ibukit as ik
        >>> ik.mle(ik.RandomizedResponse(2, epsilon=2.0).tally_counts([600, 400])).covariance().round(6)
        array([[ 0.000414, -0.000414],
               [-0.000414,  0.000414]])
        """
        return asymptotic_covariance(self._tally_of_errors(), self.distribution)

    @cached_property
    def _variances(self) -> Floats:
        return asymptotic_variances(self._tally_of_errors(), self.distribution)

    def _tally_of_errors(self) -> Tally:
        tally = self._known_tally("standard errors need the reports")
        self._refuse_off_simplex()
        return tally

    @override
    def _refuse_off_simplex(self) -> None:
        if self.status is Status.OFF_SIMPLEX:
            raise ValueError(
                "estimate is off the simplex: project it (post='project') before asking for errors"
            )

    def _known_tally(self, why: str) -> Tally:
        if self.tally is None:
            raise ValueError(f"estimate has no tally: {why} it was computed from")
        return self.tally

    def _errors(self, questions: Questions, target: str) -> Floats:
        if not arguments.is_one_of(target, ("distribution", "frequencies")):
            raise ValueError(f"target must be 'distribution' or 'frequencies', got {target!r}")
        variances = self._variances_of(questions)
        if target == "distribution":
            return np.sqrt(variances)
        tally = self._known_tally("whose frequencies are meant is said by the reports")
        if tally.efficiency is not None:
            raise ValueError(
                "target must be 'distribution' where reports may be lost: nobody knows who sent none"
            )
        # where the mechanism hides nothing the difference is 0, and rounding may take it below
        return np.sqrt(
            np.maximum(variances - questions.variances(self.distribution) / tally.n, 0.0)
        )

    def _variances_of(self, questions: Questions) -> Floats:
        if questions.weights is None:
            return self._variances
        return asymptotic_variances_of_sums(
            self._tally_of_errors(), self.distribution, questions.weights
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Estimate):
            return NotImplemented
        return (
            type(self) is type(other)
            and self._printed == other._printed
            and self.alphabet == other.alphabet
            and _same_reports(self.tally, other.tally)
            # the distribution, and what a class that inherits has besides
            and all(
                np.array_equal(getattr(self, each.name), getattr(other, each.name))
                for each in fields(self)
                if each.name not in ("alphabet", "tally")
            )
        )

    def __hash__(self) -> int:
        return hash(self._printed)

    @property
    def _printed(self) -> tuple[Any, ...]:
        return self.method, self.status.name, self.n_iter, self.gap, self.log_likelihood

    def __getstate__(self) -> dict[str, Any]:
        # what is cached here can be computed again
        return {each.name: getattr(self, each.name) for each in fields(self)}

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


def distribution_on(name: str, given: ArrayLike | Estimate, alphabet: Alphabet) -> ArrayLike:
    """An estimate's distribution, if it is over this alphabet; anything else as it is.

    The integers from 0 stand for the codes of any alphabet of their number.
    """
    if isinstance(given, Estimate) and not _same_secrets(alphabet, given.alphabet):
        wanted, got = named(alphabet), named(given.alphabet)
        raise AlphabetMismatch(
            f"{name} must be over {wanted}, got an estimate over {got if got != wanted else 'others'}"
        )
    return given.distribution if isinstance(given, Estimate) else given


def _same_secrets(one: Alphabet, other: Alphabet) -> bool:
    return one == other or (len(one) == len(other) and Line(0, len(one) - 1) in (one, other))


def _same_reports(one: Tally | None, other: Tally | None) -> bool:
    if one is None or other is None:
        return one is other
    parts = {part.mechanism: part for part in other.parts}
    return (
        len(one.parts) == len(parts)
        and one.full_alphabet == other.full_alphabet
        and all(
            (same := parts.get(part.mechanism)) is not None
            and np.array_equal(part.reports, same.reports)
            and np.array_equal(part.counts, same.counts)
            for part in one.parts
        )
    )
