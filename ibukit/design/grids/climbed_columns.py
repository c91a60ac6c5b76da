"""The best private channel where the bounds are no path and columns cannot be listed, as on a grid.

Columns climb on a tangent of the criterion to where no small move raises them: at first from waves, in batches, each on
the tangent between what the batches before have and the J that the relaxation of `patch_relaxation` finds best, so
that each batch seeks what is missing; then from the columns of the last design, shaken. A design of them gives the next
tangent. Whatever columns are missed, the bound of the relaxation holds; the gap tells the cost of both.
"""

from __future__ import annotations

import numpy as np

from ibukit._validate import Floats
from ibukit.design._generated_columns import deviations
from ibukit.design._many_weights import many_weights
from ibukit.design._optimal_weights import Criterion
from ibukit.design._path_pricing import LARGEST_LOG
from ibukit.design._path_relaxation import Relaxed
from ibukit.design._path_turns import Tangent
from ibukit.design.grids.column_moves import risen, scores, unlike, within_bounds
from ibukit.design.grids.patch_relaxation import relaxed_by_patches
from ibukit.information import contrasts

# waves of a batch for each moment that columns are to match, and columns shaken in each round
WAVES_FOR_A_MOMENT, SHAKEN_FOR_A_MOMENT = 0.15, 0.25
# later batches would bring little that is new; a tangent between two has this share of the relaxation's J
BATCHES, SHARE_OF_RELAXED = 5, 0.5
# heights of waves, as multiples of what the covariance says, and how far columns are shaken, in shortest steps
HEIGHTS, SHAKEN_BY = (1.0, 2.0, 4.0), (0.2, 0.5)
# columns that climb from near the ground have this share of the shortest step for a spread
LOW = 0.002
# to which share the weights of a round are found: of the gap that the last left, but not less nor more than this
CLIMBED_TO, LOOSELY, SHARE_OF_GAP = 1e-3, 1e-2, 0.03
# the rounds end where one lowers the value by less than this share of it, or no column is left that scores more
LEAST_LOWERED, MOST_CLIMBS = 5e-4, 40
# with more secrets a round takes long: their number falls as k^3, to no less than two, and each is to lower by so much
SECRETS_OF_MANY_CLIMBS, LEAST_LOWERED_OF_MANY = 36, 5e-3
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
    shortest, most = distances[distances > 0].min(), int(SHAKEN_FOR_A_MOMENT * k * (k + 1) / 2) + 1
    relaxation = relaxed_by_patches(distances, theta, criterion)
    logs = unlike(
        np.vstack([-distances, distances, _gathered(relaxation, distances, theta, criterion, rng)]), distances
    )
    best, least = (logs, np.empty(0)), np.inf
    few = k <= SECRETS_OF_MANY_CLIMBS
    enough, climbs = LEAST_LOWERED if few else LEAST_LOWERED_OF_MANY, MOST_CLIMBS
    if not few:
        climbs = max(2, int(MOST_CLIMBS * (SECRETS_OF_MANY_CLIMBS / k) ** 3))
    for climb in range(climbs):
        points, sizes = deviations(logs, theta)
        points = points @ basis
        near = min(max(SHARE_OF_GAP * (1 - relaxation.bound / least), CLIMBED_TO), LOOSELY)
        weights, value, dual = many_weights(points, sizes / sizes.sum(), criterion, relaxation.bound, near)
        lowered = 1 - value / least
        if value < least:
            best, least = (logs, weights), value
        if climb == climbs - 1 or lowered < enough:
            break
        tangent = Tangent.of(dual, basis, theta)
        level = float(scores(logs, tangent).max())
        held = logs[weights > LEAST_WEIGHT_CLIMBED * weights.mean()]
        starts = held[rng.permutation(len(held))[:most]]
        shaken = [
            within_bounds(starts + by * shortest * rng.standard_normal(starts.shape), distances) for by in SHAKEN_BY
        ]
        fresh = LOW * shortest * rng.standard_normal((len(starts), k))
        found = risen(np.vstack([starts, *shaken, fresh]), distances, tangent, rng)
        above = found[scores(found, tangent) > level]
        if not len(above):
            break
        logs = unlike(np.vstack([held, above]), distances)
    return *best, relaxation.bound


def _gathered(
    relaxation: Relaxed, distances: Floats, theta: Floats, criterion: Criterion, rng: np.random.Generator
) -> Floats:
    """Columns that climb in batches, the waves of each and its tangent turned to what those before it lack."""
    k = len(theta)
    basis, many = contrasts(k), int(WAVES_FOR_A_MOMENT * k * (k + 1) / 2)
    # the size of a J that attains the bound
    wanted = relaxation.information * criterion.value(relaxation.information) / relaxation.bound
    tangent, lacking = Tangent.of(relaxation.dual, basis, theta), wanted
    logs = np.empty((0, k))
    for _ in range(BATCHES):
        found = risen(_waves(lacking, basis, many, distances, rng), distances, tangent, rng)
        logs = unlike(np.vstack([logs, found]), distances)
        points = deviations(logs, theta)[0] @ basis
        between = (1 - SHARE_OF_RELAXED) * points.T @ points / len(points) + SHARE_OF_RELAXED * wanted
        inverse = np.linalg.inv(between)
        ways = basis @ inverse @ criterion.loadings.T
        tangent = Tangent(ways @ ways.T, basis @ relaxation.dual.linear, theta)
        lacking = wanted @ inverse @ wanted
    return logs


def _waves(information: Floats, basis: Floats, many: int, distances: Floats, rng: np.random.Generator) -> Floats:
    """Logs of private columns near Gaussians of that covariance, of several heights."""
    root = basis @ np.linalg.cholesky(information)
    drawn = rng.standard_normal((many, root.shape[1])) @ root.T
    heights = np.resize(HEIGHTS, many)[:, None]
    return within_bounds(drawn * heights, distances)
