"""The best private channel where the bounds are no path and columns cannot be listed, as on a grid.

Columns climb on a tangent of the criterion to where no small move raises them: at first from waves,
in batches, each on the tangent between what the batches before have and the J that the relaxation
of `patch_relaxation` finds best, so that each batch seeks what is missing; then from the columns of
the last design, shaken. A design of them gives the next tangent. Whatever columns are missed, the
bound of the relaxation holds; the gap tells the cost of both.
"""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.column_weights import Criterion
from ibukit.design.optimal.grids.local_search import risen, scores, within_bounds
from ibukit.design.optimal.grids.patch_relaxation import relaxed_by_patches
from ibukit.design.optimal.grids.reflections import Reflections
from ibukit.design.optimal.large_design import many_weights
from ibukit.design.optimal.path_neighbours import Tangent
from ibukit.design.optimal.path_pricing import MAX_LOG
from ibukit.design.optimal.path_relaxation import Relaxed
from ibukit.fisher_information import contrasts

# waves of a batch for each moment that columns are to match, and columns shaken in each round
WAVES_FOR_A_MOMENT, SHAKEN_FOR_A_MOMENT = 0.15, 0.25
# and so many more of each: with reflections moments are few
MORE_WAVES = 80
# later batches would bring little that is new; a tangent between two has this share of the
# relaxation's J
BATCHES, SHARE_OF_RELAXED = 5, 0.5
# heights of waves, as multiples of what the covariance says, and how far columns are shaken, in
# shortest steps
HEIGHTS, SHAKEN_BY = (1.0, 2.0, 4.0), (0.2, 0.5)
# columns that climb from near the ground have this share of the shortest step for a spread
LOW = 0.002
# to which share the weights of a round are found: of the gap that the last left, but not less nor
# more than this
CLIMBED_TO, LOOSELY, SHARE_OF_GAP = 1e-3, 1e-2, 0.03
# the rounds end where one lowers the value by less than this share of it, or no column is left that
# scores more
MIN_LOWERED, MAX_CLIMBS = 5e-4, 40
# with more secrets a round takes long: their number falls as k^3, to no less than two, and each is
# to lower by so much
SECRETS_OF_MANY_CLIMBS, MIN_LOWERED_OF_MANY = 45, 2e-3
# where none that is found scores more, others are sought so many times in all
TRIES_TO_RISE = 3
# columns with less than this share of a mean weight are let go
MIN_WEIGHT_CLIMBED = 0.01
SEED_OF_WAVES = 0


def climbed_columns(
    distances: Floats, theta: Floats, criterion: Criterion
) -> tuple[Floats, Floats, float]:
    """Logs of columns, their weights, and a bound on every private channel; distances are in nats."""
    if distances.max() > 2 * MAX_LOG:
        raise ValueError(
            f"epsilon times the distances must be at most {2 * MAX_LOG:g}, got {distances.max():g}; take fewer "
            "secrets or a smaller epsilon"
        )
    k = len(theta)
    reflections, rng = (
        Reflections.of(distances, theta),
        np.random.Generator(np.random.PCG64(SEED_OF_WAVES)),
    )
    basis, kinds, images = reflections.basis, reflections.kinds, len(reflections.images)
    measure = Criterion(criterion.loadings @ reflections.of_contrasts(), criterion.roots)
    most = int(SHAKEN_FOR_A_MOMENT * k * (k + 1) / 2 / images) + MORE_WAVES
    relaxation = relaxed_by_patches(distances, theta, criterion)
    logs = reflections.unlike(
        np.vstack(
            [
                -distances,
                distances,
                _gathered(relaxation, distances, theta, measure, reflections, rng),
            ]
        ),
        distances,
    )
    best, least = logs, np.inf
    few = k**3 <= SECRETS_OF_MANY_CLIMBS**3 * images
    enough, climbs = MIN_LOWERED if few else MIN_LOWERED_OF_MANY, MAX_CLIMBS
    if not few:
        climbs = max(2, int(MAX_CLIMBS * (SECRETS_OF_MANY_CLIMBS / k) ** 3 * images))
    for climb in range(climbs):
        points, sizes = deviations(logs, theta)
        points = points @ basis
        near = min(max(SHARE_OF_GAP * (1 - relaxation.bound / least), CLIMBED_TO), LOOSELY)
        weights, value, dual = many_weights(
            points, sizes / sizes.sum(), measure, relaxation.bound, near, kinds
        )
        lowered = 1 - value / least
        if value < least:
            best, least = logs, value
        if climb == climbs - 1 or lowered < enough:
            break
        tangent = Tangent.of(dual, basis, theta)
        level = float(scores(logs, tangent).max())
        held = logs[weights > MIN_WEIGHT_CLIMBED * weights.mean()]
        above = _above(held, most, level, tangent, distances, rng)
        if not len(above):
            break
        logs = reflections.unlike(np.vstack([held, above]), distances)
    # the rounds weighed loosely
    points, sizes = deviations(best, theta)
    weights, _, _ = many_weights(
        points @ basis, sizes / sizes.sum(), measure, relaxation.bound, CLIMBED_TO, kinds
    )
    return reflections.spread(best), np.tile(weights / images, images), relaxation.bound


