"""Anderson acceleration of the iterative Bayesian update, in the logarithms of the probabilities.

The update adds f = log g to x = log theta, so a maximiser is a fixed point: f = 0 where theta > 0.
From the last differences dx_i, df_i of x and f the step is

    f - sum_i a_i (dx_i + df_i),    a = argmin sum_x theta_x (f - sum_i a_i df_i)_x^2,

which would make f vanish if f were linear in x. The least squares are weighted by theta, so they
ignore secrets without mass. The step is taken if it is a direction of ascent, and if the likelihood
at its end has not fallen. Otherwise the update itself is stretched, x + t f with t > 1, and in the
end there is always the plain update, which never lowers the likelihood.

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

# Number of differences that are kept. This and the next three constants were chosen on ages, planar
# grids and pools of geometric noise, where SQUAREM needs 2 to 40 times as many evaluations. More
# than 10 differences gain nothing, 5 are worse; a RIDGE 100 times larger or smaller, a slope of 0
# or 1, and factors of 2 or 8 change little.
MEMORY = 10
# Tikhonov damping of the least squares, relative to the squared length of a difference.
RIDGE = 1e-9
# Smallest ascent of a step, relative to that of the plain update.
MIN_SLOPE_SHARE = 0.5
# Factor by which a stretched update that succeeded is stretched further, and the longest stretch.
STRETCH_FACTOR = 4.0
MAX_STRETCH = 1e12

# A mass is never 0, so that log theta exists. At 1e-200 it would be many steps from any influence,
# and without weight in the least squares. So a secret with g > 1, which should gain mass, is lifted
# to LIFT / k, or to less if that would disturb the gap.
MIN_MASS = 1e-300
LIFT = 1e-8
# Smallest g whose logarithm is taken: a secret that explains no report has g = 0.
MIN_RATIO = 1e-13
# Rounding may make a mean log-likelihood seem to fall by this much.
ROUNDING_OF_LIKELIHOOD = 1e-16
MAX_EVALUATIONS = 1_000_000
# max g - 1 that rounding leaves.
FINEST_EXCESS = 1e-15


def maximise(channel: Channel, q: Floats, tol: float, k: int) -> tuple[Floats, int]:
    """The first point, from uniform, where no g exceeds 1 + tol, and the number of evaluations."""
    updates = updates_of(channel, q)
    # Steps on a tighter goal than rounding would go on until their number runs out.
    goal = 1 + max(tol, FINEST_EXCESS)
    walk = Anderson(updates, q, k)
    theta, taken = np.full(k, 1 / k), 0
    p, g = evaluate(updates, theta, len(q))
    with tqdm(desc="ibu", unit=" steps", leave=False, disable=None, delay=1, miniters=1000) as bar:
        while taken < MAX_EVALUATIONS and not (p.min() > 0 and g.max() <= goal):
            theta, p, g, steps = walk.move(theta, p, g, MAX_EVALUATIONS - taken)
            taken += steps
            bar.update(steps)
    return theta, taken


class Anderson:
    """Accelerated steps; each point has at least the likelihood of the one before."""

    def __init__(self, updates: Updates, q: Floats, k: int):
        self._updates = updates
        self._q = q
        # The last differences of f, and of x + f.
        self._residuals, self._images = np.empty((2, MEMORY, k))
        self._restart()
        self._stretch = 1.0

    def move(self, theta: Floats, p: Floats, g: Floats, max_evaluations: int) -> Moved:
        """The next point, and the number of evaluations: up to three, at most `max_evaluations`."""
        x, f = np.log(theta), np.log(np.maximum(g, MIN_RATIO))
        self._remember(x, f)
        taken = 0
        step = self._extrapolated(theta, g, x, f)
        if step is not None and max_evaluations > 1:
            taken += 1
            reached = self._try(x + step, theta, p)
            if reached is not None:
                return *reached, taken
            # The differences have led astray: begin anew.
            self._restart()
        if self._stretch > 1 and max_evaluations > taken + 1:
            taken += 1
            reached = self._try(x + self._stretch * f, theta, p)
            if reached is not None:
                self._stretch = min(self._stretch * STRETCH_FACTOR, MAX_STRETCH)
                return *reached, taken
            self._stretch = max(self._stretch / STRETCH_FACTOR**1.5, 1.0)
        else:
            self._stretch = max(self._stretch, STRETCH_FACTOR)
        return *self._at(np.maximum(theta * g, MIN_MASS)), taken + 1

    def _restart(self) -> None:
        self._last: tuple[Floats, Floats] | None = None
        self._n_differences = 0

    def _remember(self, x: Floats, f: Floats) -> None:
        if self._last is not None:
            x_before, f_before = self._last
            place = self._n_differences % MEMORY
            np.subtract(f, f_before, out=self._residuals[place])
            np.add(x - x_before, self._residuals[place], out=self._images[place])
            self._n_differences += 1
        self._last = x, f

    def _extrapolated(self, theta: Floats, g: Floats, x: Floats, f: Floats) -> Floats | None:
        """The accelerated change of log theta; None if there are no differences or no ascent."""
        known = min(self._n_differences, MEMORY)
        if known == 0:
            return None
        # Normal equations of the weighted least squares; differences are scaled to length 1, so
        # that the ridge is relative.
        root = np.sqrt(theta)
        residuals = self._residuals[:known] * root
        lengths = np.sqrt(np.einsum("ix,ix->i", residuals, residuals))
        lengths[lengths == 0] = 1.0
        residuals /= lengths[:, None]
        normal = residuals @ residuals.T + RIDGE * np.eye(known)
        share = np.linalg.solve(normal, residuals @ (f * root)) / lengths
        step = f - share @ self._images[:known]
        # The gradient of the likelihood in log theta, on the simplex.
        gradient = theta * (g - 1)
        if not gradient @ step > MIN_SLOPE_SHARE * (gradient @ f):
            return None
        gap = math.log(max(g.max(), 1.0))
        mass = max(min(LIFT, gap / 100) / len(theta), MIN_MASS)
        lifted = (g > 1) & (theta < mass)
        step[lifted] = np.maximum(step[lifted], math.log(mass) - x[lifted])
        return step

    def _try(self, x: Floats, theta: Floats, p: Floats) -> tuple[Floats, Floats, Floats] | None:
        """The point with log theta = x up to a constant; None if its likelihood is lower."""
        weights = np.exp(np.maximum(x - x.max(), math.log(MIN_MASS)))
        reached = self._at(weights / weights.sum())
        _, new_p, new_g = reached
        with np.errstate(all="ignore"):
            # L is concave: L(theta) <= L(new) + new_g . theta - 1, so new_g . theta <= 1 proves
            # that L has not fallen. Otherwise the likelihoods are compared. NaN passes neither.
            has_risen = (
                new_g @ theta <= 1 or (self._q * np.log(new_p / p)).sum() >= -ROUNDING_OF_LIKELIHOOD
            )
        return reached if has_risen else None

    def _at(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        # The probability of a report may underflow if the step overshot.
        with np.errstate(all="ignore"):
            return theta, *evaluate(self._updates, theta, len(self._q))
