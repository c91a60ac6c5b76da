"""The maximum-likelihood estimate itself, certified."""

from __future__ import annotations

import numpy as np

from ibukit import _validate
from ibukit.errors import ConvergenceError
from ibukit.estimate import Estimate, Status
from ibukit.estimators import _interior_point
from ibukit.estimators.certificate import certified
from ibukit.estimators.iterative import ibu
from ibukit.estimators.stopping import Gap
from ibukit.tally import Tally, check_tally

# entries of the dense channel up to which a factorisation is worth its memory (2^26 doubles are half a gigabyte)
MOST_DENSE = 2**26


def mle(tally: Tally, tol: float = 1e-9) -> Estimate:
    """Maximise L(theta) = sum_z counts_z log (theta M)_z over the simplex, with a proof.

    Parameters
    ----------
    tally : Tally
        Of one mechanism or pooled over several.
    tol : float
        The mean log-likelihood is certified to be within `tol` nats per report of the maximum. Doubles reach about
        1e-14.

    Returns
    -------
    Estimate
        With ``gap <= tol`` on the returned vector. Where the maximiser is not unique it is one of them.

    Raises
    ------
    ConvergenceError
        If no certificate of `tol` was reached; carries the best ``.estimate``.

    Notes
    -----
    A primal-dual interior point on the dense channel of the reports seen; at the end Newton's method on the guessed
    support, which gives exact zeros. Where that channel would have more than 2^26 entries: `ibu` until the gap is met.

    References
    ----------
    .. [mehrotra] Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992.
    .. [lindsay] Lindsay, "The geometry of mixture likelihoods", Annals of Statistics 11, 1983.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([60, 30, 10])
    >>> estimate = ik.mle(tally)
    >>> estimate.distribution.round(4), estimate.gap < 1e-9
    (array([0.8607, 0.1393, 0.    ]), True)
    """
    tol = _validate.positive("tol", tol)
    if check_tally(tally).k * len(tally.counts) > MOST_DENSE:
        return ibu(tally, stop=Gap(tol), strict=True)
    theta, steps = _interior_point.maximise(tally.matrix(), tally.frequencies, np.expm1(tol))
    method = f"mle, dense interior point ({tally.k} x {len(tally.counts)})"
    estimate = certified(tally, theta, Status.CONVERGED, steps, method)
    if estimate.gap > tol:
        raise ConvergenceError(
            f"tol={tol:g} was not certified, the best gap is {estimate.gap:.3g} after {steps} steps; "
            "take a larger tol, or the error's own estimate with the gap that it has",
            Estimate(**{**vars(estimate), "status": Status.MAX_ITER}),
        )
    return estimate
