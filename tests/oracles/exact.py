"""Ranks without rounding,
and all vertices of a small polytope by trying every basis: slow and obvious.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np


def rank(rows):
    """Rank of a matrix of integers (or of doubles, taken at their word),
    by elimination in fractions.
    """
    left = [[Fraction(x) for x in row] for row in np.asarray(rows).tolist()]
    done = 0
    for column in range(len(left[0])):
        pivot = next((i for i in range(done, len(left)) if left[i][column]), None)
        if pivot is None:
            continue
        left[done], left[pivot] = left[pivot], left[done]
        for i in range(done + 1, len(left)):
            factor = left[i][column] / left[done][column]
            left[i] = [a - factor * b for a, b in zip(left[i], left[done], strict=True)]
        done += 1
    return done


def rank_over_two(rows):
    """The same where 1 + 1 = 0, with each row an integer."""
    basis = []
    for row in rows:
        number = int("".join(str(int(bit)) for bit in row), 2)
        for held in basis:
            number = min(number, number ^ held)
        if number:
            basis.append(number)
    return len(basis)


def vertices(matrix, fit, tolerance=1e-9):
    """Extreme points of {theta >= 0 : theta matrix = fit, sum theta = 1}:
    independent rows on the support.
    """
    k = len(matrix)
    columns = np.column_stack([np.ones(k), np.asarray(matrix) / fit])
    found = []
    for size in range(1, k + 1):
        for support in map(list, combinations(range(k), size)):
            if np.linalg.matrix_rank(columns[support], tol=1e-10) < size:
                continue
            mass = np.linalg.lstsq(columns[support].T, np.ones(columns.shape[1]), rcond=None)[0]
            theta = np.zeros(k)
            theta[support] = mass
            if mass.min() >= -tolerance and np.abs(theta @ columns - 1).max() <= tolerance:
                found.append(theta)
    return np.array(found)
