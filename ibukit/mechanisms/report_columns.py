"""The columns of a mechanism's matrix that belong to the reports of a tally."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Ints
from ibukit.mechanisms.base import FiniteMechanism


def columns_of(mechanism: FiniteMechanism, reports: NDArray[Any]) -> Ints:
    """Return the column of the matrix for each report, in the form that a tally keeps."""
    if reports.ndim == 1:
        return np.asarray(reports, dtype=np.int64)
    # Reports are rows of bits, which a tally sorts. To find their columns, it counts each possible
    # report as often as the number of its column says, from 1 on.
    (every,) = mechanism.tally_counts(np.arange(1, mechanism.m + 1)).parts
    return every.counts[cast("Ints", every.places(reports))] - 1
