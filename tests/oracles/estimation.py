"""Optimal estimation by slow, obvious routes: listed channels, exact information.
This file may not import ibukit.
"""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

DIGITS = 30


def all_sets(k, size):
    """Bit rows with `size` ones, in the order of the binary numbers that they spell."""
    return [row for row in itertools.product((0, 1), repeat=k) if sum(row) == size]


def subset_selection(k, eps, size, rows=None):
    """Odds e^eps for every set that holds the secret, divided by their sum."""
    rows = all_sets(k, size) if rows is None else rows
    total = math.comb(k - 1, size - 1) * math.exp(eps) + math.comb(k - 1, size)
    return np.array(
        [[(math.exp(eps) if row[x] else 1.0) / total for row in rows] for x in range(k)]
    )


def fraction_of_exp(x):
    """E^x with thirty digits, as a fraction."""
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction(Decimal(x).exp())


def exact_k_rr(k, eps):
    """The channel of k-RR in fractions."""
    e = fraction_of_exp(eps)
    return [[(e if x == z else Fraction(1)) / (k - 1 + e) for z in range(k)] for x in range(k)]


def exact_unary(k, p_one, p_zero):
    """The channel of a unary encoding in fractions."""
    matrix = [[Fraction(1)] * 2**k for _ in range(k)]
    for z, row in enumerate(itertools.product((0, 1), repeat=k)):
        for x in range(k):
            for y in range(k):
                p = p_one if x == y else p_zero
                matrix[x][z] *= p if row[y] else 1 - p
    return matrix


def exact_oue(k, eps):
    """Optimised unary encoding in fractions."""
    return exact_unary(k, Fraction(1, 2), 1 / (1 + fraction_of_exp(eps)))


def exact_rappor(k, eps):
    """RAPPOR in fractions."""
    root = fraction_of_exp(eps / 2)
    return exact_unary(k, root / (1 + root), 1 / (1 + root))


def exact_subset_selection(k, eps, size):
    """Subset selection in fractions."""
    e = fraction_of_exp(eps)
    total = math.comb(k - 1, size - 1) * e + math.comb(k - 1, size)
    return [[(e if row[x] else 1) / total for row in all_sets(k, size)] for x in range(k)]


def exact_asymptotic_mse(matrix, theta):
    """tr J^-1 - ||theta||^2 in fractions, J = M diag(theta M)^-1 M^T;
    theta of doubles is normalised exactly.
    """
    p = [Fraction(x) for x in theta]
    p = [x / sum(p) for x in p]
    k, m = len(matrix), len(matrix[0])
    total = [sum(p[x] * matrix[x][z] for x in range(k)) for z in range(m)]
    information = [
        [sum(matrix[x][z] * matrix[y][z] / total[z] for z in range(m)) for y in range(k)]
        for x in range(k)
    ]
    return float(_trace_of_inverse(information) - sum(x * x for x in p))


def _trace_of_inverse(matrix):
    """By Gauss and Jordan."""
    k = len(matrix)
    rows = [list(row) + [Fraction(int(i == j)) for j in range(k)] for i, row in enumerate(matrix)]
    for i in range(k):
        pivot = next(j for j in range(i, k) if rows[j][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(k):
            if j != i and rows[j][i]:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return sum(rows[i][k + i] for i in range(k))


def tangent_inverse(matrix, theta):
    """C = J^-1 - theta theta^T,
    the inverse of J on the directions that keep the sum, shape (k, k).
    """
    information = (matrix / (theta @ matrix)) @ matrix.T
    return np.linalg.inv(information) - np.outer(theta, theta)
