"""The ways to an interval that need an optimisation, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from tqdm import tqdm

from ibukit._threads import one_thread
from ibukit._validate import Floats
from ibukit.intervals.boxes import Boxes
from ibukit.intervals.profile import Profile
from ibukit.tally import Tally, check_bounded, check_tally


class Region(Protocol):
    """A set of distributions that the reports leave possible."""

    def highest(self, w: Floats) -> float:
        """No member of it has a larger w . theta, shape of w (k,)."""


REGIONS: dict[str, Callable[[Tally, float], Region]] = {"profile": Profile, "guaranteed": Boxes}


def ends(tally: Tally, rows: Floats, level: float, method: str) -> tuple[Floats, Floats]:
    """The least and the largest w . theta of all distributions that a method leaves possible, for each row w.

    Parameters
    ----------
    tally : Tally
    rows : ndarray, shape (r, k)
    level : float
        Strictly between 0 and 1.
    method : str
        One of `REGIONS`.

    Returns
    -------
    (lower, upper) : ndarrays, shape (r,)
        Outside the true ends, if not at them.

    Raises
    ------
    ValueError, TooLarge
        As the method does; if reports may be lost or are weights, or the alphabet is unbounded.

    Examples
    --------
    >>> import ibukit as ik
    >>> import numpy as np
    >>> tally = ik.RandomizedResponse(3, epsilon=2.0).tally_counts([600, 300, 100])
    >>> lower, upper = ends(tally, np.eye(3), level=0.95, method="profile")
    >>> lower.round(3), upper.round(3)
    (array([0.678, 0.241, 0.   ]), array([0.759, 0.322, 0.021]))
    """
    check_bounded(check_tally(tally), "an interval must count the secrets beyond the reports")
    with one_thread():
        region = REGIONS[method](tally, level)
        found = [
            (-region.highest(-w), region.highest(w)) if np.ptp(w) else (w[0], w[0])
            for w in tqdm(rows, desc="intervals", disable=None, leave=False)
        ]
    lower, upper = np.array(found).T
    return lower + 0.0, upper  # no -0
