"""Reflections that change neither distances nor probabilities, in which a design and a bound can be averaged.

With a private channel its image is private and as good, and so is their mean, as the criterion is
convex. So J and A may be sought among the matrices that reflections leave alone. In a basis of
vectors that each reflection keeps or turns to their negatives these have blocks, one for each
choice of signs. Only reflections that commute are taken, each its own inverse: on a grid up to two
and their product, with an eighth of the work of two blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.extremal_columns import TIE_OF_PATHS
from ibukit.design.optimal.grids.local_search import unlike
from ibukit.design.optimal.whitening import Pairs
from ibukit.fisher_information import contrasts

# where there are more symmetries than that, as with equal distances, or they are not found so soon,
# none are used
MAX_SYMMETRIES, MAX_LOOKS = 48, 20_000
# probabilities are the same up to that share
SAME_PROBABILITY = 1e-13


class Reflections(NamedTuple):
    """Where each image has its secrets from, shape (images, k), the first as they are, and a basis with its signs."""

    images: Ints
    basis: Floats
    """An orthonormal basis of {v : sum v = 0}, shape (k, k - 1), those that all reflections keep first."""
    kinds: Ints
    """Which signs each vector of the basis has; 0 are those that all keep."""

    @staticmethod
    def of(distances: Floats, theta: Floats) -> Reflections:
        """Those of a metric and a distribution; none but the identity where there are none, or too many."""
        k = len(theta)
        images = np.arange(k)[None]
        found = [
            each for each in _symmetries(distances, theta) if (each[each] == np.arange(k)).all()
        ]
        # the fewer secrets stay, the more is gained
        for each in sorted(
            found, key=lambda image: (int((image == np.arange(k)).sum()), image.tolist())
        ):
            commutes = (each[images] == images[:, each]).all()
            if commutes and not (images == each).all(axis=1).any():
                images = np.vstack([images, images[:, each]])
        if len(images) == 1:
            return Reflections(images, contrasts(k), np.zeros(k - 1, dtype=np.int64))
        return Reflections(images, *_adapted(images))

    def alike(self) -> NDArray[np.bool_]:
        """Which entries of an invariant matrix need not be 0."""
        return np.equal(self.kinds[:, None], self.kinds)

    def pairs(self) -> Pairs:
        """Of the basis, without those of different kinds."""
        return Pairs.of(len(self.kinds)).among(self.kinds)

    def of_contrasts(self) -> Floats:
        """The basis in coordinates of `contrasts`; the identity without reflections."""
        if len(self.images) == 1:
            return np.eye(len(self.kinds))
        return np.asarray(contrasts(len(self.basis)).T @ self.basis)

    def spread(self, logs: Floats) -> Floats:
        """All images of each column, image by image."""
        return np.vstack([logs[:, image] for image in self.images])

    def firsts(self) -> Ints:
        """The first of all secrets that are images of one another."""
        return np.unique(self.images.min(axis=0))

    def unlike(self, logs: Floats, distances: Floats) -> Floats:
        """Of columns that are images of one another one."""
        return unlike(logs, distances, self.images)


def _symmetries(distances: Floats, theta: Floats) -> list[Ints]:
    """All permutations that keep distances and probabilities; none where there are too many."""
    k = len(theta)
    lengths = np.rint(distances / (8 * TIE_OF_PATHS * distances.max()))
    same = np.isclose(theta[:, None], theta, rtol=SAME_PROBABILITY, atol=0)
    rows = np.sort(lengths, axis=1)
    same &= (rows[:, None] == rows).all(axis=2)
    found: list[Ints] = []
    partial: list[list[int]] = [[]]
    for _ in range(MAX_LOOKS):
        if not partial:
            return found
        chosen = partial.pop()
        x = len(chosen)
        if x == k:
            found.append(np.array(chosen, dtype=np.int64))
            if len(found) > MAX_SYMMETRIES:
                break
            continue
        fits = same[x].copy()
        fits[chosen] = False
        fits &= (lengths[:, chosen] == lengths[x, :x]).all(axis=1)
        partial.extend([*chosen, int(y)] for y in np.flatnonzero(fits)[::-1])
    return []


def _adapted(images: Ints) -> tuple[Floats, Ints]:
    """The basis by its signs, and these as a number."""
    k = images.shape[1]
    columns, kinds = [], []
    number = np.arange(len(images))
    for kind in range(len(images)):
        # image i is the product of the reflections whose bits i has
        signs = np.array([(-1.0) ** (int(each) & kind).bit_count() for each in number])
        made = np.zeros((k, k))
        for sign, image in zip(signs, images, strict=True):
            made[image, np.arange(k)] += sign
        orbits = np.unique(images.min(axis=0))
        vectors = made[:, orbits]
        vectors = vectors[:, np.abs(vectors).max(axis=0) > 0]
        vectors /= np.linalg.norm(vectors, axis=0)
        if kind == 0:
            vectors = (
                vectors @ np.linalg.qr((np.ones(k) @ vectors)[:, None], mode="complete")[0][:, 1:]
            )
        columns.append(vectors)
        kinds.append(np.full(vectors.shape[1], kind))
    return np.hstack(columns), np.concatenate(kinds)
