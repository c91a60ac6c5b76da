"""All ways to write a number as an ordered sum: tallies of one mechanism, splits of one count."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ibukit._ground.arguments import Ints


def compositions(total: int, parts: int) -> Ints:
    """Return all ways to write `total` as an ordered sum of `parts` whole numbers, a row each.

    Examples
    --------
    >>> compositions(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    if parts == 1:
        # There is one way, for which `combinations` would list all places.
        return np.array([[total]])
    # The parts are the lengths of the runs between parts - 1 bars among the places.
    places = total + parts - 1
    bars = np.array(list(combinations(range(places), parts - 1)), dtype=np.int64)
    return np.diff(bars, axis=1, prepend=-1, append=places) - 1
