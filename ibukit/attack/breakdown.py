"""Fraction of adversaries above which the optimal mechanism reports a given place."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.attack._targets import parse_target
from ibukit.design import least_information
from ibukit.design.least_information import RateDistortionProblem
from ibukit.domain.alphabet import AlphabetLike, as_alphabet
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.errors import ConvergenceError


def breakdown_fraction(
    prior: VectorLike,
    alphabet: AlphabetLike,
    beta: float,
    target: Any,
    *,
    codes: bool = False,
    strict: bool = True,
) -> float:
    r"""The fraction of adversaries that makes the mechanism report `target`.

    Above this fraction f the optimal mechanism, to which `blahut_arimoto` tends, reports `target`.
    It minimises :math:`I(x;y)+\beta\,\mathbb E\,d(x,y)` for the distribution (1 - f) prior + f
    :math:`\delta_{\mathrm{target}}`. Let c(f) be the best distribution of reports if `target` were
    forbidden. Then `target` is worth reporting if and only if

    .. math::

        g(f)=\sum_x\bigl((1-f)\,\mathrm{prior}_x+f\,[x=\mathrm{target}]\bigr)\frac{e^{-\beta
        d(x,\mathrm{target})}}{\sum_w c_w(f)\,e^{-\beta d(x,w)}}>1.

    The fraction is the f with g(f) = 1. Up to this fraction, adversaries who claim to be at the
    target change nothing for the people who are there: not one report is made at the target.

    Parameters
    ----------
    prior : array_like or labelled, shape (k,)
        Distribution of the honest people.
    alphabet : Alphabet, sequence of labels or int
        The k secrets, which are also what can be reported.
    beta : float
        In nats per unit of distance, above 0.
    target : label
        The secret that adversaries claim. On a grid a number is a code, and a pair is (row,
        column).
    codes : bool
        `target` is a code 0..k-1 instead of a label.
    strict : bool
        Raise if the root-finder does not converge. False returns its last value.

    Returns
    -------
    float
        From 0 (if `target` is reported without adversaries, or g(0) = 1) to below 1.

    Raises
    ------
    ConvergenceError
        If `strict` and the root was not found; carries the last fraction as ``.estimate``.
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` does not have one probability for each secret, or `target` is not in the
        alphabet.
    ValueError
        If `beta` is not a finite number above 0.

    Notes
    -----
    c(f) is certified by the solver of `mle`, and a bracketing root-finder solves
    :math:`\log g(f) = 0` on [0, 1]; at f = 1, :math:`\log g` is :math:`\beta` times the distance to
    the nearest other report. The root-finder returns one crossing of 0. In every case that we
    looked at there was no other, but we have no proof of that.

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Section 7 (the attack).
    .. [csiszar] Csiszar, "On the computation of rate-distortion functions", IEEE Trans. Inf.
       Theory 20, 1974.

    Examples
    --------
    Five places in a row, nobody at the last:

    >>> import ibukit as ik
    >>> round(ik.attack.breakdown_fraction([0.4, 0.3, 0.2, 0.1, 0.0], 5, beta=0.5, target=4), 4)
    0.1532
    """
    places = as_alphabet(alphabet)
    k = len(places)
    honest = distribution_over("prior", prior, places)
    beta = least_information.valid_beta(beta)
    code = parse_target(target, places, codes)
    if k == 1:
        return 0.0
    distances = places.distances()
    # The problem without the target as a report.
    others = np.delete(distances, code, axis=1)
    claim = np.eye(k)[code]

    def log_g(fraction: float) -> float:
        return _log_g(
            RateDistortionProblem((1 - fraction) * honest + fraction * claim, others),
            distances[:, code],
            beta,
        )

    with one_thread():
        if log_g(0.0) >= 0:
            return 0.0
        # log g is negative at 0 and positive at 1, so there is a root between them.
        fraction, ended = brentq(
            log_g, 0.0, 1.0, xtol=1e-14, rtol=1e-12, full_output=True, disp=False
        )
    if arguments.flag("strict", strict) and not ended.converged:
        raise ConvergenceError(
            f"the root-finder did not converge: it had reached {fraction:.6g} after "
            f"{ended.iterations} steps ({ended.flag}); strict=False returns this fraction",
            float(fraction),
        )
    return float(fraction)


def _log_g(others: RateDistortionProblem, distances: Floats, beta: float) -> float:
    """Return log g of the forbidden report, from the optimum among the other reports."""
    q = least_information.output_distribution(others, beta)
    nearest = others.loss.min(axis=1)
    with np.errstate(divide="ignore"):
        # log of sum_w c_w exp(-beta d(x, w)), relative to the nearest report to avoid underflow.
        reached = np.log(np.exp(-beta * others.excess_loss) @ q)
    possible = others.prior > 0
    logs = -beta * (distances - nearest) - reached
    return float(logsumexp(logs[possible], b=others.prior[possible]))
