"""Sums over the secrets whose Hadamard sign agrees with a report's."""

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit


@njit()
def transform(plus: Floats, minus: Floats, order: int) -> None:
    """Transform in place, for each block of `order` entries, sums over rows into sums over columns.

    On return plus_c is the sum of plus_r over the rows with H_rc = + and of minus_r over those with
    H_rc = -; minus_c is the rest. This is the fast Walsh-Hadamard transform without subtractions:
    sums of positive numbers keep all their digits. Each round joins pairs of blocks of length
    `half` by H_2n = [[H_n, H_n], [H_n, -H_n]].
    """
    half = 1
    while half < order:
        for start in range(0, plus.size, 2 * half):
            for i in range(start, start + half):
                j = i + half
                p, q, r, s = plus[i], minus[i], plus[j], minus[j]
                plus[i], minus[i], plus[j], minus[j] = p + r, q + s, p + s, q + r
        half *= 2


@njit()
def odd(r: int, c: int) -> int:
    """1 if the sign of row r in column c is -, else 0: the parity of the bits that they share."""
    v = r & c
    # Folding halves keeps the parity: after five folds it stands in the lowest bit.
    v ^= v >> 16
    v ^= v >> 8
    v ^= v >> 4
    v ^= v >> 2
    return (v ^ (v >> 1)) & 1


@njit()
def agrees(r: int, c: int, minus: bool, order: int) -> bool:
    """True if place r is in the block of column c and has the report's sign there.

    The order is a power of two, so `r & -order` is the start of a block.
    """
    return (r & -order) == (c & -order) and (odd(r & (order - 1), c) == 1) == minus


@njit()
def hadamard_forward(
    theta: Floats,
    places: NDArray[np.int32],
    length: int,
    order: int,
    ends: Ints,
    sorted_reports: Ints,
    column: Ints,
    minus: NDArray[np.bool_],
) -> Floats:
    """y_z = sum of theta over the secrets that agree with report z in sign and block."""
    y = np.empty(column.size)
    plus, rest = np.empty(length), np.empty(length)
    begin = 0
    for group in range(len(places)):
        end = ends[group]
        if begin < end:
            # Scatter theta to the rows, transform, and look the reports' columns up.
            plus[:] = 0.0
            rest[:] = 0.0
            for x in range(theta.size):
                plus[places[group, x]] += theta[x]
            transform(plus, rest, order)
            for i in range(begin, end):
                z = sorted_reports[i]
                y[z] = rest[column[z]] if minus[z] else plus[column[z]]
        begin = end
    return y


@njit()
def hadamard_adjoint(
    w: Floats,
    places: NDArray[np.int32],
    length: int,
    order: int,
    ends: Ints,
    sorted_reports: Ints,
    column: Ints,
    minus: NDArray[np.bool_],
) -> Floats:
    """v_x = sum of w over the reports that agree with secret x in sign and block."""
    v = np.zeros(places.shape[1])
    plus, rest = np.empty(length), np.empty(length)
    begin = 0
    for group in range(len(places)):
        end = ends[group]
        if begin < end:
            # The transpose: scatter w to the columns, by sign, and look the secrets' rows up.
            plus[:] = 0.0
            rest[:] = 0.0
            for i in range(begin, end):
                z = sorted_reports[i]
                if minus[z]:
                    rest[column[z]] += w[z]
                else:
                    plus[column[z]] += w[z]
            transform(plus, rest, order)
            for x in range(v.size):
                v[x] += plus[places[group, x]]
        begin = end
    return v


@njit()
def hadamard_pairs(
    total: Floats,
    w: Floats,
    both: float,
    places: NDArray[np.int32],
    length: int,
    order: int,
    ends: Ints,
    sorted_reports: Ints,
    column: Ints,
    minus: NDArray[np.bool_],
) -> None:
    """total_xy += `both` times the sum of w over the reports that agree with x and y, for x >= y.

    The product of the signs of rows r and t is the sign of row r xor t. So the sum is
    (a_x + a_y - o) / 2, where a holds the sums of `hadamard_adjoint` and o is the sum over the
    reports of the block in whose column row r xor t has the sign -.
    """
    k = places.shape[1]
    agree, rest, plus, differ = (
        np.empty(length),
        np.empty(length),
        np.empty(length),
        np.empty(length),
    )
    sums = np.zeros(k)
    begin = 0
    for group in range(len(places)):
        end = ends[group]
        if begin < end:
            # `agree` becomes a, and `differ` becomes o: the same weights with all signs +.
            agree[:] = 0.0
            rest[:] = 0.0
            plus[:] = 0.0
            differ[:] = 0.0
            for i in range(begin, end):
                z = sorted_reports[i]
                plus[column[z]] += w[z]
                if minus[z]:
                    rest[column[z]] += w[z]
                else:
                    agree[column[z]] += w[z]
            transform(agree, rest, order)
            transform(plus, differ, order)
            own = places[group]
            # A sketch has one block, and may have thousands of groups: a_x + a_y is added once,
            # below, and each group costs one look-up for each pair.
            if order == length:
                for y in range(k):
                    t = own[y]
                    for x in range(y, k):
                        total[x, y] -= both * 0.5 * differ[own[x] ^ t]
            for y in range(k):
                sums[y] += agree[own[y]]
                if order < length:
                    t = own[y]
                    block = t & -order
                    for x in range(y, k):
                        r = own[x]
                        if r & -order == block:
                            total[x, y] += (
                                both * 0.5 * (agree[r] + agree[t] - differ[block + (r ^ t)])
                            )
        begin = end
    if order == length:
        for y in range(k):
            for x in range(y, k):
                total[x, y] += both * 0.5 * (sums[x] + sums[y])


@njit()
def hadamard_rows(
    secrets: Ints,
    places: NDArray[np.int32],
    order: int,
    group: Ints,
    column: Ints,
    minus: NDArray[np.bool_],
    low: float,
    high: float,
    scale: Floats,
) -> Floats:
    """Rows M_xz of some secrets, entry by entry."""
    rows = np.empty((secrets.size, column.size))
    for i in range(secrets.size):
        for z in range(column.size):
            own = agrees(places[group[z], secrets[i]], column[z], minus[z], order)
            rows[i, z] = (high if own else low) * scale[z]
    return rows


@njit()
def hadamard_agreed(
    places: NDArray[np.int32], order: int, group: Ints, column: Ints, minus: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """True for each report with which some secret agrees; mostly the first or second one does."""
    agreed = np.zeros(column.size, dtype=np.bool_)
    for z in range(column.size):
        for x in range(places.shape[1]):
            if agrees(places[group[z], x], column[z], minus[z], order):
                agreed[z] = True
                break
    return agreed
