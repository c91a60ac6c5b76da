"""The crosswise design: are the answers to two questions the same?"""

from __future__ import annotations

from dataclasses import dataclass

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet
from ibukit.errors import UselessDesign
from ibukit.mechanisms.surveys.design import SurveyDesign, matrix_of_yes


@dataclass(frozen=True)
class Crosswise(SurveyDesign):
    r"""The crosswise design: whether two answers are the same, without any die.

    Each person answers two questions silently: a sensitive one, and an innocent one such as "Is
    your mother's birthday in January to March?", to which a known share p answers "yes",
    independently of the answer to the first. The report is "same" if both answers are the same, and
    else "different". So "same" has the probability

    .. math:: \lambda=p\,\pi+(1-p)(1-\pi)

    if a share :math:`\pi` has the sensitive attribute A. A share :math:`\hat\lambda` of "same"
    among n reports gives the estimate :math:`\hat\pi=\frac{\hat\lambda+p-1}{2p-1}` with the
    variance :math:`\frac{\lambda(1-\lambda)}{n\,(2p-1)^{2}}`, as in Warner's design.

    Parameters
    ----------
    labels : sequence of two labels
        (no, yes), as for every design. Reports are "different" and "same", in this order.
    p : float
        The share that answers "yes" to the innocent question, from 0 to 1 but not 1/2.

    Raises
    ------
    UselessDesign
        If `p` is 1/2: then reports do not depend on the secret.

    References
    ----------
    .. [yu] Yu, Tian and Tang, "Two new models for survey sampling with sensitive characteristic:
       design and analysis", Metrika 67(3), 2008.

    Examples
    --------
    >>> import ibukit as ik
    >>> design = ik.surveys.Crosswise(["no", "yes"], p=0.25)
    >>> estimate = ik.mle(design.tally_counts({"different": 350, "same": 650}))
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
                "p must not be 0.5, got 0.5: reports then do not depend on the secret; take an "
                "innocent question with another share of yes, such as a birthday in one quarter"
            )

    @property
    @override
    def report_alphabet(self) -> Alphabet:
        return Alphabet(["different", "same"])

    @override
    def make_matrix(self) -> Floats:
        return matrix_of_yes([1 - self.p, self.p])
