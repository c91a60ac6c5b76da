"""Which differences of distributions the reports can see: null spaces of a channel's columns, in stretches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import Channel, facts
from ibukit.fisher_information import channel_blocks
from ibukit.tally.tally import Tally

# order of the largest matrix that is decomposed (a minute of time, a fifth of a gigabyte)
MAX_SECRETS_DECOMPOSED = 5000
# in multiples of the rows, up to which a matrix is decomposed as it is
MAX_COLUMNS = 4
# what a readable null vector may lose against the best one
WITNESS_SLACK = 100.0
# of the largest: entries from here on count as equally large
AS_LARGE = 0.999


@dataclass(frozen=True)
class Span:
    """What a matrix of shape (rows, any) says about combinations w of its rows: w A = 0 or not."""

    rank: int
    singular_values: Floats
    """In descending order, one for each row."""
    floor: float
    """Singular values below are rounding."""
    null: Floats
    """Orthonormal basis of {w : w A = 0}, shape (rows, rows - rank)."""
    compressed: Floats
    """A matrix with the same span and singular values and few columns."""


def span(columns: Iterable[Floats], rows: int) -> Span:
    """Decompose a matrix that comes as blocks of columns, each of shape (rows, c)."""
    compressed = _compress(columns, rows)
    u, s, _ = np.linalg.svd(compressed, full_matrices=True)
    values = np.zeros(rows)
    values[: len(s)] = s
    floor = float(values[0]) * max(compressed.shape) * float(np.finfo(float).eps)
    rank = int((values > floor).sum())
    return Span(rank, values, floor, u[:, rank:], compressed)


def _compress(columns: Iterable[Floats], rows: int) -> Floats:
    held = np.empty((rows, 0))
    for block in columns:
        held = np.concatenate([held, block], axis=1)
        if held.shape[1] > MAX_COLUMNS * rows:
            # the same A A^T, hence the same null space and singular values
            held = np.asarray(np.linalg.qr(held.T, mode="r")).T
    return held


def seen_columns(tally: Tally, secrets: Ints) -> Iterator[Floats]:
    """The ones vector, then the columns of the reports seen, each with its largest entry 1; rows of given secrets.

    w is orthogonal to all of them exactly if it keeps the sum and no report seen can tell w from 0.
    """
    yield np.ones((len(secrets), 1))
    for part in tally.parts:
        for _, channel in channel_blocks(part, len(secrets)):
            yield from scaled(_simplest(channel, secrets, tally.k))


def _simplest(channel: Channel, secrets: Ints, k: int) -> Floats:
    """Columns that span, together with ones, what the channel's span: sharp ones where noise would blur them."""
    if (bits := facts.as_bits(channel)) is not None:
        return np.asarray(
            np.unpackbits(bits.packed, axis=1, count=k)[:, secrets].T, dtype=np.float64
        )
    if (krr := facts.as_response(channel)) is not None:
        return np.asarray(secrets[:, None] == krr.reports, dtype=np.float64)
    return channel.rows(secrets)


def scaled(block: Floats) -> Iterator[Floats]:
    """The columns with their largest entry 1: a factor of a report changes no rank; columns of zeros are left out."""
    largest = block.max(axis=0)
    yield block[:, largest > 0] / largest[largest > 0]


def witness(spanned: Span) -> Floats:
    """One w with w A = 0 and sum |w| = 2, with few entries where that costs no accuracy.

    The first is what a pivoted QR gives: a dependent row written by independent ones. A vector of
    the orthonormal null basis mixes everything with everything.
    """
    best = spanned.null[:, -1]
    most = WITNESS_SLACK * max(_residual(spanned, best), spanned.floor)
    candidates = [w for w in _sparse(spanned) if _residual(spanned, w) <= most]
    chosen = min(candidates, key=np.count_nonzero, default=best)
    sizes = np.abs(chosen)
    # of several that are equally large but for rounding the first is positive, on every machine
    sign = np.sign(chosen[np.argmax(sizes >= AS_LARGE * sizes.max())])
    return np.asarray(2 * sign * chosen / sizes.sum() + 0.0)  # no negative zeros


def _residual(spanned: Span, w: Floats) -> float:
    return float(np.linalg.norm(w @ spanned.compressed) / np.linalg.norm(w))


def _sparse(spanned: Span) -> Iterator[Floats]:
    r = spanned.rank
    _, upper, order = qr(spanned.compressed.T, mode="economic", pivoting=True)
    if abs(upper[r - 1, r - 1]) == 0:
        return
    combinations = -solve_triangular(upper[:r, :r], upper[:r, r:])
    for column, dependent in zip(combinations.T, order[r:], strict=True):
        w = np.zeros(len(order))
        w[order[:r]] = np.where(
            np.abs(column) > 1e-12 * max(1.0, np.abs(column).max()), column, 0.0
        )
        w[dependent] = 1
        yield w
