"""The channel of least mutual information at a given expected loss (rate-distortion problem).

For beta > 0 the least of I(x; y) + beta E loss over all channels A is attained at

    A_xy = q_y exp(-beta loss(x, y)) / sum_w q_w exp(-beta loss(x, w)),
    q = argmax_q sum_x prior_x log sum_y q_y exp(-beta loss(x, y)),

and q is also the distribution of y (Csiszar 1974). The second line is the maximum-likelihood
estimate of a mixture: its "secrets" are the y, its "reports" are the x, and their frequencies are
the prior. So the solver of `mle` finds q in a few steps, with zeros where they belong, whereas the
alternating iteration of Blahut and Arimoto would need more and more steps as probabilities vanish.
The expected loss falls as beta grows, so a root-finder finds the beta that has the wanted loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.solvers import interior_point

# Gap to which the likelihood of the mixture is certified, in nats; doubles allow hardly less.
MIXTURE_TOL = 1e-13
# Largest beta, in nats per unit of loss: its products with losses must be doubles.
MAX_BETA = 1e150
# Relative tolerance, from below, at which the wanted expected loss is met.
LOSS_TOLERANCE = 1e-13
# Relative difference up to which expected losses count as equal: sums of a few hundred products are
# no more exact.
TIE_TOLERANCE = 1e-12
# Steps in log beta double until they are this long. By then beta is so small that its channel
# cannot be told from one without information.
MAX_STEP = 60.0
# Wanted excess, as a share of the smallest positive one, below which nearly all reports are the
# best ones of their secrets.
TINY_SHARE = 1e-12


@dataclass(frozen=True)
class RateDistortionProblem:
    """Secrets with a prior, and the loss of each report under each secret."""

    prior: Floats
    """Shape (k,); secrets of probability 0 have no influence."""
    loss: Floats
    """Shape (k, m)."""

    @property
    def min_loss(self) -> float:
        """The smallest expected loss: each secret has its best report."""
        return float(self.prior @ self.loss.min(axis=1))

    @property
    def constant_losses(self) -> Floats:
        """The expected loss of each report if all people send it, shape (m,)."""
        return self.prior @ self.loss

    @property
    def excess_loss(self) -> Floats:
        """The loss of a report beyond the loss of the secret's best report, shape (k, m)."""
        return self.loss - self.loss.min(axis=1, keepdims=True)

    def expected_excess(self, channel: Floats) -> float:
        """The expected loss of a channel, shape (k, m), beyond the smallest one."""
        return float(self.prior @ (channel * self.excess_loss).sum(axis=1))


def valid_beta(beta: Any) -> float:
    """Return a valid beta, in nats per unit of loss."""
    number = arguments.positive("beta", beta)
    if number > MAX_BETA:
        raise ValueError(
            f"beta must be at most {MAX_BETA:g}, got {beta!r}: a far smaller beta already makes "
            "every report the best one"
        )
    return number


def constant_channel(problem: RateDistortionProblem) -> Floats:
    """Return the channel without information that has the smallest loss.

    Under every secret the report is uniform over the reports that are best if nothing is known.
    """
    losses = problem.constant_losses
    best = losses <= losses.min() * (1 + TIE_TOLERANCE)
    return np.tile(best / best.sum(), (len(problem.prior), 1))


def output_distribution(problem: RateDistortionProblem, beta: float) -> Floats:
    """Return the optimal distribution of the reports, shape (m,); beta = inf is the limit."""
    return interior_point.maximise(*kernel_of(problem, beta), MIXTURE_TOL)[0]


def kernel_of(problem: RateDistortionProblem, beta: float) -> tuple[Floats, Floats]:
    """Return exp(-beta loss) from each report to the possible secrets (m, s), and their prior.

    The optimal distribution of the reports is the maximum-likelihood mixture of these rows.
    """
    possible = problem.prior > 0
    # The kernel is that of the excess, so each secret's loss is reduced by its smallest one: the
    # log-likelihood moves by a constant, its maximiser does not, and no row underflows.
    excess = problem.excess_loss[possible]
    kernel = np.exp(-beta * excess) if np.isfinite(beta) else (excess == 0).astype(np.float64)
    return np.ascontiguousarray(kernel.T), problem.prior[possible]


def optimality_gap(problem: RateDistortionProblem, q: Floats, beta: float) -> float:
    """Bound how far I + beta E loss of `channel_of` is above its minimum, in nats."""
    # This is the certificate of a mixture: log max_y g_y bounds the log-likelihood that is missing,
    # with g_y = sum_x prior_x K_yx / (q K)_x. In doubles it may fall below 0.
    kernel, prior = kernel_of(problem, beta)
    return max(0.0, float(np.log((kernel @ (prior / (q @ kernel))).max())))


def rate_lower_bound(problem: RateDistortionProblem, q: Floats, beta: float, loss: float) -> float:
    """Lower bound in nats on the information of every channel of expected loss at most `loss`.

    For any q it is -sum_x prior_x log sum_y q_y exp(-beta l(x, y)), less `optimality_gap` and less
    beta times the loss.
    """
    # min (I + beta E loss) >= -log-likelihood(q) - gap, and E loss <= `loss`. The kernel has the
    # excess in its exponent, so the smallest loss is also taken off here. Beta is infinite only
    # where the loss is the smallest; then nothing is spent.
    kernel, prior = kernel_of(problem, beta)
    spent = beta * (loss - problem.min_loss) if np.isfinite(beta) else 0.0
    return -float(prior @ np.log(q @ kernel)) - optimality_gap(problem, q, beta) - spent


