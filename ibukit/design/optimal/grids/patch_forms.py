"""Unknowns of `patch_relaxation`: a quadratic form for each patch, and multipliers of products."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_weights import reach
from ibukit.design.optimal.grids.patches import Patch
from ibukit.design.optimal.whitening import Pairs

# The constant of a first form is raised by this multiple of what makes it 0 at some column.
FIRST_FORM_SCALE = 1.2
# Least slack of a product at the start.
MIN_FIRST_SLACK = 0.1
# Before a form proves anything, its constant is raised by this share of its terms, because columns
# of a patch are listed only up to ties.
LISTING_TOLERANCE = 1e-7
# The form is also made more concave by this share of its largest entry, which exceeds the rounding
# of eigenvalues.
CURVATURE_TOLERANCE = 1e-13


class PatchFormStep(NamedTuple):
    """Newton step of a form N: changes of N, of the weights, of N's values, of Y and of S."""

    numbers: Floats
    weights: Floats
    values: Floats
    above: Floats
    curvature: Floats


class PatchForm(NamedTuple):
    """A patch's form N and the moments that belong to it, primal and dual.

    `numbers` are N in coordinates of pairs, `weights` the weights a of the patch's columns, and
    `above` is Y = sum_i a_i r_i r_i^T - X without the coordinate of the mean.

    With S, minus N on the contrasts, the central path has N(r_i) a_i = mu and S Y = mu.
    """

    patch: Patch
    numbers: Floats
    weights: Floats
    above: Floats

    def form(self) -> Floats:
        """N as a matrix."""
        return self.patch.pairs.matrix(self.numbers)

    def curvature(self) -> Floats:
        """S, minus the form on the contrasts."""
        return -self.form()[1:, 1:]

    def values(self) -> Floats:
        """Values of N at the extremal columns."""
        return self.numbers @ self.patch.moments

    def scaled(self, scale: float) -> PatchForm:
        """The form times a number."""
        return self._replace(numbers=self.numbers * scale)

    def centred(self, mu: float) -> PatchForm:
        """The form with the moments of the central path at mu."""
        return self._replace(
            weights=mu / self.values(), above=np.asarray(mu * np.linalg.inv(self.curvature()))
        )

    def complementarity_count(self) -> int:
        """Number of products that equal mu on the central path."""
        return len(self.weights) + len(self.above)

    def complementarity(self) -> float:
        """Sum of the products that equal mu on the central path."""
        return float(self.weights @ self.values() + (self.above * self.curvature()).sum())

    def _contrasts(self) -> Ints:
        return np.flatnonzero(self.patch.pairs.first > 0)

    def _scaling(self) -> Floats:
        """Scaling matrix W of Nesterov and Todd, for which W S W = Y."""
        values, vectors = np.linalg.eigh(self.curvature())
        root, back = (
            (vectors * np.sqrt(values)) @ vectors.T,
            (vectors / np.sqrt(values)) @ vectors.T,
        )
        middle, turn = np.linalg.eigh(root @ self.above @ root)
        return back @ (turn * np.sqrt(np.maximum(middle, 0))) @ turn.T @ back

    def barrier(self) -> Floats:
        """Hessian of N's barrier: -sum_i log N(r_i) weighted by a, and log det S scaled by W."""
        moments = self.patch.moments
        # The columns' part, r r^T (a / N(r)) r r^T in coordinates of pairs, and the part of log det
        # S, E -> W E W, on the contrasts.
        matrix = (moments * (self.weights / self.values())) @ moments.T
        scaling, own = self._scaling(), self._contrasts()
        pairs = Pairs.of(len(scaling))
        first, second = scaling[pairs.first], scaling[pairs.second]
        crossed = (
            first[:, pairs.first] * second[:, pairs.second]
            + first[:, pairs.second] * second[:, pairs.first]
        )
        matrix[np.ix_(own, own)] += 2 * crossed * pairs.size[:, None] * pairs.size
        return matrix

    def pull(self, target: float) -> Floats:
        """Gradient of the barrier at mu = target, to be set against the patch's second moments."""
        pulled = self.patch.moments @ (target / self.values())
        inverse = np.asarray(np.linalg.inv(self.curvature()), dtype=np.float64)
        pulled[self._contrasts()] -= target * Pairs.of(len(inverse)).of_matrix(inverse)
        return pulled

    def step(self, numbers: Floats, target: float) -> PatchFormStep:
        """Changes of all unknowns that follow from that of N."""
        values, curvature = self.values(), self.curvature()
        changed = numbers @ self.patch.moments
        turned = -self.patch.pairs.matrix(numbers)[1:, 1:]
        # Linearised complementarity: a_i N(r_i) = mu and S Y = mu (symmetrised by W).
        weights = target / values - self.weights - self.weights / values * changed
        scaling = self._scaling()
        above = target * np.linalg.inv(curvature) - self.above - scaling @ turned @ scaling
        return PatchFormStep(numbers, weights, changed, (above + above.T) / 2, turned)

    def reach(self, step: PatchFormStep, share: float) -> tuple[float, float]:
        """Step lengths for the moments and for the form."""
        return (
            min(reach(self.weights, step.weights, share), _room(self.above, step.above, share)),
            min(
                reach(self.values(), step.values, share),
                _room(self.curvature(), step.curvature, share),
            ),
        )

    def moved(self, step: PatchFormStep, primal: float, dual: float) -> PatchForm:
        """The form after a step of given primal and dual length."""
        return PatchForm(
            self.patch,
            self.numbers + dual * step.numbers,
            self.weights + primal * step.weights,
            self.above + primal * step.above,
        )

    def with_safety_margin(self) -> tuple[PatchForm, float]:
        """The form made concave for certain, and the constant that it lacks to be nonnegative.

        The constant multiplies the squared mean of the patch's entries.
        """
        form = self.form()
        bent = min(
            float(np.linalg.eigvalsh(self.curvature())[0])
            - CURVATURE_TOLERANCE * np.abs(form).max(),
            0.0,
        )
        form[1:, 1:] += bent * np.eye(len(form) - 1)
        numbers = self.patch.pairs.of_matrix(form)
        lowest = numbers @ self.patch.moments - LISTING_TOLERANCE * (
            np.abs(numbers) @ np.abs(self.patch.moments)
        )
        return self._replace(numbers=numbers), max(-float(lowest.min()), 0.0)


