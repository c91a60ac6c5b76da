"""Anderson acceleration of the iterative Bayesian update, in the logarithms of the probabilities.

The update adds f = log g to x = log theta. From the last few differences of x and f comes the
combination of steps that would make f vanish if it were linear in x (least squares with weights
theta, in which what has no mass has no say); it is taken if it climbs, and if the likelihood at its
end has not fallen. Otherwise the update itself is stretched, and in the end there is always the
plain update, which never falls.

Written from Walker and Ni (2011) and from the idea of Henderson and Varadhan (2019) to damp,
restart and safeguard it.
"""

from __future__ import annotations

import math

import numpy as np
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit.channels import Channel
from ibukit.solvers.em import Moved, Updates, evaluate, updates_of

# Chosen on ages, planar grids and pools of geometric noise, where SQUAREM needs 2 to 40 times the
# evaluations. More than 10 differences gain nothing, 5 lose; RIDGE a 100 times larger or smaller,
# SLOPE 0 or 1, STRETCH 2 or 8 do little.
ORDER = 10  # differences remembered
RIDGE = 1e-9  # damping, relative to the squared length of a difference
SLOPE = 0.5  # the least climb, relative to the plain update's
STRETCH = 4.0
LONGEST = 1e12

# Mass is never 0, and never too little to come back. In log theta a secret at 1e-200 is many steps
# from the living, and its weight in the least squares is nothing: so where g > 1 says that it
# should have mass, it is given LIFT / k, or less where that would disturb the gap.
MIN_MASS = 1e-300
LIFT = 1e-8
MIN_RATIO = (
    1e-13  # of secrets that explain nothing that was seen: log 0 would spoil the differences
)
ROUNDING_OF_LIKELIHOOD = 1e-16  # by which a mean log-likelihood may seem to fall
MAX_EVALUATIONS = 1_000_000


def maximise(channel: Channel, q: Floats, tol: float, k: int) -> tuple[Floats, int]:
    """The first point where no g exceeds 1 + tol, from the uniform distribution, and the evaluations that it took."""
    updates = updates_of(channel, q)
    walk = Anderson(updates, q, k)
    theta, taken = np.full(k, 1 / k), 0
    p, g = evaluate(updates, theta, len(q))
    with tqdm(desc="ibu", unit=" steps", leave=False, disable=None, delay=1, miniters=1000) as bar:
        while taken < MAX_EVALUATIONS and not (p.min() > 0 and g.max() <= 1 + tol):
            theta, p, g, steps = walk.move(theta, p, g, MAX_EVALUATIONS - taken)
            taken += steps
            bar.update(steps)
    return theta, taken


class Anderson:
    """Moves from point to point; each point has at least the likelihood of the one before."""

    def __init__(self, updates: Updates, q: Floats, k: int):
        self._updates = updates
        self._q = q
        # differences of f, and of x + f
        self._residuals, self._images = np.empty((2, ORDER, k))
        self._forget()
        self._stretch = 1.0

    def move(self, theta: Floats, p: Floats, g: Floats, most: int) -> Moved:
        """The next point, and the evaluations that it took: up to three, and at most `most`."""
        x, f = np.log(theta), np.log(np.maximum(g, MIN_RATIO))
        self._remember(x, f)
        taken = 0
        step = self._extrapolated(theta, g, x, f)
        if step is not None and most > 1:
            taken += 1
            found = self._try(x + step, theta, p)
            if found is not None:
                return *found, taken
            self._forget()
        if self._stretch > 1 and most > taken + 1:
            taken += 1
            found = self._try(x + self._stretch * f, theta, p)
            if found is not None:
                self._stretch = min(self._stretch * STRETCH, LONGEST)
                return *found, taken
            self._stretch = max(self._stretch / STRETCH**1.5, 1.0)
        else:
            self._stretch = max(self._stretch, STRETCH)
        return *self._at(np.maximum(theta * g, MIN_MASS)), taken + 1

    def _forget(self) -> None:
        self._last: tuple[Floats, Floats] | None = None
        self._seen = 0

    def _remember(self, x: Floats, f: Floats) -> None:
        if self._last is not None:
            before, f_before = self._last
            place = self._seen % ORDER
            np.subtract(f, f_before, out=self._residuals[place])
            np.add(x - before, self._residuals[place], out=self._images[place])
            self._seen += 1
        self._last = x, f

    def _extrapolated(self, theta: Floats, g: Floats, x: Floats, f: Floats) -> Floats | None:
        """The change of log theta, or None where nothing is known or the likelihood would not rise along it."""
        known = min(self._seen, ORDER)
        if known == 0:
            return None
        root = np.sqrt(theta)
        residuals = self._residuals[:known] * root
        lengths = np.sqrt(np.einsum("ix,ix->i", residuals, residuals))
        lengths[lengths == 0] = 1.0
        residuals /= lengths[:, None]
        normal = residuals @ residuals.T + RIDGE * np.eye(known)
        share = np.linalg.solve(normal, residuals @ (f * root)) / lengths
        step = f - share @ self._images[:known]
        uphill = theta * (g - 1)
        if not uphill @ step > SLOPE * (uphill @ f):
            return None
        gap = math.log(max(g.max(), 1.0))
        mass = max(min(LIFT, gap / 100) / len(theta), MIN_MASS)
        wanted = (g > 1) & (theta < mass)
        step[wanted] = np.maximum(step[wanted], math.log(mass) - x[wanted])
        return np.asarray(step)

    def _try(self, x: Floats, theta: Floats, p: Floats) -> tuple[Floats, Floats, Floats] | None:
        """The point with log theta = x up to a constant; None if its likelihood is less than at theta."""
        weights = np.exp(np.maximum(x - x.max(), math.log(MIN_MASS)))
        found = self._at(weights / weights.sum())
        _, new_p, new_g = found
        with np.errstate(all="ignore"):
            # L is concave: it has risen for certain if it still rises where the step ends; NaN is
            # neither
            risen = (
                new_g @ theta <= 1 or (self._q * np.log(new_p / p)).sum() >= -ROUNDING_OF_LIKELIHOOD
            )
        return found if risen else None

    def _at(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        with np.errstate(
            all="ignore"
        ):  # a report's probability may underflow where the step overshot
            return theta, *evaluate(self._updates, theta, len(self._q))
