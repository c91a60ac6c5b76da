"""The best private channel on a path with too many columns to price exactly: a heuristic.

The relaxation gives a bound on all channels, and a tangent on which the columns of the best channel
score nearly the most that any column can. Random walks among columns with such scores are weighted;
if that is not enough, columns that score more on the tangent of their design are added. The bound
holds whichever columns are missed, and the gap shows the cost.
"""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.design.optimal.column_generation import deviations, distinct, first_columns
from ibukit.design.optimal.column_weights import Criterion
from ibukit.design.optimal.large_design import large_optimal_design
from ibukit.design.optimal.path_neighbours import Tangent, random_walk_above
from ibukit.design.optimal.path_pricing import MAX_LOG
from ibukit.design.optimal.path_relaxation import RelaxationBound, solve_path_relaxation
from ibukit.fisher_information import contrasts

# Number of walks at first, for each moment that the columns are to match.
WALKS_PER_MOMENT = 0.8
# Walks stay within this share of the highest score that any column can have.
SCORE_MARGIN = 0.003
# The rounds end when the gap is at most this share of the value, or when one reduced it by less
# than the second share.
GAP_TARGET, MIN_GAP_REDUCTION = 3e-4, 0.1
# From this number of secrets on a round takes minutes, and this gap is enough.
LARGE_K, GAP_TARGET_LARGE_K = 60, 1e-3
# Relative accuracy of the weights in a round.
WEIGHTS_TOLERANCE = 1e-4
MAX_ROUNDS = 6
# Columns whose weight is below this share of the mean are dropped.
MIN_WEIGHT_KEPT = 0.01
WALKS_SEED = 0


def guessed_columns(
    steps: Floats, theta: Floats, criterion: Criterion
) -> tuple[Floats, Floats, float]:
    """Logs of columns on a path, their weights, and a bound on every private channel."""
    if steps.sum() > 2 * MAX_LOG:
        raise ValueError(
            f"epsilon times the distances must be at most {2 * MAX_LOG:g} from one end of the line "
            f"to the other, got {steps.sum():g}; take fewer secrets or a smaller epsilon"
        )
    k = len(theta)
    basis, rng = contrasts(k), np.random.Generator(np.random.PCG64(WALKS_SEED))
    relaxation = solve_path_relaxation(steps, theta, criterion)
    bound = relaxation.bound
    walks_count = int(WALKS_PER_MOMENT * k * (k + 1) / 2)
    # Columns of the best design score nearly the relaxation's maximum: walk among such columns.
    walks = _walks(relaxation, steps, walks_count, rng)
    walks = random_walk_above(
        walks,
        Tangent.of(relaxation.dual, basis, theta),
        (1 - SCORE_MARGIN) * relaxation.highest,
        rng,
    )
    logs, gap = distinct(np.vstack([first_columns(steps), walks])), np.inf
    best, gap_target = (logs, np.empty(0)), GAP_TARGET if k < LARGE_K else GAP_TARGET_LARGE_K
    for _ in range(MAX_ROUNDS):
        points, sizes = deviations(logs, theta)
        points = points @ basis
        weights, value, dual = large_optimal_design(
            points, sizes / sizes.sum(), criterion, bound, WEIGHTS_TOLERANCE
        )
        previous, current = gap, 1 - bound / value
        if current < previous:
            best, gap = (logs, weights), current
        if gap <= gap_target or current > (1 - MIN_GAP_REDUCTION) * previous:
            break
        # New columns must score more than every column of this design on the design's own tangent.
        level = float(
            (((points @ dual.quadratic) * points).sum(axis=1) - points @ dual.linear).max()
        )
        kept = logs[weights > MIN_WEIGHT_KEPT * weights.mean()]
        starts = kept[rng.permutation(len(kept))[:walks_count]]
        logs = distinct(
            np.vstack([kept, random_walk_above(starts, Tangent.of(dual, basis, theta), level, rng)])
        )
    return *best, bound


def _walks(
    relaxation: RelaxationBound, steps: Floats, walks_count: int, rng: np.random.Generator
) -> Floats:
    """Logs of random columns whose steps rise together as often as the relaxed products say.

    The relaxation gives the second moments of pairs of forms. Signs of Gaussians with correlation
    rho agree with probability 1/2 + arcsin(rho) / pi, so sin turns the wanted frequencies into
    correlations.
    """
    n = len(steps)
    products = relaxation.products
    same, other = products[:n, :n] + products[n:, n:], products[:n, n:] + products[n:, :n]
    values, vectors = np.linalg.eigh(np.sin(np.pi / 2 * (same - other) / (same + other)))
    gaussian = rng.standard_normal((walks_count, n)) * np.sqrt(np.maximum(values, 0))
    signs = np.where(gaussian @ vectors.T > 0, 1.0, -1.0)
    return np.column_stack([np.zeros(walks_count), np.cumsum(signs * steps, axis=1)])
