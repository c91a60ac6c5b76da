"""Noise on a plane without end as a list: the cells of a window, and one report for all others.

Reports of which one merges some are a function of what was reported, so a test of them is as exact
as one of all. Where none of those that were merged was seen, the ratio seen is the same.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ibukit._ground.arguments import Ints
from ibukit.domain.grid import Grid
from ibukit.mechanisms import FiniteMechanism, MatrixMechanism, PlanarGeometric
from ibukit.tally.part import TallyPart, make_tally_part

# Probability that a report is outside the window. What is merged says little of the secrets, and
# hardly ever is there.
MAX_OUTSIDE = 1e-6


def listed_reports(part: TallyPart, most: int) -> FiniteMechanism:
    """Return a mechanism of the same likelihood ratios with a list of reports.

    Raise ValueError if there is none, or if a window would have more than `most` cells, or not hold
    all reports seen.
    """
    mechanism: Any = part.mechanism
    # A class that inherits may have another law.
    if type(mechanism) is not PlanarGeometric:
        # What merges reports of the same information has the same likelihood ratios.
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
