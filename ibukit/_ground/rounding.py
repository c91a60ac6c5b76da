"""A-priori bounds on the rounding of doubles.

The standard model (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, chapter 3):
a sum, product or quotient of doubles is the exact one times 1 + d with |d| <= u = 2^-53. So a
number that went through n of them is the exact one times 1 + t with |t| <= gamma(n), whether the
factors 1 + d multiply or divide it. A sum of non-negative terms lies between the smallest and the
largest of these factors, in whichever order it was added up. The model leaves out underflow, for
which `underflow` stands in.
"""

from __future__ import annotations

import math

import numpy as np

from ibukit._ground.array_arguments import Floats

UNIT_ROUNDOFF = 2.0**-53
# Half of the smallest subnormal double: the absolute rounding of a product that underflows.
UNDERFLOW = 2.0**-1074
# Terms that `sum_bound` adds up before their sums are added up.
BLOCK = 32


def gamma(n: float) -> float:
    """Relative error of a number after n roundings: n u / (1 - n u), itself rounded upwards.

    Examples
    --------
    >>> round(gamma(10) / UNIT_ROUNDOFF, 6)
    10.0
    >>> gamma(1e16)
    inf
    """
    small = n * UNIT_ROUNDOFF
    return small / (1 - small) * (1 + 1e-15) if small < 0.5 else math.inf


def underflow(n_terms: float, least: float) -> float:
    """Relative error of sums of `n_terms` products, at least `least`, some of which underflow.

    Examples
    --------
    >>> underflow(1e6, 1e-290) < UNIT_ROUNDOFF < underflow(1e6, 1e-305)
    True
    """
    return n_terms * UNDERFLOW / least if least > 0 else math.inf


def sum_bound(values: Floats, total: float) -> float:
    """Relative error of `total` as the sum of non-negative values, whoever added them up.

    It is compared with a sum in blocks of blocks, in which few roundings follow each other.

    Examples
    --------
    >>> import numpy as np
    >>> tenths = np.full(1_000_000, 0.1)
    >>> sum_bound(tenths, tenths.sum()) < 3e-14 < sum_bound(tenths, 100_000.000001)
    True
    """
    sums, additions = values, 0
    # Each round adds up blocks of BLOCK sums; zeros fill the last one.
    while len(sums) > 1:
        # Zeros are added without rounding.
        additions += min(len(sums), BLOCK) - 1
        rows = -(-len(sums) // BLOCK)
        if rows * BLOCK > len(sums):
            sums = np.concatenate([sums, np.zeros(rows * BLOCK - len(sums))])
        sums = sums.reshape(rows, BLOCK).sum(axis=1)
    known = float(sums[0])
    if not known > 0:
        return math.inf
    error = gamma(additions)
    # The difference of two doubles within a factor of two of each other is exact.
    return (abs(total - known) / known + error) / (1 - error) * (1 + 1e-14)
