"""A bound on every private channel without its columns: second moments, relaxed patch by patch.

With M a private channel and p = theta M let u_z = M_z / p_z and X = sum_z p_z u_z u_z^T = 1 1^T + U
J U^T. Two things are known of X: the forms N of `patches` are not negative on it, patch by patch;
nor are the products of two forms v w >= 0 that privacy gives, such as (w_y - exp(-d) w_x) w_x.
Summed over patches P and products e, for every private u = 1 + U r,

    T(r) = sum_P N_P(u_P) + sum_e n_e (v_e u) (v'_e u) = c + l r - r^T A r >= 0.

If A is positive definite, q = A and nu = l make B = c a bound on all scores, and the bound of
`column_weights` at the J whose gradient is A, J = A^(-1/2), is (tr A^(1/2))^2 / c. The best N and n
are those of the dual problem

    maximise 2 tr A^(1/2) - c
    over N_P with N_P(r) >= 0 at the patch's columns and concave, and n >= 0.

An interior-point method finds them; every iterate proves a bound. J is an unknown of its own, and
equals J(A) only at the end, because where A is nearly singular, J(A) changes too fast for steps of
any length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.column_weights import Criterion, Dual, reach
from ibukit.design.optimal.grids.patch_forms import (
    FormProducts,
    PatchForm,
    PatchFormStep,
    SummedForm,
    first_patch_form,
)
from ibukit.design.optimal.grids.patch_newton import PatchNewtonSystem
from ibukit.design.optimal.grids.patches import Patch, patches_of, unique_patches
from ibukit.design.optimal.grids.reflections import Reflections
from ibukit.design.optimal.path_relaxation import RelaxationBound
from ibukit.design.optimal.whitening import eigen_by_kind

MAX_ITERATIONS = 200
# The method ends when the remaining complementarity is this share of the criterion.
PATCHES_TOLERANCE = 1e-3
# If nothing better is found, the first forms prove a bound with products of this multiple of what
# makes A definite.
FIRST_PRODUCT_MULTIPLE = 4.0
# Share of the way to the boundary of the forms that a step takes, and to a singular J.
STEP_SHARE, MAX_SHARE_TO_SINGULAR = 0.95, 0.7
# Range of the factor by which mu falls in a step.
MIN_SHRINK, MAX_SHRINK = 1e-3, 0.9


class _Image(NamedTuple):
    """Data of the forms in one image: distances, theta, and the rows of each patch."""

    distances: Floats
    theta: Floats
    across: Floats
    rows: list[Floats]
    largest: Floats

    @staticmethod
    def of(
        secrets: Ints, distances: Floats, theta: Floats, basis: Floats, patches: list[Patch]
    ) -> _Image:
        """Image in which these `secrets` take the places of the secrets in order."""
        across = (basis - theta @ basis)[secrets]
        # No private column of mean 1 is larger at x than this.
        tallest = (1 / (np.exp(-distances) @ theta))[secrets]
        rows = [patch.turn @ across[patch.secrets] for patch in patches]
        largest = np.array([tallest[patch.secrets].mean() for patch in patches])
        return _Image(distances[np.ix_(secrets, secrets)], theta[secrets], across, rows, largest)

    def products(self, ends: Ints) -> FormProducts:
        """Products with given ends, in the image."""
        return FormProducts.of(ends, self.distances, self.theta, self.across)

    def violated(self, firsts: Ints, information: Floats) -> Ints:
        """Ends of the products that are negative at J."""
        second = 1 + self.across @ information @ self.across[firsts].T
        least = np.exp(-self.distances[:, firsts]) * second[firsts, np.arange(len(firsts))]
        y, x = np.nonzero(second < least)
        return np.column_stack([firsts[x], y])


class _PatchProblem(NamedTuple):
    """Data of the problem; forms stand for sums over their images, J and A are invariant."""

    reflections: Reflections
    images: list[_Image]
    criterion: Criterion

    @property
    def rows(self) -> list[Floats]:
        """Rows of the patches in the first image, the identity."""
        return self.images[0].rows

    def with_violated(self, products: FormProducts, information: Floats, mu: float) -> FormProducts:
        """The products together with those that J makes negative."""
        ends = self.images[0].violated(self.reflections.representatives(), information)
        new = ends[~(ends[:, None] == products.ends).all(axis=2).any(axis=1)]
        return (
            products.joined(self.images[0].products(new).at(information, mu))
            if len(new)
            else products
        )

    def multipliers_for_definiteness(self, parts: list[PatchForm]) -> Floats:
        """Multipliers of each secret's product with all others that make A definite at first."""
        one, images, firsts = (
            self.images[0],
            self.reflections.images,
            self.reflections.representatives(),
        )
        means = np.zeros(len(one.theta))
        for part in parts:
            height = max(float(part.form()[0, 0]), 0.0) / part.patch.secrets.size / len(images)
            np.add.at(means, images[:, part.patch.secrets], height)
        most = one.theta @ -np.expm1(-one.distances)
        alike = np.array([len(np.unique(images[:, x])) for x in firsts])
        return FIRST_PRODUCT_MULTIPLE * (means * most / (1 - most))[firsts] * alike

    def certified(self, parts: list[PatchForm], products: FormProducts) -> RelaxationBound | None:
        """Bound that the forms prove, image by image, without relying on the symmetry."""
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
        return _certify(every, together, rows, largest, self.criterion)


