"""Shokri et al.'s game and the rate-distortion problem,
written from their definitions. May not import ibukit.
"""

import itertools
import math

import numpy as np
from scipy.optimize import linprog


def expected_loss(prior, matrix, loss, guess_of):
    """What a deterministic strategy costs the adversary:
    guess_of[y] is the guess after report y.
    """
    total = 0.0
    for x in range(len(prior)):
        for y in range(len(matrix[0])):
            total += prior[x] * matrix[x][y] * loss[x][guess_of[y]]
    return total


def best_strategy(prior, matrix, loss):
    """Least expected loss over all strategies,
    and the first strategy in the order of their digits that has it.
    """
    guesses, m = len(loss[0]), len(matrix[0])
    strategies = itertools.product(range(guesses), repeat=m)
    costs = [(expected_loss(prior, matrix, loss, strategy), strategy) for strategy in strategies]
    least = min(cost for cost, _ in costs)
    return least, next(strategy for cost, strategy in costs if cost <= least * (1 + 1e-13))


def linear_programme(prior, loss, adversary_loss, bound):
    """The whole programme as a dense table, all guesses in it:
    the maximum and a mechanism that has it.
    """
    k, m, guesses = len(prior), len(loss[0]), len(adversary_loss[0])
    n = k * m + m
    beaten, spent, sums = [], np.zeros(n), []
    for y in range(m):
        for z in range(guesses):
            row = np.zeros(n)
            row[k * m + y] = 1
            for x in range(k):
                row[x * m + y] = -prior[x] * adversary_loss[x][z]
            beaten.append(row)
    for x in range(k):
        row = np.zeros(n)
        for y in range(m):
            row[x * m + y] = 1
            spent[x * m + y] = prior[x] * loss[x][y]
        sums.append(row)
    found = linprog(
        np.concatenate([np.zeros(k * m), -np.ones(m)]),
        A_ub=np.array([*beaten, spent]),
        b_ub=np.append(np.zeros(len(beaten)), bound),
        A_eq=np.array(sums),
        b_eq=np.ones(k),
        bounds=[(0, None)] * (k * m) + [(None, None)] * m,
        method="highs-ipm",
    )
    assert found.status == 0, found.message
    return -found.fun, found.x[: k * m].reshape(k, m)


def mutual_information(prior, matrix):
    """I(x; y) in nats."""
    outputs = [
        sum(p * row[y] for p, row in zip(prior, matrix, strict=True)) for y in range(len(matrix[0]))
    ]
    total = 0.0
    for p, row in zip(prior, matrix, strict=True):
        for a, q in zip(row, outputs, strict=True):
            if p > 0 and a > 0:
                total += p * a * math.log(a / q)
    return total


def blahut_arimoto(prior, loss, beta, steps):
    """A after so many steps of A_xy ~ q_y exp(-beta loss(x, y)), q = prior A,
    from the uniform distribution.
    """
    kernel = np.exp(-beta * np.asarray(loss))
    q = np.full(kernel.shape[1], 1 / kernel.shape[1])
    for _ in range(steps):
        matrix = q * kernel
        matrix /= matrix.sum(axis=1, keepdims=True)
        q = prior @ matrix
    return matrix


def least_information(prior, loss, beta, q, bound):
    """No channel with an expected loss of
    at most `bound` has less mutual information than this, whatever beta and q.

    From -max_q sum_x prior_x log p_x - beta bound, p = sum_y q_y exp(-beta loss), the maximum being
    at most the value at q plus log max_y sum_x prior_x exp(-beta loss(x, y)) / p_x.
    """
    kernel = np.exp(-beta * np.asarray(loss))
    p = kernel @ q
    return float(-beta * bound - prior @ np.log(p) - np.log(((prior / p) @ kernel).max()))
