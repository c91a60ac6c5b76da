"""Checks of a PRIVIC loop in a file: possible cycles, and the mechanism that follows from them.

Anybody may have written a file whose checksum is right. People's secrets go through its mechanism,
so it is compared with the one that the loop makes itself, and its level with the one promised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.status import Status
from ibukit.domain.vectors import distribution_over
from ibukit.mechanisms import MatrixMechanism
from ibukit.privacy import epsilon_metric

# The entries of a mechanism change by less than this if another machine computes them; so does its
# level, relatively.
TOLERANCE = 1e-9


def refuse_other_cycles(distributions: Any, counts: Any, ends: Any, alphabet: Alphabet) -> None:
    """Raise ValueError unless these are estimates, counts and ends of the same cycles."""
    shape = len(ends), len(alphabet)
    for name, array, kind in (("distributions", distributions, "f"), ("counts", counts, "i")):
        # Before the first cycle there are none.
        if (
            not isinstance(array, np.ndarray)
            or array.dtype.kind != kind
            or array.shape[:1] != shape[:1]
        ):
            raise ValueError(f"{name} must have a row for each of {len(ends)} cycles")
    for theta, row, end in zip(distributions, counts, ends, strict=True):
        distribution_over("distributions", theta, alphabet)
        if not arguments.counts("counts", row, len(alphabet)).any():
            raise ValueError("counts must not be 0 for every report of a cycle")
        gap, n_iter, status, method = end
        if type(gap) not in (int, float) or not gap >= 0:
            raise ValueError(f"the gap must be a number from 0 on, got {gap!r}")
        arguments.whole("n_iter", n_iter, 0)
        arguments.text("method", method)
        if status not in Status.__members__:
            raise ValueError(f"the status must be one of {[*Status.__members__]}, got {status!r}")


def refuse_other_mechanism(
    there: MatrixMechanism, own: MatrixMechanism | None, beta: float
) -> None:
    """Raise ValueError for a mechanism that the loop does not make, or that is less private.

    `own` is None if the mechanism is an optimum, because two machines may find different optima.
    """
    level = epsilon_metric(there)
    if not level <= 2 * beta * (1 + TOLERANCE):
        raise ValueError(
            f"the mechanism must have a level of at most 2 beta = {2 * beta:g} per unit of "
            f"distance, got {level:g}"
        )
    if own is not None and not np.allclose(there.matrix(), own.matrix(), rtol=0, atol=TOLERANCE):
        raise ValueError("the mechanism must be the one that follows from the last distribution")
