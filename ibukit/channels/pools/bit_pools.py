"""Rows of bits of many small unary encodings as one channel, so that a pass is one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints, frozen
from ibukit._ground.typing import override
from ibukit.channels.base import Channel, Score, score_in_slices
from ibukit.channels.bits import (
    MIN_BYTES_FOR_THREADS,
    BitChannel,
    add_gram_of_bits,
    entries_of_secrets,
    report_probabilities,
    weights_of_bits,
)

# Bytes of rows up to which a channel is pooled: a pass over them takes as long as the calls for
# one mechanism, 50 to 100 microseconds. The pool copies the rows.
MAX_BYTES_POOLED = 2**16


@dataclass(frozen=True, eq=False)
class BitPoolChannel(Channel):
    r"""Unary encodings of several mechanisms, each report with entries of its own.

    :math:`M_{xz}=\mathrm{scale}_z` times :math:`\mathrm{one}_z` if bit x of report z is set, else
    :math:`\mathrm{zero}_z`.

    Parameters
    ----------
    k : int
        Number of secrets.
    packed : ndarray of uint8, shape (s, ceil(k / 8))
        The reports' bits, the first one the most significant of its byte.
    one, zero, scale : ndarray, shape (s,)
        For each report the entry where the secret's bit is set, the one where it is not, and a
        factor of both.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.packbits([[1, 0, 0], [1, 1, 0]], axis=1)
    >>> two = [BitChannel(3, rows[[i]], one, 0.1, np.ones(1)) for i, one in enumerate((0.4, 0.8))]
    >>> BitPoolChannel.of(two).forward(np.array([0.5, 0.5, 0.0]))
    array([0.25, 0.8 ])
    """

    k: int
    packed: NDArray[np.uint8]
    one: Floats
    zero: Floats
    scale: Floats

    @classmethod
    def of(cls, channels: Sequence[BitChannel]) -> BitPoolChannel:
        """Pool the reports of some channels over the same secrets, one after the other."""
        sizes = [channel.size for channel in channels]
        # Read-only rows, as those of one mechanism: numba compiles a kernel for each kind of array.
        packed = frozen(np.concatenate([channel.packed for channel in channels]))
        one, zero = (
            np.repeat(entries, sizes)
            for entries in (
                [channel.one for channel in channels],
                [channel.zero for channel in channels],
            )
        )
        scale = np.concatenate([channel.scale for channel in channels])
        return cls(channels[0].k, packed, one, zero, scale)

    @property
    @override
    def size(self) -> int:
        return len(self.packed)

    @property
    def is_worth_threads(self) -> bool:
        """True if a pass over all rows is long enough for several threads."""
        return self.packed.nbytes >= MIN_BYTES_FOR_THREADS

    @override
    def forward(self, theta: Floats) -> Floats:
        return report_probabilities(self.packed, theta, self.one, self.zero, self.scale)

    @override
    def adjoint(self, w: Floats) -> Floats:
        weights = w * self.scale
        per_bit = weights_of_bits(self.packed, weights * (self.one - self.zero))[: self.k]
        return float(weights @ self.zero) + per_bit

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return score_in_slices(self, theta, counts)

    @property
    @override
    def n_roundings(self) -> float:
        # The sum of theta may take k additions, and sums of weights one for each report. Folding
        # the weights takes fewer additions than a byte has values.
        return self.k + self.packed.shape[1] + self.size + min(self.size, 256) + 16

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        # Where a set bit lowers the probability, the contrast would be subtracted, which may
        # cancel. With the complement of the bits it is added.
        is_lower = self.one < self.zero
        if is_lower.any():
            packed = np.where(is_lower[:, None], ~self.packed, self.packed)
            low, high = np.minimum(self.one, self.zero), np.maximum(self.one, self.zero)
            flipped = replace(self, packed=frozen(packed), one=high, zero=low)
            return flipped.upper_score(theta, counts)
        return super().upper_score(theta, counts)

    @override
    def rows(self, secrets: Ints) -> Floats:
        return entries_of_secrets(self.packed, secrets, self.one, self.zero, self.scale)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        add_gram_of_bits(self.packed, self.one, self.zero, self.scale, weights, total)

    @override
    def scaled(self, factor: Floats) -> BitPoolChannel:
        return replace(self, scale=self.scale * factor)

    @override
    def take(self, reports: slice | Ints) -> BitPoolChannel:
        return replace(
            self,
            packed=self.packed[reports],
            one=self.one[reports],
            zero=self.zero[reports],
            scale=self.scale[reports],
        )


def can_be_pooled(channel: Channel) -> bool:
    """True if the channel has few rows of bits, and is of the package's own class.

    A class that inherits from `BitChannel` may mean something else by its bits.
    """
    return type(channel) is BitChannel and channel.packed.nbytes <= MAX_BYTES_POOLED


def pooled(channels: list[BitChannel]) -> list[Channel]:
    """The channels as one, if there are several."""
    return [BitPoolChannel.of(channels)] if len(channels) > 1 else list[Channel](channels)
