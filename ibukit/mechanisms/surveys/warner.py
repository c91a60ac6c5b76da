"""Warner's design: a card bears the sensitive statement or its opposite."""

from __future__ import annotations

from dataclasses import dataclass

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.errors import UselessDesign
from ibukit.mechanisms.surveys.design import SurveyDesign, matrix_of_yes


@dataclass(frozen=True)
class Warner(SurveyDesign):
    r"""Warner's randomized response: agree or not with a statement or its opposite.

    The card that a person draws bears "I have A" with probability p, else "I do not have A". Nobody
    else sees it. The report says whether the statement is true. It is "yes" with probability

    .. math:: \lambda=p\,\pi+(1-p)(1-\pi)

    if a share :math:`\pi` has A. A share :math:`\hat\lambda` of "yes" among n reports gives the
    estimate :math:`\hat\pi=\frac{\hat\lambda+p-1}{2p-1}` with the variance
    :math:`\frac{\lambda(1-\lambda)}{n\,(2p-1)^{2}}`. The level `epsilon` is
    :math:`\left|\ln\frac{p}{1-p}\right|`.

    Parameters
    ----------
    labels : sequence of two labels
        (no, yes), as for every design; they are also the reports.
    p : float
        Probability of the sensitive statement, from 0 to 1 but not 1/2.

    Raises
    ------
    UselessDesign
        If `p` is 1/2: then reports do not depend on the secret.

    References
    ----------
    .. [warner] Warner, "Randomized response: a survey technique for eliminating evasive answer
       bias", JASA 60(309), 1965.

    Examples
    --------
    >>> import ibukit as ik
    >>> design = ik.surveys.Warner(["no", "yes"], p=0.75)
    >>> estimate = ik.mle(design.tally_counts({"no": 650, "yes": 350}))
    >>> print(f"{estimate['yes']:.3f} +- {estimate.standard_errors()[1]:.4f}")
    0.200 +- 0.0302
    """

    p: float

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(p=arguments.fraction("p", self.p, "[]"))
        if self.p == 0.5:
            raise UselessDesign(
                "p must not be 0.5, got 0.5: reports then do not depend on the secret; take a "
                "probability farther from it, such as 0.7"
            )

    @override
    def make_matrix(self) -> Floats:
        return matrix_of_yes([1 - self.p, self.p])
