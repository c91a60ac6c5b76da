"""Draws of Dirichlet distributions, however small their parameters."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats
from ibukit.bayes._gibbs_kernels import MIN_DRAWN


def dirichlet(alpha: Floats, rng: Generator) -> Floats:
    """Draws from Dirichlet(alpha), one a row, by logarithms: tiny parameters do not give 0 / 0.

    If G ~ Gamma(a + 1) and U is uniform, G U^(1 / a) ~ Gamma(a).
    """
    # The logarithm of U^(1 / a) is minus an exponential variable over a; rows are divided by their
    # largest entry before exp, so that at least one entry is 1.
    log_g = np.log(rng.standard_gamma(alpha + 1)) - rng.standard_exponential(alpha.shape) / alpha
    g = np.maximum(np.exp(log_g - log_g.max(axis=1, keepdims=True)), MIN_DRAWN)
    return g / g.sum(axis=1, keepdims=True)
