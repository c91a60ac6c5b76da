"""The maximum-likelihood estimate of pooled k-ary randomized responses, secret by secret.

A report z of mechanism j has the probability b_j + a_j theta_z on the simplex, with b = off and
a = diagonal - off. So the log-likelihood is a sum of concave functions f_z(theta_z), each of its
own secret. A Newton step maximises the sum of their parabolas over the simplex. That is
water-filling: theta_z = (theta_z + (f_z' - level) / h_z)_+ with h = -f'' and the level that makes
the sum 1. A step takes a few passes over the reports, and a sort of the secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.channels import ResponseChannel, ResponsePoolChannel

MAX_STEPS = 100
MAX_RATIO = 1e100
MAX_HALVINGS = 40
# A step is taken if it keeps this share of the gain that its slope promises.
MIN_GAIN_SHARE = 0.1
# Rounding of a mean log-likelihood.
MEAN_ROUNDING = 1e-13
# If the tolerance is at most this, steps go on to max g - 1 = 1e-12.
EXACT_BELOW = 1e-6
EXACT = 1e-12


def applies(channels: Sequence[object]) -> bool:
    """True for several k-RR channels whose reports are likelier from their secret than from others.

    The ratio of the two probabilities is squared, so it may be at most 1e100.
    """
    # Small ones arrive as one pool.
    several = len(channels) > 1 or isinstance(channels[0], ResponsePoolChannel)
    return several and all(
        isinstance(channel, (ResponseChannel, ResponsePoolChannel)) and _has_moderate_ratio(channel)
        for channel in channels
    )


def _has_moderate_ratio(channel: ResponseChannel | ResponsePoolChannel) -> bool:
    off, diagonal = np.asarray(channel.off), np.asarray(channel.diagonal)
    return bool(((MAX_RATIO * off > diagonal) & (diagonal > off) & (off > 0)).all())


def maximise(
    channels: Sequence[ResponseChannel | ResponsePoolChannel], q: Floats, tol: float
) -> tuple[Floats, int]:
    """Maximise sum_z q_z log p_z over the simplex; return the best point and the steps taken."""
    k = channels[0].k
    secrets = np.concatenate([channel.reports for channel in channels])
    # Divided by `off`, the probability of a report is 1 + ratio theta; the factor does not matter.
    ratio = np.concatenate(
        [np.broadcast_to(channel.diagonal / channel.off - 1, channel.size) for channel in channels]
    )
    theta = np.full(k, 1 / k)
    p = 1 + ratio * theta[secrets]
    goal = min(tol, EXACT) if tol <= EXACT_BELOW else tol
    best, worst = theta, np.inf
    step = 0
    for step in range(MAX_STEPS):  # noqa: B007
        w = q / p
        slope: Any = np.bincount(secrets, w * ratio, k)
        # g_x = f_x' + sum_z q_z b_z / p_z
        excess = float(slope.max() + w.sum()) - 1
        if excess < worst:
            best, worst = theta, excess
        elif worst <= tol:
            break
        if worst <= goal:
            break
        curvature: Any = np.bincount(secrets, w * ratio**2 / p, k)
        change = _fill(theta + _divide(slope, curvature), curvature) - theta
        promised, length = float(slope @ change), 1.0
        for _ in range(MAX_HALVINGS):
            # p is computed at the new point, where it is at least 1. A relative change of the old p
            # would round to -1 with weak noise, for a step to a secret without mass.
            p_new = 1 + ratio * (theta + length * change)[secrets]
            gain = float(q @ np.log(p_new / p))
            if gain >= MIN_GAIN_SHARE * length * promised - MEAN_ROUNDING:
                break
            length /= 2
        theta, p = theta + length * change, p_new
    return best, step


def _divide(slope: Floats, curvature: Floats) -> Floats:
    """Return slope / curvature; -inf for secrets that nobody reported, which get no mass."""
    never = np.full(len(slope), -np.inf)
    return np.divide(slope, curvature, out=never, where=curvature > 0)


def _fill(peaks: Floats, curvature: Floats) -> Floats:
    """Maximise -1/2 sum_x curvature_x (y_x - peaks_x)^2 over the simplex."""
    # y_x = (peaks_x - level / curvature_x)_+ is positive below the level peaks_x curvature_x.
    y = np.zeros(len(peaks))
    on = np.flatnonzero(peaks > -np.inf)
    dry_from = peaks[on] * curvature[on]
    order = on[np.argsort(-dry_from, kind="stable")]
    # Each entry is the level at which the secrets up to this place in the order share the mass.
    levels = (np.cumsum(peaks[order]) - 1) / np.cumsum(1 / curvature[order])
    n_wet = int(np.count_nonzero(levels < peaks[order] * curvature[order]))
    wet = order[:n_wet]
    y[wet] = peaks[wet] - levels[n_wet - 1] / curvature[wet]
    return y / y.sum()
