"""Tally of rows that need not fit in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels.partitioned import PartitionedChannel, Partitions
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import TooLarge
from ibukit.mechanisms.base import Mechanism
from ibukit.scale._files import count_locally, keep_locally
from ibukit.scale._inputs import blocks_and_client
from ibukit.scale._worker_rows import count_on_workers, keep_on_workers
from ibukit.tally.tally import Tally, TallyPart

if TYPE_CHECKING:
    from distributed import Client

# Largest number of possible reports that are counted: the counts then take at most 256 MB. Beyond
# it the reports themselves are kept in partitions.
MAX_COUNTED_REPORTS = 2**24


class PartitionedPart(TallyPart):
    """Reports of one mechanism that lie in partitions, each counted once."""

    mergeable: ClassVar[bool] = False

    def __init__(
        self, mechanism: Mechanism, channel: PartitionedChannel, log_offset: float
    ) -> None:
        # A broadcast array of ones has a count for each report, but takes the memory of one number.
        ones = np.broadcast_to(np.int64(1), channel.size)
        self._keep(
            mechanism=mechanism, counts=ones, channel=channel, log_offset=log_offset, n=channel.size
        )

    @property
    def reports(self) -> NDArray[Any]:
        """Raise TooLarge: the reports stay in their partitions."""
        raise TooLarge(
            f"the {self.n} reports of this tally are not in memory, and this needs them one by "
            "one, as mle, gap and other sums over the reports do not; mechanism.tally(rows) makes "
            "the tally in memory"
        )

    @property
    @override
    def log_scale(self) -> Floats:
        # Only the sum of the logarithms is kept. If it is 0, all factors are 1.
        if self.log_offset:
            raise TooLarge(
                f"the {self.n} reports of this tally are not in memory, and this needs the "
                "probability of each: take mechanism.tally(rows), for which a random part of the "
                "rows will do if all are too many"
            )
        return np.broadcast_to(0.0, self.counts.shape)

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("mechanism", "channel", "log_offset", "n")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the part; the counts are made again, because a pickle would hold all of them."""
        PartitionedPart.__init__(self, state["mechanism"], state["channel"], state["log_offset"])


def tally(
    rows: Any, mechanism: Mechanism, client: Client | None = None, packed: bool = False
) -> Tally:
    """Tally reports that need not fit in memory, on disk or on Dask workers.

    If there are few possible reports (at most :math:`2^{24}`, as under k-RR or on a line), or if
    they are integers on an unbounded alphabet, each partition is counted, and the tally is like any
    other. If counting reduces nothing, as with rows of bits, the reports are checked, packed, and
    stay in partitions. The tally then has the same likelihood, and ``ik.mle(tally)`` the same
    certificate: each pass over the rows is a sum in each partition, and the sums are added in the
    order of the partitions.

    Parameters
    ----------
    rows : Dask collection, sequence of Delayed, path, array, or sequence of paths or of arrays
        Reports as ``mechanism.tally`` takes them. A Dask Array is cut along its rows only, a
        DataFrame has a column for each bit, an item of a Bag is a report, and a Delayed is an array
        of reports. Dask must be able to compute a partition again, with the same reports, if its
        worker is lost. Paths are those of .npy files, which are mapped, so that only one block of
        them at a time is in memory.
    mechanism : Mechanism
        The mechanism that made all of the reports.
    client : distributed.Client, optional
        The client whose workers keep the rows and read the paths. Without one, Dask
        collections go to the client that was made last, and paths and arrays stay on this machine.
    packed : bool
        Whether rows of bits are packed already, as ``numpy.packbits(rows, axis=1)`` packs them.
        From .npy files they are then read eight times faster, and are not packed again in each
        pass.

    Returns
    -------
    Tally
        `mle`, `gap` and pooling by ``+`` take it as they take any other tally. Some other functions
        need a number for each report (`ibu` does, for up to :math:`2^{27}` reports); those that
        need the reports themselves raise TooLarge.

    Raises
    ------
    AlphabetMismatch
        If a report is not one of the mechanism's.
    ImpossibleReport
        If no secret can produce a report.
    DataChanged
        In a later pass, if a partition that was computed again, or a file, differs from what it
        was.
    FileNotFoundError
        If a path is not that of a file.
    TypeError
        If `rows`, `mechanism` or `client` is of another type.
    ValueError
        If there is no report, if there is no client for a Dask collection, if a file is not a .npy
        file, or if `packed` is True and reports are not rows of bits.

    Examples
    --------
    Rows that are mapped, not loaded:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np, ibukit as ik
    >>> mechanism = ik.Rappor(40, epsilon=4.0)
    >>> reports = mechanism.randomize(np.repeat([3, 5], 2000), np.random.default_rng(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "reports.npy")
    ...     np.save(path, np.packbits(reports, axis=1))
    ...     estimate = ik.mle(tally([path], mechanism, packed=True))
    >>> estimate.distribution[[3, 5]].round(1), estimate.gap < 1e-9
    (array([0.5, 0.5]), True)
    """
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a mechanism, got {mechanism!r}")
    if arguments.flag("packed", packed) and mechanism.report_kind is not ReportKind.BITS:
        raise ValueError(f"packed must be False for {mechanism}: its reports are not rows of bits")
    # The result is counted if there are few possible reports, and kept in partitions otherwise.
    blocks, chosen = blocks_and_client(rows, client, mechanism, packed)
    result = None
    if blocks:
        few = (
            not mechanism.alphabet.bounded
            or getattr(mechanism, "m", math.inf) <= MAX_COUNTED_REPORTS
        )
        result = (_count if few else _keep)(mechanism, blocks, packed, chosen)
    if result is None:
        raise ValueError("rows must hold at least one report, got none")
    return result


def _count(
    mechanism: Mechanism, blocks: Sequence[Any], packed: bool, client: Client | None
) -> Tally | None:
    if client is None:
        return count_locally(mechanism, blocks, packed)
    return count_on_workers(client, mechanism, blocks, packed)


def _keep(
    mechanism: Mechanism, blocks: Sequence[Any], packed: bool, client: Client | None
) -> Tally | None:
    # The rows stay in their files or on the workers; only sizes, hashes and offsets come back.
    partitions: Partitions
    if client is None:
        partitions, log_offset = keep_locally(mechanism, blocks, packed)
    else:
        partitions, log_offset = keep_on_workers(client, mechanism, blocks, packed)
    if not partitions.sizes:
        return None
    return Tally((PartitionedPart(mechanism, PartitionedChannel(partitions), log_offset),))
