"""Hash functions of sketches, and the bits of reports at each secret's bucket.

Version 1 of the family: the arithmetic is that of uint64, which wraps around; G and the finaliser
`mix` are those of local hashing. The hash of secret x (its place in the alphabet) under function
`row` is v = mix(mix(seed + (row + 1) G) + (x + 1) G), and its bucket is floor((v >> 32) width /
2^32). Change neither formula: reports were made with both.
"""

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Ints
from ibukit._ground.numba_cache import njit
from ibukit.mechanisms.sketches._hash_kernels import GAMMA, mix


@njit()
def fill_buckets(out: NDArray[np.int32], row: int, width: int, seed: int) -> None:
    """The buckets of the secrets 0..len(out) - 1 under one function of the family."""
    key = mix(np.uint64(seed) + np.uint64(row + 1) * GAMMA)
    for x in range(out.size):
        # The high half of v, scaled to 0..width - 1.
        v = mix(key + np.uint64(x + 1) * GAMMA)
        out[x] = np.int32(((v >> np.uint64(32)) * np.uint64(width)) >> np.uint64(32))


@njit()
def buckets(rows: Ints, k: int, width: int, seed: int) -> NDArray[np.int32]:
    """The buckets of k secrets under each of several functions, shape (len(rows), k)."""
    out = np.empty((rows.size, k), dtype=np.int32)
    for i in range(rows.size):
        fill_buckets(out[i], rows[i], width, seed)
    return out


@njit()
def buckets_of(rows: Ints, secrets: Ints, width: int, seed: int) -> NDArray[np.int32]:
    """The bucket of each of n secrets under a function of its own, shape (n,)."""
    out = np.empty(rows.size, dtype=np.int32)
    for i in range(rows.size):
        key = mix(np.uint64(seed) + np.uint64(rows[i] + 1) * GAMMA)
        v = mix(key + np.uint64(secrets[i] + 1) * GAMMA)
        out[i] = np.int32(((v >> np.uint64(32)) * np.uint64(width)) >> np.uint64(32))
    return out


@njit()
def bits_of_secrets(
    rows: Ints, packed: NDArray[np.uint8], k: int, width: int, seed: int
) -> NDArray[np.uint8]:
    """The bit of each secret's bucket in each report, packed, shape (s, ceil(k / 8))."""
    out = np.zeros((len(packed), (k + 7) // 8), dtype=np.uint8)
    own = np.empty(k, dtype=np.int32)
    for z in range(len(packed)):
        # Sorted reports of one row follow each other, so each row is hashed once.
        if z == 0 or rows[z] != rows[z - 1]:
            fill_buckets(own, rows[z], width, seed)
        for x in range(k):
            if packed[z, own[x] >> 3] & (128 >> (own[x] & 7)):
                out[z, x >> 3] |= np.uint8(128 >> (x & 7))
    return out


@njit()
def fill_filters(out: NDArray[np.int32], sizes: Ints, cohort: int, bits: int, seed: int) -> None:
    """The bits that each secret sets in a cohort's Bloom filter, each once, and their numbers.

    `out` has shape (k, hashes); hash i of a cohort is function cohort * hashes + i of the family.
    """
    # Each hash function fills all secrets' bits; new ones are appended to a secret's list.
    k, hashes = out.shape
    own = np.empty(k, dtype=np.int32)
    sizes[:] = 0
    for i in range(hashes):
        fill_buckets(own, cohort * hashes + i, bits, seed)
        for x in range(k):
            # Two hash functions may set the same bit, which is kept once.
            new = True
            for j in range(sizes[x]):
                new = new and out[x, j] != own[x]
            if new:
                out[x, sizes[x]] = own[x]
                sizes[x] += 1


@njit()
def filter_levels(
    cohorts: Ints,
    packed: NDArray[np.uint8],
    k: int,
    bits: int,
    hashes: int,
    seed: int,
    codes: NDArray[np.uint8],
    n_codes: int,
    per_byte: int,
) -> NDArray[np.uint8]:
    """For each report and secret, codes[ones, zeros] of the secret's bits; `per_byte` to a byte."""
    levels = np.empty((len(packed), (k + per_byte - 1) // per_byte), dtype=np.uint8)
    own, sizes = np.empty((k, hashes), dtype=np.int32), np.empty(k, dtype=np.int64)
    for z in range(len(packed)):
        if z == 0 or cohorts[z] != cohorts[z - 1]:
            fill_filters(own, sizes, cohorts[z], bits, seed)
        for i in range(levels.shape[1]):
            byte = 0
            # The codes of one byte are its digits to the base `n_codes`.
            for x in range(i * per_byte, (i + 1) * per_byte):
                byte *= n_codes
                if x < k:
                    # Bits of the secret's filter that the report has.
                    ones = 0
                    for j in range(sizes[x]):
                        ones += (packed[z, own[x, j] >> 3] >> (7 - (own[x, j] & 7))) & 1
                    byte += codes[ones, sizes[x] - ones]
            levels[z, i] = byte
    return levels


@njit()
def farthest_filters(
    cohorts: int, k: int, bits: int, hashes: int, seed: int, own: float, other: float
) -> float:
    """The largest |Bx without By| own + |By without Bx| other over all cohorts and pairs."""
    places, sizes = np.empty((k, hashes), dtype=np.int32), np.empty(k, dtype=np.int64)
    # If there are enough bits, two filters of `size` bits each may share none: this gives the
    # bound. A pair that reaches the bound up to rounding ends the search.
    size = min(hashes, bits)
    bound = (1 - 1e-12) * (size * max(own, other) + min(size, bits - size) * min(own, other))
    largest = 0.0
    for cohort in range(cohorts):
        fill_filters(places, sizes, cohort, bits, seed)
        for x in range(k):
            for y in range(x):
                # The filters are short lists, so all pairs of bits are compared.
                shared = 0
                for i in range(sizes[x]):
                    for j in range(sizes[y]):
                        if places[x, i] == places[y, j]:
                            shared += 1
                # The numbers of bits of x alone and of y alone: the pair counts in both orders.
                a, b = sizes[x] - shared, sizes[y] - shared
                largest = max(largest, a * own + b * other, b * own + a * other)
            if largest >= bound:
                return largest
    return largest
