"""The information as a matrix of shape (k, k), and its inverse on the directions that keep the sum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpocon, dpotrf, dpotri

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit.channels import Channel
from ibukit.channels.partitioned import PartitionedChannel, spread, sum_arrays
from ibukit.errors import TooLarge
from ibukit.tally.tally import Tally, TallyPart

# order of the largest matrix that is inverted (0.8 GB), and of one whose eigenvectors are found (a
# minute of time)
MAX_SECRETS_INVERTED = 10_000
MAX_SECRETS_DECOMPOSED = 5000
MATRIX_ENTRIES_AT_ONCE = 2**24
# the same where reports are in partitions: a worker has little room beside its rows
ENTRIES_IN_A_PARTITION = 2**21
# eigenvalues below so much of the largest, times k, are rounding, and so are squared shares of
# their directions
FLAT_VALUE, FLAT_SHARE = 10 * float(np.finfo(float).eps), 1e-12
CLOSED_FORMS = (
    "; k-RR, also pooled, and one geometric mechanism on a line have a closed form at any size, and a plane of which "
    "every report was seen is solved without a matrix where its noise is narrow beside it"
)
# in multiples of what counts as flat: the condition number is an estimate, and a flat direction is
# not 0 but rounding
CONDITION_MARGIN = 100


def contrasts(k: int) -> Floats:
    """An orthonormal basis of the directions that keep the sum, {v : sum v = 0}, shape (k, k - 1)."""
    # the first column of the full QR of the ones vector is its direction
    return np.asarray(np.linalg.qr(np.ones((k, 1)), mode="complete")[0][:, 1:])


def observed_information(tally: Tally, theta: Floats) -> Floats:
    """J_xy = sum_z counts_z M_xz M_yz / (theta M)_z^2, the curvature of -L at theta, shape (k, k)."""
    lower = np.tril(_lower_information(tally, theta, centred=False))
    return np.asarray(lower + np.tril(lower, -1).T)


def root_weights(counts: Ints, p: Floats) -> Floats:
    """The square root of counts_z over p_z: times the columns of M, its square makes the information."""
    # not counts / p^2, which leaves the doubles where p is 1e-160
    if not (p > 0).all():
        raise ValueError(
            "estimate must give each report that was seen a positive probability, or its likelihood has no curvature "
            "and it no standard errors; take mle(tally)"
        )
    return np.asarray(np.sqrt(counts) / p)


def pieces_of(part: TallyPart, rows: int) -> Iterator[tuple[slice, Channel]]:
    """A part's channel in stretches of reports, with `rows` rows of bounded size in all, and which reports they are."""
    size, total = max(1, MATRIX_ENTRIES_AT_ONCE // rows), len(part.counts)
    if total <= size:
        yield slice(0, total), part.channel
        return
    for start in range(0, total, size):
        stretch = slice(start, min(start + size, total))
        yield stretch, part.mechanism.channel(part.reports[stretch])


def lower_covariance(tally: Tally, theta: Floats) -> Floats:
    """The lower triangle of Z (Z^T J Z)^-1 Z^T; inf in the rows and columns of what is not determined.

    With P = 1 - 1 1^T / k it is (P J P + s 1 1^T / k)^-1 - 1 1^T / (s k) for any s > 0: by Cholesky
    where no direction is flat, else from the eigenvectors.
    """
    k = tally.k
    refuse_if_too_large(k, "standard errors", CLOSED_FORMS)
    if k == 1:
        return np.zeros((1, 1))
    matrix, mean = _bordered(tally, theta)
    norm = _norm(matrix)
    factor, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    if failed or dpocon(factor, norm, uplo="L")[0] <= CONDITION_MARGIN * k * FLAT_VALUE:
        del matrix, factor
        return _without_flat_directions(tally, theta)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    inverse -= 1 / (mean * k)
    return np.asarray(inverse)


def variances_of_sums(tally: Tally, theta: Floats, weights: Floats) -> Floats:
    """W Z (Z^T J Z)^+ Z^T w for each row w; inf where w moves along a direction in which the likelihood is flat."""
    refuse_if_too_large(tally.k, "standard errors", CLOSED_FORMS)
    if tally.k == 1:
        return np.zeros(len(weights))
    centred = weights - weights.mean(axis=1, keepdims=True)
    matrix, _ = _bordered(tally, theta)
    norm = _norm(matrix)
    factor, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    if not failed and dpocon(factor, norm, uplo="L")[0] > CONDITION_MARGIN * tally.k * FLAT_VALUE:
        return np.asarray((solve_triangular(factor, centred.T, lower=True) ** 2).sum(axis=0))
    del matrix, factor
    values, vectors, flat = _directions(_bordered(tally, theta)[0])
    along = centred @ vectors
    lost = (along[:, flat] ** 2).sum(axis=1) > FLAT_SHARE * (centred**2).sum(axis=1)
    return np.where(lost, np.inf, (along[:, ~flat] ** 2) @ (1 / values[~flat]))


def refuse_if_too_large(k: int, what: str, instead: str = "") -> None:
    """Refuse what takes a matrix too large to invert, and say what to do instead."""
    if k > MAX_SECRETS_INVERTED:
        raise TooLarge(
            f"{what} would take a matrix of {k} x {k} numbers, {readable(8 * k * k)} bytes, and at most "
            f"{MAX_SECRETS_INVERTED} secrets are accepted; take a coarser alphabet{instead}"
        )


def _bordered(tally: Tally, theta: Floats) -> tuple[Floats, float]:
    """The lower triangle of P J P + s 1 1^T / k and s, the mean of its other eigenvalues."""
    matrix = _lower_information(tally, theta, centred=True)
    mean = float(np.trace(matrix)) / (tally.k - 1) or 1.0
    matrix += mean / tally.k
    return matrix, mean


def _directions(matrix: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Eigenvalues and eigenvectors of a bordered information, and which of them are flat."""
    k = len(matrix)
    if k > MAX_SECRETS_DECOMPOSED:
        raise TooLarge(
            f"standard errors of {k} secrets: the reports leave directions undetermined, which can be told from the "
            f"others up to {MAX_SECRETS_DECOMPOSED} secrets; take a coarser alphabet, or one of the secrets with mass"
        )
    values, vectors = eigh(matrix, overwrite_a=True, driver="evd")
    return values, vectors, values <= FLAT_VALUE * k * values[-1]


def _without_flat_directions(tally: Tally, theta: Floats) -> Floats:
    matrix, mean = _bordered(tally, theta)
    values, vectors, flat = _directions(matrix)
    undetermined = (vectors[:, flat] ** 2).sum(axis=1) >= FLAT_SHARE
    half = vectors[:, ~flat] / np.sqrt(values[~flat])
    found = half @ half.T - 1 / (mean * tally.k)
    found[undetermined] = found[:, undetermined] = np.inf
    return np.asarray(found)


def _lower_information(tally: Tally, theta: Floats, centred: bool) -> Floats:
    """The lower triangle of J, or of P J P: the columns' means, which under strong noise are nearly all, go first."""
    k = tally.k
    total = np.zeros((k, k), order="F")
    for part in tally.parts:
        if isinstance(part.channel, PartitionedChannel):
            total += part.channel.total(_lower_there, (theta, centred), part.counts, sum_arrays)
            continue
        for stretch, channel in pieces_of(part, k):
            total = _with_reports(total, channel, part.counts[stretch], theta, centred)
    return np.asarray(total)


def _lower_there(channel: Channel, shared: tuple[Floats, bool], weights: Ints | int) -> Floats:
    """That of one partition, computed where its reports are: k x k numbers go back, whatever their number."""
    total = np.zeros((channel.k, channel.k), order="F")
    size, counts = max(1, ENTRIES_IN_A_PARTITION // channel.k), spread(weights, channel)
    for start in range(0, channel.size, size):
        stretch = slice(start, min(start + size, channel.size))
        total = _with_reports(total, channel.take(stretch), counts[stretch], *shared)
    return total


def _with_reports(
    total: Floats, channel: Channel, counts: Ints, theta: Floats, centred: bool
) -> Floats:
    """The sum with what a channel's reports add to it, in the same memory."""
    columns = channel.rows(np.arange(channel.k))
    weights = root_weights(counts, theta @ columns)
    # of C order, so that its transpose is what BLAS reads
    scaled = np.ascontiguousarray(
        (columns - columns.mean(axis=0) if centred else columns) * weights
    )
    return np.asarray(dsyrk(1.0, scaled.T, beta=1.0, c=total, trans=1, lower=1, overwrite_c=1))


def _norm(lower: Floats) -> float:
    """The largest sum of absolute values in a column of a symmetric matrix."""
    sums = np.zeros(len(lower))
    for x in range(len(lower)):
        column = np.abs(lower[x:, x])
        sums[x] += column.sum()
        sums[x + 1 :] += column[1:]
    return float(sums.max())
