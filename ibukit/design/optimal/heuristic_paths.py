"""The best private channel on a path with more columns than can be looked through: they are guessed, the bound is not.

The relaxation gives a bound on all channels, and a tangent on which the columns of the best channel
score nearly what no column can exceed. Walks that wander among the columns with such scores are
weighed, and where that is not enough, more that score above these on their own tangent. Whatever
columns are missed, the bound holds; the gap tells the cost.
"""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.design.optimal.column_generation import deviations, distinct, first_columns
from ibukit.design.optimal.column_weights import Criterion
from ibukit.design.optimal.large_design import many_weights
from ibukit.design.optimal.path_neighbours import Tangent, wandered
from ibukit.design.optimal.path_pricing import MAX_LOG
from ibukit.design.optimal.path_relaxation import Relaxed, relaxed
from ibukit.fisher_information import contrasts

# walks at first, for each moment that columns are to match
WALKS_FOR_A_MOMENT = 0.8
# of the highest score that any column may have, the share that walks may fall below
SHARE_BELOW = 0.003
# no more rounds where the value is within this share of the bound, or where one closed less than
# this of the gap
NEAR_ENOUGH, MIN_CLOSED = 3e-4, 0.1
# from so many secrets on a round takes minutes, and the value is near enough within this share
SECRETS_OF_MANY, NEAR_ENOUGH_OF_MANY = 60, 1e-3
# to which share the weights of a round are found
WEIGHED_TO = 1e-4
MAX_GUESSES = 6
# columns with less than this share of a mean weight are let go
MIN_WEIGHT_HELD = 0.01
SEED_OF_WALKS = 0


def guessed_columns(
    steps: Floats, theta: Floats, criterion: Criterion
) -> tuple[Floats, Floats, float]:
    """Logs of columns on a path with the given steps, their weights, and a bound on every private channel."""
    if steps.sum() > 2 * MAX_LOG:
        raise ValueError(
            f"epsilon times the distances must be at most {2 * MAX_LOG:g} from one end of the line to the other, "
            f"got {steps.sum():g}; take fewer secrets or a smaller epsilon"
        )
    k = len(theta)
    basis, rng = contrasts(k), np.random.Generator(np.random.PCG64(SEED_OF_WALKS))
    relaxation = relaxed(steps, theta, criterion)
    bound = relaxation.bound
    many = int(WALKS_FOR_A_MOMENT * k * (k + 1) / 2)
    walks = _walks(relaxation, steps, many, rng)
    walks = wandered(
        walks,
        Tangent.of(relaxation.dual, basis, theta),
        (1 - SHARE_BELOW) * relaxation.highest,
        rng,
    )
    logs, left = distinct(np.vstack([first_columns(steps), walks])), np.inf
    best, near = (logs, np.empty(0)), NEAR_ENOUGH if k < SECRETS_OF_MANY else NEAR_ENOUGH_OF_MANY
    for _ in range(MAX_GUESSES):
        points, sizes = deviations(logs, theta)
        points = points @ basis
        weights, value, dual = many_weights(
            points, sizes / sizes.sum(), criterion, bound, WEIGHED_TO
        )
        before, now = left, 1 - bound / value
        if now < before:
            best, left = (logs, weights), now
        if left <= near or now > (1 - MIN_CLOSED) * before:
            break
        level = float(
            (((points @ dual.quadratic) * points).sum(axis=1) - points @ dual.linear).max()
        )
        held = logs[weights > MIN_WEIGHT_HELD * weights.mean()]
        starts = held[rng.permutation(len(held))[:many]]
        logs = distinct(
            np.vstack([held, wandered(starts, Tangent.of(dual, basis, theta), level, rng)])
        )
    return *best, bound


def _walks(relaxation: Relaxed, steps: Floats, many: int, rng: np.random.Generator) -> Floats:
    """Logs of walks whose steps go up together as often as the relaxed products say: signs of Gaussians."""
    n = len(steps)
    products = relaxation.products
    same, other = products[:n, :n] + products[n:, n:], products[:n, n:] + products[n:, :n]
    values, vectors = np.linalg.eigh(np.sin(np.pi / 2 * (same - other) / (same + other)))
    drawn = rng.standard_normal((many, n)) * np.sqrt(np.maximum(values, 0))
    signs = np.where(drawn @ vectors.T > 0, 1.0, -1.0)
    return np.column_stack([np.zeros(many), np.cumsum(signs * steps, axis=1)])
