"""Maximum of a Poisson likelihood with a known background, by multinomial maxima in turn."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit.channels import DenseChannel
from ibukit.errors import ImpossibleReport
from ibukit.solvers import Problem, best_found

# Nats per report within which each multinomial maximum is sought. Where doubles do not reach it,
# the certificate of the whole says how good the result is.
INNER_TOL = 1e-13
# Share of the counts below which a signal is indistinguishable from none.
MIN_SIGNAL_SHARE = 2.0**-40


class Signal(NamedTuple):
    """The numbers seen of each secret, with their log-likelihood and certificate."""

    seen: Floats
    log_likelihood: float
    gap: float
    n_iter: int


def maximise_signal(response: Floats, counts: Floats, background: Floats) -> Signal:
    """Maximise sum_z n_z log nu_z - nu_z with nu = mu M + b over mu >= 0, for row-stochastic M.

    With T = sum mu and phi = mu / T on the simplex, nu = T phi (M + b / T): for given T this is the
    multinomial problem with the matrix M + b / T. The maximum over phi is concave in T and has the
    derivative (n - c) / T - 1, where c = sum_z n_z b_z / nu_z, so that T is the root of T = n - c.
    """
    m, n, b = possible_counts(response, counts, background)
    total = float(n.sum())
    # The derivative at mu = 0 in the direction of each secret is (M (n / b))_x - 1.
    if (b > 0).all() and float((m @ (n / b)).max()) <= 1:
        return _no_signal(m, n, b, background, 0)
    steps = 0
    with tqdm(desc="unfold", unit=" maxima", leave=False, disable=None, delay=1) as bar:

        def excess(t: float) -> float:
            """Return n - c - T, which falls as T grows."""
            nonlocal steps
            phi, taken = _composition(m, n, b / t)
            steps += taken
            bar.update()
            return total - _background_counts(phi @ m * t, n, b) - t

        # n - c - T is at most 0 at T = n, since c >= 0. T is halved until the sign changes, and the
        # root is then found by Brent's method.
        low, high = total, total
        while excess(low) < 0:
            if low < MIN_SIGNAL_SHARE * total:
                break
            low, high = low / 2, low
        if low < MIN_SIGNAL_SHARE * total and (b > 0).all():
            return _no_signal(m, n, b, background, steps)
        t = (
            low
            if low == high or low < MIN_SIGNAL_SHARE * total
            else scipy.optimize.brentq(
                excess, low, high, xtol=4e-16 * total, rtol=1e-15, disp=False
            )
        )
    phi, taken = _composition(m, n, b / t)
    mu = phi * t
    return Signal(
        mu,
        log_likelihood(mu @ m + b, n) - t - float(background.sum()),
        gap(mu, m, n, b),
        steps + taken,
    )


def possible_counts(
    response: Floats, counts: Floats, background: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return matrix, counts and background of the reports seen; raise if one is impossible."""
    # Reports that were not seen contribute -nu_z only. Over all reports these sum to -T - sum b,
    # whatever the composition phi is.
    here = counts > 0
    m, n, b = response[:, here], counts[here], background[here]
    impossible = ~((m > 0).any(axis=0) | (b > 0))
    if impossible.any():
        raise ImpossibleReport(
            f"counts has {n[impossible][0]:g} of report {np.flatnonzero(here)[impossible][0]}, "
            "which neither a secret nor the background can produce: "
            "is this the matrix of these counts?"
        )
    return m, n, b


def _no_signal(m: Floats, n: Floats, b: Floats, background: Floats, steps: int) -> Signal:
    """Return the maximum at no signal at all, where the background explains the counts."""
    none = np.zeros(len(m))
    return Signal(none, log_likelihood(b, n) - float(background.sum()), gap(none, m, n, b), steps)


def gap(mu: Floats, m: Floats, n: Floats, b: Floats) -> float:
    """Bound how far the log-likelihood is from its maximum over mu* >= 0, in nats per report.

    By Jensen sum_z n_z log(nu*_z / nu_z) <= n log((sum_x mu*_x g_x + c) / n) <= n log((T* G + c) /
    n), with g = M (n / nu), G the maximum of g and T* = sum mu*. This bound minus T* - T is largest
    at T* = n - c / G, or at 0.
    """
    if not len(n):
        # The log-likelihood is minus the expected counts, and there is no report to divide it by.
        return 0.0 if not mu.any() else math.inf
    # `largest` is G. Without reports of probability 0 all quantities are finite.
    nu, total, seen = mu @ m + b, float(n.sum()), float(mu.sum())
    if not nu.min() > 0:
        return math.inf
    largest, c = float((m @ (n / nu)).max()), _background_counts(mu @ m, n, b)
    # If the derivative in T* is not positive at 0, the maximum is there.
    if c >= total * largest:
        excess = total * math.log(c / total) + seen
    else:
        excess = total * math.log(largest) - total + c / largest + seen
    return max(0.0, excess / total)


def _composition(m: Floats, n: Floats, added: Floats) -> tuple[Floats, int]:
    """Return the distribution phi of the secrets for a given total T, `added` being b / T."""
    best = best_found(Problem(DenseChannel(np.ascontiguousarray(m + added)), n), INNER_TOL)
    return best.theta, best.n_iter


def _background_counts(signal: Floats, n: Floats, b: Floats) -> float:
    """Return c, the expected number of counts from the background: sum_z n_z b_z / nu_z."""
    return float(n @ (b / (signal + b)))


def log_likelihood(nu: Floats, n: Floats) -> float:
    """Return sum_z n_z log nu_z; -inf where a report that was seen has no probability."""
    return float(n @ np.log(nu)) if (nu > 0).all() else -math.inf
