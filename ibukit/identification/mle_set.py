"""Not one maximum likelihood estimate but all of them: how far the reports determine each probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.threads import one_thread
from ibukit.channels import facts
from ibukit.estimate import ConvergenceError, Estimate
from ibukit.estimators import mle
from ibukit.estimators.certificate import ratios
from ibukit.identification import _null_spaces
from ibukit.identification._polytope import ZERO, Polytope, Unsolved
from ibukit.identification.concavity import strictly_concave
from ibukit.identification.identifiability import refuse_if_too_large_to_decompose
from ibukit.tally.tally import Tally, check_tally

T = TypeVar("T")

# what the estimate itself is asked for, and what is taken where doubles do not give that
FINEST_TOL, COARSEST_TOL = 1e-13, 1e-9
# ranges narrower than this are points: what rounding leaves of them
WIDTH_OF_A_POINT = 1e-7


@dataclass(frozen=True, eq=False)
class MleSet(arguments.ReadOnlyArrays):
    """All maximum likelihood estimates of a tally.

    They are a polytope, of which one estimate is a point.

    Attributes
    ----------
    unique : bool
        Whether there is only one.
    dimension : int
        Of the polytope: 0 where unique.
    lower, upper : ndarray, shape (k,)
        The least and the greatest probability that an MLE gives each secret. Equal where unique.
    points : ndarray, shape (p, k)
        Extreme points. Each of `lower` and `upper` is attained at one of them; there may be more
        than these.
    estimate : Estimate
        The certified MLE that the set was computed from: every member fits the reports as well as
        it does.
    reason : str
        Why it is unique, or what is left open.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.MatrixMechanism([[0.45, 0.1, 0.45], [0.05, 0.9, 0.05], [0.45, 0.1, 0.45]])
    >>> found = ik.theory.mle_set(mechanism.tally_counts([1, 4, 1]))
    >>> found.dimension, found.lower.round(3), found.upper.round(3)
    (1, array([0.   , 0.708, 0.   ]), array([0.292, 0.708, 0.292]))
    """

    unique: bool
    dimension: int
    lower: Floats
    upper: Floats
    points: Floats
    estimate: Estimate
    reason: str
    _secrets: Ints
    _polytope: Polytope | None

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Whether every MLE gives a secret the same probability (to 1e-7), shape (k,)."""
        return np.asarray(self.upper - self.lower <= WIDTH_OF_A_POINT)

    def bounds(self, weights: ArrayLike, *, strict: bool = True) -> tuple[float, float]:
        r"""Least and greatest sum_x weights_x :math:`\theta_x` over all MLEs.

        With weights 0 and 1 the probability of an event, with the secrets' values the mean: what
        the reports say of a sum, even where they do not determine its terms.

        Parameters
        ----------
        weights : array_like, shape (k,)
            Finite.
        strict : bool
            Raise where a linear programme is not solved. False returns what `lower` and `upper`
            imply: wider, and true.

        Raises
        ------
        ConvergenceError
            If `strict` and a programme was not solved; carries the wider pair as ``.estimate``.
        AlphabetMismatch
            If there is not one weight for each secret.
        ValueError
            If a weight is not finite.

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanism = ik.MatrixMechanism([[0.45, 0.1, 0.45], [0.05, 0.9, 0.05], [0.45, 0.1, 0.45]])
        >>> found = ik.theory.mle_set(mechanism.tally_counts([1, 4, 1]))
        >>> [round(end, 3) for end in found.bounds([1, 0, 1])]  # neither of the two is determined, their sum is
        [0.292, 0.292]
        """
        c = arguments.vector("weights", weights, len(self.lower))
        if self._polytope is None:
            value = float(c @ self.points[0])
            return value, value
        inside = c[self._secrets] / max(np.abs(c).max(), 1e-300)
        try:
            with one_thread():
                ends = [
                    float(c[self._secrets] @ self._polytope.highest(sign * inside))
                    for sign in (-1, 1)
                ]
        except Unsolved as reason:
            box = np.stack([c * self.lower, c * self.upper])
            wider = float(box.min(axis=0).sum()), float(box.max(axis=0).sum())
            return _unless(strict, reason, wider)
        return min(ends), max(ends)

    def distance(self, theta: ArrayLike, *, strict: bool = True) -> float:
        r"""Total variation distance from a distribution to the nearest MLE.

        It is the min over :math:`\phi` of :math:`\sum_{x} |\theta_{x} - \phi_{x}| / 2`.

        Parameters
        ----------
        theta : array_like, shape (k,)
            A distribution.
        strict : bool
            Raise where a linear programme is not solved. False returns the distance to the box from
            `lower` to `upper`, which is not larger.

        Raises
        ------
        ConvergenceError
            If `strict` and the programme was not solved; carries that lower bound as ``.estimate``.
        InvalidDistribution
            If `theta` is not on the simplex.
        AlphabetMismatch
            If it does not have one probability for each secret.

        Examples
        --------
        >>> import ibukit as ik
        >>> found = ik.theory.mle_set(ik.RandomizedResponse(2, epsilon=1.0).tally_counts([7, 3]))
        >>> round(found.distance(found.estimate.distribution), 9)
        0.0
        """
        p = arguments.distribution("theta", theta, len(self.lower))
        if self._polytope is None:
            return float(np.abs(p - self.points[0]).sum() / 2)
        outside = float(np.delete(p, self._secrets).sum())
        try:
            with one_thread():
                return self._polytope.distance(p[self._secrets]) + outside / 2
        except Unsolved as reason:
            away = np.maximum(np.maximum(self.lower - p, p - self.upper), 0)
            return _unless(strict, reason, float(away.sum() / 2))

    def __repr__(self) -> str:
        return f"MleSet(unique={self.unique}, dimension={self.dimension}: {self.reason})"