def solve_patch_relaxation(
    distances: Floats, theta: Floats, criterion: Criterion
) -> RelaxationBound:
    """Best bound met, with its tangent and J, for the criterion of the squared error."""
    reflections = Reflections.of(distances, theta)
    basis, back = reflections.basis, reflections.in_contrasts()
    patches, sizes = unique_patches(patches_of(distances), reflections.images)
    images = [_Image.of(image, distances, theta, basis, patches) for image in reflections.images]
    problem = _PatchProblem(
        reflections, images, Criterion(criterion.loadings @ back, criterion.roots)
    )
    points = deviations(np.vstack([-distances, distances]), theta)[0] @ basis
    spread = np.where(reflections.same_kind(), points.T @ points / len(points), 0)
    parts = [
        first_patch_form(patch).scaled(size) for patch, size in zip(patches, sizes, strict=True)
    ]
    parts, products, information = _starting_point(parts, problem, spread)
    first = parts, products._replace(shares=problem.multipliers_for_definiteness(parts))
    best: RelaxationBound | None = None
    shown = tqdm(
        range(MAX_ITERATIONS), desc="bound", unit=" steps", leave=False, disable=None, delay=1
    )
    for _ in shown:
        try:
            parts, products, information, certificate, left = _step(
                parts, products, information, problem
            )
        except (np.linalg.LinAlgError, FloatingPointError):
            # Rounding makes the system singular near the end; the bound tells the quality.
            break
        if certificate is not None and (best is None or certificate.bound > best.bound):
            best = certificate
        if best is not None and left < PATCHES_TOLERANCE:
            break
    shown.close()
    # With rare secrets or steps of many nats doubles fail at once: the first forms prove a little.
    best = best or problem.certified(*first)
    if best is None:
        raise np.linalg.LinAlgError("no forms of the patches prove a bound")
    dual = best.dual._replace(
        quadratic=back @ best.dual.quadratic @ back.T, linear=back @ best.dual.linear
    )
    return best._replace(dual=dual, information=back @ best.information @ back.T)


def _starting_point(
    parts: list[PatchForm], problem: _PatchProblem, spread: Floats
) -> tuple[list[PatchForm], FormProducts, Floats]:
    """Starting point: forms and J scaled to suit each other, with moments at one mu.

    `spread` is J up to its size.
    """
    weights = [1 / part.values() for part in parts]
    sizes = [float(each.sum()) for each in weights]
    wanted = [
        np.trace(part.patch.pairs.matrix(part.patch.moments @ each)[1:, 1:]) / size
        for part, each, size in zip(parts, weights, sizes, strict=True)
    ]
    jacobian = [np.trace((f @ spread @ f.T)[1:, 1:]) for f in problem.rows]
    information = spread * float(np.sum(wanted) / np.sum(jacobian))
    # At the optimum c equals the criterion: this fixes the size of the forms.
    scale = problem.criterion.value(information) / sum(float(part.form()[0, 0]) for part in parts)
    parts = [part.scaled(scale) for part in parts]
    mu = scale / float(np.mean(sizes))
    firsts = problem.reflections.representatives()
    products = problem.images[0].products(np.column_stack([firsts, firsts])).at(information, mu)
    return [part.centred(mu) for part in parts], products, information


def _eigen_root(quadratic: Floats, kinds: Ints | None = None) -> tuple[Floats, Floats]:
    """Square roots of the eigenvalues, and the eigenvectors, of a positive definite matrix."""
    values, vectors = eigen_by_kind(quadratic, kinds)
    if not values.min() > 0:
        raise np.linalg.LinAlgError("the sum of the forms is not definite")
    return np.sqrt(values), vectors


def _inverse_root(root: tuple[Floats, Floats]) -> Floats:
    """Return J = A^(-1/2)."""
    return (root[1] / root[0]) @ root[1].T


