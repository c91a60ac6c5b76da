"""Random maximum-likelihood problems of many kinds, easy and nasty, for the solver."""

import numpy as np


def _rows(rng, k, m, alpha=1.0):
    return rng.dirichlet(np.full(m, alpha), k)


def _line(k, m):
    return np.abs(np.arange(k)[:, None] - np.arange(m)[None, :] * max(k - 1, 1) / max(m - 1, 1))


def sparse_rows(rng, k, m):
    return _rows(rng, k, m, rng.choice([0.02, 0.1, 1.0]))


def geometric(rng, k, m):
    """Truncated geometric, eps from 1e-4 (hardly any information) to 10 (hardly any noise)."""
    eps = 10 ** rng.uniform(-4, 1)
    weights = np.exp(-eps * _line(k, k)) * -np.expm1(-eps)
    weights[:, [0, -1]] /= -np.expm1(-eps)
    return weights


def randomized_response(rng, k, m):
    """k-RR, eps from 1e-4 to 10."""
    return np.ones((k, k)) + np.expm1(10 ** rng.uniform(-4, 1)) * np.eye(k)


def least_informative_response(rng, k, m):
    return np.ones((k, k)) + np.expm1(1e-4) * np.eye(k)


def identity(rng, k, m):
    return np.eye(k)


def equal_rows(rng, k, m):
    return np.tile(_rows(rng, 1, m), (k, 1))


def duplicate_rows(rng, k, m):
    matrix = _rows(rng, k, m)
    matrix[rng.integers(0, k, k // 2 + 1)] = matrix[0]
    return matrix


def low_rank(rng, k, m):
    rank = rng.integers(1, 4)
    return _rows(rng, k, rank) @ _rows(rng, rank, m)


def unused_columns(rng, k, m):
    matrix = np.where(rng.random((k, m)) < 0.1, rng.random((k, m)), 0)
    matrix[:, 0] += 1e-3
    matrix[:, rng.integers(1, m, m // 4)] = 0
    return matrix


def smooth(rng, k, m):
    """Gaussian bumps: singular to a double when they are broad."""
    return np.exp(-0.5 * (_line(k, m) / k / 10 ** rng.uniform(-2, 0.5)) ** 2) + 1e-300


def huge_dynamic_range(rng, k, m):
    return np.exp(rng.normal(0, 8, (k, m)))


def several_levels(rng, k, m):
    return np.concatenate([np.exp(-eps * _line(k, k)) * np.tanh(eps) for eps in (0.01, 0.1, 1.0)], axis=1)


def tall(rng, k, m):
    return _rows(rng, 4 * k, 5)


def wide(rng, k, m):
    return _rows(rng, 4, 40 * m)


FAMILIES = [
    sparse_rows,
    geometric,
    randomized_response,
    least_informative_response,
    identity,
    equal_rows,
    duplicate_rows,
    low_rank,
    unused_columns,
    smooth,
    huge_dynamic_range,
    several_levels,
    tall,
    wide,
]


def draw(family, rng):
    """A row-stochastic matrix of the family, and counts: of the model (n from 1 to 1e7) or of something else."""
    weights = family(rng, int(rng.integers(2, 60)), int(rng.integers(2, 100)))
    matrix = weights / weights.sum(axis=1, keepdims=True)
    n = int(10 ** rng.uniform(0, 7))
    model = rng.dirichlet(np.full(len(matrix), 10 ** rng.uniform(-2, 1))) @ matrix
    if rng.integers(0, 3) == 0:  # no secrets' distribution explains these
        other = rng.dirichlet(np.full(len(model), 10 ** rng.uniform(-1, 1))) * matrix.any(axis=0)
        model = other if other.any() else model
    return matrix, rng.multinomial(n, model / model.sum())