def channel_of(problem: RateDistortionProblem, q: Floats, beta: float) -> Floats:
    """Return A_xy proportional to q_y exp(-beta loss(x, y)), shape (k, m), for all secrets."""
    support = q > 0
    # The best report of a secret may lie outside the support, so rows are shifted by the smallest
    # loss within it. Then at least one entry of each row is 1 before it is normalised.
    loss = problem.loss[:, support]
    loss = loss - loss.min(axis=1, keepdims=True)
    if np.isfinite(beta):
        logs = np.log(q[support]) - beta * loss
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    else:
        weights = q[support] * (loss == 0)
    channel = np.zeros(problem.loss.shape)
    channel[:, support] = weights / weights.sum(axis=1, keepdims=True)
    return channel


def solve_at_beta(problem: RateDistortionProblem, beta: float) -> Floats:
    """Return the channel that minimises I(x; y) + beta E loss, shape (k, m)."""
    return channel_of(problem, output_distribution(problem, beta), beta)


@dataclass(frozen=True)
class Optimum:
    """A channel of least information, and the beta at which it is optimal."""

    channel: Floats
    beta: float


@dataclass
class _Search:
    """A search in log beta: the losses met, and the optima on both sides of the wanted loss."""

    problem: RateDistortionProblem
    wanted: float
    above: tuple[float, Optimum]
    below: tuple[float, Optimum | None] = (-np.inf, None)
    log_ratios: dict[float, float] = field(default_factory=dict)

    def log_ratio(self, log_beta: float) -> float:
        """Logarithm of expected over wanted excess; 0 if it is close enough and not above."""
        # Root-finders begin with the ends, which the bracket has already visited.
        if log_beta not in self.log_ratios:
            self.log_ratios[log_beta] = self._solve(log_beta)
        return self.log_ratios[log_beta]

    def _solve(self, log_beta: float) -> float:
        # An infinite beta, beyond all doubles, is the limit, at which every report is the best.
        with np.errstate(over="ignore"):
            beta = float(np.exp(log_beta))
        here = Optimum(solve_at_beta(self.problem, beta), beta)
        excess = self.problem.expected_excess(here.channel)
        if excess > self.wanted:
            self.above = min(self.above, (excess, here), key=lambda point: point[0])
        else:
            self.below = max(self.below, (excess, here), key=lambda point: point[0])
        if self.is_met:
            return 0.0
        # The target is the middle of the tolerated range. The ratio is bounded from below, because
        # the excess is 0 where exp(-beta loss) underflows.
        return float(np.log(max(excess / (self.wanted * (1 - LOSS_TOLERANCE / 2)), 1e-30)))

    @property
    def is_met(self) -> bool:
        """True if the channel below is close enough to the wanted loss."""
        return self.below[0] >= self.wanted * (1 - LOSS_TOLERANCE)

    def bracket(self) -> tuple[float, float] | None:
        """Return the logarithms of two betas around the wanted one.

        None if beta would be too small to matter.
        """
        # The start has the right size: on a long line E |x - y| = 1 / beta.
        low = high = -float(np.log(self.wanted))
        smallest = float(self.problem.excess_loss[self.problem.excess_loss > 0].min())
        # Here 1 / wanted would be far too large: the excess falls like exp(-beta smallest).
        if self.wanted < TINY_SHARE * smallest:
            low = high = float(np.log(np.log(smallest / self.wanted) / smallest))
        # Steps away from the start double until the sign changes: the excess falls with beta.
        step = 0.5
        if self.log_ratio(low) > 0:
            while self.log_ratio(high := high + step) > 0:
                low, step = high, 2 * step
        else:
            while self.log_ratio(low := low - step) < 0:
                high, step = low, 2 * step
                if step > MAX_STEP:
                    return None
        return low, high


def solve_at_distortion(problem: RateDistortionProblem, wanted: float) -> Optimum:
    """Return the channel of least mutual information whose expected loss is `wanted`.

    No channel has a loss below `min_loss`, at which beta is infinite. Once `wanted` reaches the
    smallest loss that is possible without information, the channel is `constant_channel` and beta
    is 0. The wanted loss is met from below within `LOSS_TOLERANCE` of it. If the loss jumps there
    as beta grows, it is met exactly, up to rounding: two channels are optimal at the same beta, and
    so is the mixture of them that has the wanted loss.
    """
    without_information = Optimum(constant_channel(problem), 0.0)
    if wanted >= problem.constant_losses.min():
        return without_information
    excess = wanted - problem.min_loss
    if excess <= 0:
        return Optimum(solve_at_beta(problem, np.inf), np.inf)
    largest = problem.expected_excess(without_information.channel)
    search = _Search(problem, excess, above=(largest, without_information))
    ends = search.bracket()
    if ends is not None and not search.is_met:
        # If the search does not end, the two sides are mixed below; the certificate covers that.
        brentq(search.log_ratio, *ends, xtol=1e-15, rtol=4 * np.finfo(float).eps, disp=False)
    (more, above), (less, below) = search.above, search.below
    # The bracket has a point on this side, or has visited one before beta became too small.
    assert below is not None
    if search.is_met:
        return below
    # The loss jumps here: in doubles the two ends have the same beta. The objective is convex in
    # the channel, so it is as small at any mixture of two optima.
    share = (excess - less) / (more - less)
    return Optimum(share * above.channel + (1 - share) * below.channel, below.beta)