def mle_set(tally: Tally, *, strict: bool = True) -> MleSet:
    r"""All maximum likelihood estimates of a tally, as a polytope.

    The maximisers of :math:`L(\theta)=\sum_z\mathrm{counts}_z\,\log(\theta G)_z` are
    :math:`\{\theta\text{ on the simplex}:\theta G=\hat\theta G\}`. L is strictly concave in the
    fitted probabilities :math:`\theta\,G`, so all MLEs share those of one of them, theta_hat, and
    with them the ratios :math:`g_x`; and none has mass where :math:`g_x` < 1. Of the secrets that
    are left, linear programmes give the range of each probability. Where it is a point, the reports
    determine it; where not, no estimator can tell from these reports alone, and a single estimate
    hides it.

    Parameters
    ----------
    tally : Tally
        Of one mechanism or pooled.
    strict : bool
        Raise where the estimate is not certified within 1e-9 nats per report, or an end of a range
        is not found. False returns the set around the best estimate, whose gap says how good that
        is, with 0 or 1 for an end that was not found.

    Returns
    -------
    MleSet

    Raises
    ------
    ConvergenceError
        If `strict` and one of both was missed; carries the set as ``.estimate``.
    ValueError
        If more than 5,000 secrets can have mass and theory does not say that the MLE is unique.

    Notes
    -----
    The secrets without mass are found with a proof. Let the gap of theta_hat be G and p its fit,
    and :math:`u_z=p_z/p^*_z` with the fit p* of the MLEs. Then :math:`\sum_{z} q_z\,h(u_{z}) \le G`
    with :math:`h(u) = u - 1 - \log u` [1]_, hence abs(:math:`u_{z} - 1`) <= r_z where
    h(:math:`1 + r_{z}`) = G / :math:`q_z`, and g*_x <=
    :math:`\sum_{z} q_z\,M_{xz}\,(1 + r_{z}) / p_{z}`; a secret where that is below 1 has mass 0 in
    every MLE. Under k-RR and under geometric noise on a line the MLE charges reported values only,
    whose rows are independent: it is always unique, even where L is not strictly concave.

    .. [1] sum q log u <= sum q (u - 1) - sum q h(u), and sum q (u - 1) = sum_x theta_hat_x g*_x - 1 <= 0.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, sections 5 and 6.4.
    .. [lindsay] Lindsay, "The geometry of mixture likelihoods", Annals of Statistics 11, 1983.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.compose(ik.RandomizedResponse(3, epsilon=1.0), [[1, 0], [0, 1], [0, 1]])
    >>> found = ik.theory.mle_set(mechanism.tally_counts([50, 50]))
    >>> found.unique, found.identified
    (False, array([ True, False, False]))
    >>> found.upper.round(3)
    array([0.791, 0.209, 0.209])
    """
    estimate = mle(check_tally(tally, weighted=True), tol=FINEST_TOL, strict=False)
    why = _unique_by_theory(tally)
    with one_thread():
        found = _examined(tally, estimate) if why is None else _single(estimate, why)
    if arguments.flag("strict", strict) and (missed := _missed(found)):
        raise ConvergenceError(f"{missed}; strict=False returns the set as it is", found)
    return found