def _above(
    held: Floats,
    most: int,
    level: float,
    tangent: Tangent,
    distances: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Columns that score more than that, from those that are held, the same shaken, and new ones."""
    shortest = distances[distances > 0].min()
    for _ in range(TRIES_TO_RISE):
        starts = held[rng.permutation(len(held))[:most]]
        shaken = [
            within_bounds(starts + by * shortest * rng.standard_normal(starts.shape), distances)
            for by in SHAKEN_BY
        ]
        fresh = LOW * shortest * rng.standard_normal((len(starts), len(distances)))
        found = risen(np.vstack([starts, *shaken, fresh]), distances, tangent, rng)
        above = found[scores(found, tangent) > level]
        if len(above):
            return above
    return np.empty((0, len(distances)))


def _gathered(
    relaxation: Relaxed,
    distances: Floats,
    theta: Floats,
    criterion: Criterion,
    reflections: Reflections,
    rng: np.random.Generator,
) -> Floats:
    """Columns that climb in batches, the waves of each and its tangent turned to what those before it lack."""
    k = len(theta)
    basis, back = reflections.basis, reflections.of_contrasts()
    many = int(WAVES_FOR_A_MOMENT * k * (k + 1) / 2 / len(reflections.images)) + MORE_WAVES
    # the size of a J that attains the bound
    wanted = back.T @ relaxation.information @ back
    wanted *= criterion.value(wanted) / relaxation.bound
    tangent, lacking = Tangent.of(relaxation.dual, contrasts(k), theta), wanted
    logs = np.empty((0, k))
    for _ in range(BATCHES):
        found = risen(_waves(lacking, basis, many, distances, rng), distances, tangent, rng)
        logs = reflections.unlike(np.vstack([logs, found]), distances)
        points = deviations(logs, theta)[0] @ basis
        met = np.where(reflections.alike(), points.T @ points / len(points), 0)
        inverse = np.linalg.inv((1 - SHARE_OF_RELAXED) * met + SHARE_OF_RELAXED * wanted)
        ways = basis @ inverse @ criterion.loadings.T
        tangent = Tangent(ways @ ways.T, contrasts(k) @ relaxation.dual.linear, theta)
        lacking = wanted @ inverse @ wanted
    return logs


def _waves(
    information: Floats, basis: Floats, many: int, distances: Floats, rng: np.random.Generator
) -> Floats:
    """Logs of private columns near Gaussians of that covariance, of several heights."""
    root = basis @ np.linalg.cholesky(information)
    drawn = rng.standard_normal((many, root.shape[1])) @ root.T
    heights = np.resize(HEIGHTS, many)[:, None]
    return within_bounds(drawn * heights, distances)
