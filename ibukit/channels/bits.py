"""Unary encodings from packed rows of bits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.threads import in_order
from ibukit._ground.typing import override
from ibukit.channels import _bit_kernels
from ibukit.channels.base import Channel, Score, slices_of, sum_scores

# rows that are worth handing to a thread; and how many bytes of rows there must be for one of
# these, so that a handful of vectors as long as a stretch are less than all rows
ROWS_FOR_A_THREAD = 2**17
BYTES_FOR_A_ROW = 128
# bytes of rows from which threads gain anything: a pass over fewer takes about a millisecond
BYTES_TO_SHARE = 2**21


@dataclass(frozen=True, eq=False)
class BitChannel(Channel):
    """Unary encodings from packed bits, k/8 look-ups a report.

    :math:`M_{xz}` = scale_z (`one` if bit x of report z is set, else `zero`).

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
        """Rows of a stretch, at least, where a pass over all of them is cut."""
        return min(ROWS_FOR_A_THREAD, self.packed.nbytes // BYTES_FOR_A_ROW)

    @property
    def worth_sharing(self) -> bool:
        """Whether a pass over all rows is long enough for several threads."""
        return self.packed.nbytes >= BYTES_TO_SHARE

    @override
    def forward(self, theta: Floats) -> Floats:
        p = _bit_kernels.look_up(self.packed, _sums_by_byte(theta, self.packed.shape[1]))
        # in place: there may be a million rows
        p *= self.one - self.zero
        p += self.zero * theta.sum()
        p *= self.scale
        return p

    @override
    def adjoint(self, w: Floats) -> Floats:
        weights = w * self.scale
        gathered = np.zeros((self.packed.shape[1], _bit_kernels.STRIDE))
        _bit_kernels.gather(self.packed, weights, gathered)
        per_bit = _by_bit(gathered)[: self.k]
        return np.asarray(self.zero * weights.sum() + (self.one - self.zero) * per_bit)

    def add_pairs(self, w: Floats, total: Floats) -> None:
        r"""Add to total_xy the sum of w over the rows with bits x and y set.

        For :math:`y \le x`, and whatever the entries are.
        """
        _bit_kernels.add_pairs(self.packed, w, total)

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        score = Channel.score
        stretches = slices_of(self.size, self.min_rows_per_slice)
        return sum_scores(
            in_order(
                lambda rows: score(self.take(rows), theta, counts[rows]),
                stretches,
                self.worth_sharing,
            )
        )

    @override
    def take(self, reports: slice | Ints) -> BitChannel:
        return replace(self, packed=self.packed[reports], scale=self.scale[reports])


# Numpy fills the tables, a bit at a time: a loop of ours would take longer to compile than the one
# over the rows.


def _sums_by_byte(theta: Floats, n_bytes: int) -> Floats:
    """For each byte column a table of the sums of theta over the set bits of each value."""
    each = np.concatenate([theta, np.zeros(8 * n_bytes - len(theta))]).reshape(n_bytes, 8)
    table = np.zeros((n_bytes, _bit_kernels.STRIDE))
    for bit in range(8):
        step = 256 >> bit
        table[:, step // 2 : 256 : step] = table[:, :256:step] + each[:, bit : bit + 1]
    return table


def _by_bit(gathered: Floats) -> Floats:
    """The reverse: what was gathered by the value of a byte, for each bit summed over the values that have it."""
    each = np.empty((len(gathered), 8))
    for bit in range(8):
        half = 128 >> bit
        off, on = gathered[:, :half], gathered[:, half : 2 * half]
        each[:, bit] = on.sum(axis=1)
        gathered = off + on
    return each.ravel()
