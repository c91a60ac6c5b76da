"""The likelihood of the regression written out, and maximised by scipy.

It is the model of R's `rr::rrreg` and `RRreg::RRlog`, P(z = 1) = c F(x' b) + d with the constants
of the design, and of `GLMMRR` without random effects; with more secrets that of a latent
multinomial logit. Nothing here is shared with the package.
"""

import numpy as np
from scipy.optimize import minimize


def log_likelihood(beta, X, matrices, reports, weights=None):
    """Sum of log P(z_i); beta of shape (k - 1, d), which may be complex, X with its intercept."""
    # One row for each person: the probabilities of the secrets, and of the report given each.
    odds = np.exp(np.column_stack([np.zeros(len(X)), X @ beta.T]))
    seen = np.array([np.asarray(M)[:, z] for M, z in zip(matrices, reports, strict=True)])
    logs = np.log((odds * seen).sum(axis=1) / odds.sum(axis=1))
    return (logs if weights is None else weights * logs).sum()


def gradient(beta, *data):
    """Derivative by complex steps: exact to rounding."""
    found = np.empty(beta.size)
    for j in range(beta.size):
        moved = beta.ravel().astype(complex)
        moved[j] += 1e-30j
        found[j] = log_likelihood(moved.reshape(beta.shape), *data).imag / 1e-30
    return found


def information(beta, *data):
    """Minus the second derivative: central differences of the exact gradient."""
    h = 1e-5
    rows = []
    for j in range(beta.size):
        step = np.zeros(beta.size)
        step[j] = h
        step = step.reshape(beta.shape)
        rows.append((gradient(beta + step, *data) - gradient(beta - step, *data)) / (2 * h))
    return -np.array(rows)


def maximum(shape, *data, start=None):
    """The coefficients, (k - 1, d): BFGS, then Newton until the gradient is rounding."""
    begin = np.zeros(shape) if start is None else start
    found = minimize(
        lambda b: -log_likelihood(b.reshape(shape), *data),
        begin.ravel(),
        jac=lambda b: -gradient(b.reshape(shape), *data),
        method="BFGS",
    )
    beta = found.x.reshape(shape)
    for _ in range(4):
        step = np.linalg.solve(information(beta, *data), gradient(beta, *data))
        beta = beta + step.reshape(shape)
    return beta


def standard_errors(beta, *data):
    return np.sqrt(np.diag(np.linalg.inv(information(beta, *data)))).reshape(beta.shape)


def drawn(seed, n, coefficients, matrices):
    """Covariates (a number and a 0/1), and reports of secrets drawn from the model."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n)])
    odds = np.exp(np.column_stack([np.zeros(n), np.column_stack([np.ones(n), X]) @ coefficients]))
    p = odds / odds.sum(axis=1, keepdims=True)
    secrets = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    rows = np.array([np.asarray(M)[s] for M, s in zip(matrices, secrets, strict=True)])
    reports = (rng.random(n)[:, None] > rows.cumsum(axis=1)).sum(axis=1)
    return X, reports
