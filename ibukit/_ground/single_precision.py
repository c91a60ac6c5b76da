"""A check of products in single precision by one product in double precision.

Single precision steers: it approximates a curvature or solves a system roughly, and a certificate
in double precision judges the result. Where a library's routines for single precision are wrong,
as some are on a new processor, steps would lead nowhere. So each product that steers is compared
with double precision for one vector, and where the two differ double precision takes its place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats

# Largest error of a product, relative to its largest entry. Single precision leaves 1e-7 to 1e-5,
# and an error of this size hardly slows the steps.
MAX_ERROR = 1e-4
# The multiples of the golden ratio modulo 1 are spread evenly and never repeat.
GOLDEN_RATIO = 1.618033988749895


def probe(k: int) -> Floats:
    """Return a vector of different numbers between 0.5 and 1.5, shape (k,).

    Its entries are positive, so that sums of their products with numbers that are not negative do
    not cancel.
    """
    return np.asarray(0.5 + np.arange(k) * GOLDEN_RATIO % 1)


def agrees(quick: NDArray[Any], exact: NDArray[Any], size: float | None = None) -> bool:
    """Return True if a product in single precision fits the one in double precision.

    Errors are compared with `size`, by default the largest entry. A product that is not finite
    never fits.
    """
    with np.errstate(all="ignore"):
        if size is None:
            size = float(np.abs(exact).max(initial=0.0))
        error = float(np.abs(quick - exact).max(initial=0.0))
    return bool(error <= MAX_ERROR * size < np.inf)
