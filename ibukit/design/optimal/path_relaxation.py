"""A bound on every private channel on a path without its columns: their second moments, relaxed.

Privacy on a path is D w >= 0, with two forms for each step: w_x - e^-s w_y and w_y - e^-s w_x for
neighbours x and y. So the products of two forms, of one column or summed over the columns of a
channel, are not negative: D X D^T >= 0 entry by entry for the second moments X = sum_z M_z M_z^T /
p_z. On an extremal column one form of each step is 0, and so is the product of both. With the rows
v of D, each divided by v 1, and with X = 1 1^T + U J U^T, the relaxation is

    minimise phi(J) subject to 1 + v_a^T J v_b >= 0, with equality for the two forms of one step.

Bound. Let N_ab >= 0 be any multipliers of the products; those of the two forms of one step may have
either sign. The sum of N_ab times the products is not negative on any column w = 1 + U r, hence r^T
S r - n r <= b with S, n and b linear in N. If S - s G is positive semidefinite for the tangent G at
some J and an s > 0, then q(r) - n r / s <= b / s for all columns, and the bound is that of
`column_weights` with B = b / s. The bound holds for any N; it is tight if N is nearly optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.column_weights import Criterion, Dual, reach
from ibukit.design.optimal.whitening import Pairs, WhitenedCriterion
from ibukit.fisher_information import contrasts

MAX_ITERATIONS = 60
# The path ends when the bound is within this share of the relaxed optimum.
RELAXATION_TOLERANCE = 1e-6
# If products of one step are further from 0, they belong to no mixture of extremal columns.
TIE_RESIDUAL_TOLERANCE = 1e-9
# Share of the way to the boundary that a step takes; and share of its size before the step that J
# keeps, at least, in every direction.
STEP_SHARE, MIN_EIGENVALUE_KEPT = 0.99, 0.3
# Least slack of a product at the start; and the first mu as a share of the criterion.
FIRST_SLACK, FIRST_MU = 0.1, 0.1


class RelaxationBound(NamedTuple):
    """A tangent, the bound on every column's score on it, J and the products of forms.

    The last two are those near the optimum.
    """

    dual: Dual
    highest: float
    information: Floats
    products: Floats

    @property
    def bound(self) -> float:
        """Lower bound on the criterion of every private channel."""
        return self.dual.bound(self.highest)


class Forms(NamedTuple):
    """The forms v_a of the steps, bounds of falls first; v_i and v_{i+n} are of one step."""

    rows: Floats
    steps: int

    @staticmethod
    def of(steps: Floats, theta: Floats) -> Forms:
        """Forms in the coordinates r, each divided by its value at the vector of ones.

        They are relatively exact even for short steps.
        """
        # v = (w_x - e^-s w_y) / (1 - e^-s) and its mirror image, in contrasts. The slope is
        # computed by expm1, so that short steps lose no digits.
        basis = contrasts(len(theta))
        centred = basis - theta @ basis
        slopes = (basis[:-1] - basis[1:]) / np.expm1(steps)[:, None]
        return Forms(np.concatenate([centred[:-1] + slopes, centred[1:] - slopes]), len(steps))

    def different_steps(self) -> NDArray[np.bool_]:
        """Mask of the pairs of forms of different steps."""
        step = np.arange(2 * self.steps) % self.steps
        return np.not_equal(step[:, None], step)

    def ties(self) -> tuple[Floats, Floats]:
        """The two forms of each step, whose product is 0 on extremal columns."""
        return self.rows[: self.steps], self.rows[self.steps :]

    def tie_residual(self) -> Floats:
        """Products of the two forms of each step where J = 1, which should be 0."""
        first, second = self.ties()
        return 1 + (first * second).sum(axis=1)


class Multipliers(NamedTuple):
    """The multipliers N: a symmetric matrix for different steps, a vector for those of one step."""

    products: Floats
    ties: Floats

    def weighted_sum(self, forms: Forms) -> Floats:
        """Sum over pairs of N_ab (v_a v_b^T + v_b v_a^T) / 2, which is -S."""
        first, second = forms.ties()
        crossed = (first.T * self.ties) @ second
        return 0.5 * (forms.rows.T @ self.products @ forms.rows + crossed + crossed.T)

    def certify(
        self, forms: Forms, frame: WhitenedCriterion, degree: float
    ) -> tuple[Dual, float] | None:
        """The tangent and its highest score b / s; None if the multipliers prove nothing.

        `forms` are in the frame's coordinates. Negative multipliers of products of different steps
        are not used.
        """
        # Only nonnegative multipliers of products of different steps prove anything; those of the
        # two forms of one step may have either sign, because the products are 0.
        allowed = Multipliers(
            np.where(forms.different_steps(), np.maximum(self.products, 0), 0), self.ties
        )
        scale = 1 / np.sqrt(frame.gradient)
        # The largest s with S - s G >= 0 is the least eigenvalue of G^(-1/2) S G^(-1/2).
        least = np.linalg.eigvalsh(-allowed.weighted_sum(forms) * scale * scale[:, None])[0]
        sizes = Multipliers(allowed.products, np.abs(allowed.ties))
        # A bound on rounding in sums of this many terms is subtracted from s and added to b.
        rounding = 8 * len(forms.rows) * np.finfo(float).eps
        absolute = (
            sizes.weighted_sum(Forms(np.abs(forms.rows), forms.steps)) * scale * scale[:, None]
        )
        share = least - rounding * absolute.sum(axis=1).max()
        total = 0.5 * allowed.products.sum() + allowed.ties.sum()
        total += rounding * (0.5 * sizes.products.sum() + sizes.ties.sum())
        if not (share > 0 and total > 0):
            return None
        # The linear part of the form: sum of N_ab (v_a + v_b) / 2, turned back to the coordinates
        # r.
        each = allowed.products.sum(axis=1) + np.tile(allowed.ties, 2)
        linear = np.linalg.solve(frame.root.T, each @ forms.rows) / share
        half = np.linalg.solve(frame.root.T, np.diag(frame.gradient))
        return Dual(frame.value, half @ np.linalg.inv(frame.root), linear, degree), float(
            total / share
        )


def solve_path_relaxation(steps: Floats, theta: Floats, criterion: Criterion) -> RelaxationBound:
    """Solve the relaxation: Newton steps on N_ab (1 + v_a^T J v_b) = mu as mu falls.

    It begins with truncated geometric noise, whose products of the two forms of a step are 0 as
    required. Return the best bound met.
    """
    forms, pairs = Forms.of(steps, theta), Pairs.of(len(steps))
    free = forms.different_steps()
    root = np.asarray(
        np.linalg.cholesky(_geometric_noise_information(steps, theta)), dtype=np.float64
    )
    ties = np.zeros(len(steps))
    slacks, multipliers = np.empty((0, 0)), np.empty((0, 0))
    best: RelaxationBound | None = None
    for _ in tqdm(
        range(MAX_ITERATIONS), desc="bound", unit=" steps", leave=False, disable=None, delay=1
    ):
        frame = WhitenedCriterion.at(root, criterion)
        turned = Forms(forms.rows @ frame.root, forms.steps)
        # In whitened coordinates J is the identity, so v_a^T J v_b is a plain product of rows.
        products = 1 + turned.rows @ turned.rows.T
        if not len(slacks):
            slacks = np.where(free, np.maximum(products, FIRST_SLACK), 1)
            multipliers = np.where(free, FIRST_MU * frame.value / (free.sum() / 2) / slacks, 0)
        # Every iterate's multipliers are tried as a proof, and the best bound is kept.
        certificate = Multipliers(multipliers, ties).certify(turned, frame, criterion.degree)
        if certificate is not None and (
            best is None or certificate[0].bound(certificate[1]) > best.bound
        ):
            best = RelaxationBound(*certificate, frame.root @ frame.root.T, products)
        if (
            best is not None
            and best.bound >= (1 - RELAXATION_TOLERANCE) * frame.value
            and np.abs(turned.tie_residual()).max() < TIE_RESIDUAL_TOLERANCE
        ):
            break
        try:
            factor = _factor(turned, frame, pairs, multipliers / slacks)
        except np.linalg.LinAlgError:
            # Rounding makes the system singular near the end; the bound tells the quality.
            break
        residual = np.where(free, products - slacks, 0)
        newton = _PathNewtonSystem(
            turned, frame, pairs, slacks, Multipliers(multipliers, ties), residual, factor
        )
        mean = float((multipliers * slacks).sum() / free.sum())
        # Predictor step to mu = 0; the complementarity that it would leave chooses mu (Mehrotra).
        step = newton.step(0.0)
        primal = min(reach(slacks, step.slacks, STEP_SHARE), _max_step(step.information))
        dual = reach(multipliers, step.multipliers, STEP_SHARE)
        predicted = (multipliers + dual * step.multipliers) * (slacks + primal * step.slacks)
        shrink = min(max(float(predicted[free].mean() / mean) ** 3, 1e-3), 0.5)
        step = newton.step(mean * shrink)
        length = min(
            reach(multipliers, step.multipliers, STEP_SHARE),
            reach(slacks, step.slacks, STEP_SHARE),
            _max_step(step.information),
        )
        # The slacks stay products up to a residual that Newton's steps remove; J is updated by its
        # Cholesky root, so it stays positive.
        slacks = slacks + length * step.slacks
        multipliers, ties = multipliers + length * step.multipliers, ties + length * step.ties
        root = frame.root @ np.linalg.cholesky(np.eye(len(root)) + length * step.information)
    if best is None:
        raise np.linalg.LinAlgError("no multipliers of the relaxation prove a bound")
    return best


class _PathStep(NamedTuple):
    """Changes of J in the frame's coordinates, of the slacks and of the multipliers."""

    information: Floats
    slacks: Floats
    multipliers: Floats
    ties: Floats


