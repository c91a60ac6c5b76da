"""Certificates: bounds on how far a likelihood is from its maximum, and estimates with them."""

from __future__ import annotations

import math

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.efficiency import to_all, to_seen
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.estimate import Estimate, Status
from ibukit.tally.part import has_likelihood
from ibukit.tally.tally import Tally, check_tally


def gap(tally: Tally, distribution: VectorLike) -> float:
    r"""Certify a distribution: how far its likelihood may be from the maximum.

    .. math:: \max_\phi\;\frac{L(\phi)-L(\theta)}{n}\;\le\;\mathrm{gap}.

    With :math:`g_x=\sum_z q_z\,\frac{M_{xz}}{(\theta M)_z}` the gap is :math:`\log\max_x g_x`,
    because for any :math:`\phi` on the simplex, by Jensen,

    .. math::

        \sum_z q_z\log\frac{(\phi M)_z}{(\theta M)_z}\;\le\;\log\sum_x\phi_x
        g_x\;\le\;\log\max_x g_x.

    Where the secrets' alphabet has no end, the bound holds for all :math:`\phi` on the whole
    alphabet: see `Tally.full_alphabet`. Where reports get lost with known efficiencies, the
    likelihood is that of the reports seen, and :math:`\theta` and :math:`\phi` are distributions of
    all secrets.

    The number returned is no less than the exact one: it includes a bound on the rounding of the
    two sums, which is largest at a maximiser, where the exact gap is about 0. The bound on rounding
    is some 1e-16 for each secret and report, and 1e-11 by Fourier transforms. "Exact" means that
    :math:`\theta` is taken as it is given, and :math:`M_{xz}` as the real number that follows from
    the doubles in the tally's channel. These are the entries of a matrix; the two entries of k-RR
    and of rows of bits, with a scale for each report; the powers of the decay on a line, with
    scales; or, on a large grid, the entries of the kernels, with their factors and scales. A
    mechanism's own formula differs from these by its rounding to doubles, a few units in the last
    place.

    Parameters
    ----------
    tally : Tally
    distribution : array_like or labelled, shape (k,)
        Any distribution of the secrets, wherever it came from.

    Returns
    -------
    float
        The gap in nats per report. At a maximiser it is the bound on rounding; where a seen report
        has probability 0 it is inf. It bounds the likelihood, not the distance to the truth.

    Raises
    ------
    InvalidDistribution
        If `distribution` is not on the simplex.
    AlphabetMismatch
        If it does not have one probability for each secret.

    References
    ----------
    .. [lindsay] Lindsay, "The geometry of mixture likelihoods", Annals of Statistics 11, 1983 (the
       gradient function).

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]).tally_counts([60, 40])
    >>> round(ik.gap(tally, [0.5, 0.5]), 12)  # 0.6 = (0.9 + 0.3) / 2: a perfect fit
    0.0
    >>> round(ik.gap(tally, [0.4, 0.6]), 4)
    0.0834
    """
    theta = distribution_over(
        "distribution", distribution, check_tally(tally, lossy=True, weighted=True).alphabet
    )
    return gap_among_seen(tally, to_seen(theta, tally.efficiency))


def gap_among_seen(tally: Tally, theta: Floats) -> float:
    """Return the gap of a distribution among the secrets seen, which is what the channel takes."""
    return _certificate(tally, theta)[1]


def certified(
    tally: Tally,
    theta: Floats,
    status: Status,
    n_iter: int,
    method: str,
    known: tuple[float, float] | None = None,
) -> Estimate:
    """Build an `Estimate` and certify it.

    `known` is (log-likelihood, gap) if the caller has already computed them. `theta` is the
    distribution that the channel takes: if reports get lost, that among the secrets seen, from
    which that of all secrets follows. The map between these two is one to one and keeps the
    likelihood, so gap and likelihood are the same for both.
    """
    log_likelihood, excess = known or (
        _certificate(tally, theta)
        if all(has_likelihood(part.mechanism) for part in tally.parts)
        else (math.nan, math.nan)
    )
    # The certificate is about distributions: off the simplex it says nothing.
    off = status is Status.OFF_SIMPLEX
    return Estimate(
        distribution=arguments.frozen(to_all(theta, tally.efficiency)),
        # The channel leaves out a factor of each report's probability that theta does not change.
        log_likelihood=log_likelihood + tally.log_offset,
        gap=math.inf if off else excess,
        status=status,
        n_iter=n_iter,
        method=method if tally.efficiency is None else f"{method}; efficiencies divided out",
        alphabet=tally.alphabet,
        tally=tally,
    )


def certified_on_or_off_simplex(
    tally: Tally, v: Floats, status: Status, n_iter: int, method: str
) -> Estimate:
    """Build an `Estimate` of a vector that may be off the simplex, which its status then says."""
    # Sums within the usual tolerance of 1 count as 1.
    on_simplex = (v >= 0).all() and abs(v.sum() - 1) <= arguments.SUM_TOLERANCE
    return certified(tally, v, status if on_simplex else Status.OFF_SIMPLEX, n_iter, method)


def as_estimate(value: VectorLike, tally: Tally, name: str, method: str) -> Estimate:
    """Return an estimate unchanged, and a distribution with its certificate.

    The error for anything else calls it `name`.
    """
    if isinstance(value, Estimate):
        return value
    theta = distribution_over(name, value, tally.alphabet)
    return certified(tally, theta.copy(), Status.CLOSED_FORM, 0, method)


def _certificate(tally: Tally, theta: Floats) -> tuple[float, float]:
    """Return log-likelihood and gap in one pass, without storing a number for each report."""
    return tally.operator.certificate(theta, tally.counts, tally.n)
