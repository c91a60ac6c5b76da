"""Kuk's design: a report is the number of red cards drawn from one of two decks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import comb

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.errors import UselessDesign
from ibukit.mechanisms.surveys.design import SurveyDesign

# Largest number of cards. With many more, powers of usual shares would underflow and make reports
# impossible.
MAX_CARDS = 100


@dataclass(frozen=True)
class Kuk(SurveyDesign):
    r"""Kuk's design: the number of red cards from one of two decks.

    Each person has two decks, draws the same number of cards from both with replacement, and
    reports how many were red in the deck that belongs to the secret. So no one answers a question.
    The number z of red cards has the probability

    .. math:: P(z\mid x)=\binom{c}{z}\,p_x^z\,(1-p_x)^{c-z}

    for c cards. With one card and a share :math:`\hat\lambda` of red reports among n,
    :math:`\hat\pi=\frac{\hat\lambda-p_{\text{no}}}{p_{\text{yes}}-p_{\text{no}}}`, and its variance
    is :math:`\frac{\lambda(1-\lambda)}{n\,(p_{\text{yes}}-p_{\text{no}})^{2}}`. With more cards,
    Kuk takes for :math:`\hat\lambda` the mean number of red cards, divided by c. Then
    :math:`\hat\pi` has the variance
    :math:`\frac{\lambda(1-\lambda)}{c\,n\,(p_{\text{yes}}-p_{\text{no}})^2}
    +\left(1-\frac1c\right)\frac{\pi(1-\pi)}{n}`. Maximum likelihood uses the counts of all reports;
    in large samples the variance of its estimate is not above this one.

    Parameters
    ----------
    labels : sequence of two labels
        (no, yes), as for every design.
    p_no, p_yes : float
        Shares of red cards in the deck that belongs to no and in the deck that belongs to yes.
    cards : int
        Number of cards drawn, at most 100. Reports are the numbers of red cards, 0 to `cards`.

    Raises
    ------
    UselessDesign
        If both decks have the same share of red cards.

    References
    ----------
    .. [kuk] Kuk, "Asking sensitive questions indirectly", Biometrika 77(2), 1990.

    Examples
    --------
    >>> import ibukit as ik
    >>> design = ik.surveys.Kuk(["no", "yes"], p_no=0.2, p_yes=0.6, cards=2)
    >>> design.matrix().round(2)
    array([[0.64, 0.32, 0.04],
           [0.16, 0.48, 0.36]])
    >>> ik.mle(design.tally_counts([544, 352, 104])).distribution.round(6)
    array([0.8, 0.2])
    """

    p_no: float
    p_yes: float
    cards: int = 1

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(
            p_no=arguments.fraction("p_no", self.p_no, "[]"),
            p_yes=arguments.fraction("p_yes", self.p_yes, "[]"),
            cards=arguments.whole("cards", self.cards, 1, MAX_CARDS),
        )
        if self.p_no == self.p_yes:
            raise UselessDesign(
                f"p_no and p_yes must differ, got {self.p_no:g} for both: the decks are alike; "
                "take shares of red cards that are farther apart, such as 0.2 and 0.6"
            )

    @property
    @override
    def m(self) -> int:
        return self.cards + 1

    @property
    @override
    def report_alphabet(self) -> Alphabet:
        return Line(0, self.cards)

    @override
    def make_matrix(self) -> Floats:
        red = np.arange(self.m)
        p = np.array([[self.p_no], [self.p_yes]])
        return comb(self.cards, red) * p**red * (1 - p) ** (self.cards - red)
