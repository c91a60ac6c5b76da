"""Certificates as plain JSON: what a stranger needs to check a gap without this package."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.channels import Channel, StackedChannel
from ibukit.channels.plain_numbers import numbers_of, pieces
from ibukit.domain.efficiency import to_seen
from ibukit.domain.status import Status
from ibukit.errors import NotCertified
from ibukit.estimate.exports import plain_labels
from ibukit.tally.part import has_likelihood
from ibukit.tally.tally import Tally

FORMAT = "ibukit certificate 1"
CLAIM = (
    "no distribution has a mean log-likelihood above that of this one by more than gap, "
    "in nats per report"
)


def certificate_of(distribution: Floats, tally: Tally | None, status: Status) -> dict[str, Any]:
    """Return the certificate; `Estimate.certificate` documents it."""
    if tally is None:
        raise NotCertified(
            "the certificate needs the reports, but this estimate has no tally: take one that "
            "still has its tally, as mle(tally) returns it"
        )
    if status is Status.OFF_SIMPLEX:
        raise NotCertified(
            "the estimate is not a distribution, so nothing bounds its likelihood: take "
            'inv(tally, post="project") or mle(tally)'
        )
    if not all(has_likelihood(part.mechanism) for part in tally.parts):
        raise NotCertified("sums of bits have no likelihood to bound: tally the reports themselves")
    theta = to_seen(distribution, tally.efficiency)
    parts, channels = _parts_of(tally)
    starts = tuple(np.cumsum([channel.size for channel in channels])[:-1].tolist())
    whole = channels[0] if len(channels) == 1 else StackedChannel(tuple(channels), tally.k, starts)
    counts = np.concatenate([part["counts"] for part in parts])
    # The gap is computed from the numbers as they are written, where a matrix may be rounded.
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
        "labels": plain_labels(tally.alphabet),
        "distribution": theta.tolist(),
        "parts": [{**part, "counts": part["counts"].tolist()} for part in parts],
    }


def _parts_of(tally: Tally) -> tuple[list[dict[str, Any]], list[Channel]]:
    """Return the parts as they are written, with their counts, and the channels they state."""
    parts, channels = [], []
    for part in tally.parts:
        for reports, channel in pieces(part.channel):
            described = {"mechanism": _in_words(part.mechanism), **numbers_of(channel)}
            parts.append({**described, "counts": part.counts[reports]})
            channels.append(channel)
    return parts, channels


def _in_words(mechanism: Any) -> str:
    """Return the call that makes a mechanism, shortened if it holds a matrix."""
    text = repr(mechanism)
    return text if len(text) <= 500 else f"{type(mechanism).__name__}(...)"
