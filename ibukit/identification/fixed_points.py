"""Fixed points of the iterative Bayesian update, of which only some maximise L."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.threads import one_thread
from ibukit.errors import ConvergenceError
from ibukit.solvers import interior_point
from ibukit.tally.likelihood import gap_of, log_likelihood_of, ratios
from ibukit.tally.tally import Tally, check_tally

# Number of secrets up to which all 2^k - 1 supports are searched.
MAX_SECRETS_ENUMERATED = 12
# Largest |g - 1| on the support of a fixed point.
FIXED_TOLERANCE = 1e-12
# A probability counts as 0 if errors of this size in g can explain it, or if it is below the second
# number.
RATIO_ERROR = 1e-13
MAX_UNCERTAIN_MASS = 1e-9
# Gap in nats per report below which a fixed point is a maximiser.
MAXIMISER_GAP = 1e-9
MAX_NEWTON_STEPS = 200


@dataclass(frozen=True, eq=False)
class FixedPoint(arguments.ReadOnlyArrays):
    r"""A distribution that the iterative Bayesian update does not move.

    Attributes
    ----------
    distribution : ndarray, shape (k,)
    support : ndarray of int
        Codes of the secrets with positive probability.
    is_mle : bool
        Whether it maximises the likelihood: :math:`g_x\le1` for all x, within rounding (a gap of at
        most 1e-9 nats).
    largest_ratio : float
        :math:`\max_{x} g_x`; its logarithm is the `gap`.
    dimension : int
        0 where it is the only fixed point with this support, otherwise the dimension of the set of
        them.
    log_likelihood : float
        L in nats, total over all reports.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.theory.fixed_points(ik.RandomizedResponse(2, epsilon=1.0).tally_counts([6, 4]))[0]
    FixedPoint([0.7164, 0.2836], an MLE, log-likelihood -6.73)
    """

    distribution: Floats
    support: Ints
    is_mle: bool
    largest_ratio: float
    dimension: int
    log_likelihood: float

    def __repr__(self) -> str:
        verdict = "an MLE" if self.is_mle else f"no MLE: largest ratio {self.largest_ratio:.4g}"
        others = f", one of a set of dimension {self.dimension}" if self.dimension else ""
        numbers = ", ".join(f"{probability:.4g}" for probability in self.distribution)
        return (
            f"FixedPoint([{numbers}], {verdict}, log-likelihood {self.log_likelihood:.4g}{others})"
        )


def fixed_points(tally: Tally, *, strict: bool = True) -> tuple[FixedPoint, ...]:
    r"""Find every fixed point of the iterative Bayesian update.

    They are the :math:`\theta` with :math:`\theta_x g_x=\theta_x` for all x, where
    :math:`g_x=\sum_z q_z\,\frac{M_{xz}}{(\theta M)_z}`. The iterative Bayesian update replaces
    :math:`\theta_x` by :math:`\theta_x\,g_x`, so :math:`\theta` is fixed exactly when :math:`g_x` =
    1 on its support, which is to say: when it maximises the likelihood among the distributions with
    no mass elsewhere. It is a maximum likelihood estimate exactly when :math:`g_x\le1` for the
    other secrets, too. So each face of the simplex (each of the :math:`2^{k} - 1` possible
    supports) holds fixed points with full support there exactly if the likelihood restricted to it
    has a maximiser in its relative interior; and then those are all of its maximisers there.

    Parameters
    ----------
    tally : Tally
        Of one mechanism or pooled over several, with at most 12 secrets.
    strict : bool
        Whether to raise an error where rounding leaves open whether a support has a fixed point;
        otherwise that support is left out.

    Returns
    -------
    tuple of FixedPoint
        At most one for each support, the most likely first. Where a support has a continuum of them
        (its secrets' rows, restricted to the reports seen, are linearly dependent), it is the one
        whose smallest probability is largest.

    Raises
    ------
    WeightsRefused, LikelihoodUnknown
        If the tally is weighted, or holds sums of bits only.
    ValueError
        If there are more than 12 secrets, or if reports get lost.
    ConvergenceError
        With `strict`, if for some support it is neither proved that there is no fixed point, nor is
        one found with :math:`g_x` within 1e-12 of 1. The fixed points of the other supports are the
        error's `estimate`.

    Notes
    -----
    A distribution under which some report seen is impossible is not in the map's domain (g would be
    infinite) and is left out, as are vertices of that kind. What is returned is certified: on the
    support :math:`g_x` is within 1e-12 of 1, by Newton's method from the maximiser that an interior
    point method finds. A probability counts as 0 where errors of 1e-13 in g could account for it
    (in ill-conditioned channels, where it is below 1e-9).

    References
    ----------
    .. [kacem] Kacem and Palamidessi, "Geometric noise for locally private counting queries", PLAS
       2018, Lemma 4.3 (which says that there is only one).
    .. [lindsay] Lindsay, "The geometry of mixture likelihoods", Annals of Statistics 11, 1983 (g <=
       1).

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(2, epsilon=1.0).tally_counts([6, 4])
    >>> for point in ik.theory.fixed_points(tally):
    ...     print(point.support, point.is_mle, round(point.largest_ratio, 3))
    [0 1] True 1.0
    [0] False 1.308
    [1] False 1.778
    """
    k = check_tally(tally).k
    if k > MAX_SECRETS_ENUMERATED:
        raise ValueError(
            f"tally must be over at most {MAX_SECRETS_ENUMERATED} secrets, got {k}: each of the "
            "2^k - 1 faces of the simplex is searched for fixed points; ibu and mle find the one "
            "that matters"
        )
    columns, q = tally.matrix(), tally.frequencies
    points, open_supports = [], []
    with one_thread():
        for face in range(1, 2**k):
            support = np.flatnonzero(face >> np.arange(k) & 1)
            try:
                on_face = _on_face(columns[support], q)
            except _Undecided:
                open_supports.append(support.tolist())
                continue
            if on_face is not None:
                points.append(_fixed_point(tally, support, *on_face))
    found = _sorted_by_likelihood(points, tally.n)
    if arguments.flag("strict", strict) and open_supports:
        raise ConvergenceError(
            f"rounding leaves it open whether {len(open_supports)} supports have a fixed point, "
            f"{open_supports[0]} among them; strict=False leaves them out",
            found,
        )
    return found


def _sorted_by_likelihood(points: list[FixedPoint], n: int) -> tuple[FixedPoint, ...]:
    # Log-likelihoods along a set of maximisers differ by rounding: points with smaller supports
    # come first.
    return tuple(
        sorted(
            points,
            key=lambda p: (
                not p.is_mle,
                -round(p.log_likelihood / n, 12),
                len(p.support),
                *p.support,
            ),
        )
    )


def _fixed_point(tally: Tally, support: Ints, masses: Floats, dimension: int) -> FixedPoint:
    theta = np.zeros(tally.k)
    theta[support] = masses
    p, g = ratios(tally, theta)
    return FixedPoint(
        distribution=arguments.frozen(theta),
        support=arguments.frozen(support),
        is_mle=gap_of(p, g) <= MAXIMISER_GAP,
        largest_ratio=float(g.max()),
        dimension=dimension,
        log_likelihood=log_likelihood_of(tally, p),
    )


class _Undecided(Exception):
    """Raised if no fixed point is found on a face, but its absence is not proved either."""


def _on_face(rows: Floats, q: Floats) -> tuple[Floats, int] | None:
    """Fixed point whose support is these rows, and the dimension of the set of them, or None.

    The likelihood restricted to the face is concave: its maximiser is a fixed point if it lies
    inside.
    """
    if not rows.any(axis=0).all():
        # A report that was seen is impossible on this face.
        return None
    if len(rows) == 1:
        return np.ones(1), 0
    # A factor of a report changes neither the map nor a rank.
    rows = rows / rows.max(axis=0)
    maximiser, _ = interior_point.maximise(rows, q, FIXED_TOLERANCE)
    if _refuted(rows, q, maximiser):
        return None
    # The rank is decided once and kept for all steps.
    rank = int(np.linalg.matrix_rank(rows))
    theta = _newton(rows, q, maximiser, rank)
    dimension = len(rows) - rank
    if dimension:
        # Newton's method again, because a probability of 1e-9 loses its digits on the way.
        theta = _newton(rows, q, _deepest_point(rows, theta, dimension), rank)
    # If g hardly depends on theta, rounding alone can lead Newton's steps out of the face. It
    # cannot do so with the other two candidates.
    candidates = (theta, maximiser, np.full(len(rows), 1 / len(rows)))
    for point in candidates:
        if _is_fixed(rows, q, point, rank):
            return point, dimension
    if not any(_stands_still(rows, q, point) for point in candidates):
        raise _Undecided
    # All points with g = 1 are known, and even the innermost has a probability of 0 or below.
    return None


def _stands_still(rows: Floats, q: Floats, theta: Floats) -> bool:
    return bool(np.abs(_ratios(rows, q, theta) - 1).max() <= FIXED_TOLERANCE)


def _is_fixed(rows: Floats, q: Floats, theta: Floats, rank: int) -> bool:
    """Return True if g = 1 within tolerance and every probability exceeds the rounding of g."""
    if not (theta > 0).all() or not _stands_still(rows, q, theta):
        return False
    unsure = np.minimum(
        MAX_UNCERTAIN_MASS,
        RATIO_ERROR * np.abs(_inverse_curvature(rows, q, theta, rank)).sum(axis=1),
    )
    return bool((theta > unsure).all())


def _ratios(rows: Floats, q: Floats, theta: Floats) -> Floats:
    return rows @ (q / (theta @ rows))


def _refuted(rows: Floats, q: Floats, theta: Floats) -> bool:
    """Return True if the gap at theta proves that no distribution has g_x = 1 for all rows.

    Let one have it, p* its probabilities and u = p / p*. Then sum q u = sum theta_x g*_x = 1, and
    the gap is at least -sum q log u = sum q (u - 1 - log u), whose terms are not negative: so u - 1
    - log u <= gap / min q =: c, hence u <= 1 + c + sqrt(c^2 + 2 c), and g_x = sum_z (q_z M_xz /
    p*_z) / u_z >= 1 / max u.
    """
    g = _ratios(rows, q, theta)
    # The gap is uncertain by the rounding of g.
    c = (max(math.log(float(g.max())), 0.0) + 1e-14) / float(q.min())
    return float(g.min()) < 1 / (1 + c + math.sqrt(c * c + 2 * c)) - FIXED_TOLERANCE


# If there is no fixed point, the steps may overflow, and then they end.
@np.errstate(all="ignore")
def _newton(rows: Floats, q: Floats, theta: Floats, rank: int) -> Floats:
    """Damped Newton steps to g = 1, the minimum of -sum_z q_z log p_z + sum_x theta_x.

    With r the largest relative change of a probability, a step of 1 / (1 + r) keeps all p positive
    and never goes up, because -log(1 + v) + v <= v^2 / (2 (1 - |v|)). Entries of theta may become
    negative: then the face has no fixed point. Directions in which p does not change are left
    alone.
    """
    best, least = theta, np.inf
    stalled = 0
    for _ in range(MAX_NEWTON_STEPS):
        p = theta @ rows
        excess = rows @ (q / p) - 1
        off = float(np.abs(excess).max())
        stalled = 0 if off < least else stalled + 1
        if off < least:
            best, least = theta, off
        # A few more steps after convergence cost little and take g to the last digits.
        if not np.isfinite(off) or stalled > (3 if least <= FIXED_TOLERANCE else 30):
            break
        step = _inverse_curvature(rows, q, theta, rank) @ excess
        r = float(np.abs((step @ rows) / p).max())
        theta = theta + step / (1 + r)
    return best


def _inverse_curvature(rows: Floats, q: Floats, theta: Floats, rank: int) -> Floats:
    """Pseudo-inverse of the curvature sum_z q_z M_xz M_yz / p_z^2, for a given rank."""
    u, s, _ = np.linalg.svd(rows * (np.sqrt(q) / (theta @ rows)), full_matrices=False)
    return (u[:, :rank] / s[:rank] ** 2) @ u[:, :rank].T


def _deepest_point(rows: Floats, theta: Floats, dimension: int) -> Floats:
    """Vector with the same probabilities of the reports whose smallest entry is largest."""
    # The null space: the left singular vectors beyond the rank, which was judged before.
    flat = np.linalg.svd(rows)[0][:, -dimension:]
    # Maximise t subject to theta + flat y >= t. y is free, and bounded because the entries sum to
    # 1.
    k = len(theta)
    solution = scipy.optimize.linprog(
        c=np.r_[np.zeros(dimension), -1.0],
        A_ub=np.column_stack([-flat, np.ones(k)]),
        b_ub=theta,
        bounds=[(None, None)] * (dimension + 1),
        method="highs",
    )
    return theta if solution.x is None else theta + flat @ solution.x[:-1]
