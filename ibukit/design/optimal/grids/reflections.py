"""Reflections that keep distances and probabilities, over which a design or a bound is averaged.

If a channel is private, its image is private and as good, and so is the mean of the two, because
the criterion is convex. So J and A may be sought among the matrices that are invariant under
reflections. In a basis of vectors that each reflection keeps or negates, such matrices have blocks,
one for each choice of signs. Only reflections that commute are taken, each of them its own inverse.
On a grid these are up to two and their product; with two blocks, each block takes an eighth of the
work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.extremal_columns import TIE_TOLERANCE
from ibukit.design.optimal.grids.local_search import unique_up_to_symmetry
from ibukit.design.optimal.whitening import Pairs
from ibukit.fisher_information import contrasts

# Above these numbers of symmetries (as for equal distances) or of steps no reflections are used.
MAX_SYMMETRIES, MAX_SEARCH_STEPS = 48, 20_000
# Relative difference up to which probabilities are equal.
PROBABILITY_TOLERANCE = 1e-13


class Reflections(NamedTuple):
    """Images of the secrets under commuting reflections, and a basis with its signs.

    Row i of `images`, shape (images, k), tells from where image i takes its secrets; the first is
    the identity.
    """

    images: Ints
    basis: Floats
    """Orthonormal basis of {v : sum v = 0}, (k, k - 1); vectors that all reflections keep first."""
    kinds: Ints
    """Signs of each vector of the basis, as a number; 0 for those that all reflections keep."""

    @staticmethod
    def of(distances: Floats, theta: Floats) -> Reflections:
        """Reflections of a metric and a distribution; only the identity if there are too many."""
        k = len(theta)
        images = np.arange(k)[None]
        found = [
            each for each in _symmetries(distances, theta) if (each[each] == np.arange(k)).all()
        ]
        # The fewer secrets a reflection fixes, the more is gained: those come first.
        for each in sorted(
            found, key=lambda image: (int((image == np.arange(k)).sum()), image.tolist())
        ):
            commutes = (each[images] == images[:, each]).all()
            if commutes and not (images == each).all(axis=1).any():
                images = np.vstack([images, images[:, each]])
        if len(images) == 1:
            return Reflections(images, contrasts(k), np.zeros(k - 1, dtype=np.int64))
        return Reflections(images, *_symmetry_adapted_basis(images))

    def same_kind(self) -> NDArray[np.bool_]:
        """Mask of the entries of an invariant matrix that need not be 0."""
        return np.equal(self.kinds[:, None], self.kinds)

    def pairs(self) -> Pairs:
        """Pairs of the basis, without those of different kinds."""
        return Pairs.of(len(self.kinds)).among(self.kinds)

    def in_contrasts(self) -> Floats:
        """The basis in coordinates of `contrasts`; the identity without reflections."""
        if len(self.images) == 1:
            return np.eye(len(self.kinds))
        return contrasts(len(self.basis)).T @ self.basis

    def spread(self, logs: Floats) -> Floats:
        """All images of each column, image by image."""
        return np.vstack([logs[:, image] for image in self.images])

    def representatives(self) -> Ints:
        """The first secret of each set of secrets that are images of one another."""
        return np.unique(self.images.min(axis=0))

    def unique_up_to_symmetry(self, logs: Floats, distances: Floats) -> Floats:
        """One column of each set of columns that are images of one another."""
        return unique_up_to_symmetry(logs, distances, self.images)


def _symmetries(distances: Floats, theta: Floats) -> list[Ints]:
    """All permutations that keep distances and probabilities; none if there are too many.

    Depth-first search over partial permutations that keep the distances so far.
    """
    k = len(theta)
    lengths = np.rint(distances / (8 * TIE_TOLERANCE * distances.max()))
    same = np.isclose(theta[:, None], theta, rtol=PROBABILITY_TOLERANCE, atol=0)
    rows = np.sort(lengths, axis=1)
    same &= (rows[:, None] == rows).all(axis=2)
    found: list[Ints] = []
    partial: list[list[int]] = [[]]
    for _ in range(MAX_SEARCH_STEPS):
        if not partial:
            return found
        chosen = partial.pop()
        x = len(chosen)
        if x == k:
            found.append(np.array(chosen, dtype=np.int64))
            if len(found) > MAX_SYMMETRIES:
                break
            continue
        # A candidate for the image of secret x has the probability and the distances of x, is not
        # taken yet, and is at the right distances from all images chosen so far.
        fits = same[x].copy()
        fits[chosen] = False
        fits &= (lengths[:, chosen] == lengths[x, :x]).all(axis=1)
        partial.extend([*chosen, int(y)] for y in np.flatnonzero(fits)[::-1])
    return []


def _symmetry_adapted_basis(images: Ints) -> tuple[Floats, Ints]:
    """Symmetry-adapted basis: vectors by their signs under the reflections; the signs as numbers.

    The projection on a choice of signs is the signed mean over the images; its columns, one for
    each orbit of secrets, are orthogonal.
    """
    k = images.shape[1]
    columns, kinds = [], []
    number = np.arange(len(images))
    for kind in range(len(images)):
        # Image i is the product of the reflections whose bits i has.
        signs = np.array([(-1.0) ** (int(each) & kind).bit_count() for each in number])
        # Projection on the vectors with these signs: sum over the images of sign times permutation.
        made = np.zeros((k, k))
        for sign, image in zip(signs, images, strict=True):
            made[image, np.arange(k)] += sign
        orbits = np.unique(images.min(axis=0))
        vectors = made[:, orbits]
        vectors = vectors[:, np.abs(vectors).max(axis=0) > 0]
        vectors /= np.linalg.norm(vectors, axis=0)
        # Among the vectors that all reflections keep, the ones vector is removed.
        if kind == 0:
            vectors = (
                vectors @ np.linalg.qr((np.ones(k) @ vectors)[:, None], mode="complete")[0][:, 1:]
            )
        columns.append(vectors)
        kinds.append(np.full(vectors.shape[1], kind))
    return np.hstack(columns), np.concatenate(kinds)
