"""Valid range of epsilon: outside it, float64 sampling is not private or carries no signal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.grid import Grid

# The uniform numbers of numpy are multiples of 2^-53, from 0 to 1 - 2^-53, and doubles next to 1
# are no finer: so an event with a smaller probability is never drawn. `drawable` does not raise
# this limit, as it keeps 32 significant bits of each probability, even of a small one.
MIN_PROBABILITY = 2.0**-53
# numpy draws exponential variables of at most 44.4. Noise of 44.4 / eps must stay below 2^53:
# beyond it doubles are even numbers only, so a report would have the parity of its secret. Besides,
# for a smaller epsilon doubles hardly tell e^-eps from 1.
MIN_EPSILON = 5e-15
# Distance of the bounds, relative to the upper one, at which the bisection for an error message
# stops; the message shows four digits.
BISECTION_TOLERANCE = 1e-9


def check_epsilon(
    epsilon: Any,
    rare_probability: Callable[[float], float],
    smallest: float = MIN_EPSILON,
    *,
    truthful: bool = False,
) -> float:
    """Return an epsilon at which reports can be drawn in doubles.

    Parameters
    ----------
    epsilon : float
    rare_probability : callable
        Function that takes epsilon and returns the probability of the rare event that keeps a
        secret private, such as a report other than the secret. It must fall as epsilon grows.
    smallest : float
        The least epsilon that is accepted.
    truthful : bool
        Whether inf is accepted, because the mechanism then releases the truth.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number above 0 or is below `smallest`, or if the rare event has
        a probability of at most 2^-53.
    """
    if truthful and is_infinite(epsilon):
        return math.inf
    number = finite_epsilon(epsilon)
    if number < smallest:
        raise ValueError(
            f"epsilon must be at least {smallest:g}, got {epsilon!r}: with less, doubles do not "
            "tell apart what different secrets report, and the noise exceeds the whole numbers "
            "that they hold"
        )
    if not _is_drawn(rare_probability, number):
        largest = _largest_epsilon(number, rare_probability)
        raise ValueError(
            f"epsilon must be at most {largest:.4g}, got {epsilon!r}: with more, the probability "
            "of the truth rounds to 1 in doubles, and the reports that are drawn hide nothing"
        )
    return number


def finite_epsilon(epsilon: Any) -> float:
    """Return the epsilon if it is finite; otherwise the error says what to take instead."""
    if is_infinite(epsilon):
        raise ValueError(
            f"epsilon must be a finite number above 0, got {epsilon!r}: this mechanism has no "
            "limit without noise; RandomizedResponse(alphabet, math.inf) releases the truth itself"
        )
    return arguments.positive("epsilon", epsilon)


def is_infinite(epsilon: Any) -> bool:
    """Return whether a level is infinite, which means that there is no privacy."""
    return isinstance(epsilon, (float, np.floating)) and bool(epsilon == math.inf)


def check_metric_epsilon(epsilon: Any, alphabet: Alphabet, rate: float) -> float:
    """Return the epsilon of a mechanism with a probability near e^(-rate eps d) at distance d."""
    if is_infinite(epsilon):
        return math.inf
    nearest, farthest = distance_range(alphabet)
    if not farthest:
        # With a single secret there is only one report, whatever epsilon is.
        return finite_epsilon(epsilon)
    # The rarest event that must be drawn is that the report is not the secret, but its neighbour.
    return check_epsilon(
        epsilon, lambda eps: math.exp(-rate * eps * nearest), MIN_EPSILON / farthest
    )


def level_of_equal_pairs(mechanism: Any, metric: bool) -> float:
    """The tight level of a mechanism whose log-ratios are epsilon for all pairs of secrets."""
    nearest, _ = distance_range(mechanism.alphabet)
    if not nearest:
        return 0.0
    return float(mechanism.epsilon / nearest if metric else mechanism.epsilon)


def distance_range(alphabet: Alphabet) -> tuple[float, float]:
    """The least and the largest distance of two different secrets; zeros if there is only one."""
    k = len(alphabet)
    if k == 1:
        return 0.0, 0.0
    if isinstance(alphabet, Line):
        return 1.0, k - 1.0
    if isinstance(alphabet, Grid):
        sides = list(zip(alphabet.cell_shape, (alphabet.n_rows, alphabet.n_cols), strict=True))
        nearest = min(side for side, n in sides if n > 1)
        return nearest, math.hypot(*(side * (n - 1) for side, n in sides))
    if (places := alphabet.places) is not None:
        return float(np.diff(np.sort(places)).min()), float(np.ptp(places))
    if alphabet._distances is None:  # the discrete metric
        return 1.0, 1.0
    different = alphabet._distances[~np.eye(k, dtype=bool)]
    return float(different.min()), float(different.max())


def _is_drawn(rare_probability: Callable[[float], float], epsilon: float) -> bool:
    """True if the rare event can be drawn in doubles; where e^epsilon overflows it cannot."""
    try:
        return rare_probability(epsilon) > MIN_PROBABILITY
    except OverflowError:
        return False


def _largest_epsilon(refused: float, rare_probability: Callable[[float], float]) -> float:
    """The largest accepted epsilon, by bisection, rounded down to four digits."""
    low, high = 0.0, refused
    while high - low > BISECTION_TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _is_drawn(rare_probability, middle) else (low, middle)
    unit = 10.0 ** (math.floor(math.log10(low)) - 3)
    return math.floor(low / unit) * unit
