"""How much a tally says about each secret's probability: the observed Fisher information and what follows from it."""

from __future__ import annotations

import numpy as np

from ibukit._efficiency import slopes, to_seen
from ibukit._validate import Floats
from ibukit.tally import Tally

# squared share of a flat direction that is rounding
FLAT_SHARE = 1e-12


def contrasts(k: int) -> Floats:
    """An orthonormal basis of the directions that keep the sum, {v : sum v = 0}, shape (k, k - 1)."""
    # the first column of the full QR of the ones vector is its direction
    return np.asarray(np.linalg.qr(np.ones((k, 1)), mode="complete")[0][:, 1:])


def observed_information(tally: Tally, theta: Floats) -> Floats:
    """J_xy = sum_z counts_z M_xz M_yz / (theta M)_z^2, the curvature of -L at theta, shape (k, k)."""
    # not the channel's gram: its weights counts / p^2 leave the doubles where p is 1e-160; scaled by 1 / p it is not
    # quicker, and agrees to 3e-15, of which the inverse makes up to 6e-10 under strong noise
    columns = tally.matrix()
    scaled = columns * (np.sqrt(tally.counts) / (theta @ columns))
    return np.asarray(scaled @ scaled.T)


def asymptotic_variances(tally: Tally, theta: Floats) -> Floats:
    """Diagonal of the inverse information on the directions that keep the sum, Z (Z^T J Z)^-1 Z^T, shape (k,).

    Z is an orthonormal basis of {w : sum w = 0}. inf for a secret whose probability moves along a direction in which
    the likelihood of the reports seen is flat: they do not determine it.
    """
    if tally.efficiency is not None:
        return np.diag(covariance_of_all(tally, theta)).copy()
    k = tally.k
    basis = contrasts(k)
    values, vectors = np.linalg.eigh(basis.T @ observed_information(tally, theta) @ basis)
    directions = (basis @ vectors) ** 2
    flat = values <= k * np.finfo(float).eps * max(values.max(initial=0.0), 0.0)
    determined = directions[:, flat].sum(axis=1) < FLAT_SHARE
    return np.where(determined, (directions[:, ~flat] / values[~flat]).sum(axis=1), np.inf)


def covariance_of_all(tally: Tally, theta: Floats) -> Floats:
    """Covariances of theta where reports get lost, shape (k, k); inf for what is not determined.

    Those of the distribution among those seen, carried over to all secrets to first order.
    """
    efficiency = np.ones(tally.k) if tally.efficiency is None else tally.efficiency
    basis = contrasts(tally.k)
    seen = observed_information(tally.among_seen, to_seen(theta, efficiency))
    return carried_over(basis.T @ seen @ basis, slopes(theta, efficiency) @ basis)


def carried_over(information: Floats, derivatives: Floats) -> Floats:
    """Covariances of functions whose derivatives are the rows, D J^-1 D^T; inf for those that move where J is flat."""
    values, vectors = np.linalg.eigh(information)
    moved = derivatives @ vectors
    flat = values <= len(values) * np.finfo(float).eps * max(values.max(initial=0.0), 0.0)
    undetermined = (moved[:, flat] ** 2).sum(axis=1) > FLAT_SHARE * (moved**2).sum(axis=1)
    half = moved[:, ~flat] / np.sqrt(values[~flat])
    covariance = half @ half.T
    covariance[undetermined] = covariance[:, undetermined] = np.inf
    return np.asarray(covariance)
