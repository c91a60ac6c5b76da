"""The `alphabet` argument of mechanisms whose noise adds to integers."""

from __future__ import annotations

import numpy as np

from ibukit._ground import arguments
from ibukit.domain.alphabet import Alphabet, Line

# Up to this number all whole numbers are doubles.
MAX_EXACT = 2**53


def as_line(alphabet: Alphabet | int) -> Line:
    """Return the line itself, or Line(0, k - 1) for an int k; TypeError for other labels."""
    if isinstance(alphabet, Line):
        return alphabet
    if isinstance(alphabet, (Alphabet, list, tuple, np.ndarray)):
        raise TypeError(
            "alphabet must be a Line, or the number k of Line(0, k - 1), because the noise adds to "
            f"integers; got {arguments.brief(alphabet)}: for integers take Line(first, last), for "
            "other labels a mechanism over labels, such as RandomizedResponse"
        )
    return Line(0, arguments.whole("alphabet", alphabet, 1, 2**63) - 1)


def as_real_line(alphabet: Alphabet | int) -> Line:
    """Return the line, if real numbers on it are doubles; ValueError beyond 2^53."""
    line = as_line(alphabet)
    # An unbounded line lacks an end.
    if line.bounded and line.last > MAX_EXACT:
        raise ValueError(
            f"alphabet must end at 2^53 at most for reports that are real numbers, got {line!r}: "
            "beyond, doubles do not tell neighbouring integers apart; count from a nearer origin, "
            "such as Line(0, k - 1), or take noise in integers, such as LinearGeometric"
        )
    return line