def _step(
    parts: list[PatchForm], products: FormProducts, information: Floats, problem: _PatchProblem
) -> tuple[list[PatchForm], FormProducts, Floats, RelaxationBound | None, float]:
    """One Newton step, what the forms before it prove, and the share of the criterion left."""
    certificate = problem.certified(parts, products)
    mu = _complementarity(parts, products) / _complementarity_count(parts, products)
    products = problem.with_violated(products, information, mu)
    together = _complementarity(parts, products)
    # Change to coordinates in which J is the identity and the gradient diagonal.
    values, vectors = _eigen_root(information, problem.reflections.kinds)
    root = vectors * values
    local = [f @ root for f in problem.rows]
    turned = products.in_coordinates(root)
    newton = PatchNewtonSystem.at(parts, turned, local, problem.reflections.pairs(), values**-2.0)
    # Predictor to mu = 0; the complementarity that it would leave chooses mu (Mehrotra).
    ahead, change = newton.step(0.0)
    _, _, left, _ = _take_step(parts, products, ahead, change)
    shrink = min(max((left / together) ** 3, MIN_SHRINK), MAX_SHRINK)
    ahead, change = newton.step(mu * shrink)
    parts, products, _, primal = _take_step(parts, products, ahead, change)
    information = root @ (np.eye(len(root)) + primal * change) @ root.T
    return parts, products, information, certificate, together / float((values**-2.0).sum())


def _complementarity(parts: list[PatchForm], products: FormProducts) -> float:
    """Sum of all products that equal mu on the central path."""
    return sum(part.complementarity() for part in parts) + float(products.shares @ products.slacks)


def _complementarity_count(parts: list[PatchForm], products: FormProducts) -> int:
    """Number of products that equal mu on the central path."""
    return sum(part.complementarity_count() for part in parts) + len(products.shares)


def _take_step(
    parts: list[PatchForm], products: FormProducts, steps: list[PatchFormStep], change: Floats
) -> tuple[list[PatchForm], FormProducts, float, float]:
    """Unknowns after a step that keeps them positive, their complementarity, the primal length."""
    primal, dual = (
        min(1.0, MAX_SHARE_TO_SINGULAR / max(-float(np.linalg.eigvalsh(change)[0]), 1e-9)),
        1.0,
    )
    for part, step in zip(parts, steps[:-1], strict=True):
        far = part.reach(step, STEP_SHARE)
        primal, dual = min(primal, far[0]), min(dual, far[1])
    last = steps[-1]
    primal = min(primal, reach(products.slacks, last.weights, STEP_SHARE))
    dual = min(dual, reach(products.shares, last.numbers, STEP_SHARE))
    moved = [part.moved(step, primal, dual) for part, step in zip(parts, steps[:-1], strict=True)]
    ahead = products._replace(
        slacks=products.slacks + primal * last.weights, shares=products.shares + dual * last.numbers
    )
    return moved, ahead, _complementarity(moved, ahead), primal


def _certify(
    parts: list[PatchForm],
    products: FormProducts,
    rows: list[Floats],
    largest: Floats,
    criterion: Criterion,
) -> RelaxationBound | None:
    """Bound that the forms prove once shifted by all possible rounding; None if there is none."""
    proven, shortfalls = zip(*[part.with_safety_margin() for part in parts], strict=True)
    # A squared mean is at most the largest mean times the mean, which is linear: A stays as it is,
    # because long waves make up little of A and would be lost.
    raised = np.array(shortfalls) * largest
    allowed = products._replace(shares=np.maximum(products.shares, 0))
    total = SummedForm.of(list(proven), allowed, rows)
    try:
        values, vectors = _eigen_root(total.quadratic)
    except np.linalg.LinAlgError:
        return None
    # The tangent at J = A^(-1/2), whose gradient J^-2 equals A up to rounding.
    information = _inverse_root((values, vectors))
    value = criterion.value(information)
    inverse = np.linalg.inv(information)
    # Rounding is bounded in coordinates in which A is nearly 1, where forms of long waves have
    # their true small size.
    local, turned = [f @ information for f in rows], allowed.in_coordinates(information)
    absolute, wide = turned.sizes(), np.abs(information)
    blurred = allowed._replace(
        first=np.abs(allowed.first) @ wide, second=np.abs(turned.second)
    ).weighted_sum()
    blurred += allowed._replace(
        first=np.abs(turned.first), second=np.abs(allowed.second) @ wide
    ).weighted_sum()
    for part, f, g in zip(proven, rows, local, strict=True):
        by_form = np.abs(part.form()) @ np.abs(g)
        absolute += np.abs(g).T @ by_form
        crossed = (np.abs(f) @ wide).T @ by_form
        blurred += crossed + crossed.T
    # One sum of this many terms for each entry of A, and another for each entry of the forms.
    rounding = (
        8 * (len(parts) + len(allowed.shares) + 2 * max(map(len, rows))) * np.finfo(float).eps
    )
    absolute = (
        rounding * absolute
        + 2 * (len(values) + max(map(len, rows))) * np.finfo(float).eps * blurred
    )
    share = float(np.linalg.eigvalsh(SummedForm.of(list(proven), turned, local).quadratic)[0])
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
    return RelaxationBound(dual, constant / share, information, np.empty((0, 0)))
