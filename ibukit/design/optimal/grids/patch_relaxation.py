"""A bound on every private channel that looks at no column of all secrets: second moments are relaxed patch by patch.

With M a private channel and p = theta M let u_z = M_z / p_z and X = sum_z p_z u_z u_z^T = 1 1^T + U
J U^T. Of X it is known that the forms N of `patches` are not negative on it, patch by patch, and
that products of two forms v w >= 0 that privacy has, (w_y - exp(-d) w_x) w_x and the like, are not.
Summed over patches P and products e

    T(r) = sum_P N_P(u_P) + sum_e n_e (v_e u) (v'_e u) = c + l r - r^T A r >= 0   for every private u = 1 + U r.

Where A is positive definite, q = A and nu = l make B = c a bound on all scores, and the bound of
`_optimal_weights` is that of the J whose gradient is A, J = A^(-1/2): (tr A^(1/2))^2 / c. The best
N and n are those of the dual problem

    maximise 2 tr A^(1/2) - c   over N_P with N_P(r) >= 0 at the patch's columns and concave, and n >= 0,

found by an interior-point method; any that it meets on its way prove a bound. J has steps of its
own, and is J(A) only at the end: where A is nearly singular, J(A) changes too fast for steps of any
length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from tqdm import tqdm

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.column_weights import Criterion, Dual, reach
from ibukit.design.optimal.grids.patch_forms import Part, Products, Step, first_part
from ibukit.design.optimal.grids.patches import Patch, patches_of, unlike_patches
from ibukit.design.optimal.grids.reflections import Reflections
from ibukit.design.optimal.path_relaxation import Relaxed
from ibukit.design.optimal.whitening import Pairs, eigen_by_kind

MAX_ITER_PATCHES = 200
# the method ends where what is left is this share of the criterion
NEAR_THE_PATCHED = 1e-3
# products that keep A definite have this multiple of what they need where nothing better is found
FIRST_HOLD = 4.0
# steps go this far towards where a form would be 0, and J no nearer to singular than that
REACH_PATCHED, MAX_OF_J = 0.95, 0.7
# the least and the most that mu falls to in a step
MIN_SHRINK, MAX_SHRINK = 1e-3, 0.9


class _Sum(NamedTuple):
    """A, l and c of all forms."""

    quadratic: Floats
    linear: Floats
    constant: float

    @staticmethod
    def of(parts: list[Part], products: Products, rows: list[Floats]) -> _Sum:
        """The mean of a patch is 1 + f_0 r, and its other coordinates are f r."""
        quadratic = -products.pulled()
        linear, constant = (
            products.shares @ (products.first + products.second),
            float(products.shares.sum()),
        )
        for part, f in zip(parts, rows, strict=True):
            form = part.form()
            quadratic -= f.T @ form @ f
            linear += 2 * f.T @ form[0]
            constant += form[0, 0]
        return _Sum(quadratic, linear, constant)


class _Image(NamedTuple):
    """What the forms are of in one image of the secrets: their distances and more, and the rows of each patch."""

    distances: Floats
    theta: Floats
    across: Floats
    rows: list[Floats]
    largest: Floats

    @staticmethod
    def of(
        secrets: Ints, distances: Floats, theta: Floats, basis: Floats, patches: list[Patch]
    ) -> _Image:
        """`secrets` are what the image has in their place."""
        across = (basis - theta @ basis)[secrets]
        # of private columns of mean 1 none is larger at x
        tallest = (1 / (np.exp(-distances) @ theta))[secrets]
        rows = [patch.turn @ across[patch.secrets] for patch in patches]
        largest = np.array([tallest[patch.secrets].mean() for patch in patches])
        return _Image(distances[np.ix_(secrets, secrets)], theta[secrets], across, rows, largest)

    def products(self, ends: Ints) -> Products:
        """Those with these ends, in the image."""
        return Products.of(ends, self.distances, self.theta, self.across)

    def negative(self, firsts: Ints, information: Floats) -> Ints:
        """The ends of the products that J makes negative."""
        second = 1 + self.across @ information @ self.across[firsts].T
        least = np.exp(-self.distances[:, firsts]) * second[firsts, np.arange(len(firsts))]
        y, x = np.nonzero(second < least)
        return np.column_stack([firsts[x], y])


class _Problem(NamedTuple):
    """All that stays as it is. The forms stand for the sums over their images, and J and A are invariant."""

    reflections: Reflections
    images: list[_Image]
    criterion: Criterion

    @property
    def rows(self) -> list[Floats]:
        """Of the secrets as they are."""
        return self.images[0].rows

    def with_negative(self, products: Products, information: Floats, mu: float) -> Products:
        """Also with the products that J makes negative."""
        ends = self.images[0].negative(self.reflections.firsts(), information)
        new = ends[~(ends[:, None] == products.ends).all(axis=2).any(axis=1)]
        return (
            products.joined(self.images[0].products(new).at(information, mu))
            if len(new)
            else products
        )

    def holding(self, parts: list[Part]) -> Floats:
        """Multipliers of each secret's product with all others that keep A definite with the first forms."""
        one, images, firsts = self.images[0], self.reflections.images, self.reflections.firsts()
        means = np.zeros(len(one.theta))
        for part in parts:
            height = max(float(part.form()[0, 0]), 0.0) / part.patch.secrets.size / len(images)
            np.add.at(means, images[:, part.patch.secrets], height)
        most = one.theta @ -np.expm1(-one.distances)
        alike = np.array([len(np.unique(images[:, x])) for x in firsts])
        return np.asarray(FIRST_HOLD * (means * most / (1 - most))[firsts] * alike)

    def certified(self, parts: list[Part], products: Products) -> Relaxed | None:
        """What the forms prove, image by image: that the secrets have images is not relied on."""
        share = 1 / len(self.images)
        every = [part.scaled(share) for part in parts] * len(self.images)
        made = [image.products(products.ends) for image in self.images]
        together = products._replace(
            first=np.vstack([each.first for each in made]),
            second=np.vstack([each.second for each in made]),
            shares=np.tile(products.shares * share, len(made)),
        )
        rows = [f for image in self.images for f in image.rows]
        largest = np.concatenate([image.largest for image in self.images])
        return _certified(every, together, rows, largest, self.criterion)


