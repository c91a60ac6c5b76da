"""Which levels a mechanism takes: those at which reports drawn in doubles neither give the secret away nor hide all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.grid import Grid

# The uniform numbers of numpy are multiples of 2^-53, from 0 to 1 - 2^-53, and the doubles next to
# 1 are no finer: a smaller chance of a lie is drawn as none at all. The chance counts, not the 32
# bits to which `drawable` rounds: it keeps 32 significant bits of every entry, of the small ones
# too, and divides by the sum afterwards.
MIN_CHANCE = 2.0**-53
# numpy draws exponential variables of at most 44.4. Noise of 44.4 / eps must stay below 2^53:
# beyond, doubles are even numbers only, and a report would have the parity of its secret. Nor do
# doubles tell e^-eps from 1 much below.
MIN_EPSILON = 5e-15


def level(epsilon: Any, lie: Callable[[float], float], smallest: float = MIN_EPSILON) -> float:
    """A level that can be drawn in doubles.

    Parameters
    ----------
    epsilon : float
    lie : callable
        From epsilon to the probability on which the sampler's lie hangs; it must fall.
    smallest : float
        The least epsilon that is accepted.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0, is below `smallest`, or its lie has no chance
        above 2^-53.
    """
    number = arguments.positive("epsilon", epsilon)
    if number < smallest:
        raise ValueError(
            f"epsilon must be at least {smallest:g}, got {epsilon!r}: with less, doubles do not tell apart what "
            "different secrets report, and noise leaves the whole numbers that they hold"
        )
    if not _is_drawn(lie, number):
        raise ValueError(
            f"epsilon must be at most {_largest(number, lie):.4g}, got {epsilon!r}: with more, the probability of the "
            "truth rounds to 1 in doubles, and the reports that are drawn hide nothing"
        )
    return number


def level_by_distance(epsilon: Any, alphabet: Alphabet, rate: float) -> float:
    """A level of a mechanism that reports the nearest other secret with a probability near e^(-rate eps d)."""
    nearest, farthest = extent(alphabet)
    if not farthest:
        return arguments.positive(
            "epsilon", epsilon
        )  # a single secret is reported whatever the level
    return level(epsilon, lambda eps: math.exp(-rate * eps * nearest), MIN_EPSILON / farthest)


def extent(alphabet: Alphabet) -> tuple[float, float]:
    """The least and the largest distance of two different secrets; zeros where there is only one."""
    k = len(alphabet)
    if k == 1:
        return 0.0, 0.0
    if isinstance(alphabet, Line):
        return 1.0, k - 1.0
    if isinstance(alphabet, Grid):
        sides = [
            (side, n)
            for side, n in zip(alphabet.cell_shape, (alphabet.n_rows, alphabet.n_cols), strict=True)
        ]
        return min(side for side, n in sides if n > 1), math.hypot(
            *(side * (n - 1) for side, n in sides)
        )
    if alphabet._distances is None:
        return 1.0, 1.0
    apart = alphabet._distances[~np.eye(k, dtype=bool)]
    return float(apart.min()), float(apart.max())


def _is_drawn(lie: Callable[[float], float], epsilon: float) -> bool:
    """Whether the lie has a chance in doubles; where e^epsilon is beyond them it has none."""
    try:
        return lie(epsilon) > MIN_CHANCE
    except OverflowError:
        return False


def _largest(refused: float, lie: Callable[[float], float]) -> float:
    """The largest accepted level, rounded down to four digits."""
    low, high = 0.0, refused
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _is_drawn(lie, middle) else (low, middle)
    unit = 10.0 ** (math.floor(math.log10(low)) - 3)
    return math.floor(low / unit) * unit
