"""Averages over respondents and their gradients by the coefficients: effects and predictions."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.estimators.regression.likelihood import probabilities


def probability_gradients(columns: Floats, coefficients: Floats) -> tuple[Floats, Floats]:
    """Return P(s | x), (m, k), and the gradients by the coefficients, (m, k, p).

    They are dp_s / dB_tl = p_s (1{s = t} - p_t) x_l.
    """
    p = probabilities(columns, coefficients)
    moved = p[:, :, None] * (np.eye(p.shape[1])[1:].T - p[:, None, 1:])
    m, k = p.shape
    return p, np.einsum("mst,ml->mstl", moved, columns).reshape(m, k, -1)


def mean_probabilities(
    columns: Floats, coefficients: Floats, shares: Floats
) -> tuple[Floats, Floats]:
    """Return averages of P(s | x), (k,), with weights that sum to 1, and gradients, (k, p)."""
    p = probabilities(columns, coefficients)
    unit = np.eye(p.shape[1])
    gradients = [
        ((shares * p[:, s])[:, None] * (unit[s, 1:] - p[:, 1:])).T @ columns
        for s in range(p.shape[1])
    ]
    return shares @ p, np.array(gradients).reshape(p.shape[1], -1)


def marginal_effects(
    columns: Floats, coefficients: Floats, shares: Floats
) -> tuple[Floats, Floats]:
    """Return averages of dP(s | x) / dx_j, (k, d), and their gradients, (k, d, p).

    With b_j = sum_u p_u B_uj the effect of a respondent is m_sj = p_s (B_sj - b_j), and

        dm_sj / dB_tl = p_s ((1{s = t} - p_t)(B_sj - b_j) - p_t (B_tj - b_j)) x_l
                        + p_s (1{s = t} - p_t) 1{l = j}.
    """
    p = probabilities(columns, coefficients)
    k, d = p.shape[1], columns.shape[1] - 1
    B = np.vstack([np.zeros(d + 1), coefficients])
    centred = B[None, :, 1:] - (p @ B[:, 1:])[:, None, :]
    unit = np.eye(k)
    effects, gradients = np.empty((k, d)), np.empty((k, d, k - 1, d + 1))
    for s in range(k):
        own = shares * p[:, s]
        effects[s] = own @ centred[:, s]
        moved = unit[s, 1:] - p[:, 1:]
        for j in range(d):
            inner = moved * centred[:, s, j, None] - p[:, 1:] * centred[:, 1:, j]
            gradients[s, j] = (own[:, None] * inner).T @ columns
            gradients[s, j, :, j + 1] += own @ moved
    return effects, gradients.reshape(k, d, (k - 1) * (d + 1))
