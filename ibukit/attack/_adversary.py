"""Channel of a population with adversaries, who count as one more secret with a constant report.

This makes the robust likelihood a mixture likelihood like any other. If gamma is the share of the
adversaries, the k + 1 secrets have the probabilities (1 - gamma) theta and gamma. The likelihood is
concave in all of them jointly, so every solver and every certificate of the package applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ibukit._ground.arguments import Floats
from ibukit.channels import Channel
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.estimate import Estimate
from ibukit.estimators import mle
from ibukit.tally.tally import Tally, TallyPart

# Least threshold of a likelihood ratio that is chosen, and the bound on the probability that honest
# people exceed a chosen one.
MIN_THRESHOLD, MAX_FALSE_ALARM = 20.0, 0.01
# Gain in nats per report below which an explanation is better only by rounding.
ROUNDING_OF_GAIN = 1e-12


@dataclass(frozen=True)
class WithAdversaries:
    """A mechanism with adversaries who always send one report; they are the secret k of 0..k."""

    honest: Any
    report: tuple[int, ...]

    @cached_property
    def alphabet(self) -> Alphabet:
        """Codes 0..k: k stands for the adversaries."""
        return Line(0, len(self.honest.alphabet))

    def _own(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether each report is that of the adversaries."""
        return (reports.reshape(len(reports), -1) == self.report).all(axis=1)

    def channel(self, reports: NDArray[Any]) -> Channel:
        """Return the columns of the matrix with k + 1 rows."""
        own = self._own(reports)
        honest: Channel = self.honest.channel(reports)
        if (scale := self.honest.log_scale(reports)) is not None:
            # The honest channel leaves a factor out of each column. The adversaries' report has
            # probability 1 under their secret, so in its column the factor is multiplied in.
            honest = honest.scaled(np.where(own, np.exp(scale), 1.0))
        # The adversaries are one more row, which is 1 at their report.
        return honest.with_one_more(own.astype(np.float64))

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Return the honest mechanism's factors, with 0 for the adversaries' report."""
        scale = self.honest.log_scale(reports)
        return None if scale is None else np.where(self._own(reports), 0.0, scale)


def with_adversaries(part: TallyPart, report: int) -> Tally:
    """Return the tally of the same reports with adversaries who send the report of this index."""
    own = tuple(np.ravel(part.reports[report]).tolist())
    return Tally((TallyPart(WithAdversaries(part.mechanism, own), part.reports, part.counts),))


@dataclass(frozen=True)
class Suspect:
    """The report that adversaries explain best, with the estimate of their share."""

    report: int
    """Index among the reports seen."""
    likelihood_ratio: float
    """2 (log-likelihood with adversaries - without)."""
    estimate: Estimate
    """Estimate of the k + 1 probabilities."""


class Scan(NamedTuple):
    """Result of `scan`."""

    suspect: Suspect | None
    """Report of the largest likelihood ratio; None if no ratio exceeds the given bound."""
    bound: float
    """Upper bound of all ratios; the ratio itself if there is a suspect."""
    gap: float
    """Largest gap of the computed maxima; at most `tol` unless one was missed."""


def chosen_threshold(part: TallyPart, honest: Estimate) -> float:
    """Return the likelihood ratio that honest people exceed with probability 1 % at most.

    That is so if theta is known: with m possible reports the probability is at most
    m exp(-threshold / 2). Where the possible reports are no finite list, m is estimated.
    """
    m = getattr(part.mechanism, "m", None)
    log_m = math.log(m) if m else _log_possible(part, honest)
    return max(MIN_THRESHOLD, 2 * (log_m - math.log(MAX_FALSE_ALARM)))


def _log_possible(part: TallyPart, honest: Estimate) -> float:
    """Return the logarithm of about the number of possible reports.

    Their number is the mean of 1 / p_z over honest reports z. The mean is taken over the likelier
    half of the reports, for one unlikely report of an adversary would make it as large as he likes.
    """
    shares = part.counts / part.counts.sum()
    excess = _excess(part, honest)
    likely = np.argsort(excess - np.log(shares), kind="stable")
    half = likely[: int(np.searchsorted(shares[likely].cumsum(), 1 / 2)) + 1]
    return float(logsumexp(excess[half]) - math.log(shares[half].sum()))


def _excess(part: TallyPart, honest: Estimate) -> Floats:
    """Return log(q / p) of each report: how much more often it came than honest people send it."""
    tally = Tally((part,))
    # The factor that p leaves out may be too small for a double, so its logarithm is added.
    p = np.log(tally.forward(honest.distribution)) + tally.log_scale
    return np.asarray(np.log(tally.frequencies) - p)


def scan(
    part: TallyPart, honest: Estimate, tol: float, above: float = 0.0, but: Sequence[int] = ()
) -> Scan:
    """Find the report that adversaries explain best, if its likelihood ratio exceeds `above`.

    `but` holds the indices of reports whose adversaries are among the secrets already.
    """
    # Not every report has to be tried. The weights lam = q / (theta M) of an honest maximiser with
    # certificate g = M lam, divided by max g, are feasible for the dual problem. They stay feasible
    # for the larger problem if the weight of the adversaries' report y is cut at 1. So by weak
    # duality the ratio of y is at most 2 n (gap + q_y log(q_y / p_y)), where p_y is its probability
    # under theta. Reports are tried in the order of this bound, until the best ratio exceeds all
    # remaining bounds.
    tally = Tally((part,))
    # Bounds of all likelihood ratios, from the honest estimate alone.
    q, excess = tally.frequencies, _excess(part, honest)
    most = 2 * tally.n * (honest.gap + q * np.maximum(excess, 0.0))
    most[list(but)] = 0.0
    suspect: Suspect | None = None
    best, bound, least, gap = above, 0.0, 2 * tally.n * ROUNDING_OF_GAIN, 0.0
    for report in np.argsort(-most, kind="stable"):
        if excess[report] <= ROUNDING_OF_GAIN or most[report] <= best:
            bound = max(bound, float(most[report]))
            break
        estimate = mle(with_adversaries(part, int(report)), tol, strict=False)
        # Only now is the model with these adversaries fitted.
        ratio = 2 * (estimate.log_likelihood - honest.log_likelihood)
        # If the maximum was missed, the true ratio may be larger, by twice n times the gap at most.
        bound = max(
            bound,
            ratio if estimate.gap <= tol else min(ratio + 2 * tally.n * estimate.gap, most[report]),
        )
        gap = max(gap, estimate.gap)
        if ratio > best + least:
            suspect, best = Suspect(int(report), ratio, estimate), ratio
    return Scan(suspect, best if suspect else float(bound), gap)
