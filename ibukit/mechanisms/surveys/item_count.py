"""The item count design, or list experiment: how many of these are true of you?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Line
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.mechanisms.surveys.two_samples import TwoSampleDesign

# Largest number of innocent items, for matrices of a few megabytes.
MAX_ITEMS = 500


@dataclass(frozen=True)
class ItemCount(TwoSampleDesign):
    r"""The item count technique, or list experiment: how many statements are true.

    The first sample, the control, is shown J innocent statements; the second, the treatment, is
    shown the same statements and the sensitive one. Each person reports how many of them are true.
    A secret is a pair: the number of innocent statements that are true, 0 to J, and the sensitive
    attribute. If nobody lies, and the answers to the innocent statements do not depend on whether
    the sensitive one is shown, the probabilities of all pairs are identified:

    .. math:: P(Y=y,\text{yes})=\sum_{j\le y}\bigl(P(C=j)-P(T=j)\bigr)

    where C is a report of the control and T one of the treatment. If the shares in the samples make
    none of these probabilities negative, the estimate of the share of "yes" is the difference of
    the means of T and C, with the variance :math:`\mathrm{var}(T)/n_T+\mathrm{var}(C)/n_C`. In the
    treatment, the reports 0 and J + 1 betray the secret, so `epsilon` is inf.

    Parameters
    ----------
    labels : sequence of two labels
        (no, yes), as for every design.
    items : int
        The number J of innocent statements, at most 500.

    Raises
    ------
    ValueError
        If `items` is not a whole number from 1 to 500.

    References
    ----------
    .. [imai] Imai, "Multivariate regression analysis for the item count technique", JASA 106(494),
       2011.
    .. [blair] Blair and Imai, "Statistical analysis of list experiments", Political Analysis 20(1),
       2012.

    Examples
    --------
    >>> import ibukit as ik
    >>> design = ik.surveys.ItemCount(["no", "yes"], items=2)
    >>> control, treatment = [40, 100, 60], [30, 80, 70, 20]
    >>> estimate = ik.mle(design.tally_counts(control, treatment))
    >>> lower, upper = estimate.interval(of=design.sensitive, method="wald")
    >>> print(f"{lower:.3f} to {upper:.3f}")  # around 1.4 - 1.1
    0.146 to 0.454
    """

    items: int

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(items=arguments.whole("items", self.items, 1, MAX_ITEMS))

    @property
    @override
    def sensitive(self) -> dict[Any, float]:
        yes = self.labels.values.tolist()[1]
        return {(number, yes): 1.0 for number in range(self.items + 1)}

    @override
    def make_samples(self) -> tuple[MatrixMechanism, MatrixMechanism]:
        secrets = list(product(range(self.items + 1), self.labels.values.tolist()))
        number, has_it = np.divmod(np.arange(len(secrets)), 2)
        control = np.eye(self.items + 1)[number]
        treatment = np.eye(self.items + 2)[number + has_it]
        return (
            MatrixMechanism(control, secrets, Line(0, self.items)),
            MatrixMechanism(treatment, secrets, Line(0, self.items + 1)),
        )
