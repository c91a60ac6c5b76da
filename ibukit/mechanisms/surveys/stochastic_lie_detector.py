"""The stochastic lie detector: some who have the attribute deny it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ibukit._ground.typing import override
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.mechanisms.surveys.design import matrix_of_yes, two_fractions
from ibukit.mechanisms.surveys.two_samples import TwoSampleDesign


@dataclass(frozen=True)
class StochasticLieDetector(TwoSampleDesign):
    r"""The stochastic lie detector: Mangat's design with some who deny the attribute.

    People without the attribute say "no" with probability :math:`p_s` in sample s, as in `Mangat`'s
    design. People who have it should say "yes", and do so with probability t; otherwise they lie.
    If a share :math:`\pi` has it, "yes" has the probability

    .. math:: \lambda_s=t\,\pi+(1-p_s)(1-\pi).

    The secrets are three kinds of people: those without the attribute, those who have it and say
    so, and those who have it and lie, with the shares :math:`1-\pi`, :math:`t\pi` and
    :math:`(1-t)\pi`. Inside the possible range,
    :math:`\hat\pi=1-\frac{\hat\lambda_2-\hat\lambda_1}{p_1-p_2}`, with the variance
    :math:`\frac{1}{(p_1-p_2)^2}\left(\frac{\lambda_1(1-\lambda_1)}{n_1}
    +\frac{\lambda_2(1-\lambda_2)}{n_2}\right)`. To get this estimate, ask for
    ``of=design.sensitive``. A "yes" rules liars out, so `epsilon` is inf.

    Parameters
    ----------
    labels : sequence of two labels
        (no, yes), as for every design; they are also the reports. The third secret is "lying".
    p : pair of floats
        Probabilities that somebody without the attribute says "no" in the first and in the second
        sample, above 0.

    Raises
    ------
    UselessDesign
        If `p` is the same in both samples.

    References
    ----------
    .. [moshagen] Moshagen, Musch and Erdfelder, "A stochastic lie detector", Behavior Research
       Methods 44(1), 2012.

    Examples
    --------
    >>> import ibukit as ik
    >>> design = ik.surveys.StochasticLieDetector(["no", "yes"], p=(0.25, 0.75))
    >>> estimate = ik.mle(design.tally_counts([350, 650], [650, 350]))
    >>> estimate.to_series().round(3).to_dict()
    {'no': 0.6, 'yes': 0.2, 'lying': 0.2}
    >>> lower, upper = estimate.interval(of=design.sensitive, method="wald")
    >>> print(f"{lower:.3f} to {upper:.3f}")
    0.316 to 0.484
    """

    p: tuple[float, float]

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(p=two_fractions("p", self.p, "(]"))

    @property
    @override
    def sensitive(self) -> dict[Any, float]:
        return {self.labels.values.tolist()[1]: 1.0, "lying": 1.0}

    @override
    def make_samples(self) -> tuple[MatrixMechanism, MatrixMechanism]:
        secrets = [*self.labels.values.tolist(), "lying"]
        one, two = (
            MatrixMechanism(matrix_of_yes([1 - p, 1.0, 0.0]), secrets, self.labels) for p in self.p
        )
        return one, two
