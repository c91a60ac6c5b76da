"""From an unbiased estimate, which may have negative entries, to what is published: the usual ways, by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.distributions import normalize, project_to_simplex
from ibukit.errors import InvalidDistribution


def norm_mul(v: Floats) -> Floats:
    """Negative entries are set to 0 and the rest divided by its sum."""
    return normalize(_clipped(v, "INV-N"))


def base_pos(v: Floats) -> Floats:
    """Negative entries are set to 0; the sum may be anything."""
    return np.maximum(v, 0)


def norm(v: Floats) -> Floats:
    """The same number added to all entries, so that they sum to 1; some may be negative."""
    return np.asarray(v + (1 - v.sum()) / len(v))


def norm_cut(v: Floats) -> Floats:
    """The largest entries until they sum to 1, the last of them as well; the others are 0, and all divided by the sum.

    Positive entries that sum to less than 1 are all kept.
    """
    order = np.argsort(-_clipped(v, "Norm-Cut"), kind="stable")
    kept = np.maximum(v[order], 0)
    before = np.cumsum(kept) - kept
    kept[before >= 1] = 0
    found = np.empty_like(kept)
    found[order] = kept
    return normalize(found)


def _clipped(v: Floats, name: str) -> Floats:
    if not (v > 0).any():
        raise InvalidDistribution(
            f"INV has no positive component, so {name} is not defined; use post='project'"
        )
    return np.maximum(v, 0)


# what the literature calls them (Wang et al. 2020), with the names of this package for two of them
POST: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
    "none": ("INV", np.asarray),
    "normalize": ("INV-N", norm_mul),
    "project": ("INV-P", project_to_simplex),
    "norm-mul": ("INV-N", norm_mul),
    "norm-sub": ("INV-P", project_to_simplex),
    "base-pos": ("INV, Base-Pos", base_pos),
    "norm": ("INV, Norm", norm),
    "norm-cut": ("INV, Norm-Cut", norm_cut),
}
