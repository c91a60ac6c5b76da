"""Metropolis steps with a surrogate: a random walk under a parabola, judged by the likelihood.

If reports tell little of their secrets, data augmentation moves slowly: given all secrets, p is
nearly determined. The log-likelihood of many reports is close to a parabola Q, under which a move
costs O(k) instead of O(n), so a walk can be long enough to forget where it began. Its end is
accepted with probability min(1, exp[(L - Q)(end) - (L - Q)(start)]): Metropolis-Hastings with a
proposal that is reversible under Q (a surrogate transition). It keeps the posterior for any Q; a
poor one is only refused more often.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats
from ibukit.bayes._gibbs_kernels import surrogate_walk
from ibukit.bayes._small_matrix import quick_channel
from ibukit.channels import Channel, facts
from ibukit.solvers import Problem, best_found
from ibukit.solvers.bits import MIN_ROWS_PER_SECRET, BitReports
from ibukit.tally.tally import Tally, TallyPart

# The Hessian of the parabola is a dense matrix; larger alphabets do without these steps.
MAX_SECRETS = 512
# Moves of a walk for each secret: with fewer, draws are more correlated; more cost more than they
# help.
MOVES_PER_SECRET = 10
# Gap of the estimate near which the parabola is tangent; it affects acceptance rates only.
TANGENT_POINT_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class SurrogateMoves:
    """A parabola for the log-likelihood that is tangent at `centre`.

    Q(p) = slope . (p - centre) - 1/2 (p - centre) H (p - centre), where H = M diag(counts / (centre
    M)^2) M^T is the observed information there.
    """

    tally: Tally
    alpha: Floats
    centre: Floats
    slope: Floats
    hessian: Floats

    @classmethod
    def of(cls, tally: Tally, alpha: Floats) -> SurrogateMoves | None:
        """Parabola tangent near the posterior mean; None for alphabets that are too large."""
        if not 2 <= tally.k <= MAX_SECRETS:
            return None
        problem = Problem(tally.operator, tally.counts, tally.n)
        best = best_found(problem, TANGENT_POINT_TOLERANCE).theta
        # The prior pulls the mode towards alpha by its weight in pseudo-counts.
        centre = (tally.n * best + alpha) / (tally.n + alpha.sum())
        slope = tally.operator.adjoint(tally.counts / tally.operator.forward(centre))
        hessian = np.sum([_hessian(part, centre) for part in tally.parts], axis=0)
        return cls(tally, alpha, centre, slope, np.ascontiguousarray(hessian))

    @cached_property
    def channel(self) -> Channel:
        """The channel of the reports seen."""
        return quick_channel(self.tally)

    def __call__(self, p: Floats, rng: Generator) -> Floats:
        """Move each chain by one step, p of shape (chains, k)."""
        return np.array([self._step(each, rng) for each in p])

    def _step(self, p: Floats, rng: Generator) -> Floats:
        end = walk_end(
            p,
            self.slope - self.hessian @ (p - self.centre),
            self.hessian,
            self.alpha,
            MOVES_PER_SECRET,
            rng,
        )
        # The walk is reversible under the prior and Q, so only L - Q is left in the ratio.
        log_ratio = self._surrogate_error(end) - self._surrogate_error(p)
        return end if log_ratio > -rng.standard_exponential() else p

    def _surrogate_error(self, p: Floats) -> float:
        """Log-likelihood less the parabola, L - Q."""
        deviation = p - self.centre
        likelihood = float(self.tally.counts @ np.log(self.channel.forward(p)))
        return likelihood - float(self.slope @ deviation - deviation @ self.hessian @ deviation / 2)


def walk_end(
    p: Floats, slope: Floats, hessian: Floats, alpha: Floats, moves: int, rng: Generator
) -> Floats:
    """End of a random walk of `moves` moves per secret, under the prior and a parabola.

    `slope` is the parabola's at p.
    """
    k, moves = len(p), moves * len(p)
    first = rng.integers(0, k, moves)
    second = (first + rng.integers(1, k, moves)) % k
    from_prior = rng.random(moves) < 0.5
    # From a single shape parameter numpy draws four times as quickly as from an array that repeats
    # it.
    shapes = alpha[0] if (alpha == alpha[0]).all() else alpha[np.stack([first, second], axis=1)]
    end = p.copy()
    surrogate_walk(
        end,
        slope,
        hessian,
        alpha,
        first,
        second,
        from_prior,
        rng.standard_gamma(shapes + 1, (moves, 2)),
        rng.standard_exponential((moves, 2)),
        rng.standard_normal(moves),
        -rng.standard_exponential(moves),
    )
    return end / end.sum()


def _hessian(part: TallyPart, theta: Floats) -> Floats:
    k = len(theta)
    if (bits := facts.as_bits(part.channel)) is not None:
        # A regular subset of very many bit rows gives a Hessian good enough for a proposal.
        stride = max(1, len(part.counts) // (4 * MIN_ROWS_PER_SECRET * k))
        return BitReports(bits, part.counts).hessian(theta, stride)
    return part.channel.gram(part.counts / part.channel.forward(theta) ** 2)
