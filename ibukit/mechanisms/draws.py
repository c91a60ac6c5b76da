"""Building blocks of random draws: portable probabilities, users one by one, signed offsets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit.errors import TooLarge

# Bits of a mantissa's 53 that are kept: 2^-32 is far below what any number of draws could tell,
# and far above the last digits of a matrix, which differ from machine to machine.
SIGNIFICANT_BITS = 32
DROPPED_BITS = 53 - SIGNIFICANT_BITS
# Half a unit of the last bit that is kept, in units of the mantissa's last bit.
HALF_UNIT = 1 << (DROPPED_BITS - 1)
MIN_NORMAL = float(np.finfo(float).smallest_normal)
# Largest number of users whose reports are drawn one by one: their secrets take two gigabytes.
MAX_USERS = 2**28
# Number of entries of rows whose cumulative sums are made at a time, to draw from them: 8 MB.
ENTRIES_AT_ONCE = 2**20


def drawable(p: Floats) -> Floats:
    """Round the distributions in the last axis to 32 significant bits, and divide by their sum.

    A binomial draw changes by one where n p + p passes a whole number, and round numbers lie
    exactly there. In a draw of 79 with p = 0.4, for instance, the result depends on the last place
    of p, and another processor may compute a p that differs by one unit in it.
    """
    rounded = _rounded(np.asarray(p, dtype=np.float64))
    return rounded / rounded.sum(axis=-1, keepdims=True)


def _rounded(p: Floats) -> Floats:
    """Round each number to its first 32 significant bits, halves to even."""
    if ((p != 0) & (np.abs(p) < MIN_NORMAL)).any():
        # Subnormal numbers have fewer bits than the others, and keep them.
        mantissa, exponent = np.frexp(p)
        kept = np.rint(np.ldexp(mantissa, SIGNIFICANT_BITS))
        return np.ldexp(kept, exponent - SIGNIFICANT_BITS)
    # Rounding the pattern of bits as an integer takes a third of the time: half a unit is added
    # (less one if the last kept bit is even, so that halves go to even), and the dropped bits are
    # set to 0. A carry out of the mantissa goes to the exponent, as it should.
    bits = p.view(np.int64)
    last_kept_bit = (bits >> DROPPED_BITS) & 1
    return ((bits + (HALF_UNIT - 1) + last_kept_bit) & -(2 * HALF_UNIT)).view(np.float64)


def secrets_of_users(counts: Ints, mechanism: object) -> Ints:
    """Code of each user's secret, shape (n,), from the number of users with each secret."""
    if (users := int(counts.sum())) > MAX_USERS:
        raise TooLarge(
            f"secret_counts must sum to at most {MAX_USERS} for {type(mechanism).__name__}, whose "
            f"reports are drawn one by one, got {readable(users)} users; simulate fewer, and add "
            "tallies"
        )
    return np.repeat(np.arange(len(counts)), counts)


def reports_by_rows(
    secrets: Ints, row_of: Callable[[int], Floats], shape: tuple[int, int], rng: Generator
) -> Ints:
    """Code of one report for each user, from the probabilities of the reports given a secret.

    Parameters
    ----------
    secrets : ndarray of int, shape (n,)
    row_of : callable
        Function that takes the code of a secret and returns its row of the matrix.
    shape : (int, int)
        The numbers k and m of secrets and of reports.
    rng : numpy.random.Generator
    """
    # Users of one secret are drawn together, the secrets in ascending order, by inversion of their
    # cumulative probabilities. These are the draws of `rng.choice`, in less than half its time.
    # Small integers are sorted by counting.
    k, m = shape
    order = np.argsort(secrets.astype(np.min_scalar_type(k - 1)), kind="stable")
    uniform = rng.random(len(secrets))
    ends = np.cumsum(np.bincount(secrets, minlength=k))
    present = np.flatnonzero(np.diff(ends, prepend=0))
    drawn = np.empty(len(secrets), dtype=np.int64)
    start, step = 0, max(1, ENTRIES_AT_ONCE // m)
    for at in range(0, len(present), step):
        block = present[at : at + step]
        rows = np.stack([row_of(secret) for secret in block.tolist()])
        cumulative = np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1)
        cumulative /= cumulative[:, -1:]
        for row, end in zip(cumulative, ends[block].tolist(), strict=True):
            drawn[start:end] = row.searchsorted(uniform[start:end], side="right")
            start = end
    reports = np.empty_like(drawn)
    reports[order] = drawn
    return reports


def signed_offset_counts(users: Ints, shares: Floats, rng: Generator) -> Ints:
    """Number of reports on each cell of a map, from the number of users on each cell.

    Parameters
    ----------
    users : ndarray of int, shape (rows, columns)
    shares : ndarray, shape (north, east)
        Probability of the offset (i, j), i, j >= 0, without its signs. The two signs are
        independent of each other, and each is as likely to be + as -.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (rows + 2 north - 2, columns + 2 east - 2)
        The map extends beyond the map of users by the largest offset on each side.
    """
    (rows, cols), (north, east) = users.shape, shares.shape
    reports = np.zeros((rows + 2 * north - 2, cols + 2 * east - 2), dtype=np.int64)
    for row, col in np.argwhere(users):
        # One multinomial draws the offsets of all users of a cell, two binomials their signs.
        offsets = rng.multinomial(users[row, col], shares.ravel()).reshape(shares.shape)
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
