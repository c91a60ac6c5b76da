"""Labels that are bins, as `pandas.cut` makes them: intervals of numbers with a midpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats


class Bins(NamedTuple):
    """Ends of intervals of numbers, one for each label."""

    left: Floats
    right: Floats

    @property
    def midpoints(self) -> Floats:
        """Midpoints of the bins, shape (k,)."""
        return self.left + (self.right - self.left) / 2

    @property
    def places(self) -> Floats | None:
        """Midpoints whose differences are the distances of the bins, or None."""
        return None if self.why_no_distances() else self.midpoints

    def why_no_distances(self) -> str | None:
        """The reason why the midpoints cannot serve as places, or None if they can."""
        open_ended = ~(np.isfinite(self.left) & np.isfinite(self.right))
        if open_ended.any():
            first = int(open_ended.argmax())
            return f"the bin from {self.left[first]:g} to {self.right[first]:g} has no midpoint"
        if len(np.unique(self.midpoints)) < len(self.left):
            return "two bins have the same midpoint"
        return None

    def common_width(self) -> float | None:
        """The width of bins of equal width that follow one another in order; None for others."""
        if self.why_no_distances():
            return None
        widths = self.right - self.left
        step = float(np.median(widths))
        # pandas moves the first end by a thousandth of the range, so that its bin has the minimum.
        tolerance = WIDTH_TOLERANCE * (self.right[-1] - self.left[0])
        even = np.abs(widths - step) <= tolerance
        adjacent = np.abs(self.left[1:] - self.right[:-1]) <= tolerance
        return step if step > 0 and even.all() and adjacent.all() else None


# Difference of widths, relative to the range of all bins, that pandas makes to include all values.
WIDTH_TOLERANCE = 2e-3


def bins_of(labels: Sequence[Any]) -> Bins | None:
    """Return the ends of labels that are all intervals of numbers, or None.

    Examples
    --------
    >>> import pandas as pd
    >>> bins_of([pd.Interval(0, 18), pd.Interval(18, 30)]).midpoints
    array([ 9., 24.])
    """
    # An interval is known by its ends, so that pandas need not be imported.
    ends = [(getattr(label, "left", None), getattr(label, "right", None)) for label in labels]
    numeric = all(
        isinstance(end, (int, float, np.number)) and not isinstance(end, bool)
        for pair in ends
        for end in pair
    )
    return Bins(*np.array(ends, dtype=np.float64).T) if numeric else None
