"""Post-processing, by name, of unbiased estimates, which may have negative entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.distributions import normalize, project_to_simplex
from ibukit.errors import InvalidDistribution


def norm_mul(v: Floats) -> Floats:
    """Set negative entries to 0 and divide by the sum."""
    return normalize(_clipped(v, "INV-N"))


def base_pos(v: Floats) -> Floats:
    """Set negative entries to 0; the sum may be anything."""
    return np.maximum(v, 0)


def norm(v: Floats) -> Floats:
    """Add the same number to all entries, so that they sum to 1; some may be negative."""
    return v + (1 - v.sum()) / len(v)


def norm_cut(v: Floats) -> Floats:
    """Keep the largest entries until they sum to 1, set the others to 0, and divide by the sum.

    The entry that crosses 1 is kept. Positive entries that sum to less than 1 are all kept.
    """
    # An entry is kept if those before it, in falling order, sum to less than 1.
    order = np.argsort(-_clipped(v, "Norm-Cut"), kind="stable")
    kept = np.maximum(v[order], 0)
    sum_before = np.cumsum(kept) - kept
    kept[sum_before >= 1] = 0
    in_order = np.empty_like(kept)
    in_order[order] = kept
    return normalize(in_order)


def _clipped(v: Floats, name: str) -> Floats:
    if not (v > 0).any():
        raise InvalidDistribution(
            f"INV has no positive component, so {name} is not defined; use post='project'"
        )
    return np.maximum(v, 0)


# The names of Wang et al. (2020), and "none", "normalize" and "project" of this package. The first
# of each pair is what `Estimate.method` says.
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
