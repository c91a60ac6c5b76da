"""`mle_set`: all maximum likelihood estimates of a tally."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ibukit._ground import arguments
from ibukit._ground.typing import override
from ibukit.domain.vectors import aligned
from ibukit.errors import ConvergenceError
from ibukit.estimate import Estimate
from ibukit.estimators.maximum_likelihood import mle
from ibukit.identification.maximisers import (
    FINEST_TOLERANCE,
    MaximiserSet,
    find_maximisers,
    shortfall,
)
from ibukit.tally.tally import Tally, check_tally


@dataclass(frozen=True, eq=False, repr=False)
class MleSet(MaximiserSet):
    """All maximum likelihood estimates of a tally.

    They form a polytope, and each estimate is one of its points.

    Attributes
    ----------
    unique : bool
        Whether there is only one estimate.
    dimension : int
        Dimension of the polytope: 0 if the estimate is unique.
    lower, upper : ndarray, shape (k,)
        The least and the greatest probability that an MLE gives each secret. They are equal if the
        estimate is unique.
    points : ndarray, shape (p, k)
        Extreme points. Each entry of `lower` and `upper` is attained at one of these points; there
        may be further extreme points.
    estimate : Estimate
        The certified MLE that the set was computed from: every member fits the reports as well as
        it does.
    reason : str
        Why the estimate is unique, or what is left open.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.MatrixMechanism([[0.45, 0.1, 0.45], [0.05, 0.9, 0.05], [0.45, 0.1, 0.45]])
    >>> found = ik.theory.mle_set(mechanism.tally_counts([1, 4, 1]))
    >>> found.dimension, found.lower.round(3), found.upper.round(3)
    (1, array([0.   , 0.708, 0.   ]), array([0.292, 0.708, 0.292]))
    """

    estimate: Estimate = field(kw_only=True)

    @override
    def _aligned(self, name: str, values: Any) -> Any:
        return aligned(name, values, self.estimate.alphabet)


def mle_set(tally: Tally, *, strict: bool = True) -> MleSet:
    r"""All maximum likelihood estimates of a tally, as a polytope.

    The maximisers of :math:`L(\theta)=\sum_z\mathrm{counts}_z\,\log(\theta M)_z` are
    :math:`\{\theta\text{ on the simplex}:\theta M=\hat\theta M\}`. L is strictly concave in the
    fitted probabilities :math:`\theta\,M`, so all MLEs share the fitted probabilities of one of
    them, :math:`\hat\theta`, and with these the ratios :math:`g_x=\sum_z q_z M_{xz}/(\hat\theta
    M)_z`, where q holds the frequencies of the reports; and none has mass where :math:`g_x` < 1.
    For the secrets that are left, linear programmes give the range of each probability. Where this
    range is a point, the reports determine the probability; where it is not, no estimator can tell
    the probability from these reports alone, and a single estimate hides that. If reports get lost,
    all this holds of the distribution among the secrets seen; the MLEs :math:`\theta` of all
    secrets also form a polytope, because :math:`\theta\,M` is the same up to the factor
    :math:`\theta \cdot e`, with e the efficiencies.

    Parameters
    ----------
    tally : Tally
        Of one mechanism or pooled.
    strict : bool
        Raise where the estimate is not certified within 1e-9 nats per report, or an end of a range
        is not found. False returns the set around the best estimate, whose gap says how good the
        estimate is, with 0 or 1 for an end that was not found.

    Returns
    -------
    MleSet

    Raises
    ------
    ConvergenceError
        If `strict` and one of these two goals was missed; carries the set as ``.estimate``.
    ValueError
        If more than 5,000 secrets can have mass and theory does not say that the MLE is unique.

    Notes
    -----
    The secrets without mass are found with a proof. Let G be the gap of :math:`\hat\theta` and p
    its fit, and let :math:`u_z=p_z/p^*_z`, where :math:`p^*` is the fit of the MLEs. Then
    :math:`\sum_{z} q_z\,h(u_{z}) \le G` with :math:`h(u) = u - 1 - \log u` [1]_, hence
    :math:`|u_z-1|\le r_z` where :math:`h(1+r_z)=G/q_z`, and
    :math:`g^*_x\le\sum_z q_z M_{xz}(1+r_z)/p_z`; a secret for which this bound is below 1 has mass
    0 in every MLE. Under k-RR and under geometric noise on a line the MLE has mass only on reported
    values, whose rows are independent: it is always unique, even where L is not strictly concave.

    .. [1] :math:`\sum q\log u\le\sum q\,(u-1)-\sum q\,h(u)`, and
       :math:`\sum q\,(u-1)=\sum_x\hat\theta_x g^*_x-1\le0`.

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
    estimate = mle(
        check_tally(tally, lossy=True, weighted=True), tol=FINEST_TOLERANCE, strict=False
    )
    # All other maximisers share the fitted probabilities of this one.
    maximisers = find_maximisers(tally, estimate.distribution, estimate.gap)
    found = MleSet(**vars(maximisers), estimate=estimate)
    if arguments.flag("strict", strict) and (missed := shortfall(found, estimate.gap)):
        raise ConvergenceError(f"{missed}; strict=False returns the set as it is", found)
    return found
