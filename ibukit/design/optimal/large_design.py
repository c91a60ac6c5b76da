"""Weights of thousands of columns: an interior-point method without matrices of d^4 entries.

It is the method of `column_weights`, except that each step is made in coordinates in which the
current J is the identity: there the inverse of the criterion's curvature is diagonal up to d rows,
and the moments of the columns are the only large matrix.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor
from tqdm import tqdm

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_weights import (
    FEASIBILITY_TOLERANCE,
    MAX_ITERATIONS,
    Criterion,
    Dual,
    WeightsNewtonSystem,
)
from ibukit.design.optimal.whitening import Pairs, WhitenedCriterion


def large_optimal_design(
    points: Floats,
    weights: Floats,
    criterion: Criterion,
    bound: float,
    tolerance: float,
    kinds: Ints | None = None,
) -> tuple[Floats, float, Dual]:
    """Optimal weights, their value, and the tangent with the highest bound for these points.

    The method ends when the value is within the share `tolerance` of `bound` or of the best that
    these columns can reach. With `kinds` each point stands for itself and its mirror images, in
    which the coordinates of some kinds are negated: then the moments between different kinds are 0,
    and only those of kind 0, which is never negated, have a mean.
    """
    n, d = points.shape
    kinds = np.zeros(d, dtype=np.int64) if kinds is None else kinds
    kept, same_kind = np.flatnonzero(kinds == 0), kinds[:, None] == kinds
    pairs, target, ones = Pairs.of(d).among(kinds), np.append(np.zeros(len(kept)), 1.0), np.ones(n)
    multipliers, slacks = np.zeros(len(kept) + 1), np.empty(0)
    best, lowest, best_bound = weights, np.inf, 0.0
    dual = Dual(0.0, np.zeros((d, d)), np.zeros(d), criterion.degree)
    for _ in tqdm(
        range(MAX_ITERATIONS), desc="weights", unit=" steps", leave=False, disable=None, delay=1
    ):
        # Averaging over the images makes J block diagonal, one block for each kind.
        information = np.where(same_kind, (points.T * weights) @ points, 0)
        root = np.asarray(np.linalg.cholesky(information), dtype=np.float64)
        frame = WhitenedCriterion.at(root, criterion, kinds)
        local = np.asarray(np.linalg.solve(frame.root, points.T).T, dtype=np.float64)
        scores = local**2 @ frame.gradient
        constraints = np.column_stack([local[:, kept], ones])
        primal = target - weights @ constraints
        linear = np.zeros(d)
        linear[kept] = multipliers[:-1]
        highest = float((scores - points @ linear).max())
        inverse = np.linalg.inv(frame.root)
        # The tangent is turned back to the coordinates of `points` before it is compared or kept.
        quadratic = (inverse.T * frame.gradient) @ inverse
        tangent = Dual(frame.value, quadratic, linear, criterion.degree)
        if highest > 0 and tangent.bound(highest) > best_bound:
            dual, best_bound = tangent, tangent.bound(highest)
        if np.abs(primal).max() < FEASIBILITY_TOLERANCE and frame.value < lowest:
            best, lowest = weights, frame.value
        if max(best_bound, bound) >= (1 - tolerance) * lowest:
            break
        if not slacks.size:
            # The first slacks are made feasible: nu_0 lies above the highest score.
            multipliers[-1] = 1.1 * scores.max()
            slacks = multipliers[-1] - scores
        moments = np.column_stack([pairs.squares(local), constraints])
        dual_residual = np.column_stack([points[:, kept], ones]) @ multipliers - scores - slacks
        try:
            residuals = dual_residual, primal
            newton = _newton_system(moments, frame, pairs, weights, slacks, residuals)
        except np.linalg.LinAlgError:
            # Rounding makes the system singular near the end.
            break
        length, (first, second, turned) = newton.centred()
        weights, slacks = weights + length * first, slacks + length * second
        # The step's multipliers belong to whitened coordinates, the others to those of the points.
        back = inverse[np.ix_(kept, kept)].T
        multipliers = multipliers + length * np.append(back @ turned[:-1], turned[-1])
    return best, lowest, dual


def _newton_system(
    moments: Floats,
    frame: WhitenedCriterion,
    pairs: Pairs,
    weights: Floats,
    slacks: Floats,
    residuals: tuple[Floats, Floats],
) -> WeightsNewtonSystem:
    rows = len(residuals[1])
    # The Gram matrix of the moments with weights a / s, plus the inverse of the criterion's
    # curvature: a diagonal plus a few rows instead of a full inverse.
    rooted = moments * np.sqrt(weights / slacks)[:, None]
    matrix = rooted.T @ rooted
    constraints = np.asarray(np.linalg.inv(matrix[-rows:, -rows:]), dtype=np.float64)
    diagonal, added = frame.inverse_curvature(pairs)
    matrix[:-rows, :-rows] += added.T @ added
    matrix[np.diag_indices(len(diagonal))] += diagonal
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return WeightsNewtonSystem(moments, weights, slacks, residuals, factor, constraints)
