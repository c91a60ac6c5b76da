"""The unknowns of `patch_relaxation`: a form for each patch with the moments that belong to it, and products."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_weights import reach
from ibukit.design.optimal.grids.patches import Patch
from ibukit.design.optimal.whitening import Pairs

# the first forms are this multiple of what makes them 0 at an extremal column
FIRST_HEIGHT = 1.2
# products have at least that slack at first
MIN_PRODUCT = 0.1
# by this share of its terms a form is raised before it proves anything: columns of a patch are
# listed up to ties
RAISED = 1e-7
# and bent by this share of its largest entry, above what rounding does to eigenvalues
BENT = 1e-13


class Step(NamedTuple):
    """Changes of a form N, of the weights of columns and what is above them, and of the form's values and curvature."""

    numbers: Floats
    weights: Floats
    values: Floats
    above: Floats
    curvature: Floats


class Part(NamedTuple):
    """A patch, its N in coordinates of pairs, weights a of its columns and Y = sum_i a_i r_i r_i^T - X, but the mean's.

    S is minus N on the contrasts, and N(r_i) a_i = mu and S Y = mu on the central path.
    """

    patch: Patch
    numbers: Floats
    weights: Floats
    above: Floats

    def form(self) -> Floats:
        """N as a matrix."""
        return self.patch.pairs.matrix(self.numbers)

    def curvature(self) -> Floats:
        """S."""
        return -self.form()[1:, 1:]

    def values(self) -> Floats:
        """N at the columns."""
        return np.asarray(self.numbers @ self.patch.moments)

    def scaled(self, scale: float) -> Part:
        """With another size of the form."""
        return self._replace(numbers=self.numbers * scale)

    def centred(self, mu: float) -> Part:
        """With the moments that belong to the form at that mu."""
        return self._replace(
            weights=mu / self.values(), above=np.asarray(mu * np.linalg.inv(self.curvature()))
        )

    def pairs_of_mu(self) -> int:
        """How many products are mu."""
        return len(self.weights) + len(self.above)

    def complementarity(self) -> float:
        """Their sum."""
        return float(self.weights @ self.values() + (self.above * self.curvature()).sum())

    def _contrasts(self) -> Ints:
        return np.flatnonzero(self.patch.pairs.first > 0)

    def _scaling(self) -> Floats:
        """The W of Nesterov and Todd: W S W = Y."""
        values, vectors = np.linalg.eigh(self.curvature())
        root, back = (
            (vectors * np.sqrt(values)) @ vectors.T,
            (vectors / np.sqrt(values)) @ vectors.T,
        )
        middle, turn = np.linalg.eigh(root @ self.above @ root)
        return np.asarray(back @ (turn * np.sqrt(np.maximum(middle, 0))) @ turn.T @ back)

    def barrier(self) -> Floats:
        """The curvature of the barrier of N."""
        moments = self.patch.moments
        matrix = (moments * (self.weights / self.values())) @ moments.T
        scaling, own = self._scaling(), self._contrasts()
        pairs = Pairs.of(len(scaling))
        first, second = scaling[pairs.first], scaling[pairs.second]
        crossed = (
            first[:, pairs.first] * second[:, pairs.second]
            + first[:, pairs.second] * second[:, pairs.first]
        )
        matrix[np.ix_(own, own)] += 2 * crossed * pairs.size[:, None] * pairs.size
        return np.asarray(matrix)

    def pull(self, target: float) -> Floats:
        """What the barrier adds to minus the patch's second moments."""
        pulled = self.patch.moments @ (target / self.values())
        inverse = np.asarray(np.linalg.inv(self.curvature()), dtype=np.float64)
        pulled[self._contrasts()] -= target * Pairs.of(len(inverse)).of_matrix(inverse)
        return np.asarray(pulled)

    def step(self, numbers: Floats, target: float) -> Step:
        """All changes, from that of N."""
        values, curvature = self.values(), self.curvature()
        changed = numbers @ self.patch.moments
        turned = -self.patch.pairs.matrix(numbers)[1:, 1:]
        weights = target / values - self.weights - self.weights / values * changed
        scaling = self._scaling()
        above = target * np.linalg.inv(curvature) - self.above - scaling @ turned @ scaling
        return Step(numbers, weights, changed, (above + above.T) / 2, turned)

    def reach(self, step: Step, share: float) -> tuple[float, float]:
        """How far the moments may go, and the form."""
        return (
            min(reach(self.weights, step.weights, share), _room(self.above, step.above, share)),
            min(
                reach(self.values(), step.values, share),
                _room(self.curvature(), step.curvature, share),
            ),
        )

    def moved(self, step: Step, primal: float, dual: float) -> Part:
        """After a part of the changes."""
        return Part(
            self.patch,
            self.numbers + dual * step.numbers,
            self.weights + primal * step.weights,
            self.above + primal * step.above,
        )

    def certain(self) -> tuple[Part, float]:
        """With N concave across columns, and what of the squared mean N lacks not to be negative at any of them."""
        form = self.form()
        bent = min(float(np.linalg.eigvalsh(self.curvature())[0]) - BENT * np.abs(form).max(), 0.0)
        form[1:, 1:] += bent * np.eye(len(form) - 1)
        numbers = self.patch.pairs.of_matrix(form)
        lowest = numbers @ self.patch.moments - RAISED * (
            np.abs(numbers) @ np.abs(self.patch.moments)
        )
        return self._replace(numbers=numbers), max(-float(lowest.min()), 0.0)


