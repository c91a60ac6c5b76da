"""Forced response: a die says no, yes, or to tell the truth."""

from __future__ import annotations

from dataclasses import dataclass

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.errors import UselessDesign
from ibukit.mechanisms.surveys.design import SurveyDesign, matrix_of_yes


@dataclass(frozen=True)
class ForcedResponse(SurveyDesign):
    r"""Forced response: a die or card demands a "no", a "yes", or the truth.

    The report is "no" with probability `p_no` and "yes" with probability `p_yes`, whatever the
    secret is, and otherwise the truth. So

    .. math:: \lambda=p_{\text{yes}}+(1-p_{\text{no}}-p_{\text{yes}})\,\pi

    is the probability of "yes" if a share :math:`\pi` has the attribute A. A share
    :math:`\hat\lambda` of "yes" among n reports gives the estimate
    :math:`\hat\pi=\frac{\hat\lambda-p_{\text{yes}}}{1-p_{\text{no}}-p_{\text{yes}}}` with the
    variance :math:`\frac{\lambda(1-\lambda)}{n\,(1-p_{\text{no}}-p_{\text{yes}})^{2}}`.

    Parameters
    ----------
    labels : sequence of two labels
        (no, yes), as for every design; they are also the reports.
    p_no, p_yes : float
        Probabilities of a forced "no" and of a forced "yes", with a sum below 1.

    Raises
    ------
    UselessDesign
        If `p_no` and `p_yes` sum to 1 or more: then nobody tells the truth.

    References
    ----------
    .. [boruch] Boruch, "Assuring confidentiality of responses in social research: a note on
       strategies", The American Sociologist 6(4), 1971.

    Examples
    --------
    With a die, a 1 forces "no" and a 6 forces "yes":

    >>> import ibukit as ik
    >>> design = ik.surveys.ForcedResponse(["no", "yes"], p_no=1 / 6, p_yes=1 / 6)
    >>> estimate = ik.mle(design.tally_counts({"no": 700, "yes": 300}))
    >>> print(f"{estimate['yes']:.3f} +- {estimate.standard_errors()[1]:.4f}")
    0.200 +- 0.0217
    """

    p_no: float
    p_yes: float

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(
            p_no=arguments.fraction("p_no", self.p_no, "[]"),
            p_yes=arguments.fraction("p_yes", self.p_yes, "[]"),
        )
        if self.p_no + self.p_yes >= 1:
            raise UselessDesign(
                f"p_no and p_yes must sum to less than 1, got {self.p_no:g} and {self.p_yes:g}: "
                "no one would tell the truth; take smaller ones, such as 1/6 and 1/6"
            )

    @override
    def make_matrix(self) -> Floats:
        return matrix_of_yes([self.p_yes, 1 - self.p_no])
