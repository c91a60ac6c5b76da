"""A bound on every private channel on a path that looks at no column: its second moments are relaxed.

Privacy on a path is D w >= 0, with two forms for each step: w_x - e^-s w_y and w_y - e^-s w_x for
neighbours x and y. So the products of two forms, of one column or summed over those of a channel,
are not negative: D X D^T >= 0 entry by entry for the second moments X = sum_z M_z M_z^T / p_z. On
an extremal column one form of each step is 0, so is the product of both. With rows v of D, divided
by v 1, and X = 1 1^T + U J U^T the relaxation is

    minimise phi(J) subject to 1 + v_a^T J v_b >= 0, with equality for the two forms of one step.

Bound. Let N_ab >= 0 be any multipliers of the products, those of one step of either sign. The sum
of N_ab times the products is not negative on any column w = 1 + U r, which says r^T S r - n r <= b
with S, n and b linear in N. Where S - s G is positive semidefinite for the tangent G at some J and
an s > 0, q(r) - n r / s <= b / s for all columns, and the bound is that of `_optimal_weights` with
B = b / s. That N is nearly optimal matters for how tight it is only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.column_weights import Criterion, Dual, reach
from ibukit.design.optimal.whitening import Frame, Pairs
from ibukit.fisher_information import contrasts

MAX_ITER_RELAXED = 60
# the path ends where the bound is this near to the relaxed optimum, as a share of it
NEAR_THE_RELAXED = 1e-6
# products of one step that are further from 0 belong to no mixture of extremal columns
TIED = 1e-9
# steps go this far towards where a product or a multiplier would be 0, and J no nearer to singular
# than this
REACH_RELAXED, MIN_LEFT = 0.99, 0.3
# the slack that products have at first; and mu as a share of the criterion
FIRST_SLACK, FIRST_MU = 0.1, 0.1


class Relaxed(NamedTuple):
    """A tangent, what no column's score on it exceeds, and J and the products of forms near the optimum."""

    dual: Dual
    highest: float
    information: Floats
    products: Floats

    @property
    def bound(self) -> float:
        """On all channels."""
        return self.dual.bound(self.highest)


class Forms(NamedTuple):
    """The forms v_a of the steps, those that bound a fall first; v_i and v_{i + n} are of one step."""

    rows: Floats
    steps: int

    @staticmethod
    def of(steps: Floats, theta: Floats) -> Forms:
        """In the coordinates r, each divided by its value at the vector of ones: exact for short steps, too."""
        basis = contrasts(len(theta))
        centred = basis - theta @ basis
        slopes = (basis[:-1] - basis[1:]) / np.expm1(steps)[:, None]
        return Forms(np.concatenate([centred[:-1] + slopes, centred[1:] - slopes]), len(steps))

    def free(self) -> NDArray[np.bool_]:
        """The pairs of forms of different steps."""
        step = np.arange(2 * self.steps) % self.steps
        return np.not_equal(step[:, None], step)

    def ties(self) -> tuple[Floats, Floats]:
        """The two forms of each step."""
        return self.rows[: self.steps], self.rows[self.steps :]


