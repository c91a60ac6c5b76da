"""Samplers that compare digits: coins, whole numbers, geometric variables, and the reports made of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Ints
from ibukit.exact.acceptance_bounds import CHANCE_DIGITS, MIN_SLOPE, excess_bounds
from ibukit.exact.probabilities import Chance, distance_excess, exponential, odds
from ibukit.exact.random_bits import Source

Bools = NDArray[np.bool_]

# coins of rows of bits drawn at once: 32 MB of random bits
COINS_AT_ONCE = 2**22


def flip(chance: Chance, n: int, source: Source) -> Bools:
    """`n` independent coins of one chance."""
    return flips([chance], np.zeros(n, dtype=np.int64), source)


def flips(chances: Sequence[Chance], which: Ints, source: Source) -> Bools:
    """One coin for each entry of `which`, with the chance that it points to."""
    digits = source.digits
    heads = np.array([chance.floor(digits) for chance in chances], dtype=np.uint64)[which]
    words = source.draw(len(which), digits)
    fell = words < heads
    for place in np.flatnonzero(words == heads).tolist():  # once in 2^64
        fell[place] = _by_more_digits(chances[int(which[place])], source)
    return np.asarray(fell)


def _is_below(word: int, chance: Chance, source: Source) -> bool:
    """Whether the uniform number that begins with this word is below the chance."""
    head = chance.floor(source.digits)
    return _by_more_digits(chance, source) if word == head else word < head


def _by_more_digits(chance: Chance, source: Source) -> bool:
    """Whether a uniform number that begins like the chance goes on to be below it."""
    known, last = source.digits, 2**source.digits
    while True:
        known += source.digits
        here, word = chance.floor(known) % last, int(source.draw(1, source.digits)[0])
        if word != here:
            return bool(word < here)


def below(k: int, n: int, source: Source) -> Ints:
    """`n` whole numbers, each uniform from 0 to k - 1: what lies beyond is drawn again."""
    numbers = np.zeros(n, dtype=np.int64)
    width = (k - 1).bit_length()
    left = np.arange(n if width else 0)
    while len(left):
        words = source.draw(len(left), width)
        good = words < np.uint64(k)
        numbers[left[good]] = words[good]
        left = left[~good]
    return numbers


def geometric(exponent: Fraction, n: int, source: Source) -> Ints:
    """`n` whole numbers N from 0, each with P(N >= t) = e^-(exponent t).

    The binary digits of such a number are independent, digit j being 1 with odds e^-(exponent 2^j)
    : 1, and what is left above them is such a number with the exponent 2^j. The digits are drawn
    until it is at least 1, what is left by steps.
    """
    numbers = np.zeros(n, dtype=np.int64)
    unit = 1
    while exponent * unit < 1:
        numbers += unit * flip(odds(1, exponent * unit), n, source)
        unit *= 2
    more = exponential(exponent * unit)
    going = np.arange(n)
    while len(going):
        going = going[flip(more, len(going), source)]
        numbers[going] += unit
    return numbers


def two_sided(exponent: Fraction, n: int, source: Source) -> Ints:
    """`n` whole numbers, each z with a probability proportional to e^-(exponent |z|): differences of two geometric."""
    return np.asarray(geometric(exponent, n, source) - geometric(exponent, n, source))


def planar(epsilon: Fraction, height: Fraction, width: Fraction, n: int, source: Source) -> Ints:
    """`n` offsets (i, j), each with a probability proportional to e^-(epsilon d), d the root of (i h)^2 + (j w)^2.

    Shape (n, 2). An offset is drawn with e^-(epsilon c (|i| h + |j| w)), c the MIN_SLOPE, and kept
    with the quotient.
    """
    offsets = np.zeros((n, 2), dtype=np.int64)
    left = np.arange(n)
    while len(left):
        drawn = np.column_stack(
            [two_sided(epsilon * MIN_SLOPE * side, len(left), source) for side in (height, width)]
        )
        kept: Bools = np.asarray(~drawn.any(axis=1))  # no offset at all is kept for certain
        tried = np.flatnonzero(~kept)
        if len(tried):
            kept[tried] = _kept(np.abs(drawn[tried]), epsilon, height, width, source)
        offsets[left[kept]] = drawn[kept]
        left = left[~kept]
    return offsets


def _kept(
    sizes: Ints, epsilon: Fraction, height: Fraction, width: Fraction, source: Source
) -> Bools:
    """One coin for each offset; where the first digits of its chance do not decide, all are computed."""
    words = source.draw(len(sizes), source.digits)
    low, high = excess_bounds((epsilon * height, epsilon * width), sizes)
    # the uniform number is from `first` to `first` + `room`
    spare = source.digits - CHANCE_DIGITS
    first = (words >> np.uint64(max(spare, 0))).astype(np.int64) << max(-spare, 0)
    room = 1 << max(-spare, 0)
    kept: Bools = np.asarray(first + room <= low)
    for place in np.flatnonzero(~kept & (first < high)).tolist():
        i, j = sizes[place].tolist()
        kept[place] = _is_below(
            int(words[place]), distance_excess(epsilon, i * height, j * width, MIN_SLOPE), source
        )
    return kept


def response(secrets: Ints, k: int, lie: Chance, source: Source) -> Ints:
    """Codes below k: the secret, or with the chance of a lie any other, all alike."""
    lies = flip(lie, len(secrets), source)
    other = 1 + below(
        k - 1, len(secrets), source
    )  # for everybody: how long it takes does not tell who lies
    return np.where(lies, (secrets + other) % k, secrets)


def bits(secrets: Ints, k: int, own: Chance, other: Chance, source: Source) -> NDArray[np.uint8]:
    """Rows of k independent bits, 1 with the chance `own` at the secret and with `other` elsewhere."""
    rows = np.empty((len(secrets), k), dtype=np.uint8)
    step = max(1, COINS_AT_ONCE // k)
    for start in range(0, len(secrets), step):
        part = secrets[start : start + step]
        block = rows[start : start + step]
        block[:] = flip(other, len(part) * k, source).reshape(len(part), k)
        block[np.arange(len(part)), part] = flip(own, len(part), source)
    return rows


def subsets(secrets: Ints, k: int, size: int, out: Chance, source: Source) -> NDArray[np.uint8]:
    """Rows of k bits with `size` ones: with the chance `out` without the secret, all such rows alike, else with it."""
    rows: NDArray[Any] = np.zeros((len(secrets), k), dtype=np.uint8)
    held = ~flip(out, len(secrets), source)
    rows[held, secrets[held]] = 1
    for users, more in ((np.flatnonzero(held), size - 1), (np.flatnonzero(~held), size)):
        x = secrets[users]
        for j in range(
            k - 1 - more, k - 1
        ):  # Floyd's way among the others, counted from the secret onwards
            place = (x + 1 + below(j + 1, len(users), source)) % k
            taken = rows[users, place] == 1
            place[taken] = (x[taken] + 1 + j) % k
            rows[users, place] = 1
    return rows
