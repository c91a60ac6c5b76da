"""Likelihood of a distribution given a tally: fitted probabilities, gradient, gap, log-likelihood.

With q the frequencies of the reports, f(theta) = sum_z q_z log (theta M)_z has the derivatives
g_x = sum_z q_z M_xz / (theta M)_z. Because f is concave and theta . g = 1, at no distribution does
f exceed f(theta) by more than log max_x g_x, which is the gap.
"""

from __future__ import annotations

import math

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.channels.base import gap_between
from ibukit.tally.tally import Tally


def ratios(tally: Tally, theta: Floats) -> tuple[Floats, Floats]:
    """Probabilities p of the seen reports, and g_x = sum_z q_z M_xz / p_z."""
    p = tally.operator.forward(theta)
    # A report of probability 0 makes g infinite or NaN, which `gap_of` turns into a gap of inf.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return p, tally.operator.adjoint(tally.frequencies / p)


def gap_of(p: Floats, g: Floats) -> float:
    """The gap, log max g, from the two results of `ratios`; inf if a report has no probability."""
    return gap_between(float(p.min()), float(g.max()))


def log_likelihood_of(tally: Tally, p: Floats) -> float:
    """L in nats, total over all reports, from the probabilities p of the seen reports."""
    if not (p > 0).all():
        return -math.inf
    log_p = np.log(p)
    log_p += tally.log_scale
    return tally.n * float(tally.frequencies @ log_p)
