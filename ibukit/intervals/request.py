"""What a method of intervals is asked, and the ends of regions that hold the truth."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from tqdm import tqdm

from ibukit._ground.arguments import Floats, readable
from ibukit._ground.threads import one_thread
from ibukit.domain.linear_functionals import Questions
from ibukit.errors import TooLarge
from ibukit.estimate import Estimate
from ibukit.tally.tally import Tally, check_bounded, check_tally

Ends = tuple[Floats, Floats]
# questions times secrets on a structured channel: an hour
MAX_ASKED = 2**28


class Asked(NamedTuple):
    """Intervals for linear questions."""

    estimate: Estimate
    questions: Questions
    level: float
    target: str
    """Of what: "distribution", or the people's own "frequencies"."""

    def tally(self) -> Tally:
        """The reports; ValueError if the estimate does not know them, or they have another likelihood."""
        if self.estimate.tally is None:
            raise ValueError(
                "estimate has no tally: intervals need the reports it was computed from"
            )
        try:
            return check_bounded(
                check_tally(self.estimate.tally),
                "an interval must count the secrets beyond the reports",
            )
        except ValueError as error:
            raise type(error)(f'{error}; method="wald" needs no more than the estimate') from None

    def refuse_frequencies(self, method: str) -> None:
        """ValueError where a method is of the distribution alone."""
        if self.target != "distribution":
            raise ValueError(
                f"target must be 'distribution' with method={method!r}, got {self.target!r}"
            )

    def refuse_hours(self, method: str) -> None:
        """TooLarge where all these questions together would take hours, however well each is structured."""
        many, k = len(self.questions), self.questions.k
        if many * k > MAX_ASKED:
            raise TooLarge(
                f"{method} intervals for {readable(many)} questions of {readable(k)} secrets would take hours: ask for "
                'fewer by of=..., or take method="wald"'
            )


class Region(Protocol):
    """A set of distributions that the reports leave possible."""

    def highest(self, w: Floats) -> float:
        """No member of it has a larger w . theta, shape of w (k,)."""


def ends(region: Region, questions: Questions) -> Ends:
    """The least and the largest w . theta in a region, for each question; outside the true ends, if not at them."""
    with one_thread():
        found = [
            (-region.highest(-w), region.highest(w)) if np.ptp(w) else (w[0], w[0])
            for w in tqdm(
                questions.each(), total=len(questions), desc="intervals", disable=None, leave=False
            )
        ]
    lower, upper = np.array(found).T
    return lower + 0.0, upper  # no -0
