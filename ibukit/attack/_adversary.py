"""The channel of a population with adversaries: one more secret, whose report is always the same.

That makes the robust likelihood a mixture likelihood like any other: theta and the share gamma of
the adversaries are the probabilities (1 - gamma) theta and gamma of the k + 1 secrets, L is concave
in them jointly, and every solver and every certificate of the package applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit.channels import Channel
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.estimate import Estimate
from ibukit.estimators import mle
from ibukit.tally.tally import Tally, TallyPart

# nats per report: what explains the reports better by less than this does so by rounding
ROUNDING_OF_GAIN = 1e-12


@dataclass(frozen=True)
class WithAdversaries:
    """A mechanism among whose users are some who always send the same report; they are the last of k + 1 secrets."""

    honest: Any
    report: tuple[int, ...]

    @cached_property
    def alphabet(self) -> Alphabet:
        """Codes 0..k: k stands for the adversaries."""
        return Line(0, len(self.honest.alphabet))

    def _own(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray((reports.reshape(len(reports), -1) == np.array(self.report)).all(axis=1))

    def channel(self, reports: NDArray[Any]) -> Channel:
        """Columns of k + 1 rows."""
        own = self._own(reports)
        honest: Channel = self.honest.channel(reports)
        if (scale := self.honest.log_scale(reports)) is not None:
            # the adversaries' report has probability 1 under one secret: there is no factor to be
            # left out of it
            honest = honest.scaled(np.where(own, np.exp(scale), 1.0))
        return honest.with_one_more(own.astype(np.float64))

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """As the honest mechanism's, but for the adversaries' report."""
        scale = self.honest.log_scale(reports)
        return None if scale is None else np.where(self._own(reports), 0.0, scale)


def with_adversaries(part: TallyPart, report: int) -> Tally:
    """The same reports, as if some of them came from adversaries who send the report of this index."""
    own = tuple(np.ravel(part.reports[report]).tolist())
    return Tally((TallyPart(WithAdversaries(part.mechanism, own), part.reports, part.counts),))


@dataclass(frozen=True)
class Suspect:
    """The report that adversaries explain best."""

    report: int
    """Index among the reports seen."""
    likelihood_ratio: float
    """2 (log-likelihood with adversaries - without)."""
    estimate: Estimate
    """Of the k + 1 probabilities."""


class Scan(NamedTuple):
    """What `scan` found."""

    suspect: Suspect | None
    """Of the largest likelihood ratio, None if no ratio exceeds what was asked for."""
    bound: float
    """Of all ratios; the ratio itself if there is a suspect."""
    gap: float
    """The largest of the maxima that were computed, which is at most `tol` unless one was missed."""


def scan(
    part: TallyPart, honest: Estimate, tol: float, above: float = 0.0, but: Sequence[int] = ()
) -> Scan:
    """Look for the report that adversaries explain best, if its likelihood ratio exceeds `above`.

    `but` are reports, by their index, whose adversaries are among the secrets already.

    Not every report has to be tried. The weights lam = q / (theta M) of an honest maximiser with
    certificate g = M lam, divided by max g, are feasible for the dual problem, and they stay so for
    the larger problem if the weight of the adversaries' report y is cut at 1. So by weak duality
    the ratio of y is at most 2 n (gap + q_y log(q_y / p_y)), where p_y is its probability under
    theta, and the search ends where the best ratio found exceeds all that are left.
    """
    tally = Tally((part,))
    q, p = tally.frequencies, tally.forward(honest.distribution)
    # p may have a factor left out, as a logarithm, that is too small for a double
    excess = np.log(q) - np.log(p) - tally.log_scale
    most = 2 * tally.n * (honest.gap + q * np.maximum(excess, 0.0))
    most[list(but)] = 0.0
    found: Suspect | None = None
    best, bound, least, gap = above, 0.0, 2 * tally.n * ROUNDING_OF_GAIN, 0.0
    for report in np.argsort(-most, kind="stable"):
        if excess[report] <= ROUNDING_OF_GAIN or most[report] <= best:
            bound = max(bound, float(most[report]))
            break
        estimate = mle(with_adversaries(part, int(report)), tol, strict=False)
        ratio = 2 * (estimate.log_likelihood - honest.log_likelihood)
        # of a maximum that was missed, what it may be more
        bound = max(
            bound,
            ratio if estimate.gap <= tol else min(ratio + 2 * tally.n * estimate.gap, most[report]),
        )
        gap = max(gap, estimate.gap)
        if ratio > best + least:
            found, best = Suspect(int(report), ratio, estimate), ratio
    return Scan(found, best if found else float(bound), gap)
