"""Integer noise that stays within 64 bits."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Ints

LIMITS = np.iinfo(np.int64)


def add_saturating(values: Ints, noise: Ints) -> Ints:
    """Return values + noise, cut at the ends of 64 bits where the sum would wrap round.

    The cut looks at the report alone, so it costs no privacy. Geometric noise on a line keeps its
    likelihood, too: what is beyond an end is as probable as the end, times a constant.

    Examples
    --------
    >>> top = np.array([2**63 - 1])
    >>> add_saturating(top, np.array([5])) == top
    array([ True])
    """
    # Sums of int64 arrays wrap round without a warning; then the sign differs from both summands'.
    total = values + noise
    wrapped = ((values ^ total) & (noise ^ total)) < 0
    return np.where(wrapped, np.where(noise > 0, LIMITS.max, LIMITS.min), total)
