"""The channel of least mutual information at a given expected loss (rate-distortion problem).

For beta > 0 the least of I(x; y) + beta E loss over all channels A is attained at

    A_xy = q_y exp(-beta loss(x, y)) / sum_w q_w exp(-beta loss(x, w)),
    q = argmax_q sum_x prior_x log sum_y q_y exp(-beta loss(x, y)),

and q is also the distribution of y. The second line is a maximum-likelihood mixture: the "secrets"
are the y, the "reports" the x, their frequencies the prior. So the solver of `mle` finds q in a few
steps with zeros where they belong, where the alternating iteration of Blahut and Arimoto would need
more and more steps as probabilities vanish. The expected loss falls as beta grows, and a
root-finder meets the one that is wanted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.solvers import interior_point

# Gap to which the likelihood of the mixture is certified, in nats; doubles allow little less.
MIXTURE_TOL = 1e-13
MAX_BETA = 1e150
# Relative tolerance, from below, at which the wanted expected loss is met.
CLOSE = 1e-13
# Relative difference below which expected losses are equal: sums of a few hundred products are no
# more exact.
TIE_OF_LOSSES = 1e-12
# Largest step in log beta, up to which steps double. Then beta is too small to tell its channel
# from one without information.
MAX_STEP = 60.0
# Share of the smallest constant loss below which nearly all reports are the best ones.
TINY_SHARE = 1e-12


@dataclass(frozen=True)
class RateDistortionProblem:
    """Secrets with a prior, and the loss of each report under each secret."""

    prior: Floats
    """Shape (k,); secrets of probability 0 have no influence."""
    loss: Floats
    """Shape (k, m)."""

    @property
    def least(self) -> float:
        """The smallest expected loss: each secret has its best report."""
        return float(self.prior @ self.loss.min(axis=1))

    @property
    def without_information(self) -> Floats:
        """The expected loss of each report if all people send it, shape (m,)."""
        return np.asarray(self.prior @ self.loss)

    @property
    def excess(self) -> Floats:
        """The loss of a report above that of the secret's best one, shape (k, m)."""
        return np.asarray(self.loss - self.loss.min(axis=1, keepdims=True))

    def expected_excess(self, channel: Floats) -> float:
        """The expected loss of a channel (k, m) above the smallest."""
        return float(self.prior @ (channel * self.excess).sum(axis=1))


def slope(beta: Any) -> float:
    """Return a valid beta, in nats per unit of loss, whose products with losses are doubles."""
    worth = arguments.positive("beta", beta)
    if worth > MAX_BETA:
        raise ValueError(
            f"beta must be at most {MAX_BETA:g}, got {beta!r}: with far less every report is the "
            "best"
        )
    return worth


def constant(source: RateDistortionProblem) -> Floats:
    """Return the channel without information that has the smallest loss.

    Every report has the same distribution, uniform over the reports that are best if nothing is
    known.
    """
    alone = source.without_information
    best = alone <= alone.min() * (1 + TIE_OF_LOSSES)
    return np.tile(best / best.sum(), (len(source.prior), 1))


def output_distribution(source: RateDistortionProblem, beta: float) -> Floats:
    """Optimal distribution of the reports at beta, shape (m,); beta = inf is the limit."""
    return interior_point.maximise(*kernel_of(source, beta), MIXTURE_TOL)[0]


def kernel_of(source: RateDistortionProblem, beta: float) -> tuple[Floats, Floats]:
    """Return exp(-beta loss) from each report to the possible secrets (m, s), and their prior.

    The optimal distribution of the reports is the maximum-likelihood mixture of these rows.
    """
    possible = source.prior > 0
    excess = source.excess[
        possible
    ]  # in place of the loss: a factor of each row, which leaves the maximiser alone
    kernel = np.exp(-beta * excess) if np.isfinite(beta) else (excess == 0).astype(np.float64)
    return np.ascontiguousarray(kernel.T), source.prior[possible]


def excess_of(source: RateDistortionProblem, q: Floats, beta: float) -> float:
    """Bound how far I + beta E loss of `channel_of` is above its minimum, in nats."""
    kernel, prior = kernel_of(source, beta)
    return max(0.0, float(np.log((kernel @ (prior / (q @ kernel))).max())))


def least_rate(source: RateDistortionProblem, q: Floats, beta: float, loss: float) -> float:
    """Lower bound in nats on the information of every channel of expected loss at most `loss`.

    For any q it is -sum_x prior_x log sum_y q_y exp(-beta l(x, y)), less `excess_of` and less beta
    times the loss.
    """
    kernel, prior = kernel_of(source, beta)
    spent = beta * (loss - source.least) if np.isfinite(beta) else 0.0
    return -float(prior @ np.log(q @ kernel)) - excess_of(source, q, beta) - spent


