"""What is asked, and near which distribution: arguments in the alphabet's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ibukit import _validate
from ibukit._labels import in_order
from ibukit._validate import Floats
from ibukit.alphabet import Alphabet
from ibukit.datasets import Dataset
from ibukit.errors import AlphabetMismatch
from ibukit.estimate.result import distribution_on


def distribution_of(near: Any, alphabet: Alphabet) -> Floats:
    """A distribution in the alphabet's order: an array, an estimate, a dataset, or probabilities by label."""
    if isinstance(near, Dataset):
        if near.alphabet != alphabet:
            raise AlphabetMismatch(
                f"near must be over {alphabet!r}, got a dataset over {near.alphabet!r}; if its "
                "secrets only have other names, pass near.distribution"
            )
        near = near.distribution
    near = distribution_on("near", near, alphabet)
    if isinstance(near, Mapping) or not callable(getattr(near, "index", len)):
        near = in_order("near", near, alphabet, weighted=True)
    return _validate.distribution("near", near, len(alphabet))


def ranges_of(weights: Floats | None, k: int) -> Floats:
    """How far apart the answers to each question can be, shape (r,)."""
    if weights is None:
        return np.full(k, 1.0 if k > 1 else 0.0)
    return np.asarray(weights.max(axis=1) - weights.min(axis=1))
