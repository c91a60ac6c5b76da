"""Parse the secrets that adversaries claim: labels, or codes on request."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit.domain.alphabet import Alphabet, Line, as_alphabet
from ibukit.domain.labels import codes_of
from ibukit.errors import AlphabetMismatch

CODES_HINT = "; places in the alphabet are taken with codes=True"


def parse_target(target: Any, alphabet: Alphabet, codes: bool) -> int:
    """Return the code of one label; on a grid a number is a code, and a pair is a label."""
    one = [target]
    if arguments.flag("codes", codes) or alphabet.are_codes(one):
        return int(arguments.codes("target", one, len(alphabet))[0])
    return int(codes_of("target", one, alphabet, CODES_HINT)[0])


def parse_targets(target: Any, alphabet: Alphabet) -> Ints:
    """Return the codes of one or several different labels; on a grid numbers are codes."""
    dimensions = arguments.ndim(target)
    if dimensions < 0:
        raise ValueError(f"target must be a label or several different ones, got {target!r}")
    targets = [target] if dimensions == 0 else target
    if isinstance(alphabet, Line) and np.asarray(targets).dtype.kind in "US":
        raise AlphabetMismatch(
            f"target must be integers of {alphabet!r}, got {target!r}; other labels need alphabet="
        )
    are_codes = alphabet.are_codes(targets)
    codes = (
        arguments.codes("target", targets, len(alphabet))
        if are_codes
        else codes_of("target", targets, alphabet)
    )
    if not len(codes) or len(set(codes.tolist())) != len(codes):
        raise ValueError(f"target must be a label or several different ones, got {target!r}")
    return codes


def alphabet_or_codes(alphabet: Any, k: int) -> Alphabet:
    """Return the given alphabet, or the line 0..k-1 for None."""
    return Line(0, max(k, 1) - 1) if alphabet is None else as_alphabet(alphabet)
