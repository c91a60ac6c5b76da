"""Noise on an endless plane as a list: the cells of a window, and one report for all others.

If some reports are merged, the result is a function of what was reported, so a test of it is as
exact as a test of all reports. If none of the merged reports was seen, the observed ratio stays the
same.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ibukit._ground.arguments import Ints
from ibukit.domain.grid import Grid
from ibukit.mechanisms import FiniteMechanism, MatrixMechanism, PlanarGeometric
from ibukit.tally.part import TallyPart, make_tally_part

# Probability that a report is outside the window. The merged reports say little about the secrets
# and hardly ever occur.
MAX_OUTSIDE = 1e-6


def listed_reports(part: TallyPart, most: int) -> FiniteMechanism:
    """Return a mechanism with the same likelihood ratios whose reports can be listed.

    Raise ValueError if there is none, or if a window would have more than `most` cells or would not
    hold all reports seen.
    """
    mechanism: Any = part.mechanism
    # A class that inherits may have another law.
    if type(mechanism) is not PlanarGeometric:
        # Merging reports that carry the same information leaves the likelihood ratios as they are.
        return mechanism.as_finite()
    for distance in itertools.count(step=min(mechanism.alphabet.cell_shape)):
        window = make_tally_part(mechanism, _cells_within(mechanism.alphabet, distance, most))
        matrix = window.channel.rows(np.arange(mechanism.k)) * np.exp(window.log_scale)
        outside = 1 - matrix.sum(axis=1)
        if outside.max() <= MAX_OUTSIDE:
            break
    if window.places(part.reports) is None:
        raise ValueError(f"a report of {mechanism} is outside its window")
    return MatrixMechanism(np.column_stack([matrix, np.maximum(outside, 0.0)]), mechanism.alphabet)


def _cells_within(grid: Grid, distance: float, most: int) -> Ints:
    """Return the cells of a grid and of a margin around it."""
    margins = np.ceil(np.divide(distance, grid.cell_shape)).astype(int)
    sizes = np.array([grid.n_rows, grid.n_cols]) + 2 * margins
    if sizes.prod() > most:
        raise ValueError(f"the window of {grid} would have {sizes.prod()} cells")
    return np.argwhere(np.ones(sizes)) + np.subtract(grid.first, margins)