def first_patch_form(patch: Patch) -> PatchForm:
    """First form of a patch, without weights: its curvature is that of the columns' own spread."""
    pairs = patch.pairs
    # The form is -(r - m)^T C^-1 (r - m) for the mean m and covariance C of the columns, raised
    # until it is positive at all of them.
    spread = pairs.matrix(patch.moments.mean(axis=1))
    middle = spread[0, 1:]
    curvature = np.linalg.inv(spread[1:, 1:] - np.outer(middle, middle))
    form = np.zeros_like(spread)
    form[1:, 1:] = -curvature
    form[0, 1:] = form[1:, 0] = curvature @ middle
    form[0, 0] = -middle @ curvature @ middle
    least = float((pairs.of_matrix(form) @ patch.moments).min())
    form[0, 0] -= FIRST_FORM_SCALE * least
    return PatchForm(patch, pairs.of_matrix(form), np.empty(0), np.empty((0, 0)))


def _room(matrix: Floats, change: Floats, share: float) -> float:
    """Step length at which an eigenvalue of a positive matrix would get near 0."""
    # The least eigenvalue of change relative to matrix, by congruence with the Cholesky factor.
    inverse = np.linalg.inv(np.linalg.cholesky(matrix))
    least = float(np.linalg.eigvalsh(inverse @ change @ inverse.T)[0])
    return min(1.0, share / max(-least, 1e-9))


class FormProducts(NamedTuple):
    """Products of two nonnegative linear forms 1 + v r, their multipliers n and slacks.

    The product with ends x and y is (w_y - exp(-d) w_x) w_x; with ends x and x it is the sum of
    these over all y, weighted by theta.
    """

    ends: Ints
    first: Floats
    second: Floats
    shares: Floats
    slacks: Floats

    @staticmethod
    def of(ends: Ints, distances: Floats, theta: Floats, across: Floats) -> FormProducts:
        """Products with these ends, without multipliers."""
        x, y = ends.T
        most = (theta @ -np.expm1(-distances))[x]
        # If x = y, the first form is (1 - w_x sum_y theta_y exp(-d)), divided by its value at the
        # vector of ones.
        first = -across[x] * ((1 - most) / most)[:, None]
        other = x != y
        x, y = x[other], y[other]
        # Otherwise it is w_y - exp(-d) w_x, divided by its own value there.
        first[other] = across[y] + (across[y] - across[x]) / np.expm1(distances[x, y])[:, None]
        return FormProducts(ends, first, across[ends[:, 0]], np.empty(0), np.empty(0))

    def at(self, information: Floats, mu: float) -> FormProducts:
        """Slacks and multipliers of the central path at mu for a J, or near it."""
        values = 1 + ((self.first @ information) * self.second).sum(axis=1)
        slacks = np.maximum(values, MIN_FIRST_SLACK)
        return self._replace(slacks=slacks, shares=mu / slacks)

    def joined(self, other: FormProducts) -> FormProducts:
        """Products of both."""
        return FormProducts(*[np.concatenate(both) for both in zip(self, other, strict=True)])

    def values(self) -> Floats:
        """Values of the products if J is the identity of their coordinates."""
        return 1 + (self.first * self.second).sum(axis=1)

    def weighted_sum(self) -> Floats:
        """Sum of n (v v'^T + v' v^T) / 2, which is subtracted from A."""
        crossed = (self.first.T * self.shares) @ self.second
        return 0.5 * (crossed + crossed.T)

    def sizes(self) -> Floats:
        """The weighted sum of absolute values, for a bound on rounding."""
        return self._replace(
            first=np.abs(self.first), second=np.abs(self.second), shares=np.abs(self.shares)
        ).weighted_sum()

    def in_coordinates(self, root: Floats) -> FormProducts:
        """The products in other coordinates."""
        return self._replace(first=self.first @ root, second=self.second @ root)


class SummedForm(NamedTuple):
    """A, l and c, summed over all forms and products."""

    quadratic: Floats
    linear: Floats
    constant: float

    @staticmethod
    def of(parts: list[PatchForm], products: FormProducts, rows: list[Floats]) -> SummedForm:
        """Sum of the forms; a patch has mean 1 + f_0 r and other coordinates f r, with rows f."""
        quadratic = -products.weighted_sum()
        linear, constant = (
            products.shares @ (products.first + products.second),
            float(products.shares.sum()),
        )
        for part, f in zip(parts, rows, strict=True):
            form = part.form()
            quadratic -= f.T @ form @ f
            linear += 2 * f.T @ form[0]
            constant += form[0, 0]
        return SummedForm(quadratic, linear, constant)
