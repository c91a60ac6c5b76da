"""The tally of rows that need not fit in memory."""

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
from ibukit.scale._files import count_here, keep_here
from ibukit.scale._inputs import sources
from ibukit.scale._worker_rows import count_there, keep_there
from ibukit.tally.tally import Tally, TallyPart

if TYPE_CHECKING:
    from distributed import Client

# possible reports up to which counting them is what reduces them: a quarter of a gigabyte
MAX_COUNTED = 2**24


class SpreadPart(TallyPart):
    """Reports of one mechanism that lie in partitions, each counted once."""

    mergeable: ClassVar[bool] = False

    def __init__(
        self, mechanism: Mechanism, channel: PartitionedChannel, log_offset: float
    ) -> None:
        # as many counts as reports, in the memory of one
        ones = np.broadcast_to(np.int64(1), channel.size)
        self._keep(
            mechanism=mechanism, counts=ones, channel=channel, log_offset=log_offset, n=channel.size
        )

    @property
    def reports(self) -> NDArray[Any]:
        """They stay where they are."""
        raise TooLarge(
            f"the {self.n} reports of this tally are not in memory, and this needs them one by "
            "one; mle, gap and what "
            "else sums over the reports does not. mechanism.tally(rows) makes the tally in memory"
        )

    @property
    @override
    def log_scale(self) -> Floats:
        if self.log_offset:
            raise TooLarge(
                f"the factors of the {self.n} reports of this tally are not in memory, only their "
                "product"
            )
        return np.broadcast_to(0.0, self.counts.shape)

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("mechanism", "channel", "log_offset", "n")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Ones take no memory, but would in a pickle."""
        SpreadPart.__init__(self, state["mechanism"], state["channel"], state["log_offset"])


def tally(
    rows: Any, mechanism: Mechanism, client: Client | None = None, packed: bool = False
) -> Tally:
    """The tally of reports that need not fit in memory, on disk or on Dask workers.

    Where there are few possible reports (at most :math:`2^{24}`, as k-RR's or a line's are), or
    where they are integers on an unbounded alphabet, they are counted where they lie, and the tally
    is one like any other. Where counting reduces nothing, as with rows of bits, they are checked,
    packed, and stay in partitions. The tally then has the same likelihood, and ``ik.mle(tally)``
    the same certificate: each pass over the rows is a sum in each partition, and the sums are added
    in the order of the partitions.

    Parameters
    ----------
    rows : Dask Array, DataFrame, Bag or Delayed, sequence of Delayed, path, array, or sequence of paths or of arrays
        Reports as ``mechanism.tally`` takes them. A Dask Array is cut along its rows only, a
        DataFrame has a column for each bit, an item of a Bag is a report, and a Delayed is an array
        of reports. Dask must be able to compute a partition again, to the same reports, if its
        worker is lost. Paths are .npy files, which are mapped: a block of them is in memory at a
        time.
    mechanism : Mechanism
        What made all of the reports.
    client : distributed.Client, optional
        Whose workers keep the rows; paths are then read by the workers. Without one, Dask
        collections go to the client that was made last, and paths and arrays stay on this machine.
    packed : bool
        Whether rows of bits are packed already, as ``numpy.packbits(rows, axis=1)`` packs them.
        From .npy files they are read eight times faster then, and are not packed anew in each pass.

    Returns
    -------
    Tally
        `mle`, `gap` and pooling by ``+`` take it as they take any other. Of what else there is,
        some needs a number for each report (`ibu`: up to :math:`2^{27}` of them), and some the
        reports themselves, which raises TooLarge.

    Raises
    ------
    AlphabetMismatch
        If a report is not one of the mechanism's.
    ImpossibleReport
        If no secret can produce a report.
    DataChanged
        In a later pass, if a partition that was computed again, or a file, is not what it was.
    TypeError
        If `rows` is none of these, `mechanism` is no mechanism or `client` no client.
    ValueError
        If there is no report, no client for a Dask collection, a file that is no .npy file, or
        `packed` is True and reports are not rows of bits.

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
        raise ValueError(f"packed must be False for {mechanism}, whose reports are no rows of bits")
    blocks, chosen = sources(rows, client, mechanism, packed)
    found = None
    if blocks:
        few = not mechanism.alphabet.bounded or getattr(mechanism, "m", math.inf) <= MAX_COUNTED
        found = (_counted if few else _kept)(mechanism, blocks, packed, chosen)
    if found is None:
        raise ValueError("rows must hold at least one report, got none")
    return found


def _counted(
    mechanism: Mechanism, blocks: Sequence[Any], packed: bool, client: Client | None
) -> Tally | None:
    if client is None:
        return count_here(mechanism, blocks, packed)
    return count_there(client, mechanism, blocks, packed)


def _kept(
    mechanism: Mechanism, blocks: Sequence[Any], packed: bool, client: Client | None
) -> Tally | None:
    partitions: Partitions
    if client is None:
        partitions, log_offset = keep_here(mechanism, blocks, packed)
    else:
        partitions, log_offset = keep_there(client, mechanism, blocks, packed)
    if not partitions.sizes:
        return None
    return Tally((SpreadPart(mechanism, PartitionedChannel(partitions), log_offset),))
