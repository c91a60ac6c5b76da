"""Normalise inputs (Dask collections, .npy files, arrays) to blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ibukit._ground.dask_tasks import check_client
from ibukit._ground.extras import missing_extra
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.base import Mechanism
from ibukit.scale._blocks import blocks_of

if TYPE_CHECKING:
    from distributed import Client

ACCEPTED = "a Dask collection, Delayed objects, paths of .npy files, or arrays"


def blocks_and_client(
    rows: Any, client: Any, mechanism: Mechanism, packed: bool
) -> tuple[Sequence[Any], Client | None]:
    """Return blocks of rows and the client whose workers compute them, None for this machine."""
    if client is not None:
        check_client(client)
    if _is_dask(rows):
        return _delayed(rows, mechanism, packed), _default_client() if client is None else client
    # A single path or array is treated as a list of one.
    each = [rows] if isinstance(rows, (str, os.PathLike, np.ndarray)) else rows
    if not isinstance(each, (list, tuple)):
        raise TypeError(f"rows must be {ACCEPTED}, got {type(rows).__name__}")
    if each and all(_is_dask(one) for one in each):
        return [
            block for one in each for block in _delayed(one, mechanism, packed)
        ], client or _default_client()
    if all(isinstance(one, (str, os.PathLike)) for one in each):
        # With a client the workers read the files, so the paths must be valid on their machines.
        files = [block for one in each for block in blocks_of(Path(one))]
        return (files, None) if client is None else ([_read(block) for block in files], client)
    if not all(isinstance(one, np.ndarray) for one in each):
        raise TypeError(
            f"rows must be {ACCEPTED}, all of a kind; mechanism.tally(rows) takes reports in a list"
        )
    if client is not None:
        raise TypeError(
            "rows must not be arrays of this machine where client is given: their workers' copies "
            "could not be restored; save them as .npy files that the workers can read, or leave "
            "client out"
        )
    return [block for one in each for block in blocks_of(one)], None


def _default_client() -> Client:
    try:
        from distributed import default_client
    except ImportError:
        raise missing_extra("a Dask collection", "dask.distributed") from None
    try:
        found: Client = default_client()
    except ValueError:
        raise ValueError(
            "client must be given for Dask collections where none was made before: "
            "dask.distributed.Client() starts workers on this machine, Client(address) finds "
            "those of a cluster"
        ) from None
    return found


def _is_dask(thing: Any) -> bool:
    return not isinstance(thing, type) and hasattr(thing, "__dask_graph__")


def _delayed(rows: Any, mechanism: Mechanism, packed: bool) -> list[Any]:
    """Return the partitions of a Dask collection as Delayed objects."""
    from dask.delayed import Delayed

    # A Delayed object claims to have every attribute, so it is recognised by its type first.
    if isinstance(rows, Delayed):
        return [rows]
    # A Dask Array of bits has one column for each bit, or for eight packed ones.
    if hasattr(rows, "rechunk") and mechanism.report_kind is ReportKind.BITS:
        width = -(-mechanism.k // 8) if packed else mechanism.k
        if rows.ndim != 2 or rows.shape[1] != width:
            raise AlphabetMismatch(
                f"rows must have shape (n, {width}), got a Dask Array of shape {rows.shape}"
            )
        # A report must not be cut into several chunks.
        rows = rows.rechunk({1: -1})
    parts = rows.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def _read(block: Any) -> Any:
    from dask import delayed

    return delayed(block.read, pure=False)()
