"""Unary encodings: each report is a row of bits, packed into bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from ibukit._ground.arguments import Floats, Ints, frozen
from ibukit._ground.threads import in_order
from ibukit._ground.typing import override
from ibukit.channels import _bit_kernels
from ibukit.channels.base import Channel, Score, slices_of, sum_scores, summed_in_slices

# Least number of rows of a slice, so that a thread has a millisecond of work. But this minimum is
# no more than a row for each 128 bytes of all rows: the few temporary vectors of a slice then take
# less memory than the rows.
MIN_ROWS_PER_SLICE = 2**17
MIN_BYTES_PER_SLICE_ROW = 128
# Bytes of rows from which threads gain anything: a pass over fewer takes about a millisecond.
MIN_BYTES_FOR_THREADS = 2**21
# Number of bits written out at a time for a Gram matrix.
MAX_BITS_TOGETHER = 2**20
# Rows in which the mean number of set bits is counted.
ROWS_FOR_MEAN = 1000
# Visiting a pair of set bits takes as long as 40 multiplications of BLAS, writing out a bit as 70.
COST_OF_PAIR, COST_OF_BIT = 40, 70


@dataclass(frozen=True, eq=False)
class BitChannel(Channel):
    r"""Unary encodings from packed bits, with k/8 look-ups for each report.

    :math:`M_{xz}=\mathrm{scale}_z` times `one` if bit x of report z is set, else `zero`.

    Parameters
    ----------
    k : int
        Number of secrets.
    packed : ndarray of uint8, shape (s, ceil(k / 8))
        The reports' bits, the first one the most significant of its byte.
    one, zero : float
        Entry where the secret's bit is set, and where it is not, up to the report's scale.
    scale : ndarray, shape (s,)
        A factor for each report.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.packbits([[1, 0, 0], [1, 1, 0]], axis=1)
    >>> BitChannel(3, rows, one=0.4, zero=0.1, scale=np.ones(2)).forward(np.array([0.5, 0.5, 0.0]))
    array([0.25, 0.4 ])
    """

    k: int
    packed: NDArray[np.uint8]
    one: float
    zero: float
    scale: Floats

    @property
    @override
    def size(self) -> int:
        return len(self.packed)

    @property
    def min_rows_per_slice(self) -> int:
        """Least number of rows of a slice, if a pass over all rows is cut into slices."""
        return min(MIN_ROWS_PER_SLICE, self.packed.nbytes // MIN_BYTES_PER_SLICE_ROW)

    @property
    def is_worth_threads(self) -> bool:
        """True if a pass over all rows is long enough for several threads."""
        return self.packed.nbytes >= MIN_BYTES_FOR_THREADS

    @override
    def forward(self, theta: Floats) -> Floats:
        return report_probabilities(self.packed, theta, self.one, self.zero, self.scale)

    @override
    def adjoint(self, w: Floats) -> Floats:
        # v_x = zero sum(w) + (one - zero) times the weights of the rows in which bit x is set. They
        # are gathered by the value of each byte, and then summed for each bit.
        weights = w * self.scale
        per_bit = weights_of_bits(self.packed, weights)[: self.k]
        return self.zero * weights.sum() + (self.one - self.zero) * per_bit

    @override
    def rows(self, secrets: Ints) -> Floats:
        return entries_of_secrets(self.packed, secrets, self.one, self.zero, self.scale)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        add_gram_of_bits(self.packed, self.one, self.zero, self.scale, weights, total)

    def add_pairs(self, w: Floats, total: Floats) -> None:
        r"""Add to total_xy the sum of w over the rows with bits x and y set.

        This is done for :math:`y \le x`; the entries `one` and `zero` do not matter.
        """
        _bit_kernels.add_pairs(self.packed, w, total)

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        # A slice takes the default score: its vectors are short.
        score = Channel.score
        slices = slices_of(self.size, self.min_rows_per_slice)
        return sum_scores(
            in_order(
                lambda rows: score(self.take(rows), theta, counts[rows]),
                slices,
                self.is_worth_threads,
            )
        )

    @property
    @override
    def n_roundings(self) -> float:
        # The sum of theta may take k additions. Weights are gathered by the values of a byte;
        # folding them takes fewer additions than a byte has values, and adding 0 does not round.
        gathered = summed_in_slices(self.size, self.min_rows_per_slice)
        return self.k + self.packed.shape[1] + gathered + min(self.size, 256) + 16

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        # If a set bit lowers the probability, the contrast would be subtracted, which may cancel.
        # With the complement of the bits it is added.
        if self.one < self.zero:
            flipped = replace(self, packed=~self.packed, one=self.zero, zero=self.one)
            return flipped.upper_score(theta, counts)
        return super().upper_score(theta, counts)

    @override
    def scaled(self, factor: Floats) -> BitChannel:
        return replace(self, scale=self.scale * factor)

    @override
    def take(self, reports: slice | Ints) -> BitChannel:
        return replace(self, packed=self.packed[reports], scale=self.scale[reports])


# `one` and `zero` are numbers if all reports have the same entries, else a vector.


def report_probabilities(
    packed: NDArray[np.uint8],
    theta: Floats,
    one: float | Floats,
    zero: float | Floats,
    scale: Floats,
) -> Floats:
    """Probability of each row of bits: scale_z (zero + (one - zero) theta of the set bits)."""
    p = _bit_kernels.look_up(packed, sums_by_byte(theta, packed.shape[1]))
    # In place because there may be a million rows.
    p *= one - zero
    p += zero * theta.sum()
    p *= scale
    return p


def entries_of_secrets(
    packed: NDArray[np.uint8],
    secrets: Ints,
    one: float | Floats,
    zero: float | Floats,
    scale: Floats,
) -> Floats:
    """Entries of the rows of bits for some secrets, shape (len(secrets), rows)."""
    # The first bit of a byte is its most significant one. Bytes of one secret stand side by side.
    masks = (0x80 >> (secrets & 7)).astype(np.uint8)
    is_set = np.ascontiguousarray(packed.T)[secrets >> 3] & masks[:, None]
    return np.where(is_set.astype(bool), one * scale, zero * scale)


def add_gram_of_bits(
    packed: NDArray[np.uint8],
    one: float | Floats,
    zero: float | Floats,
    scale: Floats,
    weights: Floats,
    total: Floats,
) -> None:
    """Add the Gram matrix of rows of bits.

    With a = one - zero an entry is zero + a bit, so a product of two entries is a^2 for a pair of
    set bits, zero a for each set bit, and zero^2. No sum of these cancels if a is positive, so rows
    whose set bits lower the probability are complemented.
    """
    k, is_lower = len(total), np.less(one, zero)
    if is_lower.any():
        every = np.packbits(np.ones(k, dtype=bool))
        packed = np.where(is_lower[..., None], ~packed & every, packed)
        one, zero = np.maximum(one, zero), np.minimum(one, zero)
    factor = scale * np.sqrt(weights)
    a, b = factor * (one - zero), factor * zero
    # Read-only, like all other rows: numba compiles a kernel for each kind of array.
    rows = frozen(np.ascontiguousarray(packed).view())
    if COST_OF_PAIR * mean_ones(rows) ** 2 < k * (k + 2 * COST_OF_BIT):
        pairs = np.zeros((k, k))
        _bit_kernels.add_pairs(rows, a * a, pairs)
        total += pairs
    else:
        step = max(1, MAX_BITS_TOGETHER // k)
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            bits = np.unpackbits(rows[some], axis=1, count=k) * a[some, None]
            total += dsyrk(1.0, bits.T, lower=1)
    single = weights_of_bits(rows, a * b)[:k]
    total += single + single[:, None] + b @ b


def mean_ones(packed: NDArray[np.uint8]) -> float:
    """Mean number of set bits of a row, counted in some of the rows."""
    some = packed[:: max(1, len(packed) // ROWS_FOR_MEAN)]
    return float(np.bitwise_count(some).sum() / max(1, len(some)))


# Numpy fills the tables, a bit at a time: a loop of our own would take longer to compile than the
# one over the rows.


def sums_by_byte(theta: Floats, n_bytes: int) -> Floats:
    """For each byte column the sums of theta over the set bits of each of the 256 values.

    Bit after bit from the most significant: a value whose lower bits are 0 is known, and setting
    the next bit adds its theta.
    """
    each = np.concatenate([theta, np.zeros(8 * n_bytes - len(theta))]).reshape(n_bytes, 8)
    table = np.zeros((n_bytes, _bit_kernels.STRIDE))
    for bit in range(8):
        # The values whose bits after `bit` are 0 are the multiples of 128 >> bit; every second of
        # them has the bit set.
        step = 256 >> bit
        table[:, step // 2 : 256 : step] = table[:, :256:step] + each[:, bit : bit + 1]
    return table


def weights_of_bits(packed: NDArray[np.uint8], w: Floats) -> Floats:
    """For each bit the sum of w over the rows in which it is set."""
    gathered = np.zeros((packed.shape[1], _bit_kernels.STRIDE))
    _bit_kernels.gather(packed, w, gathered)
    return bit_sums(gathered)


def bit_sums(gathered: Floats) -> Floats:
    """For each bit the sum of the table over the values of its byte in which it is set.

    This is the transpose of `sums_by_byte`. Bit after bit the table is folded: its second half, the
    values with this bit, is summed and then added to the first.
    """
    each = np.empty((len(gathered), 8))
    for bit in range(8):
        half = 128 >> bit
        off, on = gathered[:, :half], gathered[:, half : 2 * half]
        each[:, bit] = on.sum(axis=1)
        gathered = off + on
    return each.ravel()
