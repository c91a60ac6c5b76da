"""The estimates that the bootstrap makes of drawn tallies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.distributions import is_estimate
from ibukit.errors import AlphabetMismatch
from ibukit.solvers import Problem, maximise_near
from ibukit.tally.tally import Tally


def estimate_by(estimator: Any, theta: Floats) -> Callable[[Tally], Floats]:
    """Return a function from a tally to an estimate, shape (k,): an estimator's, or the maximum.

    The maximum is sought near theta.
    """
    if estimator is None:
        return partial(_maximum, theta)
    if not callable(estimator):
        raise TypeError(
            "estimator must be a function from a tally to an estimate, such as "
            f"lambda tally: ibu(tally, stop=Steps(4)), got {type(estimator).__name__}"
        )
    return partial(_estimate, estimator, len(theta))


def _maximum(theta: Floats, tally: Tally) -> Floats:
    return maximise_near(Problem(tally.operator, tally.counts, tally.n), theta)


def _estimate(estimator: Callable[[Tally], Any], k: int, tally: Tally) -> Floats:
    result = estimator(tally)
    shares = result.distribution if is_estimate(result) else result
    try:
        values = np.asarray(shares, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (k,):
        raise AlphabetMismatch(
            f"estimator must return an estimate over the {k} secrets of the tally, or {k} numbers, "
            f"got {type(result).__name__}" + (f" of shape {values.shape}" if values.size else "")
        )
    return values
