"""`Status`: how an iterative or a direct computation ended."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Reason for which an estimator stopped.

    Examples
    --------
    >>> Status.CONVERGED.value
    'the stopping rule was met'
    """

    CONVERGED = "the stopping rule was met"
    STOPPED = "stopped on purpose where the rule said, without aiming at the maximum"
    MAX_ITER = "max_iter was reached before the stopping rule was met"
    OUT_OF_REACH = "no distribution meets the stopping rule, as the gap proves"
    CLOSED_FORM = "computed directly, there was nothing to iterate"
    OFF_SIMPLEX = (
        "computed directly; the vector has negative entries or does not sum to 1: "
        "it is not a distribution"
    )
