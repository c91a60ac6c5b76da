"""The unrelated question design if the share of "yes" to the innocent question is known."""

from __future__ import annotations

from dataclasses import dataclass

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.mechanisms.surveys.design import SurveyDesign, matrix_of_yes


@dataclass(frozen=True, repr=False)
class KnownShareQuestion(SurveyDesign):
    """The mechanism that `UnrelatedQuestion` makes if it is given a share."""

    p: float
    share: float

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        # With p = 0 nobody would be asked the sensitive question.
        self._keep(
            p=arguments.fraction("p", self.p, "(]"),
            share=arguments.fraction("share", self.share, "[]"),
        )

    def __repr__(self) -> str:
        return f"UnrelatedQuestion({self.labels!r}, p={self.p!r}, share={self.share!r})"

    @override
    def make_matrix(self) -> Floats:
        innocent = (1 - self.p) * self.share
        return matrix_of_yes([innocent, self.p + innocent])
