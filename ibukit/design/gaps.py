"""Certificates of any mechanism: upper bounds on its distance from the best design."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ibukit import privacy
from ibukit._ground import arguments
from ibukit._ground.threads import one_thread
from ibukit.design import _linear_programme, least_information
from ibukit.design.shokri import LOSS_TOLERANCE
from ibukit.domain.efficiency import matrix_of
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.errors import ConvergenceError


def information_gap(
    mechanism: privacy.HasMatrix, prior: VectorLike, beta: float, loss: ArrayLike | None = None
) -> float:
    r"""Bound how far a mechanism is from the best trade-off of privacy and distance.

    It bounds by how many nats :math:`I(x;y)+\beta\,\mathbb E\,d(x,y)` is above its minimum.

    This is the certificate of `blahut_arimoto`, for any mechanism M. With :math:`c_{y} = \sum_{x}
    \mathrm{prior}_{x}\,M_{xy}` no mechanism has less than

    .. math::

        -\sum_{x} \mathrm{prior}_{x}\,\log \sum_{y} c_{y}\,\exp (-\beta\,d(x, y)) - \log
        \max_{y} \sum_{x} \mathrm{prior}_{x}\,\exp (-\beta\,d(x, y)) / Z_{x},

    where :math:`Z_{x}` is the argument of the first logarithm. The gap is the difference between
    the value of M and this bound.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    prior : array_like or labelled, shape (k,)
        How the secrets are distributed.
    beta : float
        What a unit of distance is worth, in nats, above 0.
    loss : array_like, shape (k, m), optional
        What report y costs under secret x, d(x, y); by default the alphabet's distances, for
        mechanisms whose reports are the secrets' own codes.

    Returns
    -------
    float
        In nats, at least 0; inf if some secret of the prior is so far from all reports that the
        bound cannot be computed in doubles.

    Raises
    ------
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` or `loss` does not fit the mechanism.
    ValueError
        If `beta` is not a finite number above 0, or a loss is negative, infinite or NaN.

    References
    ----------
    .. [csiszar] I. Csiszar, "On the computation of rate-distortion functions", IEEE Trans. Inf.
       Theory 20, 1974.

    Examples
    --------
    The gap after the paper's ten steps, after 100 steps, and at the optimum:

    >>> import ibukit as ik
    >>> prior = [0.8, 0.1, 0.08, 0.02]
    >>> for steps in (10, 100, None):
    ...     mechanism = ik.blahut_arimoto(prior, 4, beta=0.5, steps=steps)
    ...     print(round(ik.design.information_gap(mechanism, prior, beta=0.5), 4))
    0.0157
    0.0
    0.0
    """
    matrix = matrix_of(mechanism)
    beta = least_information.valid_beta(beta)
    costs = arguments.losses(
        "loss", mechanism.alphabet.distances() if loss is None else loss, *matrix.shape
    )
    problem = least_information.RateDistortionProblem(
        distribution_over("prior", prior, mechanism.alphabet), costs
    )
    # The mechanism's own distribution of reports serves as q: at the optimum the two are the same,
    # and the bound is tight. Where exp(-beta loss) underflows for all reports it is NaN.
    with one_thread(), np.errstate(divide="ignore", invalid="ignore"):
        loss_of_it = privacy.quality_loss(mechanism, prior, costs)
        output = problem.prior @ matrix
        bound = least_information.rate_lower_bound(problem, output, beta, loss_of_it)
    # Information and bound are at the same expected loss, so their difference is that of
    # I + beta E loss.
    gap = privacy.mutual_information(mechanism, prior) - bound
    return max(0.0, gap) if math.isfinite(gap) else math.inf


def protection_gap(
    mechanism: privacy.HasMatrix,
    prior: VectorLike,
    max_quality_loss: float,
    loss: ArrayLike | None = None,
    adversary_loss: ArrayLike | None = None,
    *,
    strict: bool = True,
) -> float:
    r"""Bound how far the adversary's loss is below the largest that can be reached.

    This is the certificate of `shokri`, for any mechanism whose user's loss is at most Q =
    `max_quality_loss`. If user and adversary have the same loss, the adversary's expected loss
    under such a mechanism is at most :math:`\min (Q, \min_{g} \sum_{x} \mathrm{prior}_{x}\,l(x,
    g))`. With two losses it is, by weak duality, at most :math:`\lambda\,Q + \sum_{x}
    \mathrm{prior}_{x}\,\max_{y} (\sum_{z} w_{yz}\,l'(x, z) - \lambda\,l(x, y))`, where l' is the
    adversary's loss, for any :math:`\lambda \ge 0` and any weights :math:`w_{y}` of guesses that
    sum to 1. Both come from the linear programme, and the bound is computed from them anew.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    prior : array_like or labelled, shape (k,)
        How the secrets are distributed, known to the adversary.
    max_quality_loss : float
        Q, in the loss's unit, at least 0.
    loss : array_like, shape (k, m), optional
        What report y costs the user; by default the alphabet's distances.
    adversary_loss : array_like, shape (k, guesses), optional
        What guess z costs the adversary; by default the user's loss.
    strict : bool
        Raise if the linear programme for two losses is not solved. False returns the larger bound
        that needs no programme: the adversary can make the same guess whatever is reported.

    Returns
    -------
    float
        In the unit of the adversary's loss, at least 0; inf if the user's loss is above Q (by more
        than 1e-9 of the largest loss).

    Raises
    ------
    ConvergenceError
        If `strict` and the linear programme for two losses was not solved; carries the larger bound
        as ``.estimate``.
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` or a loss does not fit the mechanism.
    ValueError
        If `max_quality_loss` is not a finite number of at least 0, or a loss is negative, infinite
        or NaN.

    Notes
    -----
    With one loss this is as quick as computing the losses themselves; with two losses it is as slow
    as `shokri`.

    References
    ----------
    .. [shokri2012] R. Shokri et al., "Protecting location privacy: optimal strategy against
       localization attacks",
       CCS 2012.

    Examples
    --------
    >>> import ibukit as ik
    >>> line, prior = ik.Line(0, 4), ik.uniform(5)
    >>> best = ik.shokri(prior, line, max_quality_loss=0.5)
    >>> ik.design.protection_gap(best, prior, max_quality_loss=0.5) < 1e-9
    True
    >>> krr = ik.RandomizedResponse(line, epsilon=1.0)
    >>> round(ik.design.protection_gap(krr, prior, ik.privacy.quality_loss(krr, prior)), 4)
    0.0763
    """
    matrix = matrix_of(mechanism)
    weights = distribution_over("prior", prior, mechanism.alphabet)
    costs = arguments.losses(
        "loss", mechanism.alphabet.distances() if loss is None else loss, *matrix.shape
    )
    adversary_costs = (
        costs
        if adversary_loss is None
        else arguments.losses("adversary_loss", adversary_loss, len(matrix))
    )
    bound = arguments.from_zero("max_quality_loss", max_quality_loss)
    attained = privacy.adversary_loss(mechanism, weights, adversary_costs)
    # A mechanism that exceeds the bound is no candidate, however well it protects.
    if privacy.quality_loss(mechanism, weights, costs) > bound + LOSS_TOLERANCE * costs.max():
        return math.inf
    # The adversary may make the best constant guess whatever is reported.
    constant_guess = float((weights @ adversary_costs).min())
    simple_gap = max(0.0, constant_guess - attained)
    # If both losses are the same, he may guess the report itself, at the loss of the user.
    if np.array_equal(costs, adversary_costs):
        return min(simple_gap, max(0.0, bound - attained))
    # Secrets of probability 0 cost nobody anything.
    possible = weights > 0
    positive_prior = weights[possible] / weights[possible].sum()
    try:
        with one_thread():
            upper_bound = _linear_programme.two_losses_bound(
                positive_prior, costs[possible], adversary_costs[possible], bound
            )
    except _linear_programme.Unsolved as reason:
        if arguments.flag("strict", strict):
            raise ConvergenceError(
                f"{reason}; strict=False returns a bound without it", simple_gap
            ) from None
        return simple_gap
    return min(simple_gap, max(0.0, upper_bound - attained))