def _missed(found: MleSet) -> str:
    if found.estimate.gap > COARSEST_TOL:
        best = found.estimate.gap
        return f"no estimate was certified within {COARSEST_TOL:g} nats per report, the best gap is {best:.3g}"
    unsolved = 0 if found._polytope is None else found._polytope.unsolved
    return (
        f"{unsolved} ends of ranges were not found, by linear programmes that have solutions"
        if unsolved
        else ""
    )


def _unless(strict: bool, reason: Exception, instead: T) -> T:
    """What is known without the linear programme, or the error that carries it."""
    if arguments.flag("strict", strict):
        raise ConvergenceError(f"{reason}; strict=False returns what the ranges imply", instead)
    return instead


def _unique_by_theory(tally: Tally) -> str | None:
    if tally.k == 1:
        return "a single secret: there is only one distribution"
    if len(tally.parts) == 1 and facts.as_response(tally.operator) is not None:
        return "k-RR: only reported values have mass, and their rows are independent"
    if len(tally.parts) == 1 and facts.as_line(tally.operator) is not None:
        return "geometric noise on a line: only reported values have mass, and their rows are independent"
    return None


def _examined(tally: Tally, estimate: Estimate) -> MleSet:
    if tally.k <= _null_spaces.MAX_SECRETS_DECOMPOSED:
        concave = strictly_concave(tally)
        if concave:
            return _single(estimate, f"the likelihood is strictly concave: {concave.reason}")
    theta = estimate.distribution
    p, _ = ratios(tally, theta)
    possible = np.flatnonzero(most_of_ratios(tally, p, estimate.gap) >= 1)
    refuse_if_too_large_to_decompose(len(possible))
    spanned = _null_spaces.span(_null_spaces.seen_columns(tally, possible), len(possible))
    if spanned.rank == len(possible):
        why = f"only {len(possible)} of {tally.k} secrets can have mass, and their rows are independent"
        return _single(estimate, why)
    centre = theta[possible] / theta[possible].sum()
    return _ranged(estimate, possible, Polytope(centre, np.ascontiguousarray(spanned.null.T)))


def most_of_ratios(tally: Tally, p: Floats, gap: float) -> Floats:
    """An upper bound on g_x at every MLE, from a fit p whose gap is known (see the notes of `mle_set`)."""
    q = tally.frequencies
    allowed = gap / q + 1e-15  # the rounding of p
    # h(1 + r) >= r^2 / 2 / (1 + 2 r / 3), so r is at most the positive root of r^2 - 4/3 c r - 2 c
    r = 2 / 3 * allowed + np.sqrt(4 / 9 * allowed**2 + 2 * allowed)
    return tally.operator.adjoint(q * (1 + r) / p)


def _single(estimate: Estimate, why: str) -> MleSet:
    theta = estimate.distribution
    return MleSet(
        unique=True,
        dimension=0,
        lower=theta,
        upper=theta,
        points=arguments.frozen(theta[None].copy()),
        estimate=estimate,
        reason=f"unique: {why}",
        _secrets=np.arange(len(theta)),
        _polytope=None,
    )


def _ranged(estimate: Estimate, secrets: Ints, polytope: Polytope) -> MleSet:
    low, high = polytope.ranges()
    if (high - low).max() <= WIDTH_OF_A_POINT:
        return _single(estimate, "no other distribution has the same fit, by linear programmes")
    k = len(estimate.distribution)
    corners = polytope.vertices or [polytope.centre]
    points = np.zeros((len(corners), k))
    points[:, secrets] = corners
    points = points[np.unique(points.round(9), axis=0, return_index=True)[1]]
    never = polytope.basis[:, high <= ZERO]
    dimension = len(never) - (int(np.linalg.matrix_rank(never)) if never.size else 0)
    lower, upper = np.zeros(k), np.zeros(k)
    lower[secrets], upper[secrets] = low, high
    open_ones = int((upper - lower > WIDTH_OF_A_POINT).sum())
    return MleSet(
        unique=False,
        dimension=dimension,
        lower=arguments.frozen(lower),
        upper=arguments.frozen(upper),
        points=arguments.frozen(points),
        estimate=estimate,
        reason=f"not unique: a polytope of dimension {dimension}; {open_ones} of {k} probabilities are not determined",
        _secrets=secrets,
        _polytope=polytope,
    )
