"""Newton's method for the coefficients of a regression, with EM steps where it is not uphill.

Where the observed information is positive definite a step is Newton's. Elsewhere it is the better
of two. One is that of the gradient form of EM, in which the information of the secrets takes its
place: it is uphill everywhere, and equals EM to first order (Lange 1995), but it is slow where the
noise is strong. The other is Newton's step by absolute eigenvalues. Steps are halved until the
likelihood rises enough (Armijo). A stationary point with a direction upwards, a saddle, is left
along that direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from ibukit._ground.arguments import Floats
from ibukit.estimators.regression.likelihood import Derivatives, Likelihood

# Gradient per report, in units of the orthonormal design, at which iterations end.
GRADIENT_TARGET = 1e-13
# Largest change of a linear predictor in one step, if all predictors are smaller: odds change by a
# factor of at most e^10. Larger predictors may double.
MAX_CHANGE = 10.0
# Share of the expected rise that a step must have (Armijo).
MIN_RISE = 1e-4
MAX_HALVINGS = 40
# Relative change of a log-likelihood that may be rounding; such steps are judged by the gradient.
ROUNDING = 1e-9
MAX_HIDDEN_HALVINGS = 4
# Largest ratio of gradients after and before such a step: on a ridge Newton's is 1/2 at best.
MAX_GRADIENT_RATIO = 0.9
# Eigenvalue per report of the observed information below which a stationary point is a saddle.
SADDLE = -1e-8
# In steps by absolute eigenvalues, smaller ones count as this share of the largest: on a ridge,
# where Newton's step overshoots, such steps then lead back to its top.
FLAT_SHARE = 1e-6
# Ridge relative to the trace, which makes EM steps finite where a secret has no probability.
RIDGE = 1e-12


class Found(NamedTuple):
    """The point at which the iterations ended."""

    coefficients: Floats
    derivatives: Derivatives
    n_iter: int


def maximise(
    likelihood: Likelihood,
    start: Floats,
    max_iter: int,
    basis: Floats | None = None,
    target: float = GRADIENT_TARGET,
) -> Found:
    """Climb from `start`, in the directions of the columns of `basis`, (p, m), if it is given.

    The climb ends where the largest component of the gradient per report is at most `target`.
    """
    coefficients, now = start, likelihood.derivatives(start)
    for n_iter in range(max_iter):
        gradient, observed = _within(basis, now)
        if not gradient.size:
            return Found(coefficients, now, n_iter)
        flat = np.abs(gradient).max() <= target * likelihood.total
        moved = None if flat else _uphill(likelihood, coefficients, now, basis)
        if moved is None:
            moved = _away_from_saddle(likelihood, coefficients, now.value, observed, basis)
        if moved is None:
            return Found(coefficients, now, n_iter)
        coefficients = moved
        now = likelihood.derivatives(coefficients)
    return Found(coefficients, now, max_iter)


def _within(basis: Floats | None, now: Derivatives) -> tuple[Floats, Floats]:
    if basis is None:
        return now.gradient, now.observed
    return basis.T @ now.gradient, basis.T @ now.observed @ basis


def _uphill(
    likelihood: Likelihood, coefficients: Floats, now: Derivatives, basis: Floats | None
) -> Floats | None:
    """Return coefficients of higher likelihood, or None if rounding hides a rise."""
    gradient, observed = _within(basis, now)
    direction = _newton_direction(observed, gradient)
    if direction is not None:
        moved = _along(direction, likelihood, coefficients, now, basis)
        if moved is not None:
            return moved
    complete = likelihood.complete_information(coefficients)
    complete = complete if basis is None else basis.T @ complete @ basis
    complete = complete + RIDGE * np.trace(complete) * np.eye(len(complete))
    directions = [_absolute_direction(observed, gradient), _newton_direction(complete, gradient)]
    ends = [
        end
        for each in directions
        if each is not None
        and (end := _along(each, likelihood, coefficients, now, basis)) is not None
    ]
    return max(ends, key=likelihood.value, default=None)


def _along(
    direction: Floats,
    likelihood: Likelihood,
    coefficients: Floats,
    now: Derivatives,
    basis: Floats | None,
) -> Floats | None:
    """Return the first point along a direction that is enough higher, or None."""
    gradient, _ = _within(basis, now)
    slope = float(gradient @ direction)
    step = (direction if basis is None else basis @ direction).reshape(coefficients.shape)
    largest = float(np.abs(likelihood.design @ step.T).max())
    limit = max(MAX_CHANGE, float(np.abs(likelihood.design @ coefficients.T).max()))
    length = min(1.0, limit / largest) if largest > 0 else 1.0
    hidden = slope <= ROUNDING * (1 + abs(now.value))
    before = float(np.abs(gradient).max())
    for _ in range(MAX_HIDDEN_HALVINGS if hidden else MAX_HALVINGS):
        moved = coefficients + length * step
        if likelihood.value(moved) >= now.value + MIN_RISE * length * slope:
            return moved
        if hidden:
            after = float(np.abs(_within(basis, likelihood.derivatives(moved))[0]).max())
            if after < MAX_GRADIENT_RATIO * before:
                return moved
        length /= 2
    return None


def _newton_direction(information: Floats, gradient: Floats) -> Floats | None:
    """Return the solution of information x = gradient if it is uphill and finite, or None."""
    scale = np.sqrt(np.abs(np.diag(information)))
    if not (scale > 0).all():
        return None
    try:
        factor = cho_factor(information / np.outer(scale, scale), lower=True)
    except LinAlgError:
        return None
    direction: Floats = cho_solve(factor, gradient / scale) / scale
    return direction if np.isfinite(direction).all() and gradient @ direction > 0 else None


def _absolute_direction(information: Floats, gradient: Floats) -> Floats:
    """Return Newton's step by absolute eigenvalues: uphill, and fast where some are 0 or below."""
    values, vectors = eigh(information)
    curvature = np.maximum(np.abs(values), FLAT_SHARE * np.abs(values).max())
    curvature = np.where(curvature > 0, curvature, 1.0)
    direction: Floats = vectors @ ((vectors.T @ gradient) / curvature)
    return direction


def _away_from_saddle(
    likelihood: Likelihood,
    coefficients: Floats,
    value: float,
    observed: Floats,
    basis: Floats | None,
) -> Floats | None:
    """Return coefficients of higher likelihood along the direction of most curvature upwards."""
    values, vectors = eigh(observed / likelihood.total, subset_by_index=[0, 0])
    if not values[0] < SADDLE:
        return None
    column = vectors[:, 0] if basis is None else basis @ vectors[:, 0]
    step = column.reshape(coefficients.shape)
    for halvings in range(MAX_HALVINGS // 2):
        for length in (0.5**halvings, -(0.5**halvings)):
            moved = coefficients + length * step
            if likelihood.value(moved) > value + ROUNDING * (1 + abs(value)):
                return moved
    return None
