"""The posterior by simulation: chains that go on until they agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit.bayes._chains import N_CHAINS, Chains
from ibukit.errors import MissingExtra
from ibukit.tally.tally import Tally

# what the literature asks of rank-normalised split R-hat, and of the bulk effective sample size of
# four chains
MAX_R_HAT = 1.01
MIN_ESS = 400
N_DRAWS = 1000
WARM_UP = 250


@dataclass(frozen=True, eq=False)
class Draws:
    """What was kept of the chains, shape (chains, draws, k).

    `frequencies` are E[F | p, reports] = p_x g_x for the drawn p: their mean is that of F, with
    less noise than F's own draws. `values` are draws of P or F themselves, for what is not a mean.
    """

    frequencies: Floats
    values: Floats
    sweeps: int
    converged: bool
    effective_sample_size: Floats
    r_hat: Floats

    def mean(self) -> Floats:
        """E[F | reports]."""
        return np.asarray(self.frequencies.mean(axis=(0, 1)))

    def standard_errors(self) -> Floats:
        """Monte-Carlo errors of the mean of F."""
        moves = _moves(self.frequencies)
        errors = np.zeros(len(moves))
        if moves.any():
            errors[moves] = _arviz().mcse(self.frequencies[:, :, moves], chain_axis=0, draw_axis=1)
        return errors

    def standard_deviations(self, of: str) -> Floats:
        """Of the draws of P or F, around their own mean."""
        return np.asarray(self.values.std(axis=(0, 1), ddof=1))

    def quantiles(self, of: str, share: float, weights: Floats | None = None) -> Floats:
        """Of the draws of P or F, or of weighted sums of them, one in each row of `weights`."""
        answers = self._answers(weights)
        flat = answers.reshape(-1, answers.shape[-1])
        if of == "frequencies":
            return np.asarray(np.quantile(flat, share, axis=0, method="inverted_cdf"))
        return np.asarray(np.quantile(flat, share, axis=0))

    def errors_of_quantiles(self, share: float, weights: Floats | None = None) -> Floats:
        """Monte-Carlo standard errors of `quantiles`."""
        answers = self._answers(weights)
        moves = _moves(answers)
        errors = np.zeros(len(moves))
        if moves.any():
            errors[moves] = _arviz().mcse(
                answers[:, :, moves], chain_axis=0, draw_axis=1, method="quantile", prob=share
            )
        return errors

    def _answers(self, weights: Floats | None) -> Floats:
        return self.values if weights is None else np.asarray(self.values @ weights.T)


def sample(tally: Tally, alpha: Floats, of: str, rng: Generator, max_sweeps: int) -> Draws:
    """Sweep until R-hat and the effective sample size are good, or for `max_sweeps` sweeps of each chain.

    What a sweep is says `_chains`. They are run in stages of N_DRAWS kept draws, every thin-th
    sweep one, each stage longer than the one before, of which nothing is kept.
    """
    _arviz()  # if it is missing, say so before the draws
    chains = Chains(tally, alpha, rng)
    n = tally.n
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
                frequencies[:, i] = [_responsibilities(tally, each) for each in p]
                assigned = (
                    chains.assigned() if of == "frequencies" or chains.needs_secrets else None
                )
                if of == "distribution":
                    values[:, i] = p
                else:
                    # where the report assigns nobody a secret, it is a draw from p
                    assert assigned is not None
                    values[:, i] = (assigned + rng.multinomial(n - assigned.sum(axis=1), p)) / n
                chains.sweep(assigned)
                bar.update(thin)
            sweeps += thin * N_DRAWS
            ess, r_hat = _diagnostics(frequencies)
            lacking = max(MIN_ESS / ess.min(), (r_hat.max() - 1) / (MAX_R_HAT - 1))
            left = (max_sweeps - sweeps) // N_DRAWS
            if lacking <= 1 or left <= thin:
                return Draws(frequencies, values, sweeps, bool(lacking <= 1), ess, r_hat)
            # a large R-hat may be the chains' beginning, which is over by now
            thin = min(max(2 * thin, math.ceil(1.2 * min(lacking, 6) * thin)), left)


def _responsibilities(tally: Tally, p: Floats) -> Floats:
    """E[F_x | p, reports] = p_x sum_z q_z M_xz / (p M)_z."""
    responsibilities: Floats = p * tally.operator.adjoint(
        tally.frequencies / tally.operator.forward(p)
    )
    return np.asarray(responsibilities / responsibilities.sum())


def _moves(draws: Floats) -> NDArray[np.bool_]:
    """Which coordinates vary by more than rounding."""
    return np.asarray(np.ptp(draws, axis=(0, 1)) > 1e-13)


def _diagnostics(draws: Floats) -> tuple[Floats, Floats]:
    """Bulk effective sample size and rank-normalised split R-hat of each coordinate."""
    moves = _moves(draws)
    ess, r_hat = np.full(len(moves), float(draws.shape[0] * draws.shape[1])), np.ones(len(moves))
    if moves.any():
        ess[moves] = _arviz().ess(draws[:, :, moves], chain_axis=0, draw_axis=1)
        r_hat[moves] = _arviz().rhat(draws[:, :, moves], chain_axis=0, draw_axis=1)
    return ess, r_hat


def _arviz() -> Any:
    """Diagnostics on arrays; imported where they are asked for, as they take as long to load as the package."""
    try:
        from arviz_stats import base
    except ImportError as error:
        raise MissingExtra(
            "method='gibbs' needs arviz-stats, which is not installed, to judge its chains: "
            'pip install "ibukit[bayes]"'
        ) from error

    return base.array_stats
