"""Hill climbing: the best private channel where columns cannot be listed or priced, as on a grid.

Columns climb on a tangent of the criterion until no small move raises them. The first columns are
waves, in batches. Each batch climbs on a tangent at a J between that of the batches before and the
J that the relaxation of `patch_relaxation` finds best, so that each batch seeks what is missing.
The later columns are those of the last design, perturbed. The design of all these columns gives the
next tangent. The bound of the relaxation holds whichever columns are missed; the gap shows the cost
of both.
"""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.column_weights import Criterion
from ibukit.design.optimal.grids.local_search import hill_climb, scores, within_bounds
from ibukit.design.optimal.grids.patch_relaxation import solve_patch_relaxation
from ibukit.design.optimal.grids.reflections import Reflections
from ibukit.design.optimal.large_design import large_optimal_design
from ibukit.design.optimal.path_neighbours import Tangent
from ibukit.design.optimal.path_pricing import MAX_LOG
from ibukit.design.optimal.path_relaxation import RelaxationBound
from ibukit.fisher_information import contrasts

# Waves of a batch, and perturbed columns of a round, for each moment that the columns are to match.
WAVES_PER_MOMENT, PERTURBED_PER_MOMENT = 0.15, 0.25
# This number is added to both, because reflections leave few moments to match.
MIN_STARTS = 80
# Number of batches; later ones would add little. The tangent of a batch has this share of the
# relaxation's J.
BATCHES, RELAXATION_SHARE = 5, 0.5
# Factors that multiply the waves drawn from a Gaussian, and standard deviations of perturbations in
# units of the shortest step.
WAVE_HEIGHTS, PERTURBATION_SIZES = (1.0, 2.0, 4.0), (0.2, 0.5)
# Standard deviation of nearly constant columns, in units of the shortest step.
NEAR_CONSTANT_SPREAD = 0.002
# Relative accuracy of a round's weights: GAP_SHARE of the gap before it, within these limits.
MIN_WEIGHTS_TOLERANCE, MAX_WEIGHTS_TOLERANCE, GAP_SHARE = 1e-3, 1e-2, 0.03
# Rounds end when one lowers the value by less than this share, or when no column scores more.
MIN_DECREASE, MAX_CLIMBS = 5e-4, 40
# With more secrets a round takes long: the number of rounds falls as k^3, to 2 at least, and each
# has to lower the value by more.
LARGE_K, MIN_DECREASE_LARGE_K = 45, 2e-3
# Number of searches for columns that score more.
MAX_TRIES = 3
# Columns whose weight is below this share of the mean are dropped.
MIN_WEIGHT_KEPT = 0.01
WAVES_SEED = 0


def climbed_columns(
    distances: Floats, theta: Floats, criterion: Criterion
) -> tuple[Floats, Floats, float]:
    """Logs of columns, their weights, and a bound on every private channel; distances in nats."""
    if distances.max() > 2 * MAX_LOG:
        raise ValueError(
            f"epsilon times the distances must be at most {2 * MAX_LOG:g}, "
            f"got {distances.max():g}; take fewer secrets or a smaller epsilon"
        )
    k = len(theta)
    reflections = Reflections.of(distances, theta)
    rng = np.random.Generator(np.random.PCG64(WAVES_SEED))
    basis, kinds, images = reflections.basis, reflections.kinds, len(reflections.images)
    measure = Criterion(criterion.loadings @ reflections.in_contrasts(), criterion.roots)
    max_starts = int(PERTURBED_PER_MOMENT * k * (k + 1) / 2 / images) + MIN_STARTS
    relaxation = solve_patch_relaxation(distances, theta, criterion)
    climbed = _climb_in_batches(relaxation, distances, theta, measure, reflections, rng)
    logs = np.vstack([-distances, distances, climbed])
    logs = reflections.unique_up_to_symmetry(logs, distances)
    best, lowest = logs, np.inf
    is_small = k**3 <= LARGE_K**3 * images
    min_decrease, rounds = MIN_DECREASE if is_small else MIN_DECREASE_LARGE_K, MAX_CLIMBS
    if not is_small:
        rounds = max(2, int(MAX_CLIMBS * (LARGE_K / k) ** 3 * images))
    for round_index in range(rounds):
        points, sizes = deviations(logs, theta)
        points = points @ basis
        gap = 1 - relaxation.bound / lowest
        tolerance = min(max(GAP_SHARE * gap, MIN_WEIGHTS_TOLERANCE), MAX_WEIGHTS_TOLERANCE)
        weights, value, dual = large_optimal_design(
            points, sizes / sizes.sum(), measure, relaxation.bound, tolerance, kinds
        )
        lowered = 1 - value / lowest
        if value < lowest:
            best, lowest = logs, value
        if round_index == rounds - 1 or lowered < min_decrease:
            break
        tangent = Tangent.of(dual, basis, theta)
        level = float(scores(logs, tangent).max())
        kept = logs[weights > MIN_WEIGHT_KEPT * weights.mean()]
        better = _higher_scoring(kept, max_starts, level, tangent, distances, rng)
        if not len(better):
            break
        logs = reflections.unique_up_to_symmetry(np.vstack([kept, better]), distances)
    # The weights of the rounds were rough: the best columns get accurate ones.
    points, sizes = deviations(best, theta)
    weights, _, _ = large_optimal_design(
        points @ basis, sizes / sizes.sum(), measure, relaxation.bound, MIN_WEIGHTS_TOLERANCE, kinds
    )
    return reflections.spread(best), np.tile(weights / images, images), relaxation.bound


