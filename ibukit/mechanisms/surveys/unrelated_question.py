"""The unrelated question: a card asks the sensitive question or an innocent one."""

from __future__ import annotations

from typing import Any, overload

from numpy.typing import ArrayLike

from ibukit.mechanisms.surveys.known_share import KnownShareQuestion
from ibukit.mechanisms.surveys.unknown_share import UnknownShareQuestion


@overload
def UnrelatedQuestion(labels: Any, p: float, share: float) -> KnownShareQuestion: ...
@overload
def UnrelatedQuestion(labels: Any, p: ArrayLike) -> UnknownShareQuestion: ...
def UnrelatedQuestion(  # noqa: N802 - it is one of many classes, and makes one of two
    labels: Any, p: Any, share: Any = None
) -> KnownShareQuestion | UnknownShareQuestion:
    r"""Make the unrelated question design: a sensitive question or an innocent one.

    A card asks the sensitive question with probability p, else an innocent one to which a share
    :math:`\alpha` answers "yes", such as "Were you born in April?". The report is the true answer.
    So

    .. math:: \lambda=p\,\pi+(1-p)\,\alpha

    is the probability of "yes" if a share :math:`\pi` has the sensitive attribute.

    If :math:`\alpha` is known, one sample is enough. A share :math:`\hat\lambda` of "yes" among n
    reports gives the estimate :math:`\hat\pi=\frac{\hat\lambda-(1-p)\alpha}{p}` with the variance
    :math:`\frac{\lambda(1-\lambda)}{n\,p^{2}}`.

    If :math:`\alpha` is not known, two samples are asked with :math:`p_1\ne p_2`. The secrets are
    the pairs of the true answers to both questions, in this order. Reports tell both marginals, but
    not the pairs themselves: ask for ``of=design.sensitive`` (or ``design.innocent``). Inside the
    possible range, :math:`\hat\pi=\frac{\hat\lambda_1(1-p_2)-\hat\lambda_2(1-p_1)}{p_1-p_2}`, whose
    variance is :math:`\frac{1}{(p_1-p_2)^2}\left((1-p_2)^2\frac{\lambda_1(1-\lambda_1)}{n_1}
    +(1-p_1)^2\frac{\lambda_2(1-\lambda_2)}{n_2}\right)`.

    Parameters
    ----------
    labels : sequence of two labels
        The label of people without the sensitive attribute, then the label of people with it, such
        as ("no", "yes"). They are also the reports.
    p : float, or pair of floats
        Probability of the sensitive question, above 0. If `share` is not given, a pair of
        probabilities from 0 to 1, one for each sample.
    share : float, optional
        The share that answers the innocent question with "yes", from 0 to 1, if it is known.

    Returns
    -------
    SurveyDesign or TwoSampleDesign
        A `SurveyDesign` if `share` is given, otherwise a `TwoSampleDesign`.

    Raises
    ------
    UselessDesign
        If `p` is the same in both samples.
    ValueError
        If `p` or `share` is not a number in its range, or if there is both a share and a pair `p`,
        or neither of them.
    AlphabetMismatch
        If there are not two labels.

    References
    ----------
    .. [greenberg] Greenberg, Abul-Ela, Simmons and Horvitz, "The unrelated question randomized
       response model: theoretical framework", JASA 64(326), 1969.

    Examples
    --------
    >>> import ibukit as ik
    >>> design = ik.surveys.UnrelatedQuestion(["no", "yes"], p=0.7, share=1 / 12)
    >>> ik.mle(design.tally_counts({"no": 835, "yes": 165})).distribution.round(3)
    array([0.8, 0.2])

    Without a known share, ask for an interval of the sensitive attribute, whatever the innocent
    answer:

    >>> design = ik.surveys.UnrelatedQuestion(["no", "yes"], p=(0.7, 0.3))
    >>> tally = design.tally_counts({"no": 770, "yes": 230}, {"no": 730, "yes": 270})
    >>> lower, upper = ik.mle(tally).interval(of=design.sensitive, method="wald")
    >>> print(f"{lower:.3f} to {upper:.3f}")  # around 0.2
    0.150 to 0.250
    """
    if share is not None:
        return KnownShareQuestion(labels, p, share)
    if isinstance(p, (int, float)):
        raise ValueError(
            f'share must be the share of "yes" to the innocent question, got None with p={p!r}; '
            "if it is not known, ask two samples and give a pair p, such as (0.7, 0.3)"
        )
    return UnknownShareQuestion(labels, p)