class Multipliers(NamedTuple):
    """N: of products of different steps, a symmetric matrix, and of those of one step."""

    products: Floats
    ties: Floats

    def pulled(self, forms: Forms) -> Floats:
        """Sum over pairs of N_ab (v_a v_b^T + v_b v_a^T) / 2, which is -S."""
        first, second = forms.ties()
        crossed = (first.T * self.ties) @ second
        return 0.5 * (forms.rows.T @ self.products @ forms.rows + crossed + crossed.T)

    def certify(self, forms: Forms, frame: Frame, degree: float) -> tuple[Dual, float] | None:
        """The tangent and its highest score b / s; None where the multipliers prove nothing.

        `forms` are in the frame's coordinates. Multipliers of products that are negative are not
        used.
        """
        allowed = Multipliers(np.where(forms.free(), np.maximum(self.products, 0), 0), self.ties)
        scale = 1 / np.sqrt(frame.gradient)
        least = np.linalg.eigvalsh(-allowed.pulled(forms) * scale * scale[:, None])[0]
        sizes = Multipliers(allowed.products, np.abs(allowed.ties))
        # what rounding may have done to sums of so many terms
        rounding = 8 * len(forms.rows) * np.finfo(float).eps
        absolute = sizes.pulled(Forms(np.abs(forms.rows), forms.steps)) * scale * scale[:, None]
        share = least - rounding * absolute.sum(axis=1).max()
        total = 0.5 * allowed.products.sum() + allowed.ties.sum()
        total += rounding * (0.5 * sizes.products.sum() + sizes.ties.sum())
        if not (share > 0 and total > 0):
            return None
        each = allowed.products.sum(axis=1) + np.tile(allowed.ties, 2)
        linear = np.linalg.solve(frame.root.T, each @ forms.rows) / share
        half = np.linalg.solve(frame.root.T, np.diag(frame.gradient))
        return Dual(frame.value, half @ np.linalg.inv(frame.root), linear, degree), float(
            total / share
        )


def relaxed(steps: Floats, theta: Floats, criterion: Criterion) -> Relaxed:
    """The relaxation's optimum, by Newton steps on N_ab (1 + v_a^T J v_b) = mu, as mu falls, and its certificate.

    It begins with truncated geometric noise, whose products of the two forms of a step are 0 as
    they should be.
    """
    forms, pairs = Forms.of(steps, theta), Pairs.of(len(steps))
    free = forms.free()
    root = np.asarray(np.linalg.cholesky(_of_geometric_noise(steps, theta)), dtype=np.float64)
    ties = np.zeros(len(steps))
    slacks, multipliers = np.empty((0, 0)), np.empty((0, 0))
    best: Relaxed | None = None
    for _ in tqdm(
        range(MAX_ITER_RELAXED), desc="bound", unit=" steps", leave=False, disable=None, delay=1
    ):
        frame = Frame.at(root, criterion)
        turned = Forms(forms.rows @ frame.root, forms.steps)
        products = 1 + turned.rows @ turned.rows.T
        if not len(slacks):
            slacks = np.where(free, np.maximum(products, FIRST_SLACK), 1)
            multipliers = np.where(free, FIRST_MU * frame.value / (free.sum() / 2) / slacks, 0)
        found = Multipliers(multipliers, ties).certify(turned, frame, criterion.degree)
        if found is not None and (best is None or found[0].bound(found[1]) > best.bound):
            best = Relaxed(*found, frame.root @ frame.root.T, products)
        off = 1 + (turned.ties()[0] * turned.ties()[1]).sum(axis=1)
        if (
            best is not None
            and best.bound >= (1 - NEAR_THE_RELAXED) * frame.value
            and np.abs(off).max() < TIED
        ):
            break
        try:
            newton = _Newton.at(
                turned, frame, pairs, slacks, Multipliers(multipliers, ties), products - slacks, off
            )
        except np.linalg.LinAlgError:
            break  # the end of what doubles can tell; the bound says how good it is
        mean = float((multipliers * slacks).sum() / free.sum())
        ahead = newton.step(0.0)
        left = (
            multipliers + reach(multipliers, ahead.multipliers, REACH_RELAXED) * ahead.multipliers
        ) * (
            slacks
            + min(reach(slacks, ahead.slacks, REACH_RELAXED), _room(ahead.information))
            * ahead.slacks
        )
        shrink = min(max(float(left[free].mean() / mean) ** 3, 1e-3), 0.5)
        ahead = newton.step(mean * shrink)
        far = min(
            reach(multipliers, ahead.multipliers, REACH_RELAXED),
            reach(slacks, ahead.slacks, REACH_RELAXED),
            _room(ahead.information),
        )
        slacks = slacks + far * ahead.slacks
        multipliers, ties = multipliers + far * ahead.multipliers, ties + far * ahead.ties
        root = frame.root @ np.linalg.cholesky(np.eye(len(root)) + far * ahead.information)
    if best is None:
        raise np.linalg.LinAlgError("no multipliers of the relaxation prove a bound")
    return best


