"""Largest variance of an estimator over all distributions.

It certifies that no distribution needs more reports, because the least variance is at most that of
any one unbiased estimator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats

# Largest number of pairs of secrets that are tried. Each new secret is a vertex of the upper hull
# of the points (w_x, c_x); a few suffice.
MAX_PAIRS = 1000


class Worst(NamedTuple):
    """Bounds on the largest variance over all questions and distributions, and where it is."""

    upper: float
    """Upper bound of the variance of every question at every distribution."""
    lower: float
    """Variance of `question` at `theta`."""
    question: int
    theta: Floats


def max_variance(c: Floats, w: Floats) -> tuple[float, Floats]:
    """Return the maximum of c . theta - (w . theta)^2 over all distributions, and its theta."""
    # Since -(w . theta)^2 = min_s s^2 - 2 s w . theta, the maximum is, by duality, the minimum over
    # s of s^2 + max_x (c_x - 2 s w_x). Every value of this function is an upper bound. At the best
    # s one secret attains the inner maximum, or two do, one with w_x < s and one with w_x > s;
    # these carry the mass of theta. The loop replaces one of the two by a better secret until there
    # is none.
    low, high = int(w.argmin()), int(w.argmax())
    for _ in range(MAX_PAIRS):
        span = w[high] - w[low]
        s = (
            float(np.clip((c[high] - c[low]) / span / 2, w[low], w[high]))
            if span > 0
            else float(w[low])
        )
        values = c - 2 * s * w
        best = int(values.argmax())
        if values[best] <= max(values[low], values[high]):
            break
        if w[best] <= s:
            low = best
        if w[best] >= s:
            high = best
    theta = np.zeros(len(w))
    share = (s - w[low]) / span if span > 0 else 0.0
    # All remaining secrets have the same weight, and the best of them carries the mass.
    if span <= 0:
        low = best
    theta[high] += share
    theta[low] += 1 - share
    return s * s + float(values[best]), theta


def max_single_variance(own: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Return `max_variance` for each single probability, and the mass of its secret.

    `own` has c_x and `others` the largest c_y of another secret.
    """
    # With mass m on x and the rest on y the variance is m c_x + (1 - m) c_y - m^2, largest at
    # m = (c_x - c_y) / 2.
    mass = np.clip((own - others) / 2, 0.0, 1.0)
    return own * mass + others * (1 - mass) - mass**2, mass


def two_point(k: int, secret: int, mass: float, other: int | None = None) -> Floats:
    """Return the distribution with `mass` on a secret and the rest on one or all of the others."""
    theta = np.full(k, (1 - mass) / (k - 1)) if other is None else np.zeros(k)
    if other is not None:
        theta[other] = 1 - mass
    theta[secret] = mass
    return theta
