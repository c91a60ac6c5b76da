"""Observed information as a (k, k) matrix, and its inverse on directions that keep the sum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpocon, dpotrf, dpotri

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit._ground.limits import max_factorised_order
from ibukit.channels import Channel
from ibukit.channels.partitioned import PartitionedChannel, broadcast_weights, sum_arrays
from ibukit.errors import TooLarge
from ibukit.tally.tally import Tally, TallyPart

# Order of the largest matrix that is inverted: it takes 0.8 GB.
MAX_SECRETS_INVERTED = 10_000
MATRIX_ENTRIES_AT_ONCE = 2**24
# Limit inside a partition, where a worker has little memory besides its rows.
PARTITION_ENTRIES_AT_ONCE = 2**21
# An eigenvalue below the first number times k times the largest one is rounding: its direction is
# flat. A secret or sum depends on flat directions if their squared share exceeds the second number.
FLAT_EIGENVALUE, FLAT_SHARE = 10 * float(np.finfo(float).eps), 1e-12
CLOSED_FORMS = (
    "; k-RR, also pooled, and one geometric mechanism on a line have a closed form at any size, "
    "and a plane of which every report was seen is solved without a matrix where its noise is "
    "narrow beside it"
)
# The reciprocal condition number is an estimate, and the eigenvalue of a flat direction is not 0
# but rounding: so the number must exceed a flat eigenvalue by this factor.
CONDITION_MARGIN = 100


def contrasts(k: int) -> Floats:
    """Orthonormal basis of the directions that keep the sum, {v : sum v = 0}, shape (k, k - 1)."""
    # The first column of the full QR of the ones vector is its direction. Draws and published
    # numbers depend on the basis, so it is not exchanged for another one.
    return np.linalg.qr(np.ones((k, 1)), mode="complete")[0][:, 1:]


def observed_information(tally: Tally, theta: Floats) -> Floats:
    """Information J_xy = sum_z counts_z M_xz M_yz / (theta M)_z^2, the curvature of -L, (k, k)."""
    lower = np.tril(_lower_information(tally, theta, centred=False))
    return lower + np.tril(lower, -1).T


def root_weights(counts: Ints, p: Floats) -> Floats:
    """Weights sqrt(counts_z) / p_z: J is the square of M times these."""
    # counts / p^2 would overflow for p near 1e-160.
    if not (p > 0).all():
        raise ValueError(
            "estimate must give each report that was seen a positive probability: otherwise the "
            "likelihood has no curvature there, and standard errors do not exist; take mle(tally)"
        )
    return np.sqrt(counts) / p


def channel_blocks(part: TallyPart, rows: int) -> Iterator[tuple[slice, Channel]]:
    """A part's channel in blocks of reports of bounded size, and the slice of each block.

    `rows` is the number of rows that a block will have.
    """
    size, total = max(1, MATRIX_ENTRIES_AT_ONCE // rows), len(part.counts)
    if total <= size:
        yield slice(0, total), part.channel
        return
    for start in range(0, total, size):
        stretch = slice(start, min(start + size, total))
        yield stretch, part.mechanism.channel(part.reports[stretch])


def lower_covariance(tally: Tally, theta: Floats) -> Floats:
    """Lower triangle of Z (Z^T J Z)^-1 Z^T; inf in the rows and columns of undetermined secrets.

    With P = 1 - 1 1^T / k it is (P J P + s 1 1^T / k)^-1 - 1 1^T / (s k) for any s > 0: by Cholesky
    if no direction is flat, otherwise from the eigenvectors.
    """
    k = tally.k
    refuse_if_too_large(k, "standard errors", CLOSED_FORMS)
    if k == 1:
        return np.zeros((1, 1))
    matrix, mean = _bordered(tally, theta)
    norm = _norm(matrix)
    factor, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    if failed or dpocon(factor, norm, uplo="L")[0] <= CONDITION_MARGIN * k * FLAT_EIGENVALUE:
        del matrix, factor
        return _without_flat_directions(tally, theta)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    inverse -= 1 / (mean * k)
    return inverse


def variances_of_sums(tally: Tally, theta: Floats, weights: Floats) -> Floats:
    """Variances W Z (Z^T J Z)^+ Z^T w for each row w; inf if the likelihood is flat along w."""
    refuse_if_too_large(tally.k, "standard errors", CLOSED_FORMS)
    if tally.k == 1:
        return np.zeros(len(weights))
    centred = weights - weights.mean(axis=1, keepdims=True)
    matrix, _ = _bordered(tally, theta)
    norm = _norm(matrix)
    factor, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    if (
        not failed
        and dpocon(factor, norm, uplo="L")[0] > CONDITION_MARGIN * tally.k * FLAT_EIGENVALUE
    ):
        return (solve_triangular(factor, centred.T, lower=True) ** 2).sum(axis=0)
    del matrix, factor
    values, vectors, flat = _directions(_bordered(tally, theta)[0])
    along = centred @ vectors
    lost = (along[:, flat] ** 2).sum(axis=1) > FLAT_SHARE * (centred**2).sum(axis=1)
    return np.where(lost, np.inf, (along[:, ~flat] ** 2) @ (1 / values[~flat]))


def pseudo_inverse(tally: Tally, theta: Floats) -> Floats:
    """Z (Z^T J Z)^+ Z^T, shape (k, k): the covariance without what moves along flat directions."""
    refuse_if_too_large(tally.k, "standard errors")
    matrix, mean = _bordered(tally, theta)
    values, vectors, flat = _directions(matrix)
    half = vectors[:, ~flat] / np.sqrt(values[~flat])
    return half @ half.T - 1 / (mean * tally.k)


def refuse_if_too_large(k: int, what: str, instead: str = "") -> None:
    """Raise TooLarge for a matrix too large to invert, and say what to do instead."""
    if k > MAX_SECRETS_INVERTED:
        raise TooLarge(
            f"{what} would take a matrix of {k} x {k} numbers, {readable(8 * k * k)} bytes, and at "
            f"most {MAX_SECRETS_INVERTED} secrets are accepted; take a coarser alphabet{instead}"
        )


def _bordered(tally: Tally, theta: Floats) -> tuple[Floats, float]:
    """Lower triangle of P J P + s 1 1^T / k, and s, the mean of the other eigenvalues."""
    matrix = _lower_information(tally, theta, centred=True)
    mean = float(np.trace(matrix)) / (tally.k - 1) or 1.0
    matrix += mean / tally.k
    return matrix, mean


def _directions(matrix: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Eigenvalues and eigenvectors of a bordered information, and a mask of the flat ones."""
    k = len(matrix)
    if k > max_factorised_order():
        raise TooLarge(
            f"standard errors of {k} secrets cannot be computed: the reports leave some "
            "combinations of probabilities undetermined, and these can be found for at most "
            f"{max_factorised_order()} secrets; take a coarser alphabet, or one of only the "
            "secrets that were known beforehand to have mass"
        )
    values, vectors = eigh(matrix, overwrite_a=True, driver="evd")
    return values, vectors, values <= FLAT_EIGENVALUE * k * values[-1]


