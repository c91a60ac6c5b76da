"""Column generation: the maximum-likelihood mixture of any channel, by forward and adjoint alone.

A maximiser of q . log(theta M) needs few secrets, often far fewer than k. So the problem is solved
on a set of candidates, as a small dense one. One adjoint, g = M (q / theta M), is then the
directional derivative towards each secret, relative to the average. Secrets with g > 1 are the next
candidates. If no g exceeds 1 by more than the tolerance, the maximum over the candidates is
certified as the maximum over all secrets.

The geometry is that of Lindsay (1983), the exchange of one vertex at a time is from Böhning (1986),
and that of many at once from Wang (2007).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.limits import max_dense_entries
from ibukit.channels import Channel
from ibukit.solvers import interior_point
from ibukit.solvers.dense.least_squares_steps import local_maxima

MAX_ROUNDS = 100
# Number of EM updates, from the uniform distribution, that show where the mass gathers.
EM_STEPS = 50
FIRST_CANDIDATES = 256
MIN_ADDED = 128
# A report is poorly covered if equal weights on the candidates give it less than this share of its
# probability.
POOR_COVERAGE = 1e-3
# A probability below this counts as 0: its reciprocal would overflow.
MIN_PROBABILITY = 1e-290
# Smallest tolerance for the dense solver: doubles have no more digits.
MIN_DENSE_TOL = 1e-14
# After this number of rounds without a gain in the likelihood or in the certificate, doubles have
# no more to give.
PATIENCE = 3


@dataclass(frozen=True)
class EvaluatedPoint:
    """A distribution with its probabilities, ratios and log-likelihood."""

    theta: Floats
    p: Floats
    g: Floats
    log_likelihood: float

    @classmethod
    def of(cls, theta: Floats, channel: Channel, q: Floats) -> EvaluatedPoint:
        """Evaluate theta, divided by its sum, which an interior point leaves near 1."""
        theta = theta / theta.sum()
        p = channel.forward(theta)
        safe = np.maximum(p, MIN_PROBABILITY)
        return cls(theta, p, channel.adjoint(q / safe), float(q @ np.log(safe)))

    @property
    def excess(self) -> float:
        """Largest g - 1; inf if some report has probability 0, because it then proves nothing."""
        return float(self.g.max() - 1) if self.p.min() >= MIN_PROBABILITY else np.inf


def maximise(channel: Channel, q: Floats, tol: float, k: int) -> tuple[Floats, int]:
    """Maximise q . log(theta M) over the simplex; return the maximiser and the rounds taken.

    If more candidates are needed than fit into `max_dense_entries`, or if doubles have no more
    digits, the result is the best distribution so far, certified or not.
    """
    point = best = _em_start(channel, q, tol, k)
    max_candidates = max_dense_entries() // len(q)
    chosen = _first_candidates(channel, q, point, max_candidates)
    rows: dict[int, Floats] = {}
    highest, waited = -np.inf, 0
    for round_ in range(MAX_ROUNDS):
        if best.excess <= tol or len(chosen) > max_candidates or waited == PATIENCE:
            return _trimmed(best, channel, q, tol), round_
        rows = {x: rows[x] if x in rows else _row(channel, x, k) for x in chosen.tolist()}
        matrix = np.array(list(rows.values()))
        weights, _ = interior_point.maximise(matrix, q, max(tol / 2, MIN_DENSE_TOL))
        theta = np.zeros(k)
        theta[chosen] = weights
        point = EvaluatedPoint.of(theta, channel, q)
        gained = point.log_likelihood > highest or point.excess < best.excess
        waited = 0 if gained else waited + 1
        highest = max(highest, point.log_likelihood)
        best = min(best, point, key=lambda candidate: candidate.excess)
        # Without a gain no candidate is dropped, so that the sets cannot cycle.
        kept = _candidates_with_mass(point, chosen, rows) if gained else chosen
        added = _violators(point.g, tol, chosen, max(MIN_ADDED, len(kept)))
        if len(added) == 0:
            break
        # Beyond half of the memory all violators are needed: then the loop ends on the next test.
        if len(kept) <= max_candidates // 2:
            added = added[: max_candidates - len(kept)]
        chosen = np.union1d(kept, added)
    return _trimmed(best, channel, q, tol), round_ + 1


def _em_start(channel: Channel, q: Floats, tol: float, k: int) -> EvaluatedPoint:
    """The point after EM_STEPS updates from uniform, or fewer if it is certified."""
    point = EvaluatedPoint.of(np.full(k, 1 / k), channel, q)
    for _ in range(EM_STEPS):
        if point.excess <= tol:
            break
        point = EvaluatedPoint.of(point.theta * point.g, channel, q)
    return point


def _first_candidates(
    channel: Channel, q: Floats, point: EvaluatedPoint, max_candidates: int
) -> Ints:
    """Secrets where the mass is, and for each report some secrets that can produce it.

    Candidates are added until there are more than `max_candidates`.
    """
    peaks = _largest(np.flatnonzero(local_maxima(point.theta)), point.theta, FIRST_CANDIDATES)
    chosen = np.union1d(_quantile_indices(point.theta, FIRST_CANDIDATES), peaks)
    while len(chosen) <= max_candidates:
        equal = np.zeros(len(point.theta))
        equal[chosen] = 1 / len(chosen)
        poor = channel.forward(equal) < POOR_COVERAGE * point.p
        # The mass of each secret among the poorly covered reports, by Bayes' rule.
        claims = point.theta * channel.adjoint(
            np.where(poor, q / np.maximum(point.p, MIN_PROBABILITY), 0.0)
        )
        claims[chosen] = 0
        if not (claims > 0).any():
            break
        chosen = np.union1d(chosen, _quantile_indices(claims, len(chosen)))
    return chosen


def _quantile_indices(mass: Floats, number: int) -> Ints:
    """Indices at equal steps of the cumulated mass: dense where there is much mass."""
    cumulated = np.cumsum(mass)
    return np.unique(np.searchsorted(cumulated, (np.arange(number) + 0.5) / number * cumulated[-1]))


def _trimmed(point: EvaluatedPoint, channel: Channel, q: Floats, tol: float) -> Floats:
    """Set to 0 what the interior point holds near zero, if the point stays certified.

    At a solution theta_x (1 - g_x) = 0, so theta_x < 1 - g_x tells which of the two is 0.
    """
    near_zero = point.theta < 1 - point.g
    if point.excess > tol or not point.theta[near_zero].any():
        return point.theta
    trimmed = EvaluatedPoint.of(np.where(near_zero, 0.0, point.theta), channel, q)
    return trimmed.theta if trimmed.excess <= tol else point.theta


def _row(channel: Channel, x: int, k: int) -> Floats:
    unit = np.zeros(k)
    unit[x] = 1
    return channel.forward(unit)


def _candidates_with_mass(point: EvaluatedPoint, chosen: Ints, rows: dict[int, Floats]) -> Ints:
    """Candidates with mass; all, if the others carry half of the probability of some report."""
    has_mass = point.theta[chosen] > 1 - point.g[chosen]
    carried = np.zeros(len(point.p))
    for x in chosen[has_mass].tolist():
        carried += point.theta[x] * rows[x]
    return chosen[has_mass] if (carried >= point.p / 2).all() else chosen


def _violators(g: Floats, tol: float, chosen: Ints, max_candidates: int) -> Ints:
    """New candidates: the highest local maxima of g, and the eight highest values.

    Neighbours on a line or in a plane have nearly the same g and the same rows, so one secret of
    each peak is enough.
    """
    outside = np.ones(len(g), dtype=bool)
    outside[chosen] = False
    violates = outside & (g > 1 + tol)
    peaks = _largest(np.flatnonzero(local_maxima(g) & violates), g, max_candidates)
    top = _largest(np.flatnonzero(violates), g, 8)
    return _largest(np.union1d(peaks, top), g, max_candidates)


def _largest(among: Ints, values: Floats, number: int) -> Ints:
    """Those of the indices `among` with the largest values, largest first."""
    return among[np.argsort(-values[among], kind="stable")[:number]]
