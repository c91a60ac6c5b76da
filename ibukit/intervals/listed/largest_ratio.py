r"""Likelihood ratios that are exceeded with at most a given probability, whatever the distribution.

Two bounds hold at any number of people, for the ratio of the largest likelihood to that of the
distribution that made the reports. It is at most :math:`2 n\,\mathrm{KL}(q\,\|\,\theta M)`, with q
the frequencies of the reports, and for this divergence [agrawal]_

.. math:: P(n\,\mathrm{KL} \ge t) \le e^{d - t} (t / d)^d \quad (t > d),

with d the degrees of freedom of the counts. With many kinds of reports a bound by the secrets is
better. Let C be the sum, over all sequences of n secrets, of the largest probability that any
distribution gives to the sequence [shtarkov]_. Then the largest likelihood of the reports is at
most C times that of a mixture. The mixture's ratio to the likelihood of the truth has mean 1, so by
Markov's inequality

.. math:: P(\text{log-ratio} \ge \log C + t) \le e^{-t}.

.. [agrawal] Agrawal, "Finite-sample concentration of the multinomial in relative entropy", IEEE
   Trans. Inf. Theory 66, 2020.
.. [shtarkov] Shtarkov, "Universal sequential coding of single messages", Problems of Information
   Transmission 23, 1987.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from scipy.special import gammaincc


def largest_ratio(k: int, freedom: int, n: int, error: float) -> float:
    """Return a ratio that is exceeded with a probability of at most `error`."""
    by_secrets = log_complexity(k, n) - math.log(error)
    return 2 * min(_largest_divergence(freedom, error), by_secrets)


def log_complexity(k: int, n: int) -> float:
    r"""Logarithm of the sum of :math:`\max_\theta P_\theta(x)` over all sequences of n secrets.

    :math:`C_{k+2} = C_{k+1} + (n / k)\,C_k` [kontkanen]_, and C_2 is a sum over a Poisson law.

    .. [kontkanen] Kontkanen and Myllymaki, "A linear-time algorithm for computing the multinomial
       stochastic complexity", Information Processing Letters 103, 2007.
    """
    if k == 1:
        return 0.0
    # C_2 = n! e^n / n^n times the probability that a Poisson variable of mean n is at most n; the
    # factorial by Stirling's bound from above, which keeps its digits for any n.
    stirling = math.log(2 * math.pi * n) / 2 + 1 / (12 * n)
    before, here = 0.0, stirling + math.log(gammaincc(n + 1, n))
    for j in range(1, k - 1):
        before, here = here, np.logaddexp(here, math.log(n / j) + before)
    return float(here)


def _largest_divergence(freedom: int, error: float) -> float:
    """Return the n KL that tallies exceed with a probability of at most `error`."""
    d = max(freedom, 1)

    def excess(t: float) -> float:
        return t - d - d * math.log(t / d) + math.log(error)

    # At 2 d - 2 log(error) + 2 d the bound is already smaller.
    return float(scipy.optimize.brentq(excess, d, 10 * d - 4 * math.log(error)))
