"""Good's roughness, a step that smooths, and the evidence, from their formulas.
This file may not import ibukit.
"""

import math

import numpy as np
from scipy import integrate, linalg


def neighbours(n_rows, n_cols, height=1.0, width=1.0):
    """(x, y, 1 / d^2) for cells that share a side, counted row by row; a line is one row."""
    pairs = []
    for r in range(n_rows):
        for c in range(n_cols):
            if c + 1 < n_cols:
                pairs.append((r * n_cols + c, r * n_cols + c + 1, 1 / width**2))
            if r + 1 < n_rows:
                pairs.append((r * n_cols + c, (r + 1) * n_cols + c, 1 / height**2))
    return pairs


def roughness(theta, pairs):
    """Sum of squared differences of square roots."""
    return sum(w * (math.sqrt(theta[x]) - math.sqrt(theta[y])) ** 2 for x, y, w in pairs)


def value(matrix, counts, theta, penalty, pairs):
    """L - penalty R, the total over all reports."""
    p = theta @ matrix
    likelihood = sum(count * math.log(p[z]) for z, count in enumerate(counts) if count)
    return likelihood - penalty * roughness(theta, pairs)


def step(matrix, counts, theta, penalty, pairs):
    """A step of minorisation and maximisation that never lowers L - penalty R.

    EM's expected numbers, plus penalty times the geometric means with the neighbours, each divided
    by what makes the sum 1: sqrt(theta_x theta_y) lies above its tangent in log theta, and for that
    bound the maximum is explicit.
    """
    k, p = len(theta), theta @ matrix
    numbers, degrees = np.zeros(k), np.zeros(k)
    for z, count in enumerate(counts):
        if count:
            numbers += count * theta * matrix[:, z] / p[z]
    for x, y, w in pairs:
        mean = math.sqrt(theta[x] * theta[y])
        numbers[[x, y]] += penalty * w * mean
        degrees[[x, y]] += penalty * w
    low, high = -degrees.min(), numbers.sum() - degrees.min()
    for _ in range(200):  # halving: the sum falls as mu rises
        mu = (low + high) / 2
        low, high = (mu, high) if (numbers / (mu + degrees)).sum() > 1 else (low, mu)
    return numbers / (high + degrees)


def excess(matrix, counts, theta, penalty, pairs):
    """Largest slope of L - penalty R towards a point mass:
    no distribution is better by more. All theta positive.
    """
    p, k = theta @ matrix, len(theta)
    slope = np.zeros(k)
    for z, count in enumerate(counts):
        if count:
            slope += count * matrix[:, z] / p[z]
    for x, y, w in pairs:
        slope[x] -= penalty * w * (1 - math.sqrt(theta[y] / theta[x]))
        slope[y] -= penalty * w * (1 - math.sqrt(theta[x] / theta[y]))
    return slope.max() - theta @ slope


def laplace_evidence(matrix, counts, theta, penalty, pairs, h=1e-3):
    """L - penalty R + (k - 1)/2 log penalty - 1/2 log det H,
    H by differences along great circles of sqrt theta.
    """
    root = np.sqrt(theta)
    tangent = linalg.null_space(root[None, :])
    d = tangent.shape[1]

    def along(v):
        length = np.linalg.norm(v)
        direction = tangent @ v / length if length else root
        psi = root * math.cos(length) + direction * math.sin(length)
        return value(matrix, counts, psi**2, penalty, pairs)

    unit, hessian = np.eye(d) * h, np.empty((d, d))
    for i in range(d):
        for j in range(d):
            a, b = unit[i], unit[j]
            hessian[i, j] = -(along(a + b) - along(a - b) - along(b - a) + along(-a - b)) / (
                4 * h * h
            )
    top = value(matrix, counts, theta, penalty, pairs)
    return top + d / 2 * math.log(penalty) - np.linalg.slogdet(hessian)[1] / 2


def exact_log_evidence_of_two(matrix, counts, penalty):
    """log of integral exp(L - penalty R) / integral exp(-penalty R)
    for two neighbours, over the quarter circle.
    """
    pairs, angles = [(0, 1, 1.0)], np.linspace(0, math.pi / 2, 200_001)[1:-1]
    thetas = np.array([np.cos(angles) ** 2, np.sin(angles) ** 2])
    penalised = counts @ np.log(matrix.T @ thetas)
    rough = (np.cos(angles) - np.sin(angles)) ** 2
    assert math.isclose(rough[7], roughness(thetas[:, 7], pairs))
    top = (penalised - penalty * rough).max()
    fitted = integrate.trapezoid(np.exp(penalised - penalty * rough - top), angles)
    return top + math.log(fitted / integrate.trapezoid(np.exp(-penalty * rough), angles))
