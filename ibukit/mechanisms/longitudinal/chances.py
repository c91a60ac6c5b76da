"""Probabilities and levels of the two rounds of a memoised protocol."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ibukit._ground import arguments
from ibukit.mechanisms.epsilon_range import check_epsilon, is_infinite


class Chances(NamedTuple):
    """Probabilities that a bit is 1 after a round: p if it was 1 before, q if it was 0."""

    p: float
    q: float

    @property
    def log_odds(self) -> float:
        """The tight level ln p (1 - q) / ((1 - p) q) of a unary encoding with these p and q."""
        if self.p == 1 or self.q == 0:
            return math.inf
        # The two factors p / q and (1 - q) / (1 - p) as 1 + a difference: no cancellation.
        return math.log1p((self.p - self.q) / self.q) + math.log1p((self.p - self.q) / (1 - self.p))


def check_round(name: str, given: Any, ends: str) -> Chances:
    """Return the probabilities p > q of one round.

    The first bracket of `ends` tells whether q may be 0, the second whether p may be 1.
    """
    # The entries are objects here, so that a missing or wrong one reaches its own check.
    pair = np.asarray(given, dtype=object)
    if isinstance(given, str) or pair.shape != (2,):
        raise ValueError(f"{name} must be two probabilities (p, q), got {given!r}")
    p = arguments.fraction(f"{name}[0]", given[0], f"({ends[1]}")
    q = arguments.fraction(f"{name}[1]", given[1], f"{ends[0]})")
    if not q < p:
        raise ValueError(
            f"{name} must be (p, q) with p larger than q, got {given!r}: a bit 1 must be "
            "reported as 1 more often than a bit 0"
        )
    return Chances(p, q)


def check_levels(epsilon: Any, epsilon_inf: Any) -> tuple[float, float]:
    """Return the levels of one report and the kept answer; ValueError unless the first is lower."""
    first = check_epsilon(epsilon, lambda eps: math.exp(-eps / 2))
    if is_infinite(epsilon_inf):
        raise ValueError(
            "epsilon_inf must be a finite number above 0, got inf: an answer that is kept without "
            "noise is the secret; for fresh noise in each round take a mechanism of one report"
        )
    permanent = arguments.positive("epsilon_inf", epsilon_inf)
    if not first < permanent:
        raise ValueError(
            f"epsilon must be below epsilon_inf, got {epsilon!r} and {epsilon_inf!r}: one report "
            "tells less than what is kept"
        )
    return first, permanent


def after_round(before: float, then: Chances) -> float:
    """Probability that a bit is 1 after a round, from the probability that it was 1 before."""
    return before * then.p + (1 - before) * then.q
