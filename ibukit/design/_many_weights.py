"""Weights of thousands of columns: the interior-point method of `_optimal_weights` without matrices of d^4 entries.

Each step is made in the coordinates in which the J at hand is round: there the inverse of the criterion's curvature is
diagonal but for d rows, and the moments of the columns are the only large matrix.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor
from tqdm import tqdm

from ibukit._validate import Floats
from ibukit.design._optimal_weights import FEASIBLE, MAX_ITER, Criterion, Dual, Newton
from ibukit.design._round_frame import Frame, Pairs


def many_weights(
    points: Floats, weights: Floats, criterion: Criterion, bound: float, near: float
) -> tuple[Floats, float, Dual]:
    """Weights, their value, and the tangent with the highest bound on designs of these columns.

    It ends where the value is within the share `near` of `bound` or of what these columns can reach.
    """
    n, d = points.shape
    pairs, wanted, ones = Pairs.of(d), np.append(np.zeros(d), 1.0), np.ones(n)
    multipliers, slacks = np.zeros(d + 1), np.empty(0)
    best, least, bounded = weights, np.inf, 0.0
    dual = Dual(0.0, np.zeros((d, d)), np.zeros(d), criterion.degree)
    for _ in tqdm(range(MAX_ITER), desc="weights", unit=" steps", leave=False, disable=None, delay=1):
        root = np.asarray(np.linalg.cholesky((points.T * weights) @ points), dtype=np.float64)
        frame = Frame.at(root, criterion)
        local = np.asarray(np.linalg.solve(frame.root, points.T).T, dtype=np.float64)
        scores = local**2 @ frame.gradient
        constraints = np.column_stack([local, ones])
        missing = wanted - weights @ constraints
        highest = float((scores - points @ multipliers[:-1]).max())
        inverse = np.linalg.inv(frame.root)
        tangent = Dual(frame.value, (inverse.T * frame.gradient) @ inverse, multipliers[:-1].copy(), criterion.degree)
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
        off = np.column_stack([points, ones]) @ multipliers - scores - slacks
        try:
            newton = _newton(moments, frame, pairs, weights, slacks, off, missing)
        except np.linalg.LinAlgError:
            break  # the end of what doubles can tell
        far, (ahead, behind, turned) = newton.centred()
        weights, slacks = weights + far * ahead, slacks + far * behind
        multipliers = multipliers + far * np.append(inverse.T @ turned[:-1], turned[-1])
    return best, least, dual


def _newton(
    moments: Floats, frame: Frame, pairs: Pairs, weights: Floats, slacks: Floats, off: Floats, missing: Floats
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
