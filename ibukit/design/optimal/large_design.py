"""Weights of thousands of columns: the interior-point method of `_optimal_weights` without matrices of d^4 entries.

Each step is made in the coordinates in which the J at hand is round: there the inverse of the
criterion's curvature is diagonal but for d rows, and the moments of the columns are the only large
matrix.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor
from tqdm import tqdm

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_weights import FEASIBLE, MAX_ITER, Criterion, Dual, Newton
from ibukit.design.optimal.whitening import Frame, Pairs


def many_weights(
    points: Floats,
    weights: Floats,
    criterion: Criterion,
    bound: float,
    near: float,
    kinds: Ints | None = None,
) -> tuple[Floats, float, Dual]:
    """Weights, their value, and the tangent with the highest bound on designs of these columns.

    It ends where the value is within the share `near` of `bound` or of what these columns can
    reach. With kinds of coordinates each point stands for itself and its images, with some kinds
    negated, so that the moments of different kinds are 0; those of kind 0 are never negated.
    """
    n, d = points.shape
    kinds = np.zeros(d, dtype=np.int64) if kinds is None else kinds
    kept, alike = np.flatnonzero(kinds == 0), kinds[:, None] == kinds
    pairs, wanted, ones = Pairs.of(d).among(kinds), np.append(np.zeros(len(kept)), 1.0), np.ones(n)
    multipliers, slacks = np.zeros(len(kept) + 1), np.empty(0)
    best, least, bounded = weights, np.inf, 0.0
    dual = Dual(0.0, np.zeros((d, d)), np.zeros(d), criterion.degree)
    for _ in tqdm(
        range(MAX_ITER), desc="weights", unit=" steps", leave=False, disable=None, delay=1
    ):
        information = np.where(alike, (points.T * weights) @ points, 0)
        root = np.asarray(np.linalg.cholesky(information), dtype=np.float64)
        frame = Frame.at(root, criterion, kinds)
        local = np.asarray(np.linalg.solve(frame.root, points.T).T, dtype=np.float64)
        scores = local**2 @ frame.gradient
        constraints = np.column_stack([local[:, kept], ones])
        missing = wanted - weights @ constraints
        linear = np.zeros(d)
        linear[kept] = multipliers[:-1]
        highest = float((scores - points @ linear).max())
        inverse = np.linalg.inv(frame.root)
        tangent = Dual(
            frame.value, (inverse.T * frame.gradient) @ inverse, linear, criterion.degree
        )
        if highest > 0 and tangent.bound(highest) > bounded:
            dual, bounded = tangent, tangent.bound(highest)
        if np.abs(missing).max() < FEASIBLE and frame.value < least:
            best, least = weights, frame.value
        if max(bounded, bound) >= (1 - near) * least:
            break
        if not slacks.size:
            multipliers[-1] = 1.1 * scores.max()
            slacks = multipliers[-1] - scores
        moments = np.column_stack([pairs.squares(local), constraints])
        off = np.column_stack([points[:, kept], ones]) @ multipliers - scores - slacks
        try:
            newton = _newton(moments, frame, pairs, weights, slacks, off, missing)
        except np.linalg.LinAlgError:
            break  # the end of what doubles can tell
        far, (ahead, behind, turned) = newton.centred()
        weights, slacks = weights + far * ahead, slacks + far * behind
        back = inverse[np.ix_(kept, kept)].T
        multipliers = multipliers + far * np.append(back @ turned[:-1], turned[-1])
    return best, least, dual


def _newton(
    moments: Floats,
    frame: Frame,
    pairs: Pairs,
    weights: Floats,
    slacks: Floats,
    off: Floats,
    missing: Floats,
) -> Newton:
    rows = len(missing)
    rooted = moments * np.sqrt(weights / slacks)[:, None]
    matrix = rooted.T @ rooted
    constraints = np.asarray(np.linalg.inv(matrix[-rows:, -rows:]), dtype=np.float64)
    diagonal, added = frame.inverse_curvature(pairs)
    matrix[:-rows, :-rows] += added.T @ added
    matrix[np.diag_indices(len(diagonal))] += diagonal
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return Newton(moments, weights, slacks, off, missing, factor, constraints)
