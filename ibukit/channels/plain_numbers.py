"""Channels as plain numbers: what a certificate states of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels.base import Channel
from ibukit.channels.bits import BitChannel
from ibukit.channels.dense import DenseChannel
from ibukit.channels.line import LineChannel
from ibukit.channels.plane import FAR, PlaneChannel
from ibukit.channels.response import ResponseChannel
from ibukit.errors import TooLarge

# Entries of matrices, and bits, that are written out: some 20 MB of text.
MAX_ENTRIES = 2**20


def pieces(channel: Channel) -> list[tuple[slice | Ints, Channel]]:
    """Return a channel as pieces that can be written down, with the reports of each."""
    if type(channel) is PlaneChannel:
        near, far = np.flatnonzero(channel.kinds != FAR), np.flatnonzero(channel.kinds == FAR)
        # Reports far from the grid have columns of their own.
        return [(near, _near(channel, near))] + (
            [(far, DenseChannel(channel.columns))] if len(far) else []
        )
    if type(channel) in (BitChannel, ResponseChannel, LineChannel, DenseChannel):
        return [(slice(None), channel)]
    _refuse_if_large(channel)
    return [(slice(None), DenseChannel(channel.rows(np.arange(channel.k))))]


def _near(channel: PlaneChannel, reports: Ints) -> PlaneChannel:
    return PlaneChannel(
        channel.shape,
        channel.factor,
        channel.kernels,
        channel.kinds[reports],
        channel.cells[reports],
        channel.scale[reports],
        np.empty((channel.k, 0)),
    )


def numbers_of(channel: Channel) -> dict[str, Any]:
    """Return the kind of a channel and the numbers of its formula."""
    if isinstance(channel, ResponseChannel):
        return {
            "kind": "own or other",
            "own": channel.diagonal,
            "other": channel.off,
            "reports": channel.reports.tolist(),
        }
    if isinstance(channel, LineChannel):
        return {
            "kind": "line",
            "decay": channel.decay,
            "reports": channel.positions.tolist(),
            "scale": channel.scale.tolist(),
        }
    if isinstance(channel, PlaneChannel):
        return {
            "kind": "plane",
            "width": channel.shape[1],
            "factor": channel.factor.tolist(),
            "kernels": channel.kernels.tolist(),
            "kinds": channel.kinds.tolist(),
            "reports": channel.cells.tolist(),
            "scale": channel.scale.tolist(),
        }
    _refuse_if_large(channel)
    if isinstance(channel, BitChannel):
        rows = np.unpackbits(channel.packed, axis=1, count=channel.k)
        return {
            "kind": "bits",
            "one": channel.one,
            "zero": channel.zero,
            "reports": ["".join(map(str, row)) for row in rows.tolist()],
            "scale": channel.scale.tolist(),
        }
    assert isinstance(channel, DenseChannel)
    columns: Floats = channel.columns.T
    return {"kind": "matrix", "columns": columns.tolist()}


def _refuse_if_large(channel: Channel) -> None:
    if channel.k * channel.size > MAX_ENTRIES:
        raise TooLarge(
            f"a certificate would write out {channel.k} x {channel.size} entries, and at most "
            f"{MAX_ENTRIES} are accepted; it is shorter for fewer distinct reports, or under a "
            "mechanism with a formula (k-RR, geometric noise)"
        )
