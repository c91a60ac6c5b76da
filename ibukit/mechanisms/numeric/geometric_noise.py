r"""Two-sided geometric noise on a line: single draws, and the reports of a whole population.

The noise t has :math:`P(t)=\frac{1-a}{1+a}\,a^{|t|}` with :math:`a=e^{-\varepsilon}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground.arguments import Ints, readable
from ibukit.domain.alphabet import Line
from ibukit.errors import TooLarge
from ibukit.mechanisms.epsilon_range import check_epsilon
from ibukit.mechanisms.saturation import add_saturating

# Different distances beyond an end that are drawn for a population: a minute or two, and 1 GB.
MAX_DISTANCES = 2**25


def check_noise_epsilon(epsilon: Any, *, truthful: bool = False) -> float:
    """Return an epsilon at which numpy draws noise other than 0."""
    # The noise is a difference of two geometric variables. numpy draws a geometric variable other
    # than 1 from a uniform number above 1 - e^-eps, and there is none unless e^-eps is at least
    # two units of 2^-53.
    return check_epsilon(epsilon, lambda eps: math.exp(-eps) / 2, truthful=truthful)


@dataclass(frozen=True)
class GeometricNoise:
    """Samplers of two-sided geometric noise added to the values of a line."""

    line: Line
    epsilon: float

    @property
    def decay(self) -> float:
        """The ratio a = e^-eps of the probabilities of neighbouring values."""
        return float(np.exp(-self.epsilon))

    @property
    def _stop(self) -> float:
        """The probability 1 - a that the walk of `spread` stops at its next step."""
        return float(-np.expm1(-self.epsilon))

    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        """Draw one noisy value for each secret (a code), in doubles."""
        values = self.line.labels_of(secrets)
        # The difference of two independent geometric variables has the two-sided law.
        noise = rng.geometric(self._stop, (2, len(values)))
        return add_saturating(values, noise[0] - noise[1])

    def draw_exactly(self, secrets: NDArray[Any], random_bits: exact.RandomBits) -> Ints:
        """Draw one noisy value for each secret (a code), without roundings."""
        noise = exact.two_sided_geometric(Fraction(self.epsilon), len(secrets), random_bits)
        return add_saturating(self.line.labels_of(secrets), noise)

    def truncate(self, values: Ints) -> Ints:
        """Codes of the line's elements that are nearest to the given integers."""
        return np.clip(values, self.line.first, self.line.last) - self.line.first

    def spread(self, counts: Ints, rng: Generator) -> tuple[Ints, int, int]:
        """Count the noisy values of a whole population in O(k).

        Returns the counts at the line's values, the count below the first and that above the last
        value.
        """
        # The noise is 0, positive or negative with probabilities (1 - a)/(1 + a), a/(1 + a) and
        # a/(1 + a). A positive noise is geometric: a walk that stops at each step with probability
        # 1 - a, whatever it has behind it. So people who walk in one direction need not be told
        # apart, and one binomial draw for each value of the line moves them all.
        side = self.decay / (1 + self.decay)
        stay, right, left = rng.multinomial(counts, [1 - 2 * side, side, side]).T
        stopped_right, beyond_last = self._walk(right, rng)
        stopped_left, beyond_first = self._walk(left[::-1], rng)
        return stay + stopped_right + stopped_left[::-1], beyond_first, beyond_last

    def _walk(self, starters: Ints, rng: Generator) -> tuple[Ints, int]:
        """Walk to the right; return how many stop at each value and how many leave the line."""
        stopped = np.zeros(len(starters), dtype=np.int64)
        moving = 0
        for position, joining in enumerate(starters.tolist()):
            if moving:
                stopped[position] = rng.binomial(moving, self._stop)
            moving += joining - int(stopped[position])
        return stopped, moving

    def tail(self, moving: int, rng: Generator) -> tuple[Ints, Ints]:
        """Draw distances beyond an end for `moving` values past it, and their counts."""
        # About so many different distances: the steps, and the walkers who are left after them.
        steps = math.log(max(moving * self._stop, 1.0)) / self._stop
        left = min(moving, 1 / self._stop)
        if steps + left > MAX_DISTANCES:
            raise TooLarge(
                f"secret_counts must be smaller under noise of epsilon={self.epsilon:g}: "
                f"{readable(moving)} reports beyond an end of {self.line!r} would have about "
                f"{readable(int(steps + left))} different values, and at most {MAX_DISTANCES} are "
                "drawn; simulate fewer people"
            )
        counts = []
        # One binomial a step while a step stops more than one walker on average. At a small
        # epsilon the steps outnumber the walkers: the rest draw their distances one by one.
        while moving * self._stop > 1:
            counts.append(int(rng.binomial(moving, self._stop)))
            moving -= counts[-1]
        single = len(counts) + rng.geometric(self._stop, size=moving)
        distances = np.concatenate([np.arange(1, len(counts) + 1), single])
        return distances, np.concatenate([np.array(counts, dtype=np.int64), np.ones_like(single)])