@dataclass(frozen=True, eq=False)
class _PathNewtonSystem:
    """Linear equations of a step: the factored matrix of J, and the rows of the ties.

    The changes of slacks and multipliers are eliminated first, then that of J; a small system of
    the ties is left.
    """

    forms: Forms
    frame: WhitenedCriterion
    pairs: Pairs
    slacks: Floats
    multipliers: Multipliers
    residual: Floats
    factor: tuple[Floats, bool]

    @cached_property
    def ties(self) -> tuple[Floats, Floats]:
        """Rows T of the ties, and H^-1 T^T: once J is eliminated their matrix is T H^-1 T^T."""
        rows = self.pairs.products(*self.forms.ties())
        return rows, cho_solve(self.factor, rows.T, check_finite=False)

    def step(self, target: float) -> _PathStep:
        """Changes towards N_ab times slack_ab = target."""
        free, (tie_rows, solved_ties) = self.forms.different_steps(), self.ties
        ratio = self.multipliers.products / self.slacks
        aim = np.where(free, target / self.slacks, 0)
        pull = Multipliers(aim - ratio * self.residual, self.multipliers.ties)
        right = self.pairs.of_matrix(np.diag(self.frame.gradient) + pull.weighted_sum(self.forms))
        solution: Floats = cho_solve(self.factor, right, check_finite=False)
        lacking = -self.forms.tie_residual() - tie_rows @ solution
        ties = np.asarray(np.linalg.solve(tie_rows @ solved_ties, lacking), dtype=np.float64)
        information = self.pairs.matrix(solution + solved_ties @ ties)
        products = self.forms.rows @ information @ self.forms.rows.T
        change = np.where(free, products + self.residual, 0)
        return _PathStep(
            information, change, aim - self.multipliers.products - ratio * change, ties
        )


