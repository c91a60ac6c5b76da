"""Compare two independent samples: differences and ratios, with intervals and p-values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, overload

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import TypeVar
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import index_of, name_of_alphabet
from ibukit.domain.linear_functionals import (
    LinearFunctionals,
    OneFunctional,
    names_of_questions,
    parse_functionals,
)
from ibukit.errors import AlphabetMismatch, WeightsRefused
from ibukit.estimate import Estimate
from ibukit.estimators.maximum_likelihood import mle
from ibukit.intervals.comparison.methods import compare_by, has_ratio
from ibukit.intervals.request import IntervalRequest
from ibukit.tally.tally import Tally, check_bounded, check_tally

if TYPE_CHECKING:
    import pandas as pd

# Methods that need the likelihood of whole counts.
FOR_COUNTS = ("profile", "guaranteed")
# What type checkers know of the answers: a number for one question, an array for several.
Found = TypeVar("Found", bound=float | Floats, covariant=True, default=float | Floats)


@dataclass(frozen=True, eq=False)
class Contrast(arguments.ReadOnlyArrays, Generic[Found]):
    """Differences or ratios of two samples, a part of a `Comparison`.

    Attributes
    ----------
    estimate : float, or ndarray of shape (r,)
        The difference or ratio of the maximum likelihood estimates. A ratio is inf where only the
        second value is 0. Where both are 0 it is 1, because they are equal; its interval then says
        that nothing is known.
    interval : tuple of two floats, or of two ndarrays of shape (r,)
        Lower and upper ends. The upper end of a ratio may be inf.
    p_value : float, or ndarray of shape (r,)
        For the hypothesis that both samples have the same value, that is, that the difference is 0
        or the ratio 1.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
    >>> young, old = mechanism.tally_counts([600, 400]), mechanism.tally_counts([500, 500])
    >>> ratio = ik.compare(young, old, of="yes").ratio
    >>> round(ratio.estimate, 3), round(ratio.p_value, 6)
    (0.737, 7e-06)
    """

    estimate: Found
    interval: tuple[Found, Found]
    p_value: Found


@dataclass(frozen=True, eq=False)
class Comparison(arguments.ReadOnlyArrays, Generic[Found]):
    """Result of `compare`: the first tally against the second.

    Attributes
    ----------
    difference : Contrast
        The differences: the first tally minus the second.
    level : float
        Level of each interval.
    method : str
        Method of the intervals and p-values.
    labels : tuple
        Names of the questions.
    ratios : Contrast or None
        The ratios of the first tally to the second; None if a weight is negative. See `ratio`.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0)
    >>> before = mechanism.tally_counts([500, 300, 200])
    >>> after = mechanism.tally_counts([450, 330, 220])
    >>> print(ik.compare(before, after).to_frame().round(3))
           difference  lower  upper  p_value  ratio  ratio_lower  ratio_upper
    label
    a           0.073  0.009  0.138    0.025  1.146        1.017        1.292
    b          -0.044 -0.104  0.016    0.149  0.866        0.710        1.053
    c          -0.029 -0.082  0.023    0.272  0.824        0.574        1.165
    """

    difference: Contrast[Found]
    level: float
    method: str
    labels: tuple[Any, ...]
    ratios: Contrast[Found] | None
    _alphabet: Alphabet | None = None

    @property
    def ratio(self) -> Contrast[Found]:
        """Ratios of the first to the second.

        Raises
        ------
        ValueError
            If a question has a negative weight: its ratio may have either sign.
        """
        if self.ratios is None:
            raise ValueError(
                "of must have weights that are not negative, and not all 0, for ratios"
            )
        return self.ratios

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each question.

        Returns
        -------
        pandas.DataFrame
            Columns ``difference``, ``lower``, ``upper`` and ``p_value``; also ``ratio``,
            ``ratio_lower`` and ``ratio_upper`` unless a weight is negative. The index holds the
            labels (on a grid, ``row`` and ``col``).

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
        >>> young, old = mechanism.tally_counts([600, 400]), mechanism.tally_counts([500, 500])
        >>> ik.compare(young, old, of="yes").to_frame().round(3).to_dict("records")[0]["difference"]
        -0.131
        """
        import pandas as pd

        columns = {
            "difference": self.difference.estimate,
            "lower": self.difference.interval[0],
            "upper": self.difference.interval[1],
            "p_value": self.difference.p_value,
        }
        if self.ratios is not None:
            columns |= {
                "ratio": self.ratios.estimate,
                "ratio_lower": self.ratios.interval[0],
                "ratio_upper": self.ratios.interval[1],
            }
        index = (
            pd.Index(self.labels, name="label", tupleize_cols=False)
            if self._alphabet is None
            else index_of(self._alphabet)
        )
        return pd.DataFrame(
            {name: np.atleast_1d(values) for name, values in columns.items()}, index=index
        )

    def __repr__(self) -> str:
        r = len(self.labels)
        return (
            f"Comparison({r} question{'s' * (r != 1)}, level {self.level:g}, "
            f"method {self.method!r})"
        )


