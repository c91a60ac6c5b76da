"""Mangat's design: all who have the attribute say so, and by chance some of the others do too."""

from __future__ import annotations

from dataclasses import dataclass

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.errors import UselessDesign
from ibukit.mechanisms.surveys.design import SurveyDesign, matrix_of_yes


@dataclass(frozen=True)
class Mangat(SurveyDesign):
    r"""Mangat's design: "yes" from all who have the attribute, and from some others.

    People with the attribute say "yes". The others draw a card that tells them to say "no" with
    probability p, and otherwise "yes". So

    .. math:: \lambda=\pi+(1-p)(1-\pi)

    is the probability of "yes" if a share :math:`\pi` has the attribute A. A share
    :math:`\hat\lambda` of "yes" among n reports gives the estimate
    :math:`\hat\pi=\frac{\hat\lambda-1+p}{p}` with the variance
    :math:`\frac{\lambda(1-\lambda)}{n\,p^{2}}`. A "no" is always true, so `epsilon` is inf; the
    odds after a "yes" are bounded, see `posterior_odds`.

    Parameters
    ----------
    labels : sequence of two labels
        (no, yes), as for every design; they are also the reports.
    p : float
        Probability that somebody without the attribute says "no", above 0.

    Raises
    ------
    UselessDesign
        If `p` is 0: then everybody says "yes".

    References
    ----------
    .. [mangat] Mangat, "An improved randomized response strategy", Journal of the Royal Statistical
       Society B 56(1), 1994.

    Examples
    --------
    >>> import ibukit as ik
    >>> design = ik.surveys.Mangat(["no", "yes"], p=0.7)
    >>> estimate = ik.mle(design.tally_counts({"no": 560, "yes": 440}))
    >>> print(f"{estimate['yes']:.3f} +- {estimate.standard_errors()[1]:.4f}")
    0.200 +- 0.0224
    """

    p: float

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(p=arguments.fraction("p", self.p, "[]"))
        if self.p == 0:
            raise UselessDesign(
                "p must be above 0, got 0: everybody would say yes; take a larger one, such as 0.7"
            )

    @override
    def make_matrix(self) -> Floats:
        return matrix_of_yes([1 - self.p, 1.0])
