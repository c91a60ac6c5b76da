"""Long steps for the Gibbs chains: a walk under a parabola for the log-likelihood, judged by the likelihood itself.

Where reports tell little of the secrets behind them, data augmentation moves by little: knowing all
secrets, p is all but known. The log-likelihood of many reports is close to a parabola, under which
a move costs O(k) and not O(n), so that a walk can be long enough to forget where it began. Its end
is accepted with the probability min(1, exp[(L - Q)(end) - (L - Q)(beginning)]): Metropolis-Hastings
with an approximation as its proposal (a surrogate transition). It leaves the posterior as it is,
however poor the parabola Q may be, which only makes it refuse more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats
from ibukit.bayes._dirichlet import dirichlet
from ibukit.bayes._gibbs_kernels import surrogate_walk
from ibukit.channels import facts
from ibukit.solvers import Problem, best_found
from ibukit.solvers.bits import ROWS_A_SECRET, BitReports
from ibukit.tally.tally import Tally, TallyPart

# the matrix of the parabola is dense
MAX_SECRETS_MOVED = 512
# of the walk, for each secret: with fewer the draws depend more on each other, more take longer
# than they help
MOVES = 10
# where the parabola touches; nothing depends on it but how often an end is accepted
TOUCHING_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class SurrogateMoves:
    """Q(p) = slope . (p - centre) - 1/2 (p - centre) H (p - centre), H = M diag(counts / (centre M)^2) M^T."""

    tally: Tally
    alpha: Floats
    centre: Floats
    slope: Floats
    hessian: Floats

    @classmethod
    def of(cls, tally: Tally, alpha: Floats) -> SurrogateMoves | None:
        """The parabola that touches near the posterior mean; None where its matrix would be large."""
        if not 2 <= tally.k <= MAX_SECRETS_MOVED:
            return None
        problem = Problem(tally.operator, tally.counts, tally.n)
        best = best_found(problem, TOUCHING_TOL).theta
        centre = (tally.n * best + alpha) / (tally.n + alpha.sum())
        slope = tally.operator.adjoint(tally.counts / tally.operator.forward(centre))
        hessian = np.sum([_hessian(part, centre) for part in tally.parts], axis=0)
        return cls(tally, alpha, centre, slope, np.ascontiguousarray(hessian))

    def __call__(self, p: Floats, rng: Generator) -> Floats:
        """One step of each chain, p of shape (chains, k)."""
        return np.array([self._step(each, rng) for each in p])

    def _step(self, p: Floats, rng: Generator) -> Floats:
        end = walked(
            p, self.slope - self.hessian @ (p - self.centre), self.hessian, self.alpha, MOVES, rng
        )
        log_ratio = self._surrogate_error(end) - self._surrogate_error(p)
        return end if log_ratio > -rng.standard_exponential() else p

    def _surrogate_error(self, p: Floats) -> float:
        """L - Q."""
        off = p - self.centre
        likelihood = float(self.tally.counts @ np.log(self.tally.operator.forward(p)))
        return likelihood - float(self.slope @ off - off @ self.hessian @ off / 2)


def walked(
    p: Floats, slope: Floats, hessian: Floats, alpha: Floats, moves: int, rng: Generator
) -> Floats:
    """Where a walk of so many moves for each secret ends, under the prior and a parabola with this slope at p."""
    k, moves = len(p), moves * len(p)
    first = rng.integers(0, k, moves)
    second = (first + rng.integers(1, k, moves)) % k
    end = p.copy()
    surrogate_walk(
        end,
        slope,
        hessian,
        alpha,
        first,
        second,
        rng.random(moves) < 0.5,
        dirichlet(np.stack([alpha[first], alpha[second]], axis=1), rng),
        rng.standard_normal(moves),
        -rng.standard_exponential(moves),
    )
    return np.asarray(end / end.sum())


def _hessian(part: TallyPart, theta: Floats) -> Floats:
    k = len(theta)
    if (bits := facts.as_bits(part.channel)) is not None:
        thinned = max(1, len(part.counts) // (4 * ROWS_A_SECRET * k))
        return BitReports(bits, part.counts).hessian(theta, thinned)
    return part.channel.gram(part.counts / part.channel.forward(theta) ** 2)
