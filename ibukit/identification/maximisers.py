"""Maximisers of a tally's likelihood: the polytope of all of them, found from one.

L is strictly concave in the fitted probabilities theta M, so all maximisers have the same fitted
probabilities p as the one that is known: they are the polytope {theta on the simplex : theta M =
p}. Its ranges, by linear programmes, say which probabilities the reports determine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.limits import max_factorised_order
from ibukit._ground.threads import one_thread
from ibukit.channels import facts
from ibukit.domain.efficiency import determined_among_all, to_seen
from ibukit.domain.vectors import VectorLike
from ibukit.errors import ConvergenceError
from ibukit.identification import _null_spaces
from ibukit.identification._polytope import ZERO_MASS, Polytope, UnsolvedProgramme
from ibukit.identification.concavity import strictly_concave
from ibukit.identification.identifiability import (
    ANY_SIZE_OF_REPORTS,
    refuse_if_too_large_to_decompose,
)
from ibukit.solvers import Problem, best_found
from ibukit.tally.likelihood import ratios
from ibukit.tally.tally import Tally

T = TypeVar("T")

# Nats per report: the maximiser is sought within the first, which doubles do not always reach, and
# accepted within the second.
FINEST_TOLERANCE, COARSEST_TOLERANCE = 1e-13, 1e-9
# Ranges of probabilities narrower than this are points: their width is the programmes' rounding.
MAX_POINT_WIDTH = 1e-7


@dataclass(frozen=True, eq=False)
class MaximiserSet(arguments.ReadOnlyArrays):
    """The polytope of all maximisers of a likelihood; `MleSet` documents the attributes."""

    unique: bool
    dimension: int
    lower: Floats
    upper: Floats
    points: Floats
    reason: str
    # The secrets that may have mass, and the polytope over them; None where there is one maximiser.
    _secrets: Ints
    _polytope: Polytope | None

    def _aligned(self, name: str, values: Any) -> Any:
        """Return a vector over the secrets in their order; their labels are not known here."""
        return values

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Mask of the secrets whose probability every MLE agrees on (to 1e-7), shape (k,)."""
        return self.upper - self.lower <= MAX_POINT_WIDTH

    def bounds(self, weights: VectorLike, *, strict: bool = True) -> tuple[float, float]:
        r"""Least and greatest :math:`\sum_x\mathrm{weights}_x\theta_x` over all MLEs.

        With weights 0 and 1 the sum is the probability of an event, with the secrets' values as
        weights it is their mean. The bounds are what the reports say of a sum, even where they do
        not determine its terms.

        Parameters
        ----------
        weights : array_like or labelled, shape (k,)
            Finite.
        strict : bool
            Whether to raise an error where a linear programme is not solved. False returns the
            bounds that `lower` and `upper` imply, which are wider, but true.

        Raises
        ------
        ConvergenceError
            If `strict` and a programme was not solved; the error carries the wider pair as
            ``.estimate``.
        AlphabetMismatch
            If there is not one weight for each secret.
        ValueError
            If a weight is not finite.

        Examples
        --------
        >>> import ibukit as ik
        >>> rows = [[0.45, 0.1, 0.45], [0.05, 0.9, 0.05], [0.45, 0.1, 0.45]]
        >>> mechanism = ik.MatrixMechanism(rows)
        >>> found = ik.theory.mle_set(mechanism.tally_counts([1, 4, 1]))

        Neither of two probabilities is determined, but their sum is:

        >>> [round(end, 3) for end in found.bounds([1, 0, 1])]
        [0.292, 0.292]
        """
        c = arguments.vector("weights", self._aligned("weights", weights), len(self.lower))
        if self._polytope is None:
            value = float(c @ self.points[0])
            return value, value
        inside = c[self._secrets] / max(np.abs(c).max(), 1e-300)
        try:
            with one_thread():
                ends = [
                    float(c[self._secrets] @ self._polytope.maximiser(sign * inside))
                    for sign in (-1, 1)
                ]
        except UnsolvedProgramme as reason:
            # If the programme is not solved, the ranges give wider ends, which are true.
            box = np.stack([c * self.lower, c * self.upper])
            wider = float(box.min(axis=0).sum()), float(box.max(axis=0).sum())
            return _unless(strict, reason, wider)
        return min(ends), max(ends)

    def distance(self, theta: VectorLike, *, strict: bool = True) -> float:
        r"""Total variation distance from a distribution to the nearest MLE.

        It is the min over :math:`\phi` of :math:`\sum_{x} |\theta_{x} - \phi_{x}| / 2`.

        Parameters
        ----------
        theta : array_like or labelled, shape (k,)
            A distribution.
        strict : bool
            Whether to raise an error where a linear programme is not solved. False returns the
            distance to the box from `lower` to `upper`, which is not larger.

        Raises
        ------
        ConvergenceError
            If `strict` and the programme was not solved; the error carries that smaller distance as
            ``.estimate``.
        InvalidDistribution
            If `theta` is not on the simplex.
        AlphabetMismatch
            If `theta` does not have one probability for each secret.

        Examples
        --------
        >>> import ibukit as ik
        >>> found = ik.theory.mle_set(ik.RandomizedResponse(2, epsilon=1.0).tally_counts([7, 3]))
        >>> round(found.distance(found.estimate.distribution), 9)
        0.0
        """
        p = arguments.distribution("theta", self._aligned("theta", theta), len(self.lower))
        if self._polytope is None:
            return float(np.abs(p - self.points[0]).sum() / 2)
        outside = float(np.delete(p, self._secrets).sum())
        try:
            with one_thread():
                return self._polytope.distance(p[self._secrets]) + outside / 2
        except UnsolvedProgramme as reason:
            away = np.maximum(np.maximum(self.lower - p, p - self.upper), 0)
            return _unless(strict, reason, float(away.sum() / 2))

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}(unique={self.unique}, dimension={self.dimension}: {self.reason})"


