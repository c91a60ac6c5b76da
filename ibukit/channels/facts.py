"""Exact-type checks that license theorems about a channel.

A shortcut may be inherited: whatever it finds is certified by `forward` and `adjoint`. A proof may
not be inherited, because a subclass of a channel may give its fields another meaning. So each
function answers for the exact type, and only where the numbers fulfil what its theorem asks for; it
returns the channel, or None.
"""

from __future__ import annotations

from ibukit.channels.base import Channel
from ibukit.channels.bits import BitChannel
from ibukit.channels.dense import DenseChannel
from ibukit.channels.line import LineChannel
from ibukit.channels.plane import PlaneChannel
from ibukit.channels.response import ResponseChannel


def as_response(channel: Channel) -> ResponseChannel | None:
    """The channel if it is k-RR with each report likeliest from its own secret.

    Its k columns are independent, and any of them has its largest entry at its own secret.
    """
    if type(channel) is not ResponseChannel or not channel.diagonal > channel.off >= 0:
        return None
    return channel


def as_line(channel: Channel) -> LineChannel | None:
    """The channel if its entries are scale_z decay^|x - z| with 0 < decay < 1.

    The inverse of such a matrix is tridiagonal.
    """
    return channel if type(channel) is LineChannel and 0 < channel.decay < 1 else None


def as_plane(channel: Channel) -> PlaneChannel | None:
    """The channel if it is planar, all k reports were seen and none has a column of its own.

    Its matrix is square then.
    """
    if type(channel) is not PlaneChannel or channel.size != channel.k or channel.columns.size:
        return None
    return channel


def as_planar(channel: Channel) -> PlaneChannel | None:
    """The channel if it is planar, so that its kernels and columns give the normal equations."""
    return channel if type(channel) is PlaneChannel else None


def as_bits(channel: Channel) -> BitChannel | None:
    """The channel if it has rows of bits and a set bit changes the probability of a row."""
    return channel if type(channel) is BitChannel and channel.one != channel.zero else None


def as_dense(channel: Channel) -> DenseChannel | None:
    """The channel if its columns are a matrix, whose zeros can be read."""
    return channel if type(channel) is DenseChannel else None
