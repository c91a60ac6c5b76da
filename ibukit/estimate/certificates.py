"""Certificates as plain JSON: what a stranger needs to check a gap without this package."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import (
    BitChannel,
    Channel,
    DenseChannel,
    LineChannel,
    PlaneChannel,
    ResponseChannel,
    StackedChannel,
)
from ibukit.channels.plane import FAR
from ibukit.domain.efficiency import to_seen
from ibukit.domain.status import Status
from ibukit.errors import NotCertified, TooLarge
from ibukit.estimate.exports import plain_labels
from ibukit.tally.part import has_likelihood

if TYPE_CHECKING:
    from ibukit.estimate.estimate import Estimate
    from ibukit.tally.tally import Tally

FORMAT = "ibukit certificate 1"
CLAIM = (
    "no distribution has a mean log-likelihood above that of this one by more than gap, "
    "in nats per report"
)
# Entries of matrices, and bits, that are written out: some 20 MB of text.
MAX_ENTRIES = 2**20


def certificate_of(estimate: Estimate) -> dict[str, Any]:
    """Return the certificate; `Estimate.certificate` documents it."""
    tally = estimate.tally
    if tally is None:
        raise NotCertified(
            "the certificate is about reports, and the estimate has no tally: keep it, as mle does"
        )
    if estimate.status is Status.OFF_SIMPLEX:
        raise NotCertified(
            "the estimate is not a distribution, so nothing bounds its likelihood: take "
            'inv(tally, post="project") or mle(tally)'
        )
    if not all(has_likelihood(part.mechanism) for part in tally.parts):
        raise NotCertified("sums of bits have no likelihood to bound: tally the reports themselves")
    theta = to_seen(estimate.distribution, tally.efficiency)
    parts, channels = _parts_of(tally)
    starts = tuple(np.cumsum([channel.size for channel in channels])[:-1].tolist())
    whole = channels[0] if len(channels) == 1 else StackedChannel(tuple(channels), tally.k, starts)
    counts = np.concatenate([part["counts"] for part in parts])
    # The gap is that of the numbers that are written, in which a matrix may be rounded.
    gap = whole.certificate(theta, counts, tally.n)[1]
    if not gap < math.inf:
        raise NotCertified(
            "the gap is infinite: the distribution gives a report that was seen probability 0"
        )
    return {
        "format": FORMAT,
        "claim": CLAIM,
        "gap": gap,
        "n": tally.n,
        "distribution_of": "secrets" if tally.efficiency is None else "secrets of reports seen",
        "labels": plain_labels(estimate.alphabet),
        "distribution": theta.tolist(),
        "parts": [{**part, "counts": part["counts"].tolist()} for part in parts],
    }


def _parts_of(tally: Tally) -> tuple[list[dict[str, Any]], list[Channel]]:
    """Return the parts as they are written, with their counts, and the channels they state."""
    parts, channels = [], []
    for part in tally.parts:
        for reports, channel in _pieces(part.channel):
            described = {"mechanism": _in_words(part.mechanism), **_numbers_of(channel)}
            parts.append({**described, "counts": part.counts[reports]})
            channels.append(channel)
    return parts, channels


def _in_words(mechanism: Any) -> str:
    """Return the call that makes a mechanism, shortened if it holds a matrix."""
    text = repr(mechanism)
    return text if len(text) <= 500 else f"{type(mechanism).__name__}(...)"


def _pieces(channel: Channel) -> list[tuple[slice | Ints, Channel]]:
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


def _numbers_of(channel: Channel) -> dict[str, Any]:
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
            f"a certificate would write out {channel.k} x {channel.size} entries, at most "
            f"{MAX_ENTRIES}; fewer distinct reports, or a mechanism with a formula "
            "(k-RR, geometric noise), are shorter"
        )