def _higher_scoring(
    kept: Floats,
    max_starts: int,
    level: float,
    tangent: Tangent,
    distances: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Columns that score more than a level, climbing from kept, perturbed and constant ones."""
    shortest = distances[distances > 0].min()
    for _ in range(MAX_TRIES):
        starts = kept[rng.permutation(len(kept))[:max_starts]]
        perturbed = [
            within_bounds(starts + by * shortest * rng.standard_normal(starts.shape), distances)
            for by in PERTURBATION_SIZES
        ]
        near_constant = (
            NEAR_CONSTANT_SPREAD * shortest * rng.standard_normal((len(starts), len(distances)))
        )
        climbed = hill_climb(
            np.vstack([starts, *perturbed, near_constant]), distances, tangent, rng
        )
        better = climbed[scores(climbed, tangent) > level]
        if len(better):
            return better
    return np.empty((0, len(distances)))


def _climb_in_batches(
    relaxation: RelaxationBound,
    distances: Floats,
    theta: Floats,
    criterion: Criterion,
    reflections: Reflections,
    rng: np.random.Generator,
) -> Floats:
    """First columns in batches; each batch's waves and tangent aim at what those before it miss."""
    k = len(theta)
    basis, to_contrasts = reflections.basis, reflections.in_contrasts()
    count = int(WAVES_PER_MOMENT * k * (k + 1) / 2 / len(reflections.images)) + MIN_STARTS
    # Scale the relaxation's J so that it attains the bound.
    target_information = to_contrasts.T @ relaxation.information @ to_contrasts
    target_information *= criterion.value(target_information) / relaxation.bound
    tangent, missing_information = (
        Tangent.of(relaxation.dual, contrasts(k), theta),
        target_information,
    )
    logs = np.empty((0, k))
    for _ in range(BATCHES):
        climbed = hill_climb(
            _waves(missing_information, basis, count, distances, rng), distances, tangent, rng
        )
        logs = reflections.unique_up_to_symmetry(np.vstack([logs, climbed]), distances)
        points = deviations(logs, theta)[0] @ basis
        current_information = np.where(reflections.same_kind(), points.T @ points / len(points), 0)
        # Gradient of the criterion at a J between that of the columns so far and the one aimed at:
        # G = J^-1 (sum_j l_j l_j^T) J^-1 is large in the directions that the columns lack.
        inverse = np.linalg.inv(
            (1 - RELAXATION_SHARE) * current_information + RELAXATION_SHARE * target_information
        )
        loadings = basis @ inverse @ criterion.loadings.T
        tangent = Tangent(loadings @ loadings.T, contrasts(k) @ relaxation.dual.linear, theta)
        missing_information = target_information @ inverse @ target_information
    return logs


def _waves(
    information: Floats, basis: Floats, count: int, distances: Floats, rng: np.random.Generator
) -> Floats:
    """Logs of private columns near Gaussians with a given covariance, of several heights."""
    root = basis @ np.linalg.cholesky(information)
    drawn = rng.standard_normal((count, root.shape[1])) @ root.T
    heights = np.resize(WAVE_HEIGHTS, count)[:, None]
    return within_bounds(drawn * heights, distances)
