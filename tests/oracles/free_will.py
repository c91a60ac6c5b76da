"""Users with mechanisms of their own, written from the free-will paper's formulas.
This file may not import ibukit.

Matrices have one row for each secret; weights and sizes belong to the matrices in their order.
"""

import math
from decimal import Decimal, localcontext

import numpy as np

from oracles import naive


def average(matrices, weights):
    """A[n] of (10), entry by entry."""
    k, m = matrices[0].shape
    return np.array(
        [
            [
                math.fsum(w * a[x, z] for w, a in zip(weights, matrices, strict=True))
                for z in range(m)
            ]
            for x in range(k)
        ]
    )


def _level_in_digits(levels, weights, offset, factor):
    """Eps with 1 / (offset + e^(factor eps)) the average of these terms, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        terms = [
            Decimal(w) / (offset + (Decimal(e) * factor).exp())
            for e, w in zip(levels, weights, strict=True)
        ]
        total = sum(Decimal(w) for w in weights)
        return float((total / sum(terms) - offset).ln() / factor)


def average_krr_level(k, levels, weights):
    """Eps[n] of (11)."""
    return _level_in_digits(levels, weights, Decimal(k - 1), Decimal(1))


def average_rappor_level(levels, weights):
    """Eps[n] of (16)."""
    return _level_in_digits(levels, weights, Decimal(1), Decimal("0.5"))


def average_oue_level(levels, weights):
    """The level at which 1 / (e^eps + 1), the chance of another bit, has its average value."""
    return _level_in_digits(levels, weights, Decimal(1), Decimal(1))


def bit_marginals(matrix):
    """P(bit i is set given x) from the joint law of all 2^k rows of bits, shape (k, k)."""
    rows = naive.all_bit_rows(len(matrix))
    k = len(matrix)
    return np.array(
        [
            [
                math.fsum(p for p, bits in zip(matrix[x], rows, strict=True) if bits[i])
                for i in range(k)
            ]
            for x in range(k)
        ]
    )


def inv_of_bits(bit_frequencies, eps):
    """(17): each bit's frequency through RAPPOR, debiased."""
    half = math.exp(eps / 2)
    return np.array([(half + 1) / (half - 1) * s - 1 / (half - 1) for s in bit_frequencies])


def inv_error(matrix, theta):
    """N E ||q B - theta||^2 of one mechanism,
    from the covariance of a report's indicator vector.
    """
    p = theta @ matrix
    inverse = np.linalg.inv(matrix)
    return float(np.trace(inverse.T @ (np.diag(p) - np.outer(p, p)) @ inverse))


def compound_error(matrices, weights, theta, inverse=None):
    """N E ||q[n] B - theta||^2, B the inverse of the average:
    a sum over the groups of the covariances of a report.
    """
    inverse = np.linalg.inv(average(matrices, weights)) if inverse is None else inverse
    total = 0.0
    for w, matrix in zip(weights, matrices, strict=True):
        p = theta @ matrix
        total += w * np.trace(inverse.T @ (np.diag(p) - np.outer(p, p)) @ inverse)
    return float(total)


def compound_bit_error(encodings, weights, theta):
    """The same for bits debiased by their average:
    encodings are pairs (chance of the own bit, of another bit).
    """
    one, zero = (
        math.fsum(w * e[i] for w, e in zip(weights, encodings, strict=True)) for i in (0, 1)
    )
    total = 0.0
    for mass in theta:
        for w, (own, other) in zip(weights, encodings, strict=True):
            m = mass * own + (1 - mass) * other
            total += w * m * (1 - m) / (one - zero) ** 2
    return total


def users(groups):
    """One column for each user from (matrix, counts) of each group: G of (18), shape (k, n)."""
    return np.concatenate([np.repeat(matrix, counts, axis=1) for matrix, counts in groups], axis=1)


def gibu(columns, n_iter):
    """(18): an average over the users, each with the column of their own mechanism and report."""
    theta = np.full(len(columns), 1 / len(columns))
    for _ in range(n_iter):
        theta = (theta[:, None] * columns / (theta @ columns)).mean(axis=1)
    return theta
