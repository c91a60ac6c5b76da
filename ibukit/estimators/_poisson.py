"""The maximum of a Poisson likelihood with a known background, by maxima of multinomial ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit.channels import DenseChannel
from ibukit.errors import ImpossibleReport
from ibukit.solvers import Problem, best_found

# what each multinomial maximum is asked for; doubles give less on some, and the certificate of the
# whole decides
INNER_TOL = 1e-13
# a signal of a smaller share of the counts is none
MIN_SIGNAL = 2.0**-40


class Signal(NamedTuple):
    """The numbers seen of each secret, and what is certified of them."""

    seen: Floats
    log_likelihood: float
    gap: float
    n_iter: int


def maximise_signal(response: Floats, counts: Floats, background: Floats) -> Signal:
    """Maximise sum_z n_z log nu_z - nu_z with nu = mu M + b over mu >= 0, for row-stochastic M.

    For sum mu = T, and phi = mu / T on the simplex, nu = T phi (M + b / T): the multinomial problem
    with this matrix. Its maximum is concave in T, and has the slope (n - c) / T - 1 with c = sum_z
    n_z b_z / nu_z.
    """
    here = counts > 0
    m, n, b = response[:, here], counts[here], background[here]
    impossible = ~((m > 0).any(axis=0) | (b > 0))
    if impossible.any():
        raise ImpossibleReport(
            f"counts has {n[impossible][0]:g} of report {np.flatnonzero(here)[impossible][0]}, which neither a secret "
            "nor the background can produce: is this the matrix of these counts?"
        )
    total = float(n.sum())
    if (b > 0).all() and float((m @ (n / b)).max()) <= 1:
        raise ValueError(
            "background must leave something to unfold: with anything added to it the counts are less probable than "
            f"with the background alone ({background.sum():.6g} expected, {total:.6g} counted)"
        )
    steps = 0
    with tqdm(desc="unfold", unit=" maxima", leave=False, disable=None, delay=1) as bar:

        def excess(t: float) -> float:
            nonlocal steps
            phi, taken = _share(m, n, b / t)
            steps += taken
            bar.update()
            return total - _from_elsewhere(phi @ m * t, n, b) - t

        low, high = total, total
        while excess(low) < 0:
            if low < MIN_SIGNAL * total:
                raise ValueError(
                    f"background must leave something to unfold: less than {low:.3g} of {total:.6g} counts are not "
                    "explained by it"
                )
            low, high = low / 2, low
        t = (
            low
            if low == high
            else brentq(excess, low, high, xtol=4e-16 * total, rtol=1e-15, disp=False)
        )
    phi, taken = _share(m, n, b / t)
    mu = phi * t
    return Signal(
        mu,
        _log_likelihood(mu @ m + b, n) - t - float(background.sum()),
        gap(mu, m, n, b),
        steps + taken,
    )


def gap(mu: Floats, m: Floats, n: Floats, b: Floats) -> float:
    """No mu* >= 0 has a log-likelihood above this one's by more, in nats per report.

    By Jensen sum_z n_z log(nu*_z / nu_z) <= n log((sum_x mu*_x g_x + c) / n) <= n log((T* G + c) /
    n), for the g_x and c below, and G their maximum. Less T* - T, that is largest at T* = n - c /
    G, or at 0.
    """
    nu, total, seen = mu @ m + b, float(n.sum()), float(mu.sum())
    if not nu.min() > 0:
        return math.inf
    largest, c = float((m @ (n / nu)).max()), _from_elsewhere(mu @ m, n, b)
    if c >= total * largest:  # the slope in T* is not positive at 0
        excess = total * math.log(c / total) + seen
    else:
        excess = total * math.log(largest) - total + c / largest + seen
    return max(0.0, excess / total)


def _share(m: Floats, n: Floats, added: Floats) -> tuple[Floats, int]:
    """The distribution phi of the secrets among a given number that is seen."""
    best = best_found(Problem(DenseChannel(np.ascontiguousarray(m + added)), n), INNER_TOL)
    return best.theta, best.n_iter


def _from_elsewhere(signal: Floats, n: Floats, b: Floats) -> float:
    """How many of the counts are put down to the background: sum_z n_z b_z / nu_z."""
    return float(n @ (b / (signal + b)))


def _log_likelihood(nu: Floats, n: Floats) -> float:
    return float(n @ np.log(nu)) if nu.min() > 0 else -math.inf
