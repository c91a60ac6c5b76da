"""What is asked, and near which distribution: arguments in the alphabet's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ibukit import _validate
from ibukit._labels import codes_of, in_order
from ibukit._validate import Floats
from ibukit.alphabet import Alphabet
from ibukit.datasets import Dataset
from ibukit.errors import AlphabetMismatch
from ibukit.estimate import Estimate
from ibukit.estimate.result import distribution_on

HINT = "; weights with labels are aligned by them: give an array for weights in the alphabet's order"


def weights_of(of: Any, alphabet: Alphabet) -> Floats | None:
    """Weights of the questions, shape (r, k); None for each single probability."""
    if of is None:
        return None
    labels = list(of) if isinstance(of, Mapping) else getattr(of, "index", None)
    if labels is not None and not callable(labels):  # lists have a method of that name
        weights = _by_label(labels, list(of.values()) if isinstance(of, Mapping) else of, alphabet)
    else:
        weights = _numbers(of)
    k = len(alphabet)
    if weights.ndim not in (1, 2) or weights.size == 0 or weights.shape[-1] != k:
        raise AlphabetMismatch(
            f"of must have one weight for each of the {k} secrets, shape ({k},) or (questions, {k}), got shape "
            f"{weights.shape}"
        )
    bad = ~np.isfinite(weights)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"of must be finite, got {weights[bad][0]} at index {where[0] if len(where) == 1 else where}")
    return np.atleast_2d(weights)


def _numbers(of: Any) -> Floats:
    array = _validate.whole_array("of", of)
    try:
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"of must be numbers, got {of!r}") from None


def _by_label(labels: Any, values: Any, alphabet: Alphabet) -> Floats:
    if getattr(values, "ndim", 1) != 1:
        raise ValueError("of must be an array, a Series or a mapping, got a frame: take frame.to_numpy(), in order")
    places = codes_of("of", list(labels), alphabet, HINT)
    if len(np.unique(places)) < len(places):
        raise ValueError(f"of must have each label once, got {list(labels)!r}")
    weights = np.zeros(len(alphabet))
    weights[places] = _numbers(values)
    return weights


def distribution_of(near: Any, alphabet: Alphabet) -> Floats:
    """A distribution in the alphabet's order: an array, an estimate, a dataset, or probabilities by label."""
    if isinstance(near, Dataset):
        if near.alphabet != alphabet:
            raise AlphabetMismatch(
                f"near must be over {alphabet!r}, got a dataset over {near.alphabet!r}; if its "
                "secrets only have other names, pass near.distribution"
            )
        near = near.distribution
    elif isinstance(near, Estimate):
        near = distribution_on("near", near, alphabet)
    elif isinstance(near, Mapping) or not callable(getattr(near, "index", len)):
        near = in_order("near", near, alphabet, weighted=True)
    return _validate.distribution("near", near, len(alphabet))


def ranges_of(weights: Floats | None, k: int) -> Floats:
    """How far apart the answers to each question can be, shape (r,)."""
    if weights is None:
        return np.full(k, 1.0 if k > 1 else 0.0)
    return np.asarray(weights.max(axis=1) - weights.min(axis=1))
