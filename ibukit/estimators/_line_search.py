"""The line search of `_roughness`, and logarithms of distributions that keep their digits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.efficiency import relative
from ibukit.tally.tally import Tally

# Largest change of log sqrt theta in one step. Beyond it the quadratic model means little.
MAX_LOG_CHANGE = 2.0


def line_search(
    tally: Tally,
    roughness: Callable[[Floats], float],
    weight: float,
    u: Floats,
    move: Floats,
    change: float | None,
    promise: float,
) -> Floats | None:
    """Return u after a step along `move` that satisfies Armijo's condition; None if none does.

    `change` is the step's largest change of a logarithm, and `promise` the derivative along the
    step. If `change` is None, the step is damped, which leaves that derivative as it is.
    """
    here = penalised_mean(tally, roughness, weight, u)
    # Near the maximum F changes by less than its rounding while the gradient is still exact.
    slack = 1e-14 * (1 + abs(here))
    # Newton's step at most, shortened so that no logarithm changes by more than the limit.
    length = 1.0 if change is None else min(1.0, MAX_LOG_CHANGE / max(change, 1e-300))
    while length > 1e-12:
        there = u + (_damped(length * move) if change is None else length * move)
        there -= log_mean_exp(there)
        if (
            penalised_mean(tally, roughness, weight, there)
            >= here + 1e-4 * length * promise - slack
        ):
            return there
        length /= 2
    return None


def _damped(move: Floats) -> Floats:
    """Return small changes nearly as they are, and large changes as their logarithms."""
    # A rise leads from theta to (sqrt theta + v / 2)^2, for which Newton's step v is made.
    return 2 * np.sign(move) * np.log1p(np.abs(move) / 2)


def penalised_mean(
    tally: Tally, roughness: Callable[[Floats], float], weight: float, u: Floats
) -> float:
    return mean_log_likelihood(tally, softmax(u)) - weight * roughness(u)


def mean_log_likelihood(tally: Tally, theta: Floats) -> float:
    """Return the log-likelihood over n; -inf where a report that was seen has no probability."""
    efficiency = None if tally.efficiency is None else relative(tally.efficiency)
    p = tally.operator.forward(theta if efficiency is None else theta * efficiency)
    if not p.min() > 0:
        return -math.inf
    fitted = float(tally.frequencies @ np.log(p))
    return fitted if efficiency is None else fitted - math.log(float(theta @ efficiency))


def softmax(u: Floats) -> Floats:
    theta = np.exp(u - u.max())
    return theta / theta.sum()


def log_root(u: Floats) -> Floats:
    return (u - log_mean_exp(u) - math.log(len(u))) / 2


def log_mean_exp(u: Floats) -> float:
    # log1p and expm1 keep all digits of a nearly uniform distribution.
    top = float(u.max())
    return top + math.log1p(float(np.expm1(u - top).mean()))