def relaxed_by_patches(distances: Floats, theta: Floats, criterion: Criterion) -> Relaxed:
    """The best bound met, with its tangent, its J, and no products; the criterion is that of the squared error."""
    reflections = Reflections.of(distances, theta)
    basis, back = reflections.basis, reflections.of_contrasts()
    patches, sizes = unlike_patches(patches_of(distances), reflections.images)
    images = [_Image.of(image, distances, theta, basis, patches) for image in reflections.images]
    problem = _Problem(reflections, images, Criterion(criterion.loadings @ back, criterion.roots))
    points = deviations(np.vstack([-distances, distances]), theta)[0] @ basis
    spread = np.where(reflections.alike(), points.T @ points / len(points), 0)
    parts = [first_part(patch).scaled(size) for patch, size in zip(patches, sizes, strict=True)]
    parts, products, information = _weighed(parts, problem, spread)
    first = parts, products._replace(shares=problem.holding(parts))
    best: Relaxed | None = None
    shown = tqdm(
        range(MAX_ITER_PATCHES), desc="bound", unit=" steps", leave=False, disable=None, delay=1
    )
    for _ in shown:
        try:
            parts, products, information, told, left = _step(parts, products, information, problem)
        except (np.linalg.LinAlgError, FloatingPointError):
            break  # the end of what doubles can tell; the bound says how good it is
        if told is not None and (best is None or told.bound > best.bound):
            best = told
        if best is not None and left < NEAR_THE_PATCHED:
            break
    shown.close()
    # rare secrets and steps of many nats are beyond doubles; this is little, but proven
    best = best or problem.certified(*first)
    if best is None:
        raise np.linalg.LinAlgError("no forms of the patches prove a bound")
    dual = best.dual._replace(
        quadratic=back @ best.dual.quadratic @ back.T, linear=back @ best.dual.linear
    )
    return best._replace(dual=dual, information=back @ best.information @ back.T)


def _weighed(
    parts: list[Part], problem: _Problem, spread: Floats
) -> tuple[list[Part], Products, Floats]:
    """Forms of a size that suits a J, with the moments that belong to them at one mu, and J of a size that suits those.

    `spread` tells J but for its size.
    """
    weights = [1 / part.values() for part in parts]
    sizes = [float(each.sum()) for each in weights]
    wanted = [
        np.trace(part.patch.pairs.matrix(part.patch.moments @ each)[1:, 1:]) / size
        for part, each, size in zip(parts, weights, sizes, strict=True)
    ]
    seen = [np.trace((f @ spread @ f.T)[1:, 1:]) for f in problem.rows]
    information = spread * float(np.sum(wanted) / np.sum(seen))
    # c is the criterion at the optimum
    scale = problem.criterion.value(information) / sum(float(part.form()[0, 0]) for part in parts)
    parts = [part.scaled(scale) for part in parts]
    mu = scale / float(np.mean(sizes))
    firsts = problem.reflections.firsts()
    products = problem.images[0].products(np.column_stack([firsts, firsts])).at(information, mu)
    return [part.centred(mu) for part in parts], products, information