def find_maximisers(tally: Tally, theta: Floats, gap: float) -> MaximiserSet:
    """Return all maximisers, from one of them, `theta`, whose gap is known.

    If reports get lost, the maximisers are distributions of all secrets. Tallies of k-RR and of
    geometric noise on a line have one maximiser by theory; for others the rank of the rows of the
    secrets that may have mass decides, and then linear programmes.
    """
    why = _unique_by_theory(tally)
    with one_thread():
        return _unique(theta, why) if why is not None else _find(tally, theta, gap)


def shortfall(found: MaximiserSet, gap: float) -> str:
    """Say what was not solved well enough, the maximiser itself or ranges; "" if nothing."""
    if gap > COARSEST_TOLERANCE:
        return (
            f"no estimate was certified within {COARSEST_TOLERANCE:g} nats per report, the best "
            f"gap is {gap:.3g}"
        )
    unsolved = 0 if found._polytope is None else found._polytope.unsolved
    return (
        f"{unsolved} ends of ranges were not found, by linear programmes that have solutions"
        if unsolved
        else ""
    )


def determined_probabilities(
    tally: Tally, theta: Floats, *, strict: bool = True
) -> NDArray[np.bool_]:
    """Tell which probabilities of the maximiser `theta` all others share, shape (k,)."""
    seen = tally.among_seen
    best = best_found(Problem(seen.operator, seen.counts, seen.n), FINEST_TOLERANCE)
    found = find_maximisers(seen, arguments.frozen(best.theta), best.gap)
    if strict and (missed := shortfall(found, best.gap)):
        raise ConvergenceError(
            f"{missed}; ik.theory.mle_set(tally, strict=False) has the rest", found
        )
    if tally.efficiency is None or found.unique:
        return found.identified
    return determined_among_all(found, theta, tally.efficiency)


def _unless(strict: bool, reason: Exception, instead: T) -> T:
    """Return what is known without the linear programme, or raise the error that carries it."""
    if arguments.flag("strict", strict):
        raise ConvergenceError(f"{reason}; strict=False returns what the ranges imply", instead)
    return instead


def _unique_by_theory(tally: Tally) -> str | None:
    if tally.k == 1:
        return "a single secret: there is only one distribution"
    if len(tally.parts) == 1 and facts.as_response(tally.operator) is not None:
        return "k-RR: only reported values have mass, and their rows are independent"
    if len(tally.parts) == 1 and facts.as_line(tally.operator) is not None:
        return (
            "geometric noise on a line: only reported values have mass, and their rows are "
            "independent"
        )
    return None


