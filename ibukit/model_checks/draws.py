"""Tallies drawn under the assumption, and p-values from draws that stop early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import chdtrc
from tqdm import tqdm

from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.distributions import quantize
from ibukit.errors import LikelihoodUnknown
from ibukit.mechanisms import FiniteMechanism
from ibukit.solvers import Problem, best_found, maximise_near
from ibukit.tally.likelihood_rows import require_law
from ibukit.tally.part import TallyPart, has_likelihood
from ibukit.tally.tally import Tally, check_tally
from ibukit.tally.trials import refuse_trials

# Draws go on until this many are at least as large as the statistic: then their share is known well
# enough. A p-value of a half takes some 20 draws.
ENOUGH_EXCEEDANCES = 10
# The deviance of the truth follows chi-square if each report is expected at least this often.
MIN_EXPECTED = 5
# A bound of the p-value that is below this makes draws needless.
CLEAR = 1e-3
# Probabilities below this are rounding of a solver.
NO_PROBABILITY = 1e-7
# Statistics that differ by less, in nats, are equal: the maxima are certified to within this.
EQUAL_STATISTICS = 1e-4


def checked_tally(tally: Tally) -> Tally:
    """Return a tally if its reports have known laws and probabilities; else raise an error."""
    if not all(has_likelihood(part.mechanism) for part in tally.parts):
        raise LikelihoodUnknown(
            "tally must hold reports for a test of the model, but it holds sums of their bits: "
            "take `tally` of the reports themselves"
        )
    check_tally(tally, lossy=True)
    mechanisms = [part.mechanism for part in tally.parts]
    require_law(mechanisms, "a test of the model")
    refuse_trials(
        mechanisms,
        "a test of the model",
        "a misfit may be an error of the trials, so look at an interval: method='guaranteed' says "
        "if no matrix that the trials allow explains the reports",
    )
    # Reports in files may not have the factors of their probabilities; the tally then refuses.
    _ = tally.log_scale
    return tally


def most_likely(tally: Tally, start: Floats | None = None) -> Floats:
    """Return a maximiser among the secrets seen; `start` is that of a similar tally."""
    problem = Problem(tally.operator, tally.counts, tally.n)
    tol = certificate_for(tally)
    # Where the alphabet has no end, a drawn tally may have other secrets.
    if start is None or len(start) != tally.k:
        return best_found(problem, tol).theta
    return maximise_near(problem, start, tol)


def certificate_for(tally: Tally) -> float:
    """Return the gap, in nats per report, that leaves no doubt about a statistic."""
    return EQUAL_STATISTICS / (10 * tally.n)


def secrets_found(theta: Floats) -> Ints:
    """Return the places of the secrets to which an estimate gives a probability."""
    return np.flatnonzero(theta > NO_PROBABILITY)


def draw_part(part: TallyPart, theta: Floats, rng: Generator) -> Tally:
    """Draw as many reports as the part has, from people whose secrets are seen and follow theta."""
    mechanism: Any = part.mechanism
    # Reports that get lost are not part of the tally, and so not drawn.
    return getattr(mechanism, "among_seen", mechanism).simulate(
        rng.multinomial(part.n, quantize(theta)), rng
    )


def bound_of_p_value(statistic: float, alone: list[Tally], fits: list[Floats]) -> float:
    """Return a bound on the p-value, which is 1 if the reports are too few for one.

    Each tally in `alone` has one mechanism. A statistic is at most the sum of the deviances of the
    truth, each of which follows a chi-square distribution with one degree of freedom less than
    there are possible reports.
    """
    freedom = 0
    for tally, theta in zip(alone, fits, strict=True):
        mechanism: Any = tally.parts[0].mechanism
        # If more reports are possible, they are expected too seldom, and may be too many to list.
        if not isinstance(mechanism, FiniteMechanism) or mechanism.m * MIN_EXPECTED > tally.n:
            return 1.0
        expected = tally.n * getattr(mechanism, "among_seen", mechanism).forward(theta)
        possible = expected[expected > 0]
        if possible.min() < MIN_EXPECTED:
            return 1.0
        freedom += len(expected) - 1
    return float(chdtrc(freedom, statistic))


def monte_carlo_p_value(
    statistic: float, draw: Callable[[], float], draws: int, title: str
) -> tuple[float, int]:
    """Return the p-value by drawing statistics, and how many draws it took (Besag and Clifford).

    Drawing stops when `ENOUGH_EXCEEDANCES` drawn statistics are at least as large; the p-value is
    valid whenever the drawing stops.
    """
    larger = 0
    with tqdm(total=draws, desc=title, disable=None, leave=False) as progress:
        for drawn in range(1, draws + 1):
            larger += draw() >= statistic - EQUAL_STATISTICS
            progress.update()
            if larger == ENOUGH_EXCEEDANCES:
                return larger / drawn, drawn
    return (larger + 1) / (draws + 1), draws


def log_likelihoods(tally: Tally, theta: Floats) -> list[float]:
    """Return the log-likelihood of each part at theta."""
    with np.errstate(divide="ignore"):
        log_p = np.log(tally.operator.forward(theta)) + tally.log_scale
    return [float(part.counts @ of_part) for part, of_part in tally.split(log_p)]
