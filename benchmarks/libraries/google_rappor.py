"""google/rappor: its hash functions and its published analysis, in Python.

The library's own programs do not run here: its analysis is R (glmnet, limSolve) and its Python
client is Python 2. So the reports are drawn by its law and with its hash functions (MD5 of the
cohort, four bytes, and the word), and the analysis is what its paper describes: debiased shares of
the bits of each cohort, lasso where there are nearly as many candidates as bits, and non-negative
least squares on the candidates that remain, weighted by the bits' standard deviations, with a sum
of at most 1. The lasso is scikit-learn's, and its penalty is the end of glmnet's path. Five fits to
resampled bits are averaged; then every value within two standard deviations of zero is set to 0. No
line of the library's code is here.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear
from sklearn.linear_model import lasso_path

import ibukit as ik
from benchmarks.libraries import bloom
from benchmarks.libraries.peer import Peer, Session, Vector, anew

BITS, HASHES, COHORTS = 32, 2, 64  # the most bits that its Python client can make
F, P, Q = 0.5, 0.5, 0.75  # its defaults, and the paper's
LEVEL = 1.0743  # nats of one report, for two filters that share no bit
FITS, NEAR = 5, 0.8


def filters(words: list[bytes]) -> Vector:
    """Bloom filters of all words in all cohorts, shape (cohorts, words, bits)."""
    made = np.zeros((COHORTS, len(words), BITS))
    for j in range(COHORTS):
        for x, word in enumerate(words):
            digest = hashlib.md5(j.to_bytes(4, "big") + word, usedforsecurity=False).digest()
            made[j, x, [byte % BITS for byte in digest[:HASHES]]] = 1
    return made


def decode(reports: Any, known: bloom.KnownFilters, seed: int = 0) -> Vector:
    """The analysis that the paper describes (section 4): frequencies of the candidates."""
    one, other = known.own
    rows = np.asarray(reports)
    sizes = np.bincount(rows[:, 0], minlength=COHORTS)
    counts = np.stack([rows[rows[:, 0] == j, 1:].sum(axis=0) for j in range(COHORTS)])
    share = (counts / sizes[:, None] - other) / (one - other)
    told = other + np.clip(share, 0, 1) * (one - other)
    deviation = np.sqrt(told * (1 - told) / sizes[:, None]) / (one - other)
    design = known.filters.transpose(0, 2, 1).reshape(COHORTS * BITS, -1)
    rng, fits = np.random.default_rng(seed), []
    for i in range(FITS):
        y = share if i == 0 else rng.normal(share, deviation)
        fits.append(
            _fit(design, y.ravel(), (deviation if i == 0 else deviation * np.sqrt(2)).ravel())
        )
    mean, spread = np.mean(fits, axis=0), np.std(fits, axis=0, ddof=1)
    return np.where(mean > 1e-6 + 2 * spread, mean, 0.0)


def _fit(design: Vector, y: Vector, deviation: Vector) -> Vector:
    k = design.shape[1]
    kept = np.arange(k)
    if k > NEAR * len(y):
        _, path, _ = lasso_path(design - design.mean(axis=0), y - y.mean(), eps=1e-4, positive=True)
        kept = np.flatnonzero(path[:, -1] > 0)[: int(min(500, NEAR * len(y)))]
    # one more row, of much weight and with a slack that is not negative, says that the shares sum
    # to at most 1
    heavy = 1e3 / deviation.min()
    weighted = np.column_stack([design[:, kept] / deviation[:, None], np.zeros(len(y))])
    system = np.vstack([weighted, np.full(len(kept) + 1, heavy)])
    found = np.zeros(k)
    found[kept] = lsq_linear(system, np.append(y / deviation, heavy), (0, np.inf)).x[:-1]
    return found


def rappor(k: int, eps: float) -> Session:
    known = bloom.KnownFilters(k, bloom.chances(F, P, Q), filters([b"v%d" % x for x in range(k)]))
    return Session(
        lambda secrets: known.draw(secrets, anew()),
        {"lasso and least squares": lambda reports: decode(reports, known)},
        lambda reports: (known, reports),
        inverts=False,
        ours=ik.BloomRappor(k, BITS, HASHES, COHORTS, F, P, Q),
    )


def peers() -> list[Peer]:
    note = "its analysis, R, as its paper describes it; its reports' law and hash functions"
    return [
        Peer(
            "google/rappor", "RAPPOR", rappor, note, packages=("scikit-learn", "scipy"), level=LEVEL
        )
    ]
