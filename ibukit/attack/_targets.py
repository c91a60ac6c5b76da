"""Which secrets adversaries claim: labels, or codes where they are asked for by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit.domain.alphabet import Alphabet, Line, as_alphabet
from ibukit.domain.labels import codes_of
from ibukit.errors import AlphabetMismatch

BY_PLACE = "; places in the alphabet are taken with codes=True"


def code_of(target: Any, alphabet: Alphabet, codes: bool) -> int:
    """The code of one label; on a grid a number is the place of a cell, and a pair its label."""
    one = [target]
    if arguments.flag("codes", codes) or alphabet.are_codes(one):
        return int(arguments.codes("target", one, len(alphabet))[0])
    return int(codes_of("target", one, alphabet, BY_PLACE)[0])


def targets_in(target: Any, alphabet: Alphabet) -> Ints:
    """Codes of one label or of several different ones; on a grid numbers are the places of cells."""
    try:
        given = [target] if np.ndim(target) == 0 else target
    except ValueError:  # rows of different lengths
        raise ValueError(
            f"target must be a label or several different ones, got {target!r}"
        ) from None
    if isinstance(alphabet, Line) and np.asarray(given).dtype.kind in "US":
        raise AlphabetMismatch(
            f"target must be integers of {alphabet!r}, got {target!r}; other labels need alphabet="
        )
    known = alphabet.are_codes(given)
    found = (
        arguments.codes("target", given, len(alphabet))
        if known
        else codes_of("target", given, alphabet)
    )
    if not len(found) or len(set(found.tolist())) != len(found):
        raise ValueError(f"target must be a label or several different ones, got {target!r}")
    return found


def secrets_of(alphabet: Any, k: int) -> Alphabet:
    """The alphabet that is given, or the codes 0..k-1."""
    return Line(0, max(k, 1) - 1) if alphabet is None else as_alphabet(alphabet)
