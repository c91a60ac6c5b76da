"""The unrelated question design if the share of "yes" to the innocent one is estimated, too."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ibukit._ground.typing import override
from ibukit.mechanisms.matrix import MatrixMechanism
from ibukit.mechanisms.surveys.design import matrix_of_yes, two_fractions
from ibukit.mechanisms.surveys.two_samples import TwoSampleDesign


@dataclass(frozen=True, repr=False)
class UnknownShareQuestion(TwoSampleDesign):
    """The pair of samples that `UnrelatedQuestion` makes if it is given no share."""

    p: tuple[float, float]

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(p=two_fractions("p", self.p, "[]"))

    def __repr__(self) -> str:
        return f"UnrelatedQuestion({self.labels!r}, p={self.p!r})"

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        """The secrets: the truth about the sensitive and about the innocent question."""
        return list(product(self.labels.values.tolist(), repeat=2))

    @property
    @override
    def sensitive(self) -> dict[Any, float]:
        return dict.fromkeys(self.pairs[2:], 1.0)

    @property
    def innocent(self) -> dict[Any, float]:
        """The secrets that answer yes to the innocent question, each with the weight 1."""
        return dict.fromkeys(self.pairs[1::2], 1.0)

    @override
    def make_samples(self) -> tuple[MatrixMechanism, MatrixMechanism]:
        sensitive, innocent = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
        one, two = (
            MatrixMechanism(
                matrix_of_yes(p * sensitive + (1 - p) * innocent), self.pairs, self.labels
            )
            for p in self.p
        )
        return one, two