@overload
def compare(
    tally_1: Tally,
    tally_2: Tally,
    of: None = ...,
    level: float = ...,
    method: str = ...,
    **options: Any,
) -> Comparison[Floats]: ...
@overload
def compare(
    tally_1: Tally,
    tally_2: Tally,
    of: OneFunctional,
    level: float = ...,
    method: str = ...,
    **options: Any,
) -> Comparison[float]: ...
@overload
def compare(
    tally_1: Tally,
    tally_2: Tally,
    of: Any = ...,
    level: float = ...,
    method: str = ...,
    **options: Any,
) -> Comparison: ...


def compare(
    tally_1: Tally,
    tally_2: Tally,
    of: Any = None,
    level: float = 0.95,
    method: str = "profile",
    **options: Any,
) -> Comparison:
    r"""Compare two groups or dates: differences and ratios, with p-values.

    For each question w, estimate the difference :math:`w\cdot\theta_1 - w\cdot\theta_2` and the
    ratio :math:`w\cdot\theta_1 / w\cdot\theta_2`, where :math:`\theta_1` and :math:`\theta_2` are
    the distributions behind the two tallies. The tallies must be independent samples: of different
    people, or of the same people with new secrets and new noise. Where the same people report
    twice, their secrets are alike, so neither the intervals nor the p-values have their level.

    - ``"profile"``: the range over all pairs of distributions with
      :math:`L_1(\theta_1) + L_2(\theta_2)` at most :math:`z^2/2` below its maximum, where z is the
      normal quantile. The p-value is that of the likelihood-ratio test of
      :math:`w\cdot\theta_1 = w\cdot\theta_2`, with one degree of freedom.
    - ``"wald"``: the difference -+ z standard errors, and its normal p-value. The interval of the
      ratio holds each r for which :math:`|w\cdot\theta_1 - r\,w\cdot\theta_2|` is at most z
      standard errors [fieller]_. This is the only method for weighted tallies, see below.
    - ``"guaranteed"``: both tallies get guaranteed intervals (see `Estimate.interval`) at the level
      :math:`\sqrt{\mathrm{level}}`, and the ends are those of the differences and ratios of these
      intervals. The p-value is the least 1 - level at which the two intervals have no value in
      common, rounded up by at most 1 %, and at least 1e-12. Intervals and p-values hold at any
      number of reports.

    Intervals and p-value agree: with "profile" and "guaranteed" the interval of level 1 - p ends at
    0 for a difference, and at 1 for a ratio. For the first two methods the level holds in the limit
    of many reports, at distributions without zeros. Where a share is 0 or nearly so, "profile"
    mostly covers more often than it says; see `Estimate.interval` for what is known, and take
    "guaranteed" where that matters.

    If a tally is weighted, the standard errors are those of the design of the survey, and Student's
    quantile takes the place of z. Groups of one table, made by one call of `Tally.from_table` with
    `groups`, have strata, clusters and replicates in common, so the covariance of their estimates
    is part of the error of the difference. Other tallies are taken for independent, with the
    degrees of freedom of Welch and Satterthwaite [satterthwaite]_; they are refused where clusters
    have the same names in both, or where both have replicate weights. People without clusters are
    not recognised: nobody may be in both tallies.

    Parameters
    ----------
    tally_1, tally_2 : Tally
        Over the same secrets. Each may come from another mechanism, or be pooled over several.
    of : optional
        The questions, as `Estimate.interval` takes them: weights, weights by label, labels whose
        shares are added up, or districts. None: every probability.
    level : float
        Level of each interval, strictly between 0 and 1. It does not hold for the intervals of
        several questions together. If they have to hold together, multiply p-values by the number
        of questions, or divide 1 - level by this number (Bonferroni).
    method : {"profile", "wald", "guaranteed"}
        Weighted tallies are compared by "wald" only.
    **options
        Options of "guaranteed": by=None, seed=0, and the further options of `by`, as
        `Estimate.interval` takes them.

    Returns
    -------
    Comparison
        With `difference` and `ratio`. Each has an `estimate`, an `interval` and a `p_value`, which
        are floats for a single question.

    Raises
    ------
    AlphabetMismatch
        If the tallies are over different secrets, or where `Estimate.interval` raises it.
    ValueError
        If both tallies are the same, if reports may get lost, if the method is none of these, or if
        `level` is not between 0 and 1.
    TooLarge
        If the alphabet is unbounded, or if the comparison would take hours.
    WeightsRefused
        If a tally is weighted and the method is not "wald"; if only sums of weights are known; if
        tallies that are not groups of one table have clusters of the same names, or replicate
        weights; or where `Estimate.standard_errors` raises it.

    References
    ----------
    .. [fieller] Fieller, "Some problems in interval estimation", J. R. Statist. Soc. B 16, 1954.
    .. [satterthwaite] Satterthwaite, "An approximate distribution of estimates of variance
       components", Biometrics Bulletin 2, 1946.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
    >>> young, old = mechanism.tally_counts([600, 400]), mechanism.tally_counts([500, 500])
    >>> difference = compare(young, old, of="yes").difference
    >>> print(f"{difference.estimate:.3f}, from {difference.interval[0]:.3f} to "
    ...       f"{difference.interval[1]:.3f}, p = {difference.p_value:.1g}")
    -0.131, from -0.188 to -0.074, p = 7e-06
    """
    tallies = _independent(tally_1, tally_2, method)
    level = arguments.fraction("level", level, "()")
    functionals = parse_functionals(of, tallies[0].alphabet)
    estimates = [mle(tally, strict=False) for tally in tallies]
    first, second = (_request(estimate, functionals, level) for estimate in estimates)
    found = compare_by(method, first, second, options)
    one, other = (functionals.values(estimate.distribution) for estimate in estimates)
    answer = functionals.answer
    difference = Contrast(
        answer(one - other),
        (answer(found.difference[0]), answer(found.difference[1])),
        answer(found.p_values),
    )
    ratios = None
    if all(has_ratio(w) for w in functionals.each()):
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            quotient = np.where(one == other, 1.0, one / other)
        ratios = Contrast(
            answer(quotient),
            (answer(found.ratio[0]), answer(found.ratio[1])),
            answer(found.p_values),
        )
    labels = _labels(of, functionals, tallies[0])
    # Every probability is asked for: the rows are then those of an estimate's table.
    alphabet = tallies[0].alphabet if functionals.weights is None else None
    return Comparison(difference, level, method, labels, ratios, alphabet)


