"""What random draws are made from: probabilities with the same digits on every computer, and the users one by one."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit.errors import TooLarge

# significant bits that are kept: far below what any number of draws could tell, far above the last
# digits of a matrix
BITS = 32
# the others of a mantissa's 53, and half a unit of the last one kept
DROPPED = 53 - BITS
HALF_UNIT = 1 << (DROPPED - 1)
MIN_NORMAL = float(np.finfo(float).smallest_normal)
# users whose reports are drawn one by one: their secrets alone take two gigabytes
MAX_USERS = 2**28


def drawable(p: Floats) -> Floats:
    """Distributions in the last axis, each probability rounded to 32 significant bits, over their sum.

    A draw of a binomial changes by one where n p passes a whole number, and tidy numbers stand
    exactly there: of 79 with p = 0.4, say, one unit in the last place of p, which another processor
    may compute, decides.
    """
    rounded = _rounded(np.asarray(p, dtype=np.float64))
    return np.asarray(rounded / rounded.sum(axis=-1, keepdims=True))


def _rounded(p: Floats) -> Floats:
    """Each number to its first 32 significant bits, halves to even."""
    if (
        (p != 0) & (np.abs(p) < MIN_NORMAL)
    ).any():  # these have fewer bits than the others, and keep them
        mantissa, exponent = np.frexp(p)
        return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS))
    # on the bits themselves, in a third of the time: a carry out of the mantissa goes to the
    # exponent, as it should
    bits = p.view(np.int64)
    return np.asarray(
        ((bits + (HALF_UNIT - 1) + ((bits >> DROPPED) & 1)) & -(2 * HALF_UNIT)).view(np.float64)
    )


def one_by_one(counts: Ints, mechanism: object) -> Ints:
    """The secret of each user, from how many have each of them, shape (k,)."""
    if (users := int(counts.sum())) > MAX_USERS:
        raise TooLarge(
            f"secret_counts must sum to at most {MAX_USERS} for {type(mechanism).__name__}, whose reports are drawn "
            f"one by one, got {readable(users)} users; simulate fewer, and add tallies"
        )
    return np.repeat(np.arange(len(counts)), counts)


def on_all_sides(people: Ints, shares: Floats, rng: Generator) -> Ints:
    """The reports of all people on a map, whose offsets north and east have these shares, each sign as likely.

    On a map with as many cells more on each side as the offsets reach.
    """
    (rows, cols), (north, east) = people.shape, shares.shape
    reports = np.zeros((rows + 2 * north - 2, cols + 2 * east - 2), dtype=np.int64)
    for row, col in np.argwhere(people):
        offsets = rng.multinomial(people[row, col], shares.ravel()).reshape(shares.shape)
        upwards = rng.binomial(offsets, 0.5)
        around = reports[row : row + 2 * north - 1, col : col + 2 * east - 1]
        for half, side in (
            (upwards, slice(north - 1, None)),
            (offsets - upwards, slice(north - 1, None, -1)),
        ):
            right = rng.binomial(half, 0.5)
            around[side, east - 1 :] += right
            around[side, east - 1 :: -1] += half - right
    return reports
