"""The channel of a tally, as a matrix where that is quicker."""

from __future__ import annotations

import numpy as np

from ibukit.channels import Channel, DenseChannel
from ibukit.tally.tally import Tally

# Number of entries up to which a product with the matrix takes less time than a product by way of
# the structure. A sampler takes thousands of products, one after the other.
MAX_ENTRIES = 2**16


def quick_channel(tally: Tally) -> Channel:
    """Return the operator of a tally, or its matrix if that is small."""
    if tally.k * len(tally.counts) > MAX_ENTRIES:
        return tally.operator
    return DenseChannel(np.ascontiguousarray(tally.operator.rows(np.arange(tally.k))))
