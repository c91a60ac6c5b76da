"""Null spaces of a channel's columns: the differences of distributions that reports cannot see.

Columns come in blocks, so that the matrix need not fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import Channel, facts
from ibukit.fisher_information import channel_blocks
from ibukit.tally.tally import Tally

# A matrix with at most this number of columns for each row is decomposed as it is.
MAX_COLUMNS = 4
# Factor by which the residual of a readable null vector may exceed that of the best one.
WITNESS_RESIDUAL_FACTOR = 100.0
# Entries above this share of the largest count as equally large.
EQUAL_SIZE_SHARE = 0.999


@dataclass(frozen=True)
class Span:
    """Rank, singular values and null space of the rows of a matrix of shape (rows, any)."""

    rank: int
    singular_values: Floats
    """Singular values in descending order, one for each row."""
    floor: float
    """Singular values at or below this are rounding."""
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
    # The usual bound on the rounding of singular values.
    floor = float(values[0]) * max(compressed.shape) * float(np.finfo(float).eps)
    rank = int((values > floor).sum())
    return Span(rank, values, floor, u[:, rank:], compressed)


def _compress(columns: Iterable[Floats], rows: int) -> Floats:
    held = np.empty((rows, 0))
    for block in columns:
        held = np.concatenate([held, block], axis=1)
        if held.shape[1] > MAX_COLUMNS * rows:
            # R^T of A^T = Q R has the same A A^T, hence the same null space and singular values.
            held = np.asarray(np.linalg.qr(held.T, mode="r")).T
    return held


def seen_columns(tally: Tally, secrets: Ints) -> Iterator[Floats]:
    """Yield the ones vector and the columns of the reports seen, each with the largest entry 1.

    Their rows belong to the given secrets. A vector w is orthogonal to all of them exactly if its
    sum is 0 and no report seen can tell w from 0.
    """
    yield np.ones((len(secrets), 1))
    for part in tally.parts:
        for _, channel in channel_blocks(part, len(secrets)):
            yield from scaled(_sharpest_columns(channel, secrets, tally.k))


def _sharpest_columns(channel: Channel, secrets: Ints, k: int) -> Floats:
    """Return columns that span, with ones, what the channel's columns span, but without the noise.

    Where the channel's columns are nearly equal, digits are lost with them, but not with bits and
    indicators.
    """
    if (bits := facts.as_bits(channel)) is not None:
        return np.asarray(
            np.unpackbits(bits.packed, axis=1, count=k)[:, secrets].T, dtype=np.float64
        )
    if (krr := facts.as_response(channel)) is not None:
        return np.asarray(secrets[:, None] == krr.reports, dtype=np.float64)
    return channel.rows(secrets)


def scaled(block: Floats) -> Iterator[Floats]:
    """Scale columns to a largest entry of 1, which changes no rank, and drop columns of zeros."""
    largest = block.max(axis=0)
    yield block[:, largest > 0] / largest[largest > 0]


def witness(spanned: Span) -> Floats:
    """Return one w with w A = 0 and sum |w| = 2, with few nonzeros if that costs no accuracy.

    Sparse candidates come from a pivoted QR: a dependent row is written as a combination of
    independent ones. A vector of the orthonormal null basis would mix all secrets.
    """
    best = spanned.null[:, -1]
    most = WITNESS_RESIDUAL_FACTOR * max(_residual(spanned, best), spanned.floor)
    candidates = [w for w in _sparse_null_vectors(spanned) if _residual(spanned, w) <= most]
    chosen = min(candidates, key=np.count_nonzero, default=best)
    sizes = np.abs(chosen)
    # Of entries that are equally large up to rounding the first is positive, on every machine.
    sign = np.sign(chosen[np.argmax(sizes >= EQUAL_SIZE_SHARE * sizes.max())])
    # Adding 0 removes negative zeros.
    return 2 * sign * chosen / sizes.sum() + 0.0


def _residual(spanned: Span, w: Floats) -> float:
    return float(np.linalg.norm(w @ spanned.compressed) / np.linalg.norm(w))


def _sparse_null_vectors(spanned: Span) -> Iterator[Floats]:
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
