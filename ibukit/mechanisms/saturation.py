"""Integer noise that stays within 64 bits, and exact differences of integers of 64 bits."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.errors import AlphabetMismatch

LIMITS = np.iinfo(np.int64)


def add_saturating(values: Ints, noise: Ints) -> Ints:
    """Return values + noise, clipped to 64-bit integers where the sum would wrap round.

    The clipping depends on the report alone, so it costs no privacy. Geometric noise on a line
    keeps its likelihood, too: a value beyond an end of the line is as probable as that end, times a
    constant.

    Examples
    --------
    >>> top = np.array([2**63 - 1])
    >>> add_saturating(top, np.array([5])) == top
    array([ True])
    """
    # Sums of int64 arrays wrap round without a warning; then the sign differs from both summands'.
    total = values + noise
    wrapped = ((values ^ total) & (noise ^ total)) < 0
    return np.where(wrapped, np.where(noise > 0, LIMITS.max, LIMITS.min), total)


def refuse_saturated(reports: Ints) -> None:
    """Raise AlphabetMismatch for reports equal to the least or greatest 64-bit integer.

    Such a report may be a sum that was clipped there, so that the noise is only known to lie in a
    tail.
    """
    cut = (reports == LIMITS.max) | (reports == LIMITS.min)
    if cut.any():
        raise AlphabetMismatch(
            f"reports contains {reports[cut][0]}, an end of the numbers of 64 bits: all values "
            "beyond it are reported as this one, and its likelihood is not known; count from a "
            "nearer origin before reports are made (leaving such reports out biases the estimate)"
        )


def differences(values: Ints, others: Ints) -> Floats:
    """Return values - others, computed as exact integers and rounded once, to doubles.

    Examples
    --------
    >>> far = np.array([2**60 + 1, -(2**63)])
    >>> differences(far, np.array([2**60, 2**63 - 1])).tolist() == [1.0, -(2.0**64)]
    True
    """
    values, others = np.broadcast_arrays(values, others)
    # Unsigned differences are exact modulo 2^64, and the larger less the smaller is below 2^64.
    first, second = values.astype(np.uint64), others.astype(np.uint64)
    return np.where(
        values >= others, (first - second).astype(np.float64), -(second - first).astype(np.float64)
    )