def _find(tally: Tally, theta: Floats, gap: float) -> MaximiserSet:
    if tally.k <= max_factorised_order():
        concave = strictly_concave(tally.among_seen)
        if concave:
            return _unique(theta, f"the likelihood is strictly concave: {concave.reason}")
    # Secrets whose ratio is below 1 at every maximiser have mass 0 in all of them.
    seen = tally.among_seen
    p, _ = ratios(seen, to_seen(theta, tally.efficiency))
    possible = np.flatnonzero(bound_on_ratios(seen, p, gap) >= 1)
    refuse_if_too_large_to_decompose(len(possible), ANY_SIZE_OF_REPORTS)
    spanned = _null_spaces.span(_null_spaces.seen_columns(seen, possible), len(possible))
    if spanned.rank == len(possible):
        why = (
            f"only {len(possible)} of {tally.k} secrets can have mass, and their rows are "
            "independent"
        )
        return _unique(theta, why)
    centre, free = theta[possible] / theta[possible].sum(), spanned.null
    if tally.efficiency is not None:
        free = _directions_of_all(free, centre, tally.efficiency[possible])
    return _polytope_of(theta, possible, Polytope(centre, np.ascontiguousarray(free.T)))


def _directions_of_all(free: Floats, theta: Floats, efficiency: Floats) -> Floats:
    """Convert directions among the secrets seen, one a column, to those of all secrets.

    Maximisers phi + d among the secrets seen are (phi + d) / e of all, up to a factor. Along the
    line to it from theta, the image of phi, the direction is d / e - theta sum_x d_x / e_x.
    """
    scaled = free / efficiency[:, None]
    return np.asarray(np.linalg.qr(scaled - np.outer(theta, scaled.sum(axis=0)))[0])


def bound_on_ratios(tally: Tally, p: Floats, gap: float) -> Floats:
    """Bound g_x at every maximiser from above, from a fit p whose gap is known.

    The notes of `mle_set` derive it.
    """
    q = tally.frequencies
    # 1e-15 allows for the rounding of p.
    allowed = gap / q + 1e-15
    # With c = gap / q_z: h(1 + r) >= r^2 / 2 / (1 + 2 r / 3), so r is at most the positive root of
    # r^2 - 4/3 c r - 2 c.
    r = 2 / 3 * allowed + np.sqrt(4 / 9 * allowed**2 + 2 * allowed)
    return tally.operator.adjoint(q * (1 + r) / p)


def _unique(theta: Floats, why: str) -> MaximiserSet:
    return MaximiserSet(
        unique=True,
        dimension=0,
        lower=theta,
        upper=theta,
        points=arguments.frozen(theta[None].copy()),
        reason=f"unique: {why}",
        _secrets=np.arange(len(theta)),
        _polytope=None,
    )


def _polytope_of(theta: Floats, secrets: Ints, polytope: Polytope) -> MaximiserSet:
    low, high = polytope.ranges()
    if (high - low).max() <= MAX_POINT_WIDTH:
        return _unique(theta, "no other distribution has the same fit, by linear programmes")
    k = len(theta)
    # Vertices that differ by rounding alone are one point.
    corners = polytope.vertices or [polytope.centre]
    points = np.zeros((len(corners), k))
    points[:, secrets] = corners
    points = points[np.unique(points.round(9), axis=0, return_index=True)[1]]
    # The dimension is that of the free directions which leave masses of 0 at 0.
    never = polytope.basis[:, high <= ZERO_MASS]
    dimension = len(never) - (int(np.linalg.matrix_rank(never)) if never.size else 0)
    lower, upper = np.zeros(k), np.zeros(k)
    lower[secrets], upper[secrets] = low, high
    open_ones = int((upper - lower > MAX_POINT_WIDTH).sum())
    return MaximiserSet(
        unique=False,
        dimension=dimension,
        lower=arguments.frozen(lower),
        upper=arguments.frozen(upper),
        points=arguments.frozen(points),
        reason=f"not unique: a polytope of dimension {dimension}; {open_ones} of {k} probabilities "
        "are not determined",
        _secrets=secrets,
        _polytope=polytope,
    )
