"""Gibbs sampling of the posterior: chains that run until they agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit._ground.extras import missing_extra
from ibukit.bayes._chains import N_CHAINS, Chains
from ibukit.bayes._lost_reports import LossyChains
from ibukit.bayes._small_matrix import quick_channel
from ibukit.channels import Channel
from ibukit.tally.tally import Tally

# Limits of rank-normalised split R-hat and of the bulk effective sample size of four chains, as
# Vehtari et al. (2021) recommend.
MAX_R_HAT = 1.01
MIN_ESS = 400
# Draws kept of each chain, and sweeps of its warm-up.
N_DRAWS = 1000
WARM_UP = 250


@dataclass(frozen=True, eq=False)
class Draws:
    """Kept draws of the chains, shape (chains, draws, k), and their diagnostics.

    `frequencies` are E[F | p, reports] = p_x g_x for the drawn p: their mean is the mean of F, with
    less noise than that of F's own draws (Rao-Blackwell). If reports get lost, they are p itself.
    `values` are draws of P or F themselves, for quantiles and standard deviations.
    """

    frequencies: Floats
    values: Floats
    sweeps: int
    converged: bool
    effective_sample_size: Floats
    r_hat: Floats

    def mean(self) -> Floats:
        """Mean E[F | reports]."""
        return self.frequencies.mean(axis=(0, 1))

    def standard_errors(self) -> Floats:
        """Monte-Carlo standard errors of the mean of F."""
        varying = _varying(self.frequencies)
        errors = np.zeros(len(varying))
        if varying.any():
            errors[varying] = _arviz().mcse(
                self.frequencies[:, :, varying], chain_axis=0, draw_axis=1
            )
        return errors

    def standard_deviations(self, of: str) -> Floats:
        """Standard deviations of the draws of P or F."""
        return self.values.std(axis=(0, 1), ddof=1)

    def quantiles(self, of: str, share: float, weights: Floats | None = None) -> Floats:
        """Quantiles of the draws of P or F, or of weighted sums of them, one a row of `weights`."""
        answers = self._functional_draws(weights)
        flat = answers.reshape(-1, answers.shape[-1])
        if of == "frequencies":
            return np.quantile(flat, share, axis=0, method="inverted_cdf")
        return np.quantile(flat, share, axis=0)

    def errors_of_quantiles(self, share: float, weights: Floats | None = None) -> Floats:
        """Monte-Carlo standard errors of `quantiles`."""
        answers = self._functional_draws(weights)
        varying = _varying(answers)
        errors = np.zeros(len(varying))
        if varying.any():
            errors[varying] = _arviz().mcse(
                answers[:, :, varying], chain_axis=0, draw_axis=1, method="quantile", prob=share
            )
        return errors

    def _functional_draws(self, weights: Floats | None) -> Floats:
        return self.values if weights is None else np.asarray(self.values @ weights.T)


def sample(tally: Tally, alpha: Floats, of: str, rng: Generator, max_sweeps: int) -> Draws:
    """Sweep until R-hat and the effective sample size are good, at most `max_sweeps` sweeps.

    Chains run in stages of N_DRAWS kept draws, one from every thin-th sweep. Each stage is longer
    than the one before it, whose draws are all discarded. `_chains` says what a sweep is.
    """
    # A missing extra is reported before the draws, not after them.
    _arviz()
    lossy = tally.efficiency is not None
    chains: Chains | LossyChains = (LossyChains if lossy else Chains)(tally, alpha, rng)
    channel, q, n = quick_channel(tally), tally.frequencies, tally.n
    thin = 1
    with tqdm(desc="gibbs", unit=" sweeps", leave=False, disable=None, delay=1) as bar:
        chains.warm_up(WARM_UP, bar.update)
        sweeps = WARM_UP
        while True:
            frequencies, values = np.empty((2, N_CHAINS, N_DRAWS, tally.k))
            for i in range(N_DRAWS):
                for _ in range(thin - 1):
                    chains.sweep()
                p = chains.p
                # Expected frequencies given p are recorded instead of drawn ones: the mean is the
                # same and the variance smaller. Where reports get lost, the frequencies of those
                # people are not known, and p itself is recorded.
                frequencies[:, i] = (
                    p if lossy else [_expected_frequencies(channel, q, each) for each in p]
                )
                assigned = (
                    chains.draw_assigned() if of == "frequencies" or chains.needs_secrets else None
                )
                if of == "distribution":
                    values[:, i] = p
                else:
                    # A report that tells nothing has a secret drawn from p.
                    assert assigned is not None
                    values[:, i] = (assigned + rng.multinomial(n - assigned.sum(axis=1), p)) / n
                chains.sweep(assigned)
                bar.update(thin)
            sweeps += thin * N_DRAWS
            ess, r_hat = _diagnostics(frequencies)
            shortfall = max(MIN_ESS / ess.min(), (r_hat.max() - 1) / (MAX_R_HAT - 1))
            max_thin = (max_sweeps - sweeps) // N_DRAWS
            if shortfall <= 1 or max_thin <= thin:
                return Draws(frequencies, values, sweeps, bool(shortfall <= 1), ess, r_hat)
            # Thin enough to make up the shortfall, which counts as sixfold at most: a large R-hat
            # may come from the beginning of the chains, which is over by now.
            thin = min(max(2 * thin, math.ceil(1.2 * min(shortfall, 6) * thin)), max_thin)


def _expected_frequencies(channel: Channel, q: Floats, p: Floats) -> Floats:
    """Expected frequencies E[F_x | p, reports] = p_x sum_z q_z M_xz / (p M)_z."""
    frequencies: Floats = p * channel.adjoint(q / channel.forward(p))
    return frequencies / frequencies.sum()


def _varying(draws: Floats) -> NDArray[np.bool_]:
    """Mask of the coordinates that vary by more than rounding."""
    return np.ptp(draws, axis=(0, 1)) > 1e-13


def _diagnostics(draws: Floats) -> tuple[Floats, Floats]:
    """Bulk effective sample size and rank-normalised split R-hat of each coordinate."""
    varying = _varying(draws)
    ess, r_hat = (
        np.full(len(varying), float(draws.shape[0] * draws.shape[1])),
        np.ones(len(varying)),
    )
    if varying.any():
        ess[varying] = _arviz().ess(draws[:, :, varying], chain_axis=0, draw_axis=1)
        r_hat[varying] = _arviz().rhat(draws[:, :, varying], chain_axis=0, draw_axis=1)
    return ess, r_hat


def _arviz() -> Any:
    """Array diagnostics of arviz-stats, imported late: it takes as long to load as the package."""
    try:
        from arviz_stats import base
    except ImportError as error:
        raise missing_extra("the check of the chains of method='gibbs'", "arviz-stats") from error

    return base.array_stats
