"""Whitened coordinates at an information matrix J: J becomes the identity, the gradient diagonal.

There the second derivative of sum_j l_j^T J^-1 l_j is diagonal on the symmetric matrices, with g_i
+ g_j for the pair of i and j. So neither a matrix with d^4 entries nor its inverse is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_weights import Criterion


class Pairs(NamedTuple):
    """An orthonormal basis of the symmetric matrices, by its pairs i <= j."""

    first: Ints
    second: Ints
    size: Floats
    """Factor of E_ij + E_ji: 1/2 on the diagonal, sqrt(1/2) off it."""

    @staticmethod
    def of(d: int) -> Pairs:
        """All d (d + 1) / 2 pairs."""
        first, second = np.triu_indices(d)
        return Pairs(first, second, np.where(first == second, 0.5, 0.5**0.5))

    def among(self, kinds: Ints) -> Pairs:
        """Pairs within one kind of coordinates, for matrices that are 0 between kinds."""
        kept = kinds[self.first] == kinds[self.second]
        return Pairs(self.first[kept], self.second[kept], self.size[kept])

    def products(self, left: Floats, right: Floats) -> Floats:
        """Coordinates of (l r^T + r l^T) / 2 for each row l and r, shape (rows, pairs)."""
        crossed = left[:, self.first] * right[:, self.second]
        crossed += left[:, self.second] * right[:, self.first]
        crossed *= self.size
        return crossed

    def squares(self, rows: Floats) -> Floats:
        """Coordinates of r r^T."""
        squared = rows[:, self.first] * rows[:, self.second]
        squared *= 2 * self.size
        return squared

    def of_matrix(self, symmetric: Floats) -> Floats:
        """Coordinates of a symmetric matrix."""
        return symmetric[self.first, self.second] * (2 * self.size)

    def matrix(self, coordinates: Floats) -> Floats:
        """The symmetric matrix with these coordinates."""
        d = int(self.second.max()) + 1
        half = np.zeros((d, d))
        half[self.first, self.second] = coordinates * self.size
        return half + half.T


def eigen_by_kind(matrix: Floats, kinds: Ints | None) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of a symmetric matrix that is block diagonal by kinds."""
    if kinds is None:
        return np.linalg.eigh(matrix)
    values, vectors = np.empty(len(matrix)), np.zeros_like(matrix)
    for kind in np.unique(kinds):
        own = np.flatnonzero(kinds == kind)
        values[own], vectors[np.ix_(own, own)] = np.linalg.eigh(matrix[np.ix_(own, own)])
    return values, vectors


class WhitenedCriterion(NamedTuple):
    """A criterion at J = root root^T, in coordinates in which J = I and G = diag(gradient)."""

    root: Floats
    value: float
    gradient: Floats
    loadings: Floats
    squares: Floats
    roots: bool

    @staticmethod
    def at(root: Floats, criterion: Criterion, kinds: Ints | None = None) -> WhitenedCriterion:
        """Turn the root so that the gradient is diagonal; kinds of coordinates stay apart."""
        # With J = R R^T the loadings become R^-1 l, and J the identity; a rotation then makes the
        # gradient diagonal without changing J.
        loadings = np.linalg.solve(root, criterion.loadings.T).T
        squares = (loadings**2).sum(axis=1)
        weights = 0.5 / np.sqrt(squares) if criterion.roots else np.ones(len(squares))
        whole = (loadings.T * weights) @ loadings
        gradient, turn = eigen_by_kind(whole, kinds)
        value = float((np.sqrt(squares) if criterion.roots else squares).sum())
        return WhitenedCriterion(
            root @ turn, value, gradient, loadings @ turn, squares, criterion.roots
        )

    def curvature(self, pairs: Pairs) -> tuple[Floats, Floats]:
        """Second derivative: a diagonal, shape (pairs,), minus x^T x for the rows x."""
        if not self.roots:
            return self.gradient[pairs.first] + self.gradient[pairs.second], np.empty(
                (0, len(pairs.first))
            )
        # The roots' second derivative has a low-rank part, one row for each loading.
        taken = pairs.squares(self.loadings) * (0.5 * self.squares**-0.75)[:, None]
        return self.gradient[pairs.first] + self.gradient[pairs.second], taken

    def inverse_curvature(self, pairs: Pairs) -> tuple[Floats, Floats]:
        """Inverse of the second derivative: a diagonal plus x^T x for the rows x (Woodbury)."""
        diagonal, taken = self.curvature(pairs)
        turned = taken / diagonal
        # phi is convex, so the identity minus the low-rank part stays positive and has a root.
        left = (
            np.linalg.cholesky(np.eye(len(taken)) - turned @ taken.T)
            if len(taken)
            else np.empty((0, 0))
        )
        return 1 / diagonal, np.linalg.solve(left, turned)
