"""The end of a region of likely distributions, with the point that proves it."""

from __future__ import annotations

import math
from typing import NamedTuple

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.intervals.profile import Profile
from ibukit.intervals.tilted_likelihood import Likelihood, Tilted


class End(NamedTuple):
    """An upper end, of weights from 0 to 1."""

    bound: float
    point: Tilted | None
    """That with the tightest bound; None where the largest answer is not excluded."""


class Pointed(Profile):
    """{theta : f(theta) >= floor}, and which points its ends are proved by."""

    def __init__(self, likelihood: Likelihood, floor: float):
        super().__init__(likelihood, floor)
        self._end = End(math.inf, None)

    @override
    def bound(self, w: Floats, point: Tilted) -> float:
        found = super().bound(w, point)
        if found < self._end.bound:
            self._end = End(found, point)
        return found

    def end(self, w: Floats) -> End:
        """The upper end, of weights from 0 to 1."""
        self._end = End(math.inf, None)
        _, bound = self.bracket(w)
        return self._end if bound < 1 else End(1.0, None)