def _without_flat_directions(tally: Tally, theta: Floats) -> Floats:
    matrix, mean = _bordered(tally, theta)
    values, vectors, flat = _directions(matrix)
    undetermined = (vectors[:, flat] ** 2).sum(axis=1) >= FLAT_SHARE
    half = vectors[:, ~flat] / np.sqrt(values[~flat])
    found = half @ half.T - 1 / (mean * tally.k)
    found[undetermined] = found[:, undetermined] = np.inf
    return found


def _lower_information(tally: Tally, theta: Floats, centred: bool) -> Floats:
    """Lower triangle of J, or of P J P.

    P subtracts the columns' means first, which under strong noise are nearly all of the entries.
    """
    k = tally.k
    total = np.zeros((k, k), order="F")
    for part in tally.parts:
        if isinstance(part.channel, PartitionedChannel):
            total += part.channel.total(
                _lower_of_partition, (theta, centred), part.counts, sum_arrays
            )
            continue
        for stretch, channel in channel_blocks(part, k):
            total = _add_reports(total, channel, part.counts[stretch], theta, centred)
    return total


def _lower_of_partition(
    channel: Channel, shared: tuple[Floats, bool], weights: Ints | int
) -> Floats:
    """Lower triangle of one partition, computed where its reports are; k x k numbers go back."""
    total = np.zeros((channel.k, channel.k), order="F")
    size, counts = (
        max(1, PARTITION_ENTRIES_AT_ONCE // channel.k),
        broadcast_weights(weights, channel),
    )
    for start in range(0, channel.size, size):
        stretch = slice(start, min(start + size, channel.size))
        total = _add_reports(total, channel.take(stretch), counts[stretch], *shared)
    return total


def _add_reports(
    total: Floats, channel: Channel, counts: Ints, theta: Floats, centred: bool
) -> Floats:
    """Add a channel's reports to the sum, in the same memory."""
    columns = channel.rows(np.arange(channel.k))
    weights = root_weights(counts, theta @ columns)
    # C order, so that the transpose is what BLAS reads without a copy.
    scaled = np.ascontiguousarray(
        (columns - columns.mean(axis=0) if centred else columns) * weights
    )
    return dsyrk(1.0, scaled.T, beta=1.0, c=total, trans=1, lower=1, overwrite_c=1)


def _norm(lower: Floats) -> float:
    """One-norm of a symmetric matrix: the largest sum of absolute values in a column."""
    sums = np.zeros(len(lower))
    # Only the lower triangle is stored: its column x is also row x of the matrix.
    for x in range(len(lower)):
        column = np.abs(lower[x:, x])
        sums[x] += column.sum()
        sums[x + 1 :] += column[1:]
    return float(sums.max())
