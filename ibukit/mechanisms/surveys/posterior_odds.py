"""Odds of the sensitive attribute once a report is known."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.linear_functionals import parse_functionals
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.errors import ImpossibleReport
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.surveys.design import SurveyDesign
from ibukit.mechanisms.surveys.two_samples import TwoSampleDesign


@overload
def posterior_odds(design: FiniteMechanism, prior: VectorLike, of: Any = ...) -> Floats: ...
@overload
def posterior_odds(
    design: TwoSampleDesign, prior: VectorLike, of: Any = ...
) -> tuple[Floats, ...]: ...
@overload
def posterior_odds(
    design: FiniteMechanism | TwoSampleDesign, prior: VectorLike, of: Any = ...
) -> Floats | tuple[Floats, ...]: ...


def posterior_odds(
    design: FiniteMechanism | TwoSampleDesign, prior: VectorLike, of: Any = None
) -> Floats | tuple[Floats, ...]:
    r"""Odds that a person has the sensitive attribute A, given each report.

    .. math:: \frac{P(A\mid z)}{P(\bar A\mid z)}
        =\frac{\sum_{x\in A}\theta_x M_{xz}}{\sum_{x\notin A}\theta_x M_{xz}}

    for the prior :math:`\theta`. With two secrets these are the prior odds times the ratio
    :math:`P(z\mid A)/P(z\mid\bar A)`, the jeopardy of Leysieffer and Warner [leysieffer]_. In
    absolute value, the logarithm of this ratio is at most `epsilon`, or `epsilon` times their
    distance where it is per unit of distance.

    Parameters
    ----------
    design : FiniteMechanism or TwoSampleDesign
        A design of `ibukit.surveys`, or any mechanism whose reports can be listed.
    prior : array_like or labelled, shape (k,)
        The distribution of the secrets, or an estimate of it.
    of : str, sequence of str, mapping or array_like, shape (k,), optional
        The secrets that are sensitive, as `Estimate.interval` takes them; by default
        ``design.sensitive``.

    Returns
    -------
    ndarray, shape (m,), or two of them
        The odds after each report, in the order of ``design.report_alphabet``; for a design with
        two samples a pair of such arrays. They are inf for a report that only people with the
        attribute give.

    Raises
    ------
    ImpossibleReport
        If under this prior nobody gives some report.
    ValueError
        If `of` has weights other than 0 and 1, or if it is left out and the design does not name
        the secrets that are sensitive.

    References
    ----------
    .. [leysieffer] Leysieffer and Warner, "Respondent jeopardy and optimal designs in randomized
       response models", JASA 71(355), 1976.

    Examples
    --------
    If 10 % have the attribute, those who agree with Warner's card have it with odds of 1 to 3:

    >>> import ibukit as ik
    >>> design = ik.surveys.Warner(["no", "yes"], p=0.75)
    >>> ik.surveys.posterior_odds(design, [0.9, 0.1]).round(3)
    array([0.037, 0.333])
    """
    if not isinstance(design, (FiniteMechanism, TwoSampleDesign)):
        raise TypeError(f"design must be a survey design or a finite mechanism, got {design!r}")
    theta = distribution_over("prior", prior, design.alphabet)
    if of is None:
        if not isinstance(design, (SurveyDesign, TwoSampleDesign)):
            raise ValueError(
                f"of must name the sensitive secrets, got None: {design} does not say which"
            )
        of = design.sensitive
    questions = parse_functionals(of, design.alphabet)
    weights = None if questions.weights is None else questions.weights[0]
    if weights is None or len(questions) != 1 or not np.isin(weights, (0.0, 1.0)).all():
        raise ValueError(
            f"of must be one set of secrets, their labels or weights of 0 and 1, got {of!r}"
        )
    if isinstance(design, TwoSampleDesign):
        return tuple(_odds(sample, theta, weights) for sample in design.samples)
    return _odds(design, theta, weights)


def _odds(mechanism: FiniteMechanism, theta: Floats, weights: Floats) -> Floats:
    """Odds of the secrets with weight 1, for each report, shape (m,)."""
    sensitive = (theta * weights) @ mechanism.matrix()
    others = (theta * (1 - weights)) @ mechanism.matrix()
    impossible = (sensitive == 0) & (others == 0)
    if impossible.any():
        report = mechanism.report_alphabet.values.tolist()[int(np.argmax(impossible))]
        raise ImpossibleReport(
            f"prior must give each report a probability above 0, got 0 for {report!r}, after which "
            "there are no odds; take a prior without zeros"
        )
    with np.errstate(divide="ignore", over="ignore"):
        return sensitive / others
