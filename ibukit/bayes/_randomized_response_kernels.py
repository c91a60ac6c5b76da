"""Recursion over equal reports of k-RR, at one point on the real axis and at many on a contour."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_cache import njit

Complexes = NDArray[np.complexfloating[Any, Any]]


@njit(error_model="numpy")
def report_moments(
    alpha: Floats, counts: Ints, lie: float, centre: float, y: Complexes
) -> tuple[Floats, Floats, Floats, Complexes, Complexes, Complexes, Complexes]:
    """Moments of the number t of s equal reports that tell their secret.

    The weights of t are C(s, t) alpha (alpha + 1) ... (alpha + t - 1) y^t lie^(s - t).

    Pairs (alpha, s) come sorted. Returned are, at the centre, the logarithm of the sum B_s of the
    weights, and mean and variance of t; and at each y, in shape (pairs, points), B_s divided by B_s
    at the centre, mean, s - mean, and variance. With r = B_s / B_(s - 1) = lie + y (alpha + T_(s -
    1)), the mean is T_s = s (y / r) (alpha + T_(s - 1)), s - T_s is s lie / r, and the variance is
    V_s = (s - T_s) (T_s / s + (y / r) V_(s - 1)): on the axis nothing is subtracted.
    """
    pairs, points = len(counts), len(y)
    log_sums, means, variances = np.zeros(pairs), np.zeros(pairs), np.zeros(pairs)
    ratios = np.ones((pairs, points), np.complex128)
    t, v = np.zeros((pairs, points), np.complex128), np.zeros((pairs, points), np.complex128)
    rest = np.zeros((pairs, points), np.complex128)
    for i in range(pairs):
        # If the pair before has the same alpha, go on from the moments of its smaller count.
        s = 0
        if i > 0 and alpha[i] == alpha[i - 1]:
            s = counts[i - 1]
            log_sums[i], means[i], variances[i] = log_sums[i - 1], means[i - 1], variances[i - 1]
            ratios[i], t[i], v[i], rest[i] = ratios[i - 1], t[i - 1], v[i - 1], rest[i - 1]
        a, log_sum, mean, variance = alpha[i], log_sums[i], means[i], variances[i]
        here, here_t, here_v, here_rest = ratios[i], t[i], v[i], rest[i]
        while s < counts[i]:
            s += 1
            # One report more at the real centre: r = B_s / B_(s-1) is positive, so no digits are
            # lost.
            r = lie + centre * (a + mean)
            log_sum += math.log(r)
            scale = 1 / r
            share = centre * scale * (a + mean)
            variance = s * (lie * scale) * (share + centre * scale * variance)
            mean = s * share
            for j in range(points):
                off = lie + y[j] * (a + here_t[j])
                # The complex number 1 / off, computed in a fifth of the time that a division takes.
                by = off.conjugate() * (1 / (off.real * off.real + off.imag * off.imag))
                q = y[j] * by
                part = q * (a + here_t[j])
                here_rest[j] = s * (lie * by)
                here_v[j] = here_rest[j] * (part + q * here_v[j])
                here_t[j] = s * part
                # B_s at y relative to B_s at the centre, a product of ratios near 1: it cannot
                # overflow.
                here[j] *= off * scale
        log_sums[i], means[i], variances[i] = log_sum, mean, variance
    return log_sums, means, variances, ratios, t, rest, v