def first_part(patch: Patch) -> Part:
    """A form whose curvature is that of the columns' own spread, without weights."""
    pairs = patch.pairs
    spread = pairs.matrix(patch.moments.mean(axis=1))
    middle = spread[0, 1:]
    curvature = np.linalg.inv(spread[1:, 1:] - np.outer(middle, middle))
    form = np.zeros_like(spread)
    form[1:, 1:] = -curvature
    form[0, 1:] = form[1:, 0] = curvature @ middle
    form[0, 0] = -middle @ curvature @ middle
    least = float((pairs.of_matrix(form) @ patch.moments).min())
    form[0, 0] -= FIRST_HEIGHT * least
    return Part(patch, pairs.of_matrix(form), np.empty(0), np.empty((0, 0)))


def _room(matrix: Floats, change: Floats, share: float) -> float:
    """How far of a change until an eigenvalue of a positive matrix would be 0."""
    inverse = np.linalg.inv(np.linalg.cholesky(matrix))
    least = float(np.linalg.eigvalsh(inverse @ change @ inverse.T)[0])
    return min(1.0, share / max(-least, 1e-9))


class Products(NamedTuple):
    """Pairs of forms 1 + v r that privacy keeps from being negative, multipliers n of their products, and slacks.

    With ends x and y it is (w_y - exp(-d) w_x) w_x, and with x twice the sum of these over all y,
    with theta.
    """

    ends: Ints
    first: Floats
    second: Floats
    shares: Floats
    slacks: Floats

    @staticmethod
    def of(ends: Ints, distances: Floats, theta: Floats, across: Floats) -> Products:
        """Without multipliers."""
        x, y = ends.T
        most = (theta @ -np.expm1(-distances))[x]
        # (1 - w_x sum_y theta_y exp(-d)) w_x, divided by its value at ones
        first = -across[x] * ((1 - most) / most)[:, None]
        other = x != y
        x, y = x[other], y[other]
        # and w_y - exp(-d) w_x by its own
        first[other] = across[y] + (across[y] - across[x]) / np.expm1(distances[x, y])[:, None]
        return Products(ends, first, across[ends[:, 0]], np.empty(0), np.empty(0))

    def at(self, information: Floats, mu: float) -> Products:
        """With what belongs to that mu at a J, or near it."""
        values = 1 + ((self.first @ information) * self.second).sum(axis=1)
        slacks = np.maximum(values, MIN_PRODUCT)
        return self._replace(slacks=slacks, shares=mu / slacks)

    def joined(self, other: Products) -> Products:
        """Those of both."""
        return Products(*[np.concatenate(both) for both in zip(self, other, strict=True)])

    def values(self) -> Floats:
        """The products where J is the identity of their coordinates."""
        return np.asarray(1 + (self.first * self.second).sum(axis=1))

    def pulled(self) -> Floats:
        """Sum of n (v v'^T + v' v^T) / 2, which is taken from A."""
        crossed = (self.first.T * self.shares) @ self.second
        return 0.5 * (crossed + crossed.T)

    def sizes(self) -> Floats:
        """The same of absolute values."""
        return self._replace(
            first=np.abs(self.first), second=np.abs(self.second), shares=np.abs(self.shares)
        ).pulled()

    def turned(self, root: Floats) -> Products:
        """In other coordinates."""
        return self._replace(first=self.first @ root, second=self.second @ root)
