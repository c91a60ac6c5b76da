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

UNIT_ROUNDOFF = 2.0**-53
# Half of the smallest subnormal double: the absolute rounding of a product that underflows.
UNDERFLOW = 2.0**-1074


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
