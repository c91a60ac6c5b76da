"""The most likely distribution with a given value of w . theta, by an interior point."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.intervals.listed._ratio_kernels import maximum

# A value of w . theta this near the largest one, for weights from 0 to 1, counts as the largest.
FACE_TOLERANCE = 1e-12


class FixedAnswer(NamedTuple):
    """All distributions with a given value of w . theta."""

    face: Ints
    """The secrets that may have mass."""
    equalities: Floats
    """Rows whose products with theta are the same for all of them."""
    inside: Floats
    """One of them, positive on the face."""

    @classmethod
    def of(cls, w: Floats, v: float) -> FixedAnswer:
        """Return all distributions with w . theta = v, for weights from 0 to 1."""
        if v >= 1 - FACE_TOLERANCE:
            face = np.flatnonzero(w == 1)
            return cls(face, np.ones((1, len(face))), np.full(len(face), 1 / len(face)))
        k = len(w)
        # The uniform distribution, moved towards the secrets with the largest or least weight.
        mean = float(w.mean())
        side = w == (1 if v > mean else 0)
        share = (v - mean) / (float(w[side][0]) - mean)
        inside = (1 - share) / k + share * side / side.sum()
        return cls(np.arange(k), np.vstack([np.ones(k), w]), inside)


class MostLikely(NamedTuple):
    """The most likely one of some distributions."""

    theta: Floats
    fit: float
    """The mean log-likelihood f(theta)."""
    bound: float
    """A mean log-likelihood that none of the distributions exceeds."""


def most_likely(rows: Floats, q: Floats, answer: FixedAnswer, tolerance: float) -> MostLikely:
    """Return the most likely distribution; its fit should be within `tolerance` of its bound.

    `rows` are the probabilities of the reports seen, shape (k, s), and q their frequencies. Fit and
    bound are -inf if a report is impossible.
    """
    on_rows = np.ascontiguousarray(rows[answer.face])
    theta, on_face = np.zeros(len(rows)), answer.inside.copy()
    fit = bound = -math.inf
    if on_rows.any(axis=0).all():
        *_, fit, bound = maximum(on_rows, q, answer.equalities, on_face, tolerance, 0.0)
    theta[answer.face] = on_face / on_face.sum()
    return MostLikely(theta, fit, bound)
