"""Kernels of a Gibbs sweep; random numbers are drawn outside and passed in."""

import math

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

# Least probability of a draw. No number of users could tell probabilities below twice this apart,
# so they also stand for those that a double cannot hold.
MIN_DRAWN = 1e-300


@njit()
def assign_by_bits(
    rows: NDArray[np.uint8], counts: Ints, zero: float, contrast: float, p: Floats, uniforms: Floats
) -> Ints:
    """Totals of the secrets that reports of a unary encoding tell.

    Report z tells x with probability contrast p_x [bit x of z] / (theta M)_z.

    With the remaining probability, zero / (theta M)_z, it tells nothing. `p` has as many entries as
    the rows have bits; there is one uniform for each report; bits are packed most significant
    first.
    """
    n_rows, n_bytes = rows.shape
    # For each value of each byte the table holds the sum of p over its bits: a row then takes one
    # look-up a byte. A value's sum is that of the value without its lowest bit, plus this bit's p.
    table = np.zeros((n_bytes, 256))
    for j in range(n_bytes):
        for value in range(1, 256):
            low = value & -value
            bit = 7
            while low > 1:
                low >>= 1
                bit -= 1
            table[j, value] = table[j, value & (value - 1)] + p[8 * j + bit]
    totals = np.zeros(8 * n_bytes, dtype=np.int64)
    user = 0
    for z in range(n_rows):
        held = 0.0
        for j in range(n_bytes):
            held += table[j, rows[z, j]]
        for _ in range(counts[z]):
            left = uniforms[user] * (zero + contrast * held)
            user += 1
            if left >= contrast * held:
                continue
            # The report tells its secret, and this number is uniform up to the sum: find the byte
            # and then the bit at which the cumulative sum exceeds it.
            left /= contrast
            x = -1
            for j in range(n_bytes):
                here = table[j, rows[z, j]]
                if left >= here and j < n_bytes - 1:
                    left -= here
                    continue
                for bit in range(8):
                    if rows[z, j] & (128 >> bit) and p[8 * j + bit] > 0:
                        x = 8 * j + bit
                        left -= p[x]
                        if left < 0:
                            break
                if x >= 0:
                    break
            if x >= 0:
                totals[x] += 1
    return totals


@njit()
def assign_by_columns(
    excess: Floats, least: Floats, counts: Ints, p: Floats, uniforms: Floats
) -> Ints:
    """Totals of the secrets that reports of any channel tell.

    Report z tells x with probability p_x excess_zx / (theta M)_z, or nothing.

    Here excess_zx = M_xz - least_z with least_z = min_x M_xz.
    """
    n_rows, k = excess.shape
    totals = np.zeros(k, dtype=np.int64)
    user = 0
    for z in range(n_rows):
        held = 0.0
        for x in range(k):
            held += p[x] * excess[z, x]
        for _ in range(counts[z]):
            left = uniforms[user] * (least[z] + held)
            user += 1
            if left >= held:
                continue
            assigned = -1
            for x in range(k):
                here = p[x] * excess[z, x]
                if here > 0:
                    assigned = x
                    left -= here
                    if left < 0:
                        break
            totals[assigned] += 1
    return totals


