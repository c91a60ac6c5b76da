"""The inverse of the observed information in exact fractions:
nothing is rounded until it is found.
"""

from fractions import Fraction

import numpy as np


def inverse(matrix):
    """Gauss and Jordan's, of a square list of rows of fractions."""
    size = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = next(j for j in range(i, size) if rows[j][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for j in range(size):
            if j != i and rows[j][i]:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[size:] for row in rows]


def covariance(matrix, theta, counts):
    """B (B^T J B)^-1 B^T, where the columns of B are e_i - e_last;
    all reports have their column in `matrix`.
    """
    entries = [[Fraction(float(entry)) for entry in row] for row in matrix]
    theta = [Fraction(float(mass)) for mass in theta]
    k, reports = len(entries), range(len(counts))
    p = [sum(theta[x] * entries[x][z] for x in range(k)) for z in reports]
    steps = [[(entries[i][z] - entries[-1][z]) / p[z] for z in reports] for i in range(k - 1)]
    inner = [
        [sum(int(c) * a * b for c, a, b in zip(counts, one, two, strict=True)) for two in steps]
        for one in steps
    ]
    found = inverse(inner)
    whole = np.zeros((k, k))
    for i in range(k - 1):
        for j in range(k - 1):
            whole[i, j] = found[i][j]
    whole[-1, :-1] = [-float(sum(column)) for column in zip(*found, strict=True)]
    whole[:-1, -1] = whole[-1, :-1]
    whole[-1, -1] = float(sum(map(sum, found)))
    return whole
