"""Near which distribution: an argument in the alphabet's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.datasets import Dataset
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.distributions import distribution_on
from ibukit.domain.labels import aligned_counts
from ibukit.errors import AlphabetMismatch


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
        near = aligned_counts("near", near, alphabet, weighted=True)
    return arguments.distribution("near", near, len(alphabet))
