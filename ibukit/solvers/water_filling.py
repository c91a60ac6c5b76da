"""The maximum-likelihood estimate under k-ary randomized response, in closed form."""

from __future__ import annotations

import numpy as np

from ibukit._validate import Floats, Ints
from ibukit.channels import ResponseChannel
from ibukit.solvers._water_filling_kernels import fill, water_level


def maximise(channel: ResponseChannel, q: Floats | Ints, total: float | None = None) -> Floats:
    """The maximiser of sum_z q_z log(off + (diagonal - off) theta_z) over the simplex.

    q may have any factor; `total` is its sum, where that is known.

    By the optimality conditions q_z / p_z is one number beta on the support S, so that
    theta_z = (q_z / beta - off) / (diagonal - off) with beta = q(S) / (diagonal - off + |S| off), and S holds the
    secrets with q_z > beta off. Leaving one out that does not belong raises beta, so nothing ever comes back and a
    few rounds over fewer and fewer secrets end at S: O(k), no sort.
    """
    theta = np.zeros(channel.k)
    contrast = channel.diagonal - channel.off
    if contrast <= 0:  # the noise is so strong that doubles cannot tell the secrets apart: every theta is a maximiser
        theta[:] = 1 / channel.k
        return theta
    beta = water_level(q, float(q.sum() if total is None else total), contrast, channel.off)
    fill(theta, channel.reports, q, beta, contrast, channel.off)
    return theta