def _square_root(quadratic: Floats, kinds: Ints | None = None) -> tuple[Floats, Floats]:
    """Square roots of the eigenvalues, and the eigenvectors."""
    values, vectors = eigen_by_kind(quadratic, kinds)
    if not values.min() > 0:
        raise np.linalg.LinAlgError("the sum of the forms is not definite")
    return np.sqrt(values), vectors


def _information(root: tuple[Floats, Floats]) -> Floats:
    """J = A^(-1/2)."""
    return np.asarray((root[1] / root[0]) @ root[1].T)


def _step(
    parts: list[Part], products: Products, information: Floats, problem: _Problem
) -> tuple[list[Part], Products, Floats, Relaxed | None, float]:
    """One Newton step; what the forms before it prove, and the share of the criterion that is left."""
    told = problem.certified(parts, products)
    mu = _together(parts, products) / _count(parts, products)
    products = problem.with_negative(products, information, mu)
    together = _together(parts, products)
    # coordinates in which J is the identity and the gradient diagonal
    values, vectors = _square_root(information, problem.reflections.kinds)
    root = vectors * values
    local = [f @ root for f in problem.rows]
    turned = products.turned(root)
    newton = _Newton.at(parts, turned, local, problem.reflections.pairs(), values**-2.0)
    ahead, change = newton.step(0.0)
    _, _, left, _ = _after(parts, products, ahead, change)
    shrink = min(max((left / together) ** 3, MIN_SHRINK), MAX_SHRINK)
    ahead, change = newton.step(mu * shrink)
    parts, products, _, primal = _after(parts, products, ahead, change)
    information = root @ (np.eye(len(root)) + primal * change) @ root.T
    return parts, products, information, told, together / float((values**-2.0).sum())


def _together(parts: list[Part], products: Products) -> float:
    """The sum of all products that are mu on the central path."""
    return sum(part.complementarity() for part in parts) + float(products.shares @ products.slacks)


def _count(parts: list[Part], products: Products) -> int:
    """How many they are."""
    return sum(part.pairs_of_mu() for part in parts) + len(products.shares)


def _after(
    parts: list[Part], products: Products, steps: list[Step], change: Floats
) -> tuple[list[Part], Products, float, float]:
    """All after a step that keeps moments and forms positive, and what is then together."""
    primal, dual = min(1.0, MAX_OF_J / max(-float(np.linalg.eigvalsh(change)[0]), 1e-9)), 1.0
    for part, step in zip(parts, steps[:-1], strict=True):
        far = part.reach(step, REACH_PATCHED)
        primal, dual = min(primal, far[0]), min(dual, far[1])
    last = steps[-1]
    primal = min(primal, reach(products.slacks, last.weights, REACH_PATCHED))
    dual = min(dual, reach(products.shares, last.numbers, REACH_PATCHED))
    moved = [part.moved(step, primal, dual) for part, step in zip(parts, steps[:-1], strict=True)]
    ahead = products._replace(
        slacks=products.slacks + primal * last.weights, shares=products.shares + dual * last.numbers
    )
    return moved, ahead, _together(moved, ahead), primal


