"""Matrices that tell secrets apart, and the maximiser that the central path alone finds on them."""

import numpy as np

from ibukit.solvers import interior_point
from ibukit.solvers.dense import interior_steps, least_squares_steps, quasi_newton_steps


def by_the_path(matrix, q, monkeypatch):
    """The maximiser where no other method is tried."""
    with monkeypatch.context() as patched:
        for method in (interior_steps, least_squares_steps, quasi_newton_steps):
            patched.setattr(method, "maximise", lambda *given: None)
        return interior_point.maximise(matrix, q, 1e-12)[0]


def excess(matrix, q, theta):
    """The certificate's max g - 1, by its definition."""
    return (matrix @ (q / (theta @ matrix))).max() - 1


def confusion(rng, k, s, right=0.6):
    """Mostly the secret's own report, and else one of its own law."""
    matrix = (1 - right) * rng.dirichlet(np.full(s, 0.5), size=k)
    matrix[np.arange(k), np.arange(k) % s] += right
    return matrix
