"""The `alphabet` argument of mechanisms whose noise adds to integers."""

from __future__ import annotations

from ibukit._ground import arguments
from ibukit.domain.alphabet import Alphabet, Line


def as_line(alphabet: Alphabet | int) -> Line:
    """Return the line itself, or Line(0, k - 1) for an int k; TypeError for other alphabets."""
    if isinstance(alphabet, Line):
        return alphabet
    if isinstance(alphabet, Alphabet):
        raise TypeError(
            f"alphabet must be a Line, because the noise adds to integers; got {alphabet!r}"
        )
    return Line(0, arguments.whole("alphabet", alphabet, 1) - 1)