@njit()
def surrogate_walk(
    p: Floats,
    slope: Floats,
    hessian: Floats,
    alpha: Floats,
    first: Ints,
    second: Ints,
    from_prior: NDArray[np.bool_],
    gammas: Floats,
    exponentials: Floats,
    normals: Floats,
    log_uniforms: Floats,
) -> None:
    """Metropolis moves of mass between two secrets, in place, under the prior and a parabola.

    `slope` is the slope of the parabola at p, and is kept up to date.

    Each move proposes either a new division of the two secrets' mass drawn from the prior, or a
    mass to be moved, drawn from the parabola's normal distribution. The first suits where the
    parabola is flat, the second where it is steep. The part of the target that is not in the
    proposal decides about acceptance: the parabola's change in the first case, the prior's in the
    second.

    A division follows a Dirichlet law; it is drawn as in `_dirichlet` from `gammas`, of shape alpha
    + 1, and `exponentials`.
    """
    for i in range(len(first)):
        x, y = first[i], second[i]
        # Along e_x - e_y the parabola has this curvature and slope: moving mass m changes it by m
        # rise - m^2 curvature / 2.
        curvature = hessian[x, x] + hessian[y, y] - 2 * hessian[x, y]
        rise = slope[x] - slope[y]
        if from_prior[i]:
            odds = math.log(gammas[i, 0] / gammas[i, 1])
            odds += exponentials[i, 1] / alpha[y] - exponentials[i, 0] / alpha[x]
            small = math.exp(-abs(odds))
            mass = (p[x] + p[y]) / (1.0 + small)
            to_x, to_y = (mass, mass * small) if odds > 0 else (mass * small, mass)
            to_x, to_y = max(to_x, MIN_DRAWN), max(to_y, MIN_DRAWN)
            # p + moved would leave only the rounding of the large entry in a tiny one.
            moved = to_x - p[x] if p[x] < p[y] else p[y] - to_y
            log_ratio = moved * rise - moved * moved * curvature / 2
        else:
            if curvature <= 0 or p[x] < 2 * MIN_DRAWN or p[y] < 2 * MIN_DRAWN:
                continue
            moved = rise / curvature + normals[i] / math.sqrt(curvature)
            to_x, to_y = p[x] + moved, p[y] - moved
            if to_x < 2 * MIN_DRAWN or to_y < 2 * MIN_DRAWN:
                continue
            log_ratio = (alpha[x] - 1) * math.log(to_x / p[x]) + (alpha[y] - 1) * math.log(
                to_y / p[y]
            )
        if log_uniforms[i] < log_ratio:
            p[x], p[y] = to_x, to_y
            for j in range(len(p)):
                slope[j] -= moved * (hessian[x, j] - hessian[y, j])


@njit(error_model="numpy")
def travel(
    off: Floats, velocity: Floats, centre: Floats, covariance: Floats, time: float, most: int
) -> int:
    """Move p = centre + off along a trajectory under a normal law; return the reflections.

    Entries of 0 are walls.

    Between reflections the trajectory is off cos t + velocity sin t, for all entries at once:
    Hamilton's equations under the law with this covariance, whose inverse is the mass matrix, too.
    A wall reverses the part of the velocity towards it, in that metric. After more than `most`
    reflections the trajectory stops wherever it is.
    """
    k = off.size
    left = time
    last = -1
    reflections = 0
    while True:
        soonest = left
        wall = -1
        for x in range(k):
            amplitude = off[x] * off[x] + velocity[x] * velocity[x]
            if amplitude <= centre[x] * centre[x]:
                continue
            # p_x = centre_x + sqrt(amplitude) cos(t - phase) falls to 0 at phase + half.
            half = math.acos(-centre[x] / math.sqrt(amplitude))
            # The path has just left the wall of `last`, where phase = half up to rounding: it meets
            # this wall again when the arc above it is over.
            at = 2.0 * half if x == last else math.atan2(velocity[x], off[x]) + half
            if at < soonest:
                soonest = max(at, 0.0)
                wall = x
        ahead, across = math.cos(soonest), math.sin(soonest)
        for x in range(k):
            moved = off[x] * ahead + velocity[x] * across
            velocity[x] = velocity[x] * ahead - off[x] * across
            off[x] = moved
        if wall < 0:
            return reflections
        reflections += 1
        if reflections > most:
            return reflections
        off[wall] = -centre[wall]
        # Reflection: subtract twice the velocity's component along covariance @ e_wall.
        push = 2.0 * velocity[wall] / covariance[wall, wall]
        for x in range(k):
            velocity[x] -= push * covariance[x, wall]
        left -= soonest
        last = wall