def channel_of(source: RateDistortionProblem, q: Floats, beta: float) -> Floats:
    """A_xy proportional to q_y exp(-beta loss(x, y)), shape (k, m), for all secrets."""
    made = q > 0
    loss = source.loss[:, made]
    loss = loss - loss.min(axis=1, keepdims=True)
    if np.isfinite(beta):
        logs = np.log(q[made]) - beta * loss
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    else:
        weights = q[made] * (loss == 0)
    channel = np.zeros(source.loss.shape)
    channel[:, made] = weights / weights.sum(axis=1, keepdims=True)
    return channel


def solve_at_beta(source: RateDistortionProblem, beta: float) -> Floats:
    """Return the channel that minimises I(x; y) + beta E loss, shape (k, m)."""
    return channel_of(source, output_distribution(source, beta), beta)


@dataclass(frozen=True)
class Optimum:
    """A channel of least information, and the beta at which it is one."""

    channel: Floats
    beta: float


@dataclass
class _Search:
    """A search in log beta: its expected losses, and the optima on both sides of the wanted one."""

    source: RateDistortionProblem
    wanted: float
    above: tuple[float, Optimum]
    below: tuple[float, Optimum | None] = (-np.inf, None)
    known: dict[float, float] = field(default_factory=dict)

    def miss(self, log_beta: float) -> float:
        """Log of expected over wanted excess; 0 if it is close enough and not above."""
        # Root-finders begin with the ends, which the bracket has already visited.
        if log_beta not in self.known:
            self.known[log_beta] = self._log_excess_ratio(log_beta)
        return self.known[log_beta]

    def _log_excess_ratio(self, log_beta: float) -> float:
        with np.errstate(over="ignore"):
            beta = float(np.exp(log_beta))
        here = Optimum(solve_at_beta(self.source, beta), beta)
        found = self.source.expected_excess(here.channel)
        if found > self.wanted:
            self.above = min(self.above, (found, here), key=lambda point: point[0])
        else:
            self.below = max(self.below, (found, here), key=lambda point: point[0])
        if self.met:
            return 0.0
        # The target is the middle of the tolerated range. The value is bounded where exp(-beta
        # loss) underflows.
        return float(np.log(max(found / (self.wanted * (1 - CLOSE / 2)), 1e-30)))

    @property
    def met(self) -> bool:
        """Return True if the channel below is close enough to the wanted loss."""
        return self.below[0] >= self.wanted * (1 - CLOSE)

    def bracket(self) -> tuple[float, float] | None:
        """Logarithms of two betas on either side; None if beta would be too small to matter."""
        low = high = -float(
            np.log(self.wanted)
        )  # of the right size: E |x - y| = 1 / beta on a long line
        least = float(self.source.excess[self.source.excess > 0].min())
        # The excess falls like exp(-beta least), so 1 / wanted would be far too large.
        if self.wanted < TINY_SHARE * least:
            low = high = float(np.log(np.log(least / self.wanted) / least))
        step = 0.5
        if self.miss(low) > 0:
            while self.miss(high := high + step) > 0:
                low, step = high, 2 * step
        else:
            while self.miss(low := low - step) < 0:
                high, step = low, 2 * step
                if step > MAX_STEP:
                    return None
        return low, high


def solve_at_distortion(source: RateDistortionProblem, wanted: float) -> Optimum:
    """Return the channel of least mutual information whose expected loss is `wanted`.

    Below `source.least` there is none. From the least loss without information on it is `constant`,
    at beta = 0; at `source.least` beta is infinite. The expected loss is met from below within
    `CLOSE` of it, or exactly up to rounding where it jumps: there two channels are optimal at the
    same beta, and so is the mixture of them that has the wanted loss.
    """
    if wanted >= source.without_information.min():
        return Optimum(constant(source), 0.0)
    excess = wanted - source.least
    if excess <= 0:
        return Optimum(solve_at_beta(source, np.inf), np.inf)
    nothing = Optimum(constant(source), 0.0)
    search = _Search(source, excess, above=(source.expected_excess(nothing.channel), nothing))
    ends = search.bracket()
    if ends is not None and not search.met:
        # If the search does not end, the two sides are mixed below; the certificate covers that.
        brentq(search.miss, *ends, xtol=1e-15, rtol=4 * np.finfo(float).eps, disp=False)
    (more, above), (less, below) = search.above, search.below
    assert below is not None  # the bracket has a point on this side
    if search.met:
        return below
    # In doubles the two ends have the same beta.
    share = (excess - less) / (more - less)
    return Optimum(share * above.channel + (1 - share) * below.channel, below.beta)
