"""The best private channel where the bounds are no path and columns cannot be listed, as on a grid.

Columns climb on a tangent of the criterion to where no small move raises them: from waves drawn with the covariance
that the relaxation of `_patch_relaxation` finds best, and from the columns of the last design, shaken. A design of them
gives the next tangent. Whatever columns are missed, the bound of the relaxation holds; the gap tells the cost of both.
"""

from __future__ import annotations

import numpy as np

from ibukit._validate import Floats
from ibukit.design._column_moves import risen, scores, unlike, within_bounds
from ibukit.design._generated_columns import deviations
from ibukit.design._many_weights import many_weights
from ibukit.design._optimal_weights import Criterion
from ibukit.design._patch_relaxation import relaxed_by_patches
from ibukit.design._path_pricing import LARGEST_LOG
from ibukit.design._path_turns import Tangent
from ibukit.information import contrasts

# waves at first, for each moment that columns are to match, and columns shaken in each round
WAVES_FOR_A_MOMENT, SHAKEN_FOR_A_MOMENT = 0.5, 0.25
# their heights, as multiples of what the covariance says, and how far columns are shaken, in shortest steps
HEIGHTS, SHAKEN_BY = (1.0, 2.0, 4.0), (0.2, 0.5)
# columns that climb from near the ground have this share of the shortest step for a spread
LOW = 0.002
# to which share the weights of a round are found
CLIMBED_TO = 1e-3
# the rounds end where one lowers the value by less than this share of it, or no column is left that scores more
LEAST_LOWERED, MOST_CLIMBS = 5e-4, 40
# columns with less than this share of a mean weight are let go
LEAST_WEIGHT_CLIMBED = 0.01
SEED_OF_WAVES = 0


def climbed_columns(distances: Floats, theta: Floats, criterion: Criterion) -> tuple[Floats, Floats, float]:
    """Logs of columns, their weights, and a bound on every private channel; distances are in nats."""
    if distances.max() > 2 * LARGEST_LOG:
        raise ValueError(
            f"epsilon times the distances must be at most {2 * LARGEST_LOG:g}, got {distances.max():g}; take fewer "
            "secrets or a smaller epsilon"
        )
    k = len(theta)
    basis, rng = contrasts(k), np.random.Generator(np.random.PCG64(SEED_OF_WAVES))
    moments, shortest = k * (k + 1) / 2, distances[distances > 0].min()
    relaxation = relaxed_by_patches(distances, theta, criterion)
    tangent = Tangent.of(relaxation.dual, basis, theta)
    waves = _waves(relaxation.information, basis, int(WAVES_FOR_A_MOMENT * moments), distances, rng)
    logs = unlike(np.vstack([-distances, distances, risen(waves, distances, tangent, rng)]), distances)
    best, least = (logs, np.empty(0)), np.inf
    for _ in range(MOST_CLIMBS):
        points, sizes = deviations(logs, theta)
        points = points @ basis
        weights, value, dual = many_weights(points, sizes / sizes.sum(), criterion, relaxation.bound, CLIMBED_TO)
        lowered = 1 - value / least
        if value < least:
            best, least = (logs, weights), value
        tangent = Tangent.of(dual, basis, theta)
        level = float(scores(logs, tangent).max())
        held = logs[weights > LEAST_WEIGHT_CLIMBED * weights.mean()]
        starts = held[rng.permutation(len(held))[: int(SHAKEN_FOR_A_MOMENT * moments) + 1]]
        shaken = [
            within_bounds(starts + by * shortest * rng.standard_normal(starts.shape), distances) for by in SHAKEN_BY
        ]
        fresh = LOW * shortest * rng.standard_normal((len(starts), k))
        found = risen(np.vstack([starts, *shaken, fresh]), distances, tangent, rng)
        above = found[scores(found, tangent) > level]
        if lowered < LEAST_LOWERED or not len(above):
            break
        logs = unlike(np.vstack([held, above]), distances)
    return *best, relaxation.bound


def _waves(information: Floats, basis: Floats, many: int, distances: Floats, rng: np.random.Generator) -> Floats:
    """Logs of private columns near Gaussians of that covariance, of several heights."""
    root = basis @ np.linalg.cholesky(information)
    drawn = rng.standard_normal((many, root.shape[1])) @ root.T
    heights = np.resize(HEIGHTS, many)[:, None]
    return within_bounds(drawn * heights, distances)