class _Newton(NamedTuple):
    """The equations for one step, in coordinates in which J = 1: their matrix factored, and J's own moments."""

    parts: list[Part]
    products: Products
    second: list[Floats]
    factor: tuple[Floats, bool]
    pairs: Pairs
    seen: Floats
    curvature: Floats
    off: Floats

    @staticmethod
    def at(
        parts: list[Part], products: Products, local: list[Floats], pairs: Pairs, gradient: Floats
    ) -> _Newton:
        """The curvature of the criterion at J as seen by the forms, and that of each part's own barrier."""
        curvature = np.sqrt(gradient[pairs.first] + gradient[pairs.second])
        blocks = list(_seen(parts, local, pairs))
        seen = np.vstack([*blocks, pairs.products(products.first, products.second)]) / curvature
        matrix = seen @ seen.T
        place = 0
        for part in parts:
            own = part.barrier()
            matrix[place : place + len(own), place : place + len(own)] += own
            place += len(own)
        rest = np.arange(place, len(matrix))
        matrix[rest, rest] += products.slacks / products.shares
        second = []
        for part, f in zip(parts, local, strict=True):
            moment = f @ f.T
            moment[0, 0] += 1
            second.append(part.patch.pairs.of_matrix(moment))
        # by how much the gradient at J differs from A
        off = pairs.of_matrix(np.diag(gradient)) - pairs.of_matrix(
            _Sum.of(parts, products, local).quadratic
        )
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return _Newton(parts, products, second, factor, pairs, seen, curvature, off)

    def step(self, target: float) -> tuple[list[Step], Floats]:
        """The changes towards products of `target`, and that of J."""
        away = [part.pull(target) - x for part, x in zip(self.parts, self.second, strict=True)]
        away.append(target / self.products.shares - self.products.values())
        found: Floats = cho_solve(
            self.factor,
            np.concatenate(away) - self.seen @ (self.off / self.curvature),
            check_finite=False,
        )
        steps, place = [], 0
        for part in self.parts:
            numbers = found[place : place + len(part.numbers)]
            place += len(numbers)
            steps.append(part.step(numbers, target))
        numbers = found[place:]
        shares, slacks = self.products.shares, self.products.slacks
        steps.append(
            Step(
                numbers,
                target / shares - slacks - slacks / shares * numbers,
                numbers,
                numbers,
                numbers,
            )
        )
        change = self.off / self.curvature**2 + found @ self.seen / self.curvature
        return steps, self.pairs.matrix(change)


def _seen(parts: list[Part], local: list[Floats], pairs: Pairs) -> Iterator[Floats]:
    """How the second moments of each patch depend on J."""
    for part, f in zip(parts, local, strict=True):
        own = part.patch.pairs
        yield pairs.products(f[own.first], f[own.second]) * (2 * own.size)[:, None]


def _certified(
    parts: list[Part], products: Products, rows: list[Floats], largest: Floats, criterion: Criterion
) -> Relaxed | None:
    """What the forms prove once they are shifted by all that rounding may have done; None where it is nothing."""
    proven, lacking = zip(*[part.certain() for part in parts], strict=True)
    # a squared mean is at most the largest mean times it, which leaves A as it is: long waves make
    # up little of A
    raised = np.array(lacking) * largest
    allowed = products._replace(shares=np.maximum(products.shares, 0))
    total = _Sum.of(list(proven), allowed, rows)
    try:
        values, vectors = _square_root(total.quadratic)
    except np.linalg.LinAlgError:
        return None
    # the tangent at J = A^(-1/2), whose gradient J^-2 is A but for rounding
    information = _information((values, vectors))
    value = criterion.value(information)
    inverse = np.linalg.inv(information)
    # in coordinates where A is nearly 1 and forms of long waves are as small as they are in truth
    local, turned = [f @ information for f in rows], allowed.turned(information)
    absolute, wide = turned.sizes(), np.abs(information)
    blurred = allowed._replace(
        first=np.abs(allowed.first) @ wide, second=np.abs(turned.second)
    ).pulled()
    blurred += allowed._replace(
        first=np.abs(turned.first), second=np.abs(allowed.second) @ wide
    ).pulled()
    for part, f, g in zip(proven, rows, local, strict=True):
        by_form = np.abs(part.form()) @ np.abs(g)
        absolute += np.abs(g).T @ by_form
        crossed = (np.abs(f) @ wide).T @ by_form
        blurred += crossed + crossed.T
    # terms of a sum for each entry of A, and of one for each entry of the forms
    rounding = (
        8 * (len(parts) + len(allowed.shares) + 2 * max(map(len, rows))) * np.finfo(float).eps
    )
    absolute = (
        rounding * absolute
        + 2 * (len(values) + max(map(len, rows))) * np.finfo(float).eps * blurred
    )
    share = float(np.linalg.eigvalsh(_Sum.of(list(proven), turned, local).quadratic)[0])
    share -= float(absolute.sum(axis=1).max())
    linear = total.linear + raised @ [f[0] for f in rows]
    constant = (
        total.constant
        + float(raised.sum())
        + rounding * (sum(abs(part.form()[0, 0]) for part in proven) + float(allowed.shares.sum()))
    )
    if not (share > 0 and constant > 0):
        return None
    dual = Dual(value, inverse @ inverse, linear / share, criterion.degree)
    return Relaxed(dual, constant / share, information, np.empty((0, 0)))
