"""What an interval is asked for: every probability, or weighted sums of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibukit import _validate
from ibukit._labels import codes_of
from ibukit._validate import Floats
from ibukit.alphabet import Alphabet


@dataclass(frozen=True, eq=False)
class Questions:
    """Linear questions w . theta, one in each row.

    Attributes
    ----------
    k : int
        Number of probabilities.
    weights : ndarray, shape (r, k), or None
        None for each probability by itself, whose weights are the unit vectors and are not written out.
    single : bool
        Whether one question was asked, and the answer is a number.
    """

    k: int
    weights: Floats | None
    single: bool = False

    def values(self, theta: Floats) -> Floats:
        """The answers W theta, shape (r,)."""
        return theta if self.weights is None else self.weights @ theta

    def variances(self, theta: Floats) -> Floats:
        """Of w_x with x drawn from theta, shape (r,)."""
        squares = theta if self.weights is None else self.weights**2 @ theta
        return squares - self.values(theta) ** 2

    def answer(self, found: Floats) -> Any:
        """A number if one question was asked."""
        return float(found[0]) if self.single else found

    @property
    def least(self) -> Floats:
        """The smallest value that any distribution gives, shape (r,)."""
        return np.zeros(self.k) if self.weights is None else self.weights.min(axis=1)

    @property
    def most(self) -> Floats:
        """The largest."""
        return np.ones(self.k) if self.weights is None else self.weights.max(axis=1)


def asked(of: Any, alphabet: Alphabet) -> Questions:
    """Read an argument `of`.

    Parameters
    ----------
    of : None, array_like of shape (k,) or (r, k), or mapping
        None: every probability. Weights in the alphabet's order, one question or one in each row; truth values are the
        weights 0 and 1. A mapping has the weights of some labels, others have 0.
    alphabet : Alphabet

    Raises
    ------
    ValueError
        If there are not k weights, or one is not finite.
    AlphabetMismatch
        If a label is not in the alphabet.
    """
    k = len(alphabet)
    if of is None:
        return Questions(k, None)
    if isinstance(of, Mapping):
        weights = np.zeros(k)
        weights[codes_of("of", list(of), alphabet)] = _validate.vector("of", list(of.values()), len(of))
        return Questions(k, _finite(weights[None, :]), single=True)
    try:
        given = np.asarray(of)
        weights = given.astype(float) if given.dtype.kind in "bui" else np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"of must be weights, or a mapping from labels to weights such as {{label: 1}}, got {of!r}"
        ) from None
    if weights.ndim not in (1, 2) or weights.shape[-1] != k or not weights.size:
        raise ValueError(
            f"of must have a weight for each of the {k} secrets, shape ({k},) or (r, {k}), got shape {weights.shape}"
        )
    return Questions(k, _finite(np.atleast_2d(weights)), single=weights.ndim == 1)


def _finite(weights: Floats) -> Floats:
    if not np.isfinite(weights).all():
        raise ValueError(f"of must have finite weights, got {weights[~np.isfinite(weights)][0]}")
    return weights
