"""A bound on every private channel that looks at no column of all secrets: second moments are relaxed patch by patch.

With M a private channel and p = theta M let u_z = M_z / p_z and X = sum_z p_z u_z u_z^T = 1 1^T + U J U^T. Of X it is
known that the forms N of `patches` are not negative on it, patch by patch, and that products of two forms v w >= 0
that privacy has, (w_y - exp(-d) w_x) w_x and the like, are not. Summed over patches P and products e

    T(r) = sum_P N_P(u_P) + sum_e n_e (v_e u) (v'_e u) = c + l r - r^T A r >= 0   for every private u = 1 + U r.

Where A is positive definite, q = A and nu = l make B = c a bound on all scores, and the bound of `_optimal_weights` is
that of the J whose gradient is A, J = A^(-1/2): (tr A^(1/2))^2 / c. The best N and n are those of the dual problem

    maximise 2 tr A^(1/2) - c   over N_P with N_P(r) >= 0 at the patch's columns and concave, and n >= 0,

found by an interior-point method; any that it meets on its way prove a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from tqdm import tqdm

from ibukit._validate import Floats
from ibukit.design._optimal_weights import Criterion, Dual, reach
from ibukit.design._path_relaxation import Relaxed
from ibukit.design._round_frame import Pairs
from ibukit.design.grids.patch_forms import Part, Products, Step, first_part, has_long_steps
from ibukit.design.grids.patches import patches_of
from ibukit.information import contrasts

MAX_ITER_PATCHES = 120
# the method ends where what is left is this share of the criterion
NEAR_THE_PATCHED = 1e-3
# mu at first, as a multiple of what weighs the columns of a patch to 1; of long steps less is too near to forms of 0
FIRST_WEIGHT, FIRST_WEIGHT_LONG = 1.0, 10.0
# steps go this far towards where a form would be 0, and A no nearer to singular than that
REACH_PATCHED, MOST_OF_A = 0.95, 0.7
# the least and the most that mu falls to in a step
LEAST_SHRINK, MOST_SHRINK = 1e-3, 0.9
# N and n are scaled by the best factor where it is above this
WORTH_SCALING = 1.05


class _Sum(NamedTuple):
    """A, l and c of all forms."""

    quadratic: Floats
    linear: Floats
    constant: float

    @staticmethod
    def of(parts: list[Part], products: Products, rows: list[Floats]) -> _Sum:
        """The mean of a patch is 1 + f_0 r, and its other coordinates are f r."""
        quadratic = -products.pulled()
        linear, constant = products.shares @ (products.first + products.second), float(products.shares.sum())
        for part, f in zip(parts, rows, strict=True):
            form = part.form()
            quadratic -= f.T @ form @ f
            linear += 2 * f.T @ form[0]
            constant += form[0, 0]
        return _Sum(quadratic, linear, constant)


def relaxed_by_patches(distances: Floats, theta: Floats, criterion: Criterion) -> Relaxed:
    """The best bound met, with its tangent, its J, and no products; the criterion is that of the squared error."""
    basis = contrasts(len(theta))
    across = basis - theta @ basis
    patches = patches_of(distances)
    rows = [patch.turn @ across[patch.secrets] for patch in patches]
    parts = [first_part(patch) for patch in patches]
    products = Products.of(distances, theta, across, parts)
    # of private columns of mean 1 none is larger at x
    tallest = 1 / (np.exp(-distances) @ theta)
    largest = np.array([tallest[patch.secrets].mean() for patch in patches])
    first = FIRST_WEIGHT_LONG if has_long_steps(distances) else FIRST_WEIGHT
    parts, products = _weighed(parts, products, rows, first)
    best: Relaxed | None = None
    shown = tqdm(range(MAX_ITER_PATCHES), desc="bound", unit=" steps", leave=False, disable=None, delay=1)
    for _ in shown:
        try:
            parts, products, told, left = _step(parts, products, rows, largest, criterion)
        except (np.linalg.LinAlgError, FloatingPointError):
            break  # the end of what doubles can tell; the bound says how good it is
        if told is not None and (best is None or told.bound > best.bound):
            best = told
        if best is not None and left < NEAR_THE_PATCHED:
            break
    shown.close()
    if best is None:
        raise np.linalg.LinAlgError("no forms of the patches prove a bound")
    return best


def _weighed(parts: list[Part], products: Products, rows: list[Floats], first: float) -> tuple[list[Part], Products]:
    """The first forms scaled as is best, with the moments that belong to them at one mu."""
    total = _Sum.of(parts, products, rows)
    root = _square_root(total.quadratic)[0]
    scale = (root.sum() / total.constant) ** 2
    parts, products = [part.scaled(scale) for part in parts], products.scaled(scale)
    weights = [float((1 / part.values()).sum()) for part in parts]
    mu = first / float(np.mean(weights))
    information = _information(_square_root(total.quadratic * scale))
    return [part.centred(mu) for part in parts], products.centred(mu, information)


def _square_root(quadratic: Floats) -> tuple[Floats, Floats]:
    """Square roots of the eigenvalues, and the eigenvectors."""
    values, vectors = np.linalg.eigh(quadratic)
    if not values[0] > 0:
        raise np.linalg.LinAlgError("the sum of the forms is not definite")
    return np.sqrt(values), vectors


def _information(root: tuple[Floats, Floats]) -> Floats:
    """J = A^(-1/2)."""
    return np.asarray((root[1] / root[0]) @ root[1].T)


def _step(
    parts: list[Part], products: Products, rows: list[Floats], largest: Floats, criterion: Criterion
) -> tuple[list[Part], Products, Relaxed | None, float]:
    """One Newton step; what the forms before it prove, and the share of the criterion that is left."""
    total = _Sum.of(parts, products, rows)
    values, vectors = _square_root(total.quadratic)
    scale = (values.sum() / total.constant) ** 2
    if scale > WORTH_SCALING:
        parts, products = [part.scaled(scale) for part in parts], products.scaled(scale)
        values = values * scale**0.5
    told = _certified(parts, products, rows, largest, criterion)
    # coordinates in which J = A^(-1/2) is the identity and the gradient, A, diagonal
    root = vectors / np.sqrt(values)
    local = [f @ root for f in rows]
    turned = products.turned(root)
    pairs = Pairs.of(len(values))
    count = sum(part.pairs_of_mu() for part in parts) + len(products.shares)
    together = sum(part.complementarity() for part in parts) + float(products.shares @ products.slacks)
    newton = _Newton.at(parts, turned, local, pairs, values)
    _, ahead = newton.step(0.0)
    _, _, left = _after(parts, products, ahead)
    shrink = min(max((left / together) ** 3, LEAST_SHRINK), MOST_SHRINK)
    changed, ahead = newton.step(together / count * shrink)
    parts, products, _ = _after(parts, products, ahead, MOST_OF_A / max(-changed, 1e-9))
    return parts, products, told, together / float(values.sum())


def _after(
    parts: list[Part], products: Products, steps: list[Step], most: float = 1.0
) -> tuple[list[Part], Products, float]:
    """All after a step that keeps moments and forms positive, and what is then together."""
    primal, dual = 1.0, min(1.0, most)
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
    together = sum(part.complementarity() for part in moved) + float(ahead.shares @ ahead.slacks)
    return moved, ahead, together


class _Newton(NamedTuple):
    """The equations for one step, in coordinates in which J = 1: their matrix factored, and J's own moments."""

    parts: list[Part]
    products: Products
    second: list[Floats]
    factor: tuple[Floats, bool]
    local: list[Floats]
    gradient: Floats

    @staticmethod
    def at(parts: list[Part], products: Products, local: list[Floats], pairs: Pairs, gradient: Floats) -> _Newton:
        """The curvature of 2 tr A^(1/2) as seen by the forms, and that of each part's own barrier."""
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
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return _Newton(parts, products, second, factor, local, gradient)

    def step(self, target: float) -> tuple[float, list[Step]]:
        """The least eigenvalue of A's change as a share of A, and the changes towards products of `target`."""
        away = [part.pull(target) - x for part, x in zip(self.parts, self.second, strict=True)]
        away.append(target / self.products.shares - self.products.values())
        found: Floats = cho_solve(self.factor, np.concatenate(away), check_finite=False)
        steps, place = [], 0
        change = np.zeros((self.products.first.shape[1],) * 2)
        for part, f in zip(self.parts, self.local, strict=True):
            numbers = found[place : place + len(part.numbers)]
            place += len(numbers)
            steps.append(part.step(numbers, target))
            change -= f.T @ part.patch.pairs.matrix(numbers) @ f
        numbers = found[place:]
        shares, slacks = self.products.shares, self.products.slacks
        steps.append(Step(numbers, target / shares - slacks - slacks / shares * numbers, numbers, numbers, numbers))
        change -= self.products._replace(shares=numbers).pulled()
        relative = change / np.sqrt(self.gradient) / np.sqrt(self.gradient)[:, None]
        return float(np.linalg.eigvalsh(relative)[0]), steps


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
    # a squared mean is at most the largest mean times it, which leaves A as it is: long waves make up little of A
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
    blurred = Products(np.abs(allowed.first) @ wide, np.abs(turned.second), allowed.shares, allowed.slacks).pulled()
    blurred += Products(np.abs(turned.first), np.abs(allowed.second) @ wide, allowed.shares, allowed.slacks).pulled()
    for part, f, g in zip(proven, rows, local, strict=True):
        by_form = np.abs(part.form()) @ np.abs(g)
        absolute += np.abs(g).T @ by_form
        crossed = (np.abs(f) @ wide).T @ by_form
        blurred += crossed + crossed.T
    # terms of a sum for each entry of A, and of one for each entry of the forms
    rounding = 8 * (len(parts) + len(allowed.shares) + 2 * max(map(len, rows))) * np.finfo(float).eps
    absolute = rounding * absolute + 2 * (len(values) + max(map(len, rows))) * np.finfo(float).eps * blurred
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
