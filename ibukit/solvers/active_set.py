"""Column generation: the maximum-likelihood mixture of any channel, through forward and adjoint only.

A maximiser of q . log(theta M) needs few secrets, often far fewer than k. So the problem is solved
on a set of candidates, as a small dense one; then one adjoint, g = M (q / theta M), says of every
secret how much faster than the average the likelihood would rise with it. Where g exceeds 1 there
are the next candidates, and where it does nowhere by more than the tolerance, the certificate is
complete: the maximum over the candidates is the maximum over all.

Lindsay (1983) has the geometry, Böhning (1986) the exchange of one vertex at a time, Wang (2007)
many at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import Channel
from ibukit.solvers import interior_point
from ibukit.solvers.dense.least_squares_steps import local_maxima

# entries of the candidates' rows: as many as a dense channel may have
MAX_CANDIDATE_ENTRIES = 2**26
MAX_ROUNDS = 100
# updates from uniform whose only purpose is to see where the mass gathers
EM_STEPS = 50
FIRST_CANDIDATES = 256
MIN_ADDED = 128
# a report is poorly covered where equal weights on the candidates give it less than this share of
# its probability
POOR = 1e-3
# below this a probability is as good as 0: its reciprocal would not fit into a double
MIN_PROBABILITY = 1e-290
# the dense solver is not asked for more than doubles have
FINEST_DENSE_TOL = 1e-14
# an entry this much smaller than its report's largest is 0 for the dense solver (the certificate
# has it in full): products of such entries are subnormal, and arithmetic with subnormal numbers is
# many times slower
NEGLIGIBLE = 1e-150
# rounds without a gain, in the likelihood or in the certificate, after which doubles have no more
# to give
PATIENCE = 3


@dataclass(frozen=True)
class Point:
    """A distribution, and what one forward and one adjoint say about it."""

    theta: Floats
    p: Floats
    g: Floats
    log_likelihood: float

    @classmethod
    def of(cls, theta: Floats, channel: Channel, q: Floats) -> Point:
        """Divided by its sum, which an interior point leaves within rounding of 1."""
        theta = theta / theta.sum()
        p = channel.forward(theta)
        safe = np.maximum(p, MIN_PROBABILITY)
        return cls(theta, p, channel.adjoint(q / safe), float(q @ np.log(safe)))

    @property
    def excess(self) -> float:
        """Max g - 1, which is proven only where every report has a probability."""
        return float(self.g.max() - 1) if self.p.min() >= MIN_PROBABILITY else np.inf


def maximise(channel: Channel, q: Floats, tol: float, k: int) -> tuple[Floats, int]:
    """The maximiser of q . log(theta M) over the simplex as far as the memory and doubles go, and the rounds taken.

    The best distribution found, certified or not, where more than 2^26 / s candidates would be
    needed.
    """
    point = best = _gathered(channel, q, tol, k)
    most = MAX_CANDIDATE_ENTRIES // len(q)
    chosen = _first_candidates(channel, q, point, most)
    rows: dict[int, Floats] = {}
    highest, waited = -np.inf, 0
    for round_ in range(MAX_ROUNDS):
        if best.excess <= tol or len(chosen) > most or waited == PATIENCE:
            return _trimmed(best, channel, q, tol), round_
        rows = {x: rows[x] if x in rows else _row(channel, x, k) for x in chosen.tolist()}
        weights, _ = interior_point.maximise(_matrix(rows), q, max(tol / 2, FINEST_DENSE_TOL))
        theta = np.zeros(k)
        theta[chosen] = weights
        point = Point.of(theta, channel, q)
        gained = point.log_likelihood > highest or point.excess < best.excess
        waited = 0 if gained else waited + 1
        highest = max(highest, point.log_likelihood)
        best = min(best, point, key=lambda found: found.excess)
        # without a gain nothing is dropped, so that the sets cannot go round in a circle
        kept = _with_mass(point, chosen, rows) if gained else chosen
        added = _violators(point.g, tol, chosen, max(MIN_ADDED, len(kept)))
        if len(added) == 0:
            break
        if (
            len(kept) <= most // 2
        ):  # beyond that, what does not fit is needed: then more than `most` ends it
            added = added[: most - len(kept)]
        chosen = np.union1d(kept, added)
    return _trimmed(best, channel, q, tol), round_ + 1


def _gathered(channel: Channel, q: Floats, tol: float, k: int) -> Point:
    """Some steps of the iterative Bayesian update from uniform."""
    point = Point.of(np.full(k, 1 / k), channel, q)
    for _ in range(EM_STEPS):
        if point.excess <= tol:
            break
        point = Point.of(point.theta * point.g, channel, q)
    return point


def _first_candidates(channel: Channel, q: Floats, point: Point, most: int) -> Ints:
    """Secrets where the mass is, and for each report some that can produce it; gives up beyond `most`."""
    peaks = _largest(np.flatnonzero(local_maxima(point.theta)), point.theta, FIRST_CANDIDATES)
    chosen = np.union1d(_evenly(point.theta, FIRST_CANDIDATES), peaks)
    while len(chosen) <= most:
        equal = np.zeros(len(point.theta))
        equal[chosen] = 1 / len(chosen)
        poor = channel.forward(equal) < POOR * point.p
        # the share of each secret in the reports that are poorly covered
        claims = point.theta * channel.adjoint(
            np.where(poor, q / np.maximum(point.p, MIN_PROBABILITY), 0.0)
        )
        claims[chosen] = 0
        if not (claims > 0).any():
            break
        chosen = np.union1d(chosen, _evenly(claims, len(chosen)))
    return chosen


def _evenly(mass: Floats, number: int) -> Ints:
    """Indices at equal steps of the cumulated mass: close together where it is, and nowhere without any."""
    cumulated = np.cumsum(mass)
    return np.unique(np.searchsorted(cumulated, (np.arange(number) + 0.5) / number * cumulated[-1]))


def _trimmed(point: Point, channel: Channel, q: Floats, tol: float) -> Floats:
    """With exact zeros for what the interior point only holds near zero, where the certificate allows it."""
    near_zero = point.theta < 1 - point.g
    if point.excess > tol or not point.theta[near_zero].any():
        return point.theta
    trimmed = Point.of(np.where(near_zero, 0.0, point.theta), channel, q)
    return trimmed.theta if trimmed.excess <= tol else point.theta


def _row(channel: Channel, x: int, k: int) -> Floats:
    unit = np.zeros(k)
    unit[x] = 1
    return channel.forward(unit)


def _matrix(rows: dict[int, Floats]) -> Floats:
    matrix = np.array(list(rows.values()))
    matrix[matrix < NEGLIGIBLE * matrix.max(axis=0)] = 0
    return matrix


def _with_mass(point: Point, chosen: Ints, rows: dict[int, Floats]) -> Ints:
    """Candidates that the interior point keeps off zero; all, if the others carry a report that nothing else does."""
    has_mass = point.theta[chosen] > 1 - point.g[chosen]
    carried = np.zeros(len(point.p))
    for x in chosen[has_mass].tolist():
        carried += point.theta[x] * rows[x]
    return chosen[has_mass] if (carried >= point.p / 2).all() else chosen


def _violators(g: Floats, tol: float, chosen: Ints, most: int) -> Ints:
    """New candidates: the highest local maxima of g, and the highest values of all, largest first.

    Neighbours on a line or in a plane have nearly the same g and the same rows: one of a peak says
    what all would.
    """
    outside = np.ones(len(g), dtype=bool)
    outside[chosen] = False
    violates = outside & (g > 1 + tol)
    summits = _largest(np.flatnonzero(local_maxima(g) & violates), g, most)
    top = _largest(np.flatnonzero(violates), g, 8)
    return _largest(np.union1d(summits, top), g, most)


def _largest(among: Ints, values: Floats, number: int) -> Ints:
    """The indices of the largest values, largest first."""
    return among[np.argsort(-values[among], kind="stable")[:number]]
