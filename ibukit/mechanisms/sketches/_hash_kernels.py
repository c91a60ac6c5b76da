"""Hash family, version 1: the bucket of a secret under a seed, and the secrets in a bucket.

Everything is arithmetic on 64-bit unsigned integers that wrap around, so that a seed gives the same
buckets on every machine. The constants are those of SplitMix64 (Steele, Lea and Flood, OOPSLA
2014). Its finaliser turns a seed into a key, the key starts a stream of words, and secret x takes
word number x of this stream:

    key = mix(seed + GAMMA),   word(x) = mix(key + (x + 1) GAMMA).

The bucket of a word u is the high half of the product u g (Lemire, 2019). If the low half is below
2^64 mod g, the next word mix(u + GAMMA) is taken, so that every bucket comes from equally many
words. Balanced buckets come from a shuffle of the secrets (Fisher and Yates), for which words of
the same stream are taken: the secret at place i has bucket i mod g.

Never change what is computed here: reports that were collected name their hash functions by seeds.
Another family must be another version, with a name of its own.
"""

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
LOW_HALF = np.uint64(0xFFFFFFFF)


@njit()
def mix(word: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64, which is one to one."""
    word = (word ^ (word >> np.uint64(30))) * FIRST_FACTOR
    word = (word ^ (word >> np.uint64(27))) * SECOND_FACTOR
    return word ^ (word >> np.uint64(31))


@njit()
def bucket_of(word: np.uint64, g: np.uint64) -> np.uint64:
    """The bucket 0..g-1 of a word, for g below 2^32, without bias."""
    # The bucket is floor(word g / 2^64), the high half of the product. Words whose low half is
    # below 2^64 mod g would give some buckets one word more than others, so they are replaced.
    while True:
        middle = (word >> np.uint64(32)) * g + (((word & LOW_HALF) * g) >> np.uint64(32))
        low = word * g
        if low >= g or low >= (np.uint64(0) - g) % g:
            return middle >> np.uint64(32)
        word = mix(word + GAMMA)


@njit()
def _shuffle(key: np.uint64, order: NDArray[np.int64]) -> None:
    """Put the secrets into the order of a key, by the shuffle of Fisher and Yates."""
    k = len(order)
    for x in range(k):
        order[x] = x
    # Place i is swapped with a uniform place of 0..i, drawn from word i of the key's stream.
    for i in range(k - 1, 0, -1):
        j = np.int64(bucket_of(mix(key + np.uint64(i) * GAMMA), np.uint64(i + 1)))
        order[i], order[j] = order[j], order[i]


@njit()
def buckets(seeds: Ints, secrets: Ints, k: int, g: int, balanced: bool) -> Ints:
    """The bucket of one secret under each seed."""
    result = np.empty(len(seeds), dtype=np.int64)
    order = np.empty(k if balanced else 0, dtype=np.int64)
    for z in range(len(seeds)):
        key = mix(np.uint64(seeds[z]) + GAMMA)
        if balanced:
            # The bucket is the secret's place in the shuffled order, modulo g.
            _shuffle(key, order)
            i = 0
            while order[i] != secrets[z]:
                i += 1
            result[z] = i % g
        else:
            result[z] = np.int64(
                bucket_of(mix(key + np.uint64(secrets[z] + 1) * GAMMA), np.uint64(g))
            )
    return result


@njit()
def _support(
    seed: int, bucket: int, g: int, balanced: bool, order: NDArray[np.int64], row: NDArray[np.uint8]
) -> None:
    """Set the bits of the secrets that a seed sends to a bucket, most significant bit first."""
    key = mix(np.uint64(seed) + GAMMA)
    k = len(order)
    if balanced:
        # The secrets at the places bucket, bucket + g, bucket + 2 g, ... of the shuffled order.
        row[:] = 0
        _shuffle(key, order)
        for i in range(bucket, k, g):
            row[order[i] >> 3] |= np.uint8(128 >> (order[i] & 7))
        return
    # Secret x has word x + 1 of the stream. The stream is run through once, and eight secrets fill
    # a byte.
    wanted, size = np.uint64(bucket), np.uint64(g)
    word = key
    for j in range(len(row)):
        bits, byte = min(8, k - 8 * j), 0
        # The comparison is added as a number: a branch would be mispredicted.
        for _ in range(bits):
            word += GAMMA
            byte = 2 * byte + (bucket_of(mix(word), size) == wanted)
        row[j] = byte << (8 - bits)


@njit()
def supports(reports: Ints, k: int, g: int, balanced: bool) -> NDArray[np.uint8]:
    """Packed bits of the secrets that each report (seed, bucket) supports, (s, ceil(k / 8))."""
    rows = np.empty((len(reports), (k + 7) // 8), dtype=np.uint8)
    order = np.empty(k, dtype=np.int64)
    for z in range(len(reports)):
        _support(reports[z, 0], reports[z, 1], g, balanced, order, rows[z])
    return rows


@njit()
def support_counts(reports: Ints, weights: Floats, k: int, g: int, balanced: bool) -> Floats:
    """Total weight of the reports that support each secret; their rows of bits are not kept."""
    total = np.zeros(k)
    order = np.empty(k, dtype=np.int64)
    row = np.empty((k + 7) // 8, dtype=np.uint8)
    for z in range(len(reports)):
        _support(reports[z, 0], reports[z, 1], g, balanced, order, row)
        # Bit x of the row, as a number.
        for x in range(k):
            total[x] += weights[z] * ((row[x >> 3] >> (7 - (x & 7))) & 1)
    return total
