"""Cheating detection: some say no whatever they are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ibukit._ground.typing import override
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.mechanisms.surveys.design import matrix_of_yes, two_fractions
from ibukit.mechanisms.surveys.two_samples import TwoSampleDesign


@dataclass(frozen=True)
class CheatingDetection(TwoSampleDesign):
    r"""Cheating detection: a forced "yes", and some who always say "no".

    Each person is told to say "yes" with probability :math:`p_s` in sample s, and otherwise to tell
    the truth. There are three kinds of people: a share :math:`\beta` are honest and do not have the
    attribute, a share :math:`\pi` are honest and have it, and a share :math:`\gamma` are cheaters,
    who always say "no". So "yes" has the probability

    .. math:: \lambda_s=\pi+\beta\,p_s.

    Inside the possible range, :math:`\hat\pi=\frac{p_2\hat\lambda_1-p_1\hat\lambda_2}{p_2-p_1}`,
    :math:`\hat\beta=\frac{\hat\lambda_2-\hat\lambda_1}{p_2-p_1}`, and the variance of
    :math:`\hat\pi` is :math:`\frac{1}{(p_2-p_1)^2}\left(p_2^2\frac{\lambda_1(1-\lambda_1)}{n_1}
    +p_1^2\frac{\lambda_2(1-\lambda_2)}{n_2}\right)`. It is not known whether cheaters have the
    attribute, so its share in the population is between :math:`\pi` and :math:`\pi+\gamma`. A "yes"
    rules cheaters out, so `epsilon` is inf; `posterior_odds` gives the odds of being an honest
    person with the attribute.

    Parameters
    ----------
    labels : sequence of two labels
        (no, yes), as for every design; they are also the reports. The third secret is "cheating".
    p : pair of floats
        Probabilities of a forced "yes" in the first and in the second sample, below 1.

    Raises
    ------
    UselessDesign
        If `p` is the same in both samples.

    References
    ----------
    .. [clark] Clark and Desharnais, "Honest answers to embarrassing questions: detecting cheating
       in the randomized response model", Psychological Methods 3(2), 1998.

    Examples
    --------
    >>> import ibukit as ik
    >>> design = ik.surveys.CheatingDetection(["no", "yes"], p=(0.25, 0.75))
    >>> estimate = ik.mle(design.tally_counts([650, 350], [350, 650]))
    >>> estimate.to_series().round(3).to_dict()
    {'no': 0.6, 'yes': 0.2, 'cheating': 0.2}
    """

    p: tuple[float, float]

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(p=two_fractions("p", self.p, "[)"))

    @property
    @override
    def sensitive(self) -> dict[Any, float]:
        return {self.labels.values.tolist()[1]: 1.0}

    @override
    def make_samples(self) -> tuple[MatrixMechanism, MatrixMechanism]:
        secrets = [*self.labels.values.tolist(), "cheating"]
        one, two = (
            MatrixMechanism(matrix_of_yes([p, 1.0, 0.0]), secrets, self.labels) for p in self.p
        )
        return one, two