def _independent(tally_1: Any, tally_2: Any, method: str) -> tuple[Tally, Tally]:
    why = "a comparison must count the secrets beyond the reports"
    first, second = (
        check_bounded(check_tally(tally, weighted=True), why, weighted=True)
        for tally in (tally_1, tally_2)
    )
    if (first.weighted or second.weighted) and arguments.is_one_of(method, FOR_COUNTS):
        raise WeightsRefused(
            f"method must be 'wald' for weighted tallies, got {method!r}, which takes whole counts "
            'only: compare(..., method="wald") has the errors of the design of the survey'
        )
    if first is second:
        raise ValueError(
            "tally_2 must be another sample than tally_1, got the same tally twice: the two must "
            "be independent"
        )
    if first.alphabet != second.alphabet:
        raise AlphabetMismatch(
            f"tally_2 must be over the secrets of tally_1, {name_of_alphabet(first.alphabet)}, got "
            f"{name_of_alphabet(second.alphabet)}"
        )
    return first, second


def _request(estimate: Estimate, functionals: LinearFunctionals, level: float) -> IntervalRequest:
    errors = partial(estimate.standard_errors, functionals.weights)
    return IntervalRequest(
        estimate.tally, estimate.distribution, functionals, level, standard_errors=errors
    )


def _labels(of: Any, functionals: LinearFunctionals, tally: Tally) -> tuple[Any, ...]:
    if functionals.weights is not None:
        return tuple(names_of_questions(of, len(functionals)))
    labels = tally.alphabet.labels_of(np.arange(tally.k))
    return tuple(map(tuple, labels.tolist())) if labels.ndim == 2 else tuple(labels.tolist())
