"""Tests for separated designs, whose likelihood keeps rising as coefficients go to infinity."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import eigh

from ibukit._ground.arguments import Floats
from ibukit.errors import SeparatedDesign
from ibukit.estimators.regression.likelihood import Derivatives, Likelihood

# Eigenvalue per report below which a direction may lead to infinity. If the probabilities of all
# people whom a direction separates have come within 1e-6 of 0 or 1, its information is smaller.
NEARLY_FLAT = 1e-6
# Lengths of the steps that test a ray, in units of the largest linear predictor. Where a threshold
# separates people who are close to each other, predictors have reached thousands.
STEPS = 2.0 ** np.arange(16)
# Relative change of a log-likelihood that may be rounding.
ROUNDING = 1e-12
# A likelihood that rises by this many units of rounding levels off; one that rises less is flat.
MIN_RISE = 1e3


def refuse_if_separated(
    likelihood: Likelihood,
    coefficients: Floats,
    now: Derivatives,
    to_covariates: Floats,
    names: tuple[str, ...],
    secrets: tuple[object, ...],
) -> None:
    """Raise SeparatedDesign if the likelihood never falls along a ray, but falls the opposite way.

    Such a ray proves that no point nearby is higher than the points far out on the ray: the
    supremum is not attained, or not in this region. A likelihood that is constant along the ray,
    because the mechanism hides the difference, does not fall in the opposite direction either.
    """
    values, vectors = eigh(now.observed / likelihood.total)
    if values[0] > NEARLY_FLAT:
        return
    for ray in _rays(coefficients, now, values, vectors):
        largest = np.abs(likelihood.design @ ray.T).max()
        if not largest > 0:
            continue
        ray = ray / largest
        unit = ROUNDING * (1 + abs(now.value))
        ahead = [now.value, *(likelihood.value(coefficients + t * ray) for t in STEPS)]
        behind = min(likelihood.value(coefficients - t * ray) for t in STEPS)
        if (np.diff(ahead) >= -unit).all() and behind < now.value - MIN_RISE * unit:
            _refuse(ray @ to_covariates.T, names, secrets, likelihood)


def _rays(
    coefficients: Floats, now: Derivatives, values: Floats, vectors: Floats
) -> Iterator[Floats]:
    """Yield directions that may lead to infinity: the last step, and nearly flat ones."""
    curvature = np.maximum(np.abs(values), np.finfo(float).tiny)
    step = vectors @ ((vectors.T @ now.gradient) / curvature)
    nearly_flat = vectors[:, values <= NEARLY_FLAT]
    for ray in (step, nearly_flat @ (nearly_flat.T @ coefficients.ravel()), *nearly_flat.T):
        if np.isfinite(ray).all():
            yield ray.reshape(coefficients.shape)
            yield -ray.reshape(coefficients.shape)


def _rank(logs: Floats) -> int:
    """Return how many numbers the reports seen determine in a distribution, its sum included."""
    rows = np.exp(logs - logs.max(axis=1, keepdims=True))
    # The reports that were not seen have the rest of the probability.
    return int(np.linalg.matrix_rank(np.vstack([rows, np.ones(logs.shape[1])])))


def _refuse(
    ray: Floats, names: tuple[str, ...], secrets: tuple[object, ...], likelihood: Likelihood
) -> None:
    """Raise SeparatedDesign, which names the coefficients that go to infinity."""
    # Entries are compared with the largest one: other coefficients move by rounding only.
    moving = np.argwhere(np.abs(ray) > 1e-3 * np.abs(ray).max())[:3]
    shown = ", ".join(
        f"{names[j]!r} for {secrets[s]!r} to {'-' if ray[s, j] < 0 else ''}infinity"
        for s, j in moving
    )
    k, rank = likelihood.log_rows.shape[1], _rank(likelihood.log_rows)
    if rank < k:
        why = (
            f"The reports seen do not determine a distribution of the {k} secrets, as "
            f"their probabilities have rank {rank}, so this may happen with any X: ask mle of "
            "groups of people for what they do determine, such as of=design.sensitive"
        )
    else:
        why = (
            "Some people then have a probability of 0 for a secret: leave the column out, or merge "
            "categories until each of them occurs with every secret"
        )
    raise SeparatedDesign(
        "X must not separate the secrets, but the likelihood rises for ever as coefficients grow: "
        f"{shown}. {why}"
    )
