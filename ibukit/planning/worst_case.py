"""The worst distribution for a given estimator: what certifies that no distribution needs more reports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats

# pairs of secrets that are tried; each is on the upper hull of the points (w_x, c_x), and few are
# needed
MAX_PAIRS = 1000


class Worst(NamedTuple):
    """The variance of the hardest question at its hardest distribution."""

    upper: float
    """No question has a larger one at any distribution."""
    lower: float
    """This one has this at `theta`."""
    question: int
    theta: Floats


def greatest(c: Floats, w: Floats) -> tuple[float, Floats]:
    """The maximum of c . theta - (w . theta)^2 over all distributions, and where it is.

    It is the minimum over s of s^2 + max_x (c_x - 2 s w_x), every value of which is an upper bound;
    at the best s one secret attains the maximum, or one with w_x < s and one with w_x > s, and they
    carry the mass.
    """
    left, right = int(w.argmin()), int(w.argmax())
    for _ in range(MAX_PAIRS):
        apart = w[right] - w[left]
        s = (
            float(np.clip((c[right] - c[left]) / apart / 2, w[left], w[right]))
            if apart > 0
            else float(w[left])
        )
        values = c - 2 * s * w
        best = int(values.argmax())
        if values[best] <= max(values[left], values[right]):
            break
        if w[best] <= s:
            left = best
        if w[best] >= s:
            right = best
    theta = np.zeros(len(w))
    share = (s - w[left]) / apart if apart > 0 else 0.0
    if apart <= 0:  # all that are left ask the same
        left = best
    theta[right] += share
    theta[left] += 1 - share
    return s * s + float(values[best]), theta


def greatest_single(own: Floats, others: Floats) -> tuple[Floats, Floats]:
    """The same for w = e_x, with c_x and the largest c_y of another secret; and the mass of x."""
    mass = np.clip((own - others) / 2, 0.0, 1.0)
    return own * mass + others * (1 - mass) - mass**2, mass


def two_point(k: int, secret: int, mass: float, other: int | None = None) -> Floats:
    """The distribution with this mass on a secret, and the rest on another one or on all others alike."""
    theta = np.full(k, (1 - mass) / (k - 1)) if other is None else np.zeros(k)
    if other is not None:
        theta[other] = 1 - mass
    theta[secret] = mass
    return theta
