"""The largest estimated shares, with intervals that hold although they were chosen by looking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ibukit._ground.arguments import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

    from ibukit.intervals.request import Ends


def codes_of_largest(distribution: Floats, m: int) -> Ints:
    """Return the codes of the m largest probabilities, largest first, equal ones in order.

    Examples
    --------
    >>> codes_of_largest(np.array([0.1, 0.4, 0.4, 0.1]), 3)
    array([1, 2, 0])
    """
    return np.argsort(-distribution, kind="stable")[:m]


def table_of_largest(
    index: pd.Index, codes: Ints, distribution: Floats, ends: Ends
) -> pd.DataFrame:
    """Return a row for each label, with its probability and its interval."""
    import pandas as pd

    columns = {"probability": distribution[codes], "lower": ends[0], "upper": ends[1]}
    return pd.DataFrame(columns, index=index[codes])