class _Step(NamedTuple):
    """Changes of J in the frame's coordinates, of the slacks and of the multipliers."""

    information: Floats
    slacks: Floats
    multipliers: Floats
    ties: Floats


class _Newton(NamedTuple):
    """The equations for one step: the matrix of J factored, and that of the ties once J is eliminated."""

    forms: Forms
    frame: Frame
    pairs: Pairs
    slacks: Floats
    multipliers: Multipliers
    missing: Floats
    off: Floats
    factor: tuple[Floats, bool]
    tied: Floats
    turned: Floats

    @staticmethod
    def at(
        forms: Forms,
        frame: Frame,
        pairs: Pairs,
        slacks: Floats,
        multipliers: Multipliers,
        missing: Floats,
        off: Floats,
    ) -> _Newton:
        """With sum_ab h_ab (v_a^T E v_b) (v_a^T F v_b) for all pairs E, F, h = N / slacks, and phi's own curvature."""
        matrix = _barrier(forms.rows, multipliers.products / slacks, pairs)
        diagonal, taken = frame.curvature(pairs)
        if len(taken):
            matrix -= taken.T @ taken
        matrix[np.diag_indices(len(matrix))] += diagonal
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        tied = pairs.products(*forms.ties())
        turned = cho_solve(factor, tied.T, check_finite=False)
        missing = np.where(forms.free(), missing, 0)
        return _Newton(forms, frame, pairs, slacks, multipliers, missing, off, factor, tied, turned)

    def step(self, target: float) -> _Step:
        """Towards N_ab times slack_ab = target."""
        free = self.forms.free()
        ratio = self.multipliers.products / self.slacks
        pulled = np.where(free, target / self.slacks, 0)
        pull = Multipliers(pulled - ratio * self.missing, self.multipliers.ties).pulled(self.forms)
        found: Floats = cho_solve(
            self.factor,
            self.pairs.of_matrix(np.diag(self.frame.gradient) + pull),
            check_finite=False,
        )
        ties = np.asarray(
            np.linalg.solve(self.tied @ self.turned, -self.off - self.tied @ found),
            dtype=np.float64,
        )
        information = self.pairs.matrix(found + self.turned @ ties)
        change = np.where(free, self.forms.rows @ information @ self.forms.rows.T + self.missing, 0)
        return _Step(information, change, pulled - self.multipliers.products - ratio * change, ties)


def _barrier(rows: Floats, weights: Floats, pairs: Pairs) -> Floats:
    """Half the sum of h_ab times the squares of v_a^T J v_b, as a matrix on the pairs; block by block of its rows.

    The sum over a and b of v_ai v_ak h_ab v_bj v_bl has two factors for each of the two: no list of
    products is made.
    """
    d = rows.shape[1]
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
    matrix *= pairs.size
    matrix *= pairs.size[:, None]
    return matrix


def _room(change: Floats) -> float:
    """How far J = 1 may go along a change."""
    return min(1.0, (1 - MIN_LEFT) / max(-float(np.linalg.eigvalsh(change)[0]), 1e-9))


def _of_geometric_noise(steps: Floats, theta: Floats) -> Floats:
    """The J of truncated geometric noise: columns with one peak each, weighted so that rows sum to 1."""
    places = np.append(0.0, np.cumsum(steps))
    logs = -np.abs(places[:, None] - places)
    # the weights of the peaks, closed form: nothing is lost of short steps
    turns = np.concatenate([[1.0], np.tanh(steps / 2), [1.0]])
    points, sizes = deviations(logs, theta)
    points = points @ contrasts(len(theta))
    return np.asarray((points.T * (sizes * (turns[:-1] + turns[1:]) / 2)) @ points)
