"""A maximiser where every secret has mass, by Newton steps after a few accelerated EM updates.

Where all masses stay positive, g = 1 is all that has to be solved. A Newton step for it,

    (M diag(q / nu^2) M^T + diag(e / theta)) change = g - 1,    g = M (q / nu),    nu = theta M,

costs as much as one of the ten or more steps of the central path, and two to eight are enough. They
suffice where there are more secrets than reports (many distributions then often fit the reports
exactly), and under channels that tell nearly everything about the secret. The small e makes the
system definite where rows depend on each other, and takes the shortest of all changes, in units of
the masses themselves. Where the step would take the share c away from a mass, the mass is divided
by 1 + c instead, which keeps it positive and agrees with the step to first order.

The updates go on alone where they converge at once, as they do under a channel near the identity.
If there are many more secrets than reports, the updates are made before anything else, since often
all secrets have mass.

Where some secrets have no mass, the first step shows it: it would take away many times the mass
that they have. If such secrets are few, the steps come so near to the maximiser that its support
can be told.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.solvers import em
from ibukit.solvers._normal_equations import DenseModel
from ibukit.solvers.anderson import Anderson
from ibukit.solvers.dense.least_squares_steps import (
    EXACT,
    EXACT_BELOW,
    MIN_FITTED,
    ROUNDING,
)
from ibukit.solvers.dense.systems import Systems

# Secrets for each report above which the updates come first.
MAX_SECRETS_A_REPORT = 2
# Number of first moves, which are always made; more are made only as long as all moves have gained
# this many orders of magnitude in max g - 1 on average. A move costs at most a third of a step.
FIRST_MOVES = 4
GAIN_OF_MOVE = 0.5
MAX_STEPS = 8
# Largest number of updates in a move.
MAX_UPDATES = 3
# Number of reports up to which these steps come first even if the updates have gained too little:
# if some secrets have no mass, the first step shows this in a small share of the time that least
# squares take.
MAX_REPORTS = 100
# The method ends if the first step would take more than this many times the mass of some secret, or
# if a later step leaves more than the share SLOW of max g - 1.
MAX_TAKEN = 4.0
SLOW = 0.5
# Weight e of the length of a step.
LENGTH_WEIGHT = 1e-8
# If the excess is below this and there are few zeros, the support can be told.
NEAR = 1e-3


class Start(NamedTuple):
    """The point at which Newton steps start."""

    theta: Floats
    updates: int
    """Updates or gradients that led there."""
    converges: bool
    """True if the updates gained what they have to."""


def come_first(k: int, s: int, tol: float) -> bool:
    """Return True where all secrets are likely to have mass."""
    return tol <= EXACT_BELOW and k > MAX_SECRETS_A_REPORT * s


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def maximise(
    model: DenseModel, q: Floats, tol: float, start: Start | None = None
) -> tuple[Floats, int] | None:
    """The distribution and the steps taken; None if it is not certified to `tol`."""
    # At a rough tolerance the path takes few steps.
    if tol > EXACT_BELOW:
        return None
    matrix = model.matrix
    goal = min(tol, EXACT)
    theta, taken, _ = start or first_updates(model, q, tol)
    systems = Systems(matrix)
    before = np.inf
    for step in range(MAX_STEPS + 1):
        nu = np.dot(theta, matrix)
        if not nu[nu.argmin()] > MIN_FITTED:
            return None
        g = np.dot(matrix, q / nu)
        excess = float(g[g.argmax()]) - 1
        if excess <= goal:
            return _with_zeros(model, q, theta, 1 - g, tol), taken + step
        # The likelihood rises in every step; the excess must fall too, except in the first steps.
        if step == MAX_STEPS or (step > 2 and excess > SLOW * before):
            break
        before = excess
        solve = systems.solver(q / nu**2, LENGTH_WEIGHT / theta, shrink=False)
        if solve is None:
            return None
        change = solve(g - 1) / theta
        most_taken = -float(change[change.argmin()])
        if not most_taken < (MAX_TAKEN if step == 0 else np.inf):
            return None
        theta = theta * np.where(change > 0, 1 + change, 1 / (1 - change))
        theta /= np.add.reduce(theta)
    if not excess < NEAR:
        return None
    excess, theta = model.cross_over(q, theta, 1 - g, tol)
    return (theta, taken + step) if excess <= tol else None


def _with_zeros(model: DenseModel, q: Floats, theta: Floats, s: Floats, tol: float) -> Floats:
    """A certified point, if possible with exact zeros where it has less mass than slack."""
    if not (theta < s).any():
        return theta
    excess, exact = model.cross_over(q, theta, s, tol)
    return exact if excess <= tol else theta


def first_updates(model: DenseModel, q: Floats, tol: float) -> Start:
    """Make accelerated EM updates from uniform, for as long as the moves gain what they have to."""
    k, s = model.matrix.shape
    updates = partial(em.on_any_channel, model.channel, q)
    walk = Anderson(updates, q, k)
    theta = np.full(k, 1 / k)
    p, g = em.evaluate(updates, theta, s)
    expected = float(g.max()) - 1
    taken = moves = 0
    # An excess below the rounding tells nothing, whatever tolerance is asked for.
    end = max(min(tol, EXACT), ROUNDING)
    while g.max() - 1 > end and (moves < FIRST_MOVES or g.max() - 1 <= expected):
        theta, p, g, steps = walk.move(theta, p, g, MAX_UPDATES)
        expected *= 10**-GAIN_OF_MOVE
        taken, moves = taken + steps, moves + 1
    converges = moves != FIRST_MOVES or bool(g.max() - 1 <= max(end, expected))
    return Start(theta / np.add.reduce(theta), taken, converges)
