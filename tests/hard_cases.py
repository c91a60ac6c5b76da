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
    return np.concatenate(
        [np.exp(-eps * _line(k, k)) * np.tanh(eps) for eps in (0.01, 0.1, 1.0)], axis=1
    )


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


# Extremes: nearly singular in other ways, down to the smallest doubles, and larger.


def nearly_duplicate_rows(rng, k, m):
    """Half of the rows differ from the first in the third digit at most,
    in the fifteenth at least.
    """
    matrix = _rows(rng, k, m)
    copies = rng.integers(0, k, k // 2 + 1)
    matrix[copies] = matrix[0] * (
        1 + 10 ** rng.uniform(-15, -3) * rng.uniform(-1, 1, (len(copies), m))
    )
    return matrix


def nearly_equal_rows(rng, k, m):
    return _rows(rng, 1, m) * np.exp(10 ** rng.uniform(-16, -1) * rng.normal(size=(k, m)))


def nearly_identity(rng, k, m):
    """Off the diagonal from 1e-18, which is lost beside 1, to 1/100."""
    return np.eye(k) + 10 ** rng.uniform(-18, -2)


def banded(rng, k, m):
    return np.where(_line(k, k) <= rng.integers(1, 6), rng.random((k, k)), 0)


def blocks(rng, k, m):
    """Groups of secrets with reports of their own: the likelihood falls apart into several."""
    groups = rng.integers(1, 9)
    same = rng.integers(0, groups, k)[:, None] == rng.integers(0, groups, m)
    matrix = np.where(same, rng.random((k, m)), 0)
    matrix[~matrix.any(axis=1), 0] = 1
    return matrix


def next_in_a_circle(rng, k, m):
    """The own secret or, less often, the next one, round and round."""
    return np.eye(k) + np.roll(np.eye(k), 1, axis=1) * 10 ** rng.uniform(-16, 0)


def down_to_the_smallest(rng, k, m):
    """Entries from 1 to 1e-300."""
    return np.exp(-rng.uniform(0, 690, (k, m)))


def few_reports(rng, k, m):
    """400 secrets, up to five reports."""
    return _rows(rng, 400, rng.integers(2, 6), 10 ** rng.uniform(-2, 1))


def few_secrets(rng, k, m):
    """Up to five secrets, 400 reports."""
    return _rows(rng, rng.integers(2, 6), 400, 10 ** rng.uniform(-2, 1))


def hundreds(rng, k, m):
    return _rows(rng, *rng.integers(100, 401, 2), 10 ** rng.uniform(-2, 1))


def hundreds_smooth(rng, k, m):
    return smooth(rng, *rng.integers(100, 401, 2))


def hundreds_of_huge_dynamic_range(rng, k, m):
    return huge_dynamic_range(rng, *rng.integers(100, 401, 2))


EXTREMES = [
    nearly_duplicate_rows,
    nearly_equal_rows,
    nearly_identity,
    banded,
    blocks,
    next_in_a_circle,
    down_to_the_smallest,
    few_reports,
    few_secrets,
    hundreds,
    hundreds_smooth,
    hundreds_of_huge_dynamic_range,
]


def draw(family, rng):
    """A row-stochastic matrix of the family, and counts:
    of the model (n from 1 to 1e7) or of something else.
    """
    matrix, model, n = _draw_model(family, rng)
    return matrix, rng.multinomial(n, model) * matrix.any(axis=0)


def draw_lopsided(family, rng):
    """The same with counts in the manner of no sample:
    each of another size, or one report a thousand million times.
    """
    matrix, model, _ = _draw_model(family, rng)
    possible = matrix.any(axis=0)
    if rng.integers(0, 2) == 0:
        counts = (10 ** rng.uniform(-1, 9, len(model))).astype(np.int64)
    else:
        counts = np.ones(len(model), dtype=np.int64)
    counts[rng.choice(np.flatnonzero(possible))] = 10**9
    return matrix, counts * possible


def _draw_model(family, rng):
    weights = family(rng, int(rng.integers(2, 60)), int(rng.integers(2, 100)))
    matrix = weights / weights.sum(axis=1, keepdims=True)
    n = int(10 ** rng.uniform(0, 7))
    model = rng.dirichlet(np.full(len(matrix), 10 ** rng.uniform(-2, 1))) @ matrix
    if rng.integers(0, 3) == 0:  # no secrets' distribution explains these
        other = rng.dirichlet(np.full(len(model), 10 ** rng.uniform(-1, 1))) * matrix.any(axis=0)
        model = other if other.any() else model
    return matrix, model / model.sum(), n
