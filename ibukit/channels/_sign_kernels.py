"""Sums over the secrets whose Hadamard sign agrees with a report's."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints


@njit(cache=True)
def transform(plus: Floats, minus: Floats, order: int) -> None:
    """In place, for each stretch of `order` entries: plus_c = what the rows r with H_rc = + bring, minus_c = the rest.

    A row brings plus_r to the columns where its sign is +, and minus_r to the others. This is the
    fast Walsh-Hadamard transform without subtractions: sums of positive numbers keep all their
    digits.
    """
    half = 1
    while half < order:
        for start in range(0, plus.size, 2 * half):
            for i in range(start, start + half):
                j = i + half
                p, q, r, s = plus[i], minus[i], plus[j], minus[j]
                plus[i], minus[i], plus[j], minus[j] = p + r, q + s, p + s, q + r
        half *= 2


@njit(cache=True)
def odd(r: int, c: int) -> int:
    """1 where the sign of row r in column c is -, the parity of the bits that they share; else 0."""
    v = r & c
    v ^= v >> 16
    v ^= v >> 8
    v ^= v >> 4
    v ^= v >> 2
    return (v ^ (v >> 1)) & 1


@njit(cache=True)
def own_sign(r: int, c: int, minus: bool, order: int) -> bool:
    """Whether place r is in the block of column c and has the report's sign there."""
    return (r & -order) == (c & -order) and (odd(r & (order - 1), c) == 1) == minus


@njit(cache=True)
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
    """y_z = sum of theta over the secrets in the block of report z whose sign is that of the report."""
    y = np.empty(column.size)
    plus, rest = np.empty(length), np.empty(length)
    begin = 0
    for group in range(len(places)):
        end = ends[group]
        if begin < end:
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


@njit(cache=True)
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
    """v_x = sum of w over the reports in the block of secret x whose sign is that of the secret."""
    v = np.zeros(places.shape[1])
    plus, rest = np.empty(length), np.empty(length)
    begin = 0
    for group in range(len(places)):
        end = ends[group]
        if begin < end:
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


@njit(cache=True)
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
    """total_xy += `both` times the sum of w over the reports whose sign is that of x and of y, for x >= y.

    The product of the signs of rows r and t is the sign of row r xor t. So the sum is (a_x + a_y -
    o) / 2 with a the sums of `hadamard_adjoint`, and o the sum over the reports of the block where
    r xor t is -.
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
            if order == length:  # the sketches' case, of which there may be thousands of groups
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


@njit(cache=True)
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
    """M_xz of given secrets, entry by entry."""
    rows = np.empty((secrets.size, column.size))
    for i in range(secrets.size):
        for z in range(column.size):
            own = own_sign(places[group[z], secrets[i]], column[z], minus[z], order)
            rows[i, z] = (high if own else low) * scale[z]
    return rows


@njit(cache=True)
def hadamard_held(
    places: NDArray[np.int32], order: int, group: Ints, column: Ints, minus: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether some secret has the sign of each report, in its block; mostly the second one asked has."""
    held = np.zeros(column.size, dtype=np.bool_)
    for z in range(column.size):
        for x in range(places.shape[1]):
            if own_sign(places[group[z], x], column[z], minus[z], order):
                held[z] = True
                break
    return held
