"""The unknowns of `patch_relaxation`: a form for each patch with the moments that belong to it, and products."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ibukit._validate import Floats, Ints
from ibukit.design._optimal_weights import reach
from ibukit.design._round_frame import Pairs
from ibukit.design.grids.patches import Patch

# the first forms are this multiple of what makes them 0 at an extremal column
FIRST_HEIGHT = 1.2
# products that keep A definite have this multiple of what they need at first: with less, long waves go astray
FIRST_HOLD = 4.0
# products are at least that at first
LEAST_PRODUCT = 0.1
# of A the share that the first products may take
MOST_TAKEN = 0.5
# by this share of its terms a form is raised before it proves anything: columns of a patch are listed up to ties
RAISED = 1e-7
# and bent by this share of its largest entry, above what rounding does to eigenvalues
BENT = 1e-13
# two secrets have a product each way if so few others are as near
PRODUCTS_WITH_NEAREST = 20
# where the shortest step is at least that many nats; elsewhere they raise the bound by less than a thousandth
LONG_STEP = 0.75


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
        return self._replace(weights=mu / self.values(), above=np.asarray(mu * np.linalg.inv(self.curvature())))

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
        root, back = (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T
        middle, turn = np.linalg.eigh(root @ self.above @ root)
        return np.asarray(back @ (turn * np.sqrt(np.maximum(middle, 0))) @ turn.T @ back)

    def barrier(self) -> Floats:
        """The curvature of the barrier of N."""
        moments = self.patch.moments
        matrix = (moments * (self.weights / self.values())) @ moments.T
        scaling, own = self._scaling(), self._contrasts()
        pairs = Pairs.of(len(scaling))
        first, second = scaling[pairs.first], scaling[pairs.second]
        crossed = first[:, pairs.first] * second[:, pairs.second] + first[:, pairs.second] * second[:, pairs.first]
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
            min(reach(self.values(), step.values, share), _room(self.curvature(), step.curvature, share)),
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
        lowest = numbers @ self.patch.moments - RAISED * (np.abs(numbers) @ np.abs(self.patch.moments))
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
    """Pairs of forms 1 + v r that privacy keeps from being negative, multipliers n of their products, and slacks."""

    first: Floats
    second: Floats
    shares: Floats
    slacks: Floats

    @staticmethod
    def of(distances: Floats, theta: Floats, across: Floats, parts: list[Part]) -> Products:
        """(w_y - exp(-d) w_x) w_x for y near x, their sum over y not so near, and their sum over all, with theta.

        The last keep A definite: w_x is at most 1 / sum_y theta_y exp(-d_xy). Only they have multipliers yet.
        """
        k = len(theta)
        most = theta @ -np.expm1(-distances)
        # (1 - w_x sum_y theta_y exp(-d)) w_x, divided by its value at ones
        all_others = -across * ((1 - most) / most)[:, None]
        means = np.zeros(k)
        for part in parts:
            means[part.patch.secrets] += max(float(part.form()[0, 0]), 0.0) / len(part.patch.secrets)
        shares = FIRST_HOLD * (means + means[means > 0].min(initial=1.0) * (means == 0)) * most / (1 - most)
        if not has_long_steps(distances):
            return Products(all_others, across, shares, np.empty(0))
        order = np.argsort(distances, axis=1, kind="stable")[:, 1:]
        near, far = order[:, :PRODUCTS_WITH_NEAREST], order[:, PRODUCTS_WITH_NEAREST:]
        x, y = np.repeat(np.arange(k), near.shape[1]), near.ravel()
        firsts = [all_others, _fall(across, distances, x, y)]
        seconds = [across, across[x]]
        if far.size:
            x, y = np.repeat(np.arange(k), far.shape[1]), far.ravel()
            weights = theta[y] * -np.expm1(-distances[x, y])
            summed = (weights[:, None] * _fall(across, distances, x, y)).reshape(k, -1, across.shape[1]).sum(axis=1)
            firsts.append(summed / weights.reshape(k, -1).sum(axis=1)[:, None])
            seconds.append(across)
        first, second = np.vstack(firsts), np.vstack(seconds)
        return Products(first, second, np.append(shares, np.zeros(len(first) - k)), np.empty(0))

    def values(self) -> Floats:
        """The products where J is the identity of their coordinates."""
        return np.asarray(1 + (self.first * self.second).sum(axis=1))

    def pulled(self) -> Floats:
        """Sum of n (v v'^T + v' v^T) / 2, which is taken from A."""
        crossed = (self.first.T * self.shares) @ self.second
        return 0.5 * (crossed + crossed.T)

    def sizes(self) -> Floats:
        """The same of absolute values."""
        return Products(np.abs(self.first), np.abs(self.second), np.abs(self.shares), self.slacks).pulled()

    def turned(self, root: Floats) -> Products:
        """In other coordinates."""
        return self._replace(first=self.first @ root, second=self.second @ root)

    def scaled(self, scale: float) -> Products:
        """With other multipliers."""
        return self._replace(shares=self.shares * scale)

    def centred(self, mu: float, information: Floats) -> Products:
        """With multipliers for all, so small that A stays definite, and slacks for that mu."""
        others = self.shares == 0
        values = 1 + ((self.first @ information) * self.second).sum(axis=1)
        added = np.where(others, mu / np.maximum(values, LEAST_PRODUCT), 0)
        taken = self._replace(shares=added).pulled()
        # J A J = 1
        most = float(np.linalg.eigvalsh(information @ taken @ information)[-1])
        added *= min(1.0, MOST_TAKEN / max(most, 1e-9))
        shares = self.shares + added
        return self._replace(shares=shares, slacks=mu / shares)


def _fall(across: Floats, distances: Floats, x: Ints, y: Ints) -> Floats:
    """The forms w_y - exp(-d) w_x, divided by their value at ones."""
    return across[y] + (across[y] - across[x]) / np.expm1(distances[x, y])[:, None]


def has_long_steps(distances: Floats) -> bool:
    """Whether columns fall so fast from secret to secret that products of distant ones count."""
    return bool(distances[distances > 0].min() >= LONG_STEP)