def _factor(
    forms: Forms, frame: WhitenedCriterion, pairs: Pairs, ratio: Floats
) -> tuple[Floats, bool]:
    """Factor the matrix sum_ab h_ab (v_a^T E v_b) (v_a^T F v_b) plus phi's curvature.

    E and F run through the pairs, and the ratio h is N / slacks.
    """
    matrix = _barrier(forms.rows, ratio, pairs)
    diagonal, subtracted = frame.curvature(pairs)
    if len(subtracted):
        matrix -= subtracted.T @ subtracted
    matrix[np.diag_indices(len(matrix))] += diagonal
    factor: tuple[Floats, bool] = cho_factor(
        matrix, lower=True, overwrite_a=True, check_finite=False
    )
    return factor


def _barrier(rows: Floats, weights: Floats, pairs: Pairs) -> Floats:
    """Hessian of the barrier on the pairs: half the sum of h_ab (v_a^T J v_b)^2, block by block.

    The sum over a and b of v_ai v_ak h_ab v_bj v_bl factorises into a part of a and one of b, so no
    list of products is made: first the sum over b for all j and l, then that over a.
    """
    d = rows.shape[1]
    # Sum over b of h_ab v_bj v_bl for every a, j and l.
    weighted = (weights @ (rows[:, :, None] * rows[:, None]).reshape(len(rows), -1)).reshape(
        len(rows), d, d
    )
    matrix = np.empty((len(pairs.first), len(pairs.first)))
    places = pairs.first * d + pairs.second
    first = 0
    for i in range(d):
        block = (rows * rows[:, [i]]).T @ weighted[:, i:].reshape(len(rows), -1)
        block = block.reshape(d, d - i, d).transpose(1, 0, 2)
        matrix[first : first + d - i] = (block + block.transpose(0, 2, 1)).reshape(d - i, -1)[
            :, places
        ]
        first += d - i
    # The factors of the orthonormal basis of symmetric matrices, for columns and rows.
    matrix *= pairs.size
    matrix *= pairs.size[:, None]
    return matrix


def _max_step(change: Floats) -> float:
    """Step length along a change of J = 1 that keeps it well inside the positive matrices."""
    return min(1.0, (1 - MIN_EIGENVALUE_KEPT) / max(-float(np.linalg.eigvalsh(change)[0]), 1e-9))


def _geometric_noise_information(steps: Floats, theta: Floats) -> Floats:
    """J of truncated geometric noise: columns with one peak, weighted so that rows sum to 1."""
    places = np.append(0.0, np.cumsum(steps))
    logs = -np.abs(places[:, None] - places)
    # The weights of the peaks have a closed form, which is exact for short steps.
    turns = np.concatenate([[1.0], np.tanh(steps / 2), [1.0]])
    points, sizes = deviations(logs, theta)
    points = points @ contrasts(len(theta))
    return (points.T * (sizes * (turns[:-1] + turns[1:]) / 2)) @ points
