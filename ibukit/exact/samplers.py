"""Samplers that compare binary digits: coins, uniform and geometric integers, and reports.

To toss a coin with probability p, a uniform number is compared with p, digit by digit from the
first. A word of digits nearly always decides. The result of each sampler follows its law exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Ints
from ibukit.exact.acceptance_bounds import MIN_SLOPE, PROBABILITY_DIGITS, acceptance_bounds
from ibukit.exact.probabilities import ExactProbability, distance_excess, exponential, odds
from ibukit.exact.random_bits import RandomBits

Bools = NDArray[np.bool_]

# Bits of reports that are drawn at a time, each from a word of 64 random bits: 32 MB.
BITS_PER_CHUNK = 2**22


def flip(probability: ExactProbability, n: int, random_bits: RandomBits) -> Bools:
    """Toss `n` independent coins of one probability."""
    return flip_each([probability], np.zeros(n, dtype=np.int64), random_bits)


def flip_each(
    probabilities: Sequence[ExactProbability], indices: Ints, random_bits: RandomBits
) -> Bools:
    """Toss one coin for each index, with the probability of that index."""
    digits = random_bits.digits
    heads = np.array([probability.floor(digits) for probability in probabilities], dtype=np.uint64)[
        indices
    ]
    words = random_bits.draw(len(indices), digits)
    fell = words < heads
    # The number equals the first digits of the probability once in 2^64 tosses: more digits decide.
    for place in np.flatnonzero(words == heads).tolist():
        fell[place] = _compare_more_digits(probabilities[int(indices[place])], random_bits)
    return fell


def _uniform_is_below(word: int, probability: ExactProbability, random_bits: RandomBits) -> bool:
    """Return whether the uniform number that begins with this word is below the probability."""
    head = probability.floor(random_bits.digits)
    return _compare_more_digits(probability, random_bits) if word == head else word < head


def _compare_more_digits(probability: ExactProbability, random_bits: RandomBits) -> bool:
    """Return whether a uniform number is below the probability, if their first digits agree."""
    known, last = random_bits.digits, 2**random_bits.digits
    while True:
        known += random_bits.digits
        here, word = (
            probability.floor(known) % last,
            int(random_bits.draw(1, random_bits.digits)[0]),
        )
        if word != here:
            return bool(word < here)


def uniform_below(k: int, n: int, random_bits: RandomBits) -> Ints:
    """Draw `n` integers, each uniform from 0 to k - 1."""
    # Numbers of as many bits as k - 1 are drawn; those from k on are rejected and drawn again.
    numbers = np.zeros(n, dtype=np.int64)
    width = (k - 1).bit_length()
    pending = np.arange(n if width else 0)
    while len(pending):
        words = random_bits.draw(len(pending), width)
        good = words < np.uint64(k)
        numbers[pending[good]] = words[good]
        pending = pending[~good]
    return numbers


def geometric(exponent: Fraction, n: int, random_bits: RandomBits) -> Ints:
    """Draw `n` integers N >= 0 with P(N >= t) = e^-(exponent t)."""
    # The binary digits of N are independent; digit j is 1 with odds e^-(exponent 2^j) : 1. The
    # integer N // 2^j above the first j digits is geometric, too, with the exponent times 2^j.
    # Digits are drawn until that exponent is at least 1; the rest is then small and is drawn one
    # step at a time.
    numbers = np.zeros(n, dtype=np.int64)
    unit = 1
    while exponent * unit < 1:
        numbers += unit * flip(odds(1, exponent * unit), n, random_bits)
        unit *= 2
    more = exponential(exponent * unit)
    going = np.arange(n)
    while len(going):
        going = going[flip(more, len(going), random_bits)]
        numbers[going] += unit
    return numbers


def two_sided_geometric(exponent: Fraction, n: int, random_bits: RandomBits) -> Ints:
    """Draw `n` integers z with probabilities proportional to e^-(exponent |z|)."""
    # The difference of two independent geometric integers has this law.
    return geometric(exponent, n, random_bits) - geometric(exponent, n, random_bits)


def planar_geometric(
    epsilon: Fraction, height: Fraction, width: Fraction, n: int, random_bits: RandomBits
) -> Ints:
    """Draw `n` offsets (i, j) with probabilities proportional to e^-(epsilon d), shape (n, 2).

    The distance d is the root of (i height)^2 + (j width)^2.
    """
    # Rejection sampling: an offset is proposed with the law e^-(epsilon c (|i| height + |j|
    # width)), whose two sides are independent, and accepted with the quotient of the two laws. With
    # c = MIN_SLOPE the quotient is at most 1.
    offsets = np.zeros((n, 2), dtype=np.int64)
    pending = np.arange(n)
    while len(pending):
        drawn = np.column_stack(
            [
                two_sided_geometric(epsilon * MIN_SLOPE * side, len(pending), random_bits)
                for side in (height, width)
            ]
        )
        # The offset (0, 0) is always accepted.
        kept: Bools = np.asarray(~drawn.any(axis=1))
        tried = np.flatnonzero(~kept)
        if len(tried):
            kept[tried] = _accepted(np.abs(drawn[tried]), epsilon, height, width, random_bits)
        offsets[pending[kept]] = drawn[kept]
        pending = pending[~kept]
    return offsets


def _accepted(
    sizes: Ints, epsilon: Fraction, height: Fraction, width: Fraction, random_bits: RandomBits
) -> Bools:
    """Return whether each offset is accepted; one coin is tossed for each."""
    words = random_bits.draw(len(sizes), random_bits.digits)
    low, high = acceptance_bounds((epsilon * height, epsilon * width), sizes)
    # In units of 2^-31 the uniform number is known to be from `first` to `first` + `room`. An
    # offset is accepted below the lower bound and rejected from the upper bound on; only between
    # the two are the digits of its probability computed.
    spare = random_bits.digits - PROBABILITY_DIGITS
    first = (words >> np.uint64(max(spare, 0))).astype(np.int64) << max(-spare, 0)
    room = 1 << max(-spare, 0)
    kept: Bools = first + room <= low
    for place in np.flatnonzero(~kept & (first < high)).tolist():
        i, j = sizes[place].tolist()
        kept[place] = _uniform_is_below(
            int(words[place]),
            distance_excess(epsilon, i * height, j * width, MIN_SLOPE),
            random_bits,
        )
    return kept


def randomized_response(
    secrets: Ints, k: int, lie: ExactProbability, random_bits: RandomBits
) -> Ints:
    """Draw codes below k: the secret, or with probability `lie` another one, uniformly."""
    lies = flip(lie, len(secrets), random_bits)
    # Another code is drawn for everybody, so that the time taken does not tell who lies.
    other = 1 + uniform_below(k - 1, len(secrets), random_bits)
    return np.where(lies, (secrets + other) % k, secrets)


def independent_bits(
    secrets: Ints, k: int, own: ExactProbability, other: ExactProbability, random_bits: RandomBits
) -> NDArray[np.uint8]:
    """Draw rows of k independent bits, 1 with probability `own` at the secret, else `other`."""
    rows = np.empty((len(secrets), k), dtype=np.uint8)
    step = max(1, BITS_PER_CHUNK // k)
    for start in range(0, len(secrets), step):
        part = secrets[start : start + step]
        block = rows[start : start + step]
        block[:] = flip(other, len(part) * k, random_bits).reshape(len(part), k)
        block[np.arange(len(part)), part] = flip(own, len(part), random_bits)
    return rows


def subsets(
    secrets: Ints, k: int, size: int, out: ExactProbability, random_bits: RandomBits
) -> NDArray[np.uint8]:
    """Draw rows of k bits with `size` ones; the secret's bit is 0 with probability `out`.

    All rows with a 1 at the secret have equal probabilities, and so have all rows with a 0 there.
    """
    rows: NDArray[Any] = np.zeros((len(secrets), k), dtype=np.uint8)
    held = ~flip(out, len(secrets), random_bits)
    rows[held, secrets[held]] = 1
    for users, more in ((np.flatnonzero(held), size - 1), (np.flatnonzero(~held), size)):
        x = secrets[users]
        # Floyd's algorithm draws a random subset of the other k - 1 secrets, counted from the
        # secret onwards: it draws from the first j + 1 of them, and takes number j itself if the
        # drawn one is in the subset already.
        for j in range(k - 1 - more, k - 1):
            place = (x + 1 + uniform_below(j + 1, len(users), random_bits)) % k
            taken = rows[users, place] == 1
            place[taken] = (x[taken] + 1 + j) % k
            rows[users, place] = 1
    return rows
