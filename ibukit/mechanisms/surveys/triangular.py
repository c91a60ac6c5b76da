"""The triangular design: is the answer to both questions no?"""

from __future__ import annotations

from dataclasses import dataclass

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet
from ibukit.errors import UselessDesign
from ibukit.mechanisms.surveys.design import SurveyDesign, matrix_of_yes


@dataclass(frozen=True)
class Triangular(SurveyDesign):
    r"""The triangular design: whether either of two answers is "yes", without any die.

    Each person answers two questions silently: a sensitive one, and an innocent one to which a
    known share p answers "yes", independently of the answer to the first. The report is a "circle"
    if both answers are "no", else a "triangle", which has the probability

    .. math:: \lambda=\pi+p\,(1-\pi)

    if a share :math:`\pi` has the sensitive attribute A. A share :math:`\hat\lambda` of triangles
    among n reports gives the estimate :math:`\hat\pi=\frac{\hat\lambda-p}{1-p}` with the variance
    :math:`\frac{\lambda(1-\lambda)}{n\,(1-p)^{2}}`. A circle rules the attribute out, so `epsilon`
    is inf; the odds after a triangle are bounded, see `posterior_odds`.

    Parameters
    ----------
    labels : sequence of two labels
        (no, yes), as for every design. Reports are "circle" and "triangle", in this order.
    p : float
        The share that answers "yes" to the innocent question, below 1.

    Raises
    ------
    UselessDesign
        If `p` is 1: then everybody reports a triangle.

    References
    ----------
    .. [yu] Yu, Tian and Tang, "Two new models for survey sampling with sensitive characteristic:
       design and analysis", Metrika 67(3), 2008.

    Examples
    --------
    >>> import ibukit as ik
    >>> design = ik.surveys.Triangular(["no", "yes"], p=0.25)
    >>> estimate = ik.mle(design.tally_counts({"circle": 600, "triangle": 400}))
    >>> print(f"{estimate['yes']:.3f} +- {estimate.standard_errors()[1]:.4f}")
    0.200 +- 0.0207
    """

    p: float

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(p=arguments.fraction("p", self.p, "[]"))
        if self.p == 1:
            raise UselessDesign(
                "p must be below 1, got 1: everybody would report a triangle; take an innocent "
                "question with a smaller share of yes, such as a birthday in one quarter"
            )

    @property
    @override
    def report_alphabet(self) -> Alphabet:
        return Alphabet(["circle", "triangle"])

    @override
    def make_matrix(self) -> Floats:
        return matrix_of_yes([self.p, 1.0])
