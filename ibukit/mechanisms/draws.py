"""Probabilities as random draws should meet them: the same numbers on every computer."""

from __future__ import annotations

import numpy as np

from ibukit._validate import Floats

# significant bits that are kept: far below what any number of draws could tell, far above the last digits of a matrix
BITS = 32


def drawable(p: Floats) -> Floats:
    """Distributions in the last axis, each probability rounded to 32 significant bits, over their sum.

    A draw of a binomial changes by one where n p passes a whole number, and tidy numbers stand exactly there: of 79
    with p = 0.4, say, one unit in the last place of p, which another processor may compute, decides.
    """
    mantissa, exponent = np.frexp(p)
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS)
    return np.asarray(rounded / rounded.sum(axis=-1, keepdims=True))
