"""Limits of the Bayes errors for many users under a Dirichlet prior, and the paper's bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import betaln, gammaln

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.domain.vectors import VectorLike, dirichlet_alpha_over
from ibukit.errors import ConvergenceError, NotInvertible
from ibukit.fisher_information import contrasts
from ibukit.identification.identifiability import identifiable
from ibukit.mechanisms import Mechanism
from ibukit.mechanisms.matrix import as_mechanism
from ibukit.theory.estimation_bounds import entropy_factor

# Entries of the stack of information matrices and of the probabilities that are held at a time.
DRAWN_ENTRIES_AT_ONCE = 2**22
# Log-odds up to which a share is a double, and the nats and standard deviations from its peak at
# which a density is negligible.
MAX_LOG_ODDS, NEGLIGIBLE_NATS, NEGLIGIBLE_DEVIATIONS = 700.0, 40.0, 9.0
# Error beyond these ends that is too large to pass without a word.
MAX_BEYOND = 1e-9
# Sum of alpha up to which the prior's density over the shares is wide enough for a rule.
MAX_ALPHA_OF_SHARES = 30.0
# Least alpha with which the density over the log-odds falls quickly to both sides.
MIN_ALPHA_OF_PEAKS = 0.1
# Largest rounding error of the prior's density, relative to the density.
MAX_ROUNDING = 1e-6


@dataclass(frozen=True)
class BayesLimits:
    r"""Limits for many users under a Dirichlet prior, and the paper's bounds.

    The bounds are on these limits. See `bayes_limits`.

    Attributes
    ----------
    k1 : float
        :math:`K_1 = -1 / 2\,E\,\log \det J_{P}` in k - 1 coordinates, nats.
    k2 : float
        :math:`K_2 = 1 / 2\,E\,\log \det C_{F}` in k - 1 coordinates, nats.
    distribution : float
        Limit of :math:`n\,\mathbb E\lVert\mathbb E[P\mid\text{reports}]-P\rVert^2`:
        :math:`E\,\operatorname{tr} C_{P}`.
    frequencies : float
        Limit of :math:`n\,\mathbb E\lVert\mathbb E[F\mid\text{reports}]-F\rVert^2`:
        :math:`E\,\operatorname{tr} C_{F} = E\,\operatorname{tr} C_{P} - E[1 - \lVert P\rVert
        ^{2}]`.

    Examples
    --------
    >>> import ibukit as ik
    >>> limits = ik.theory.bayes_limits(ik.RandomizedResponse(2, epsilon=1.0), alpha=0.5)
    >>> round(limits.k1, 5), round(limits.k2, 5)
    (0.02053, -0.04132)
    """

    k: int
    k1: float
    k2: float
    distribution: float
    frequencies: float
    _errors: tuple[float, float, float, float]

    def standard_errors(self) -> tuple[float, float, float, float]:
        """Monte-Carlo standard errors of the four numbers, in their order.

        For two secrets they are the errors that the quadrature states.

        Returns
        -------
        (k1, k2, distribution, frequencies) : floats

        Examples
        --------
        >>> import ibukit as ik
        >>> limits = ik.theory.bayes_limits(ik.RandomizedResponse(2, epsilon=1.0), alpha=0.5)
        >>> max(limits.standard_errors()) < 1e-9
        True
        """
        return self._errors

    @property
    def distribution_bound(self) -> float:
        r"""The paper's bound (51), with a larger factor in the place of k.

        It is :math:`(k - 1)\,k^{1 / (k - 1)}\,\exp (2\,K_1 / (k - 1))`, and at most `distribution`.
        """
        return entropy_factor(self.k) * float(np.exp(2 * self.k1 / (self.k - 1)))

    @property
    def frequencies_bound(self) -> float:
        r"""The paper's bound (52), with a larger factor in the place of k.

        It is :math:`(k - 1)\,k^{1 / (k - 1)}\,\exp (2\,K_2 / (k - 1))`, and at most `frequencies`.
        """
        return entropy_factor(self.k) * float(np.exp(2 * self.k2 / (self.k - 1)))


def bayes_limits(
    mechanism: Mechanism | ArrayLike,
    alpha: VectorLike,
    *,
    rng: Generator | None = None,
    draws: int = 10_000,
    strict: bool = True,
) -> BayesLimits:
    r"""The limits of n times the least mean squared errors.

    With them come the constants K1 and K2 of the posterior entropies. Let P be drawn from
    Dirichlet(:math:`\alpha`), let F be the frequencies of the users' secrets, and let :math:`J_{p}
    = \sum_{z} d_{z}\,d_{z}^{\top} / (p\,M)_{z}` with :math:`d_{z} = (M_{xz} - M_{kz})_{x < k}` and
    :math:`C_{F} = J_{P}^{-1} - (\operatorname{diag} P - P\,P^{\top})`:

    .. math::

        h(P\mid\text{reports})+\tfrac{k-1}2\log n\to K_1+\tfrac{k-1}2\log(2\pi e), \qquad K_1 =
        -1 / 2\,E\,\log \det J_{P}, \qquad H(F\mid\text{reports})-\tfrac{k-1}2\log n\to
        K_2+\tfrac{k-1}2\log(2\pi e), \qquad K_2 = 1 / 2\,E\,\log \det C_{F}, \qquad n\,\mathbb
        E\lVert\mathbb E[P\mid\text{reports}]-P\rVert^2\to\mathbb
        E\operatorname{tr}C_P\ge(k-1)\,k^{1/(k-1)}\,e^{2K_1/(k-1)}, \qquad n\,\mathbb
        E\lVert\mathbb E[F\mid\text{reports}]-F\rVert^2\to\mathbb
        E\operatorname{tr}C_F\ge(k-1)\,k^{1/(k-1)}\,e^{2K_2/(k-1)},

    with traces over all k secrets. The limits are found by quadrature for two secrets, and by Monte
    Carlo for more.

    Parameters
    ----------
    mechanism : Mechanism or array_like, shape (k, m)
        A unary encoding may have up to 16 secrets. A row-stochastic matrix is taken as a
        `MatrixMechanism`.
    alpha : float, array_like or labelled, shape (k,)
        The prior's parameter; a number is the same for all secrets: 0.5 is Jeffreys' prior.
    rng : numpy.random.Generator, optional
        Needed for three secrets or more.
    draws : int
        Number of draws from the prior, at least 2.
    strict : bool
        Raise if the quadrature misses its goal, an error of 1e-11 of its value. Draws have no goal
        to miss: their errors are stated. False returns the limits that were reached, with their
        errors.

    Returns
    -------
    BayesLimits
        The limits, with their `standard_errors`.

    Raises
    ------
    ConvergenceError
        If `strict` and the quadrature ended before its goal; the error carries the limits as
        ``.estimate``.
    NotInvertible
        If different distributions give the same reports.
    TypeError
        If `rng` is missing where it is needed.
    ValueError, AlphabetMismatch
        If `alpha` or `draws` is out of range or of the wrong shape, if no list of reports says as
        much as the mechanism's own, or if reports get lost.

    Notes
    -----
    The limits of the errors, the factor :math:`(k-1)\,k^{1/(k-1)}` (the paper has k, which is
    smaller) and the short form of K2 are ours; the rest is (41), (42), (51) and (52) of
    [frequency]_. K2 is stated as :math:`1 / 2\,E[\log \det N_{P} - \log \det J_{P} - \sum_{x} \log
    P_{x}]`, with :math:`N_{p}` the mean over reports of the covariance of the secret given the
    report; N = S - S J S with :math:`S = \operatorname{diag} p - p\,p^{\top}` in k - 1 coordinates,
    whose determinant is :math:`\prod_{x} p_{x}`, gives :math:`C_{F} = J^{-1}\,S^{-1}\,N` and
    :math:`\det C_{F} = \det N / (\det J\,\prod_{x} p_{x})`. The limits of the errors are those of
    the posterior, which is asymptotically Gaussian with covariance :math:`C_{P} / n`. The product
    of the k - 1 positive eigenvalues is k times the determinant, and their geometric mean is at
    most their arithmetic mean; so the bounds lie below the limits by Jensen's inequality.

    References
    ----------
    .. [frequency] Lopuhaä-Zwakenberg, Li and Škorić, arXiv:1911.10499, Theorem 4.2 and Corollary
       4.3, (36)-(53).

    Examples
    --------
    >>> import ibukit as ik
    >>> limits = bayes_limits(ik.RandomizedResponse(2, epsilon=1.0), alpha=0.5)
    >>> round(limits.distribution, 4), round(limits.distribution_bound, 4)
    (2.0913, 2.0838)
    """
    mechanism = as_mechanism(mechanism)
    k = arguments.whole("number of secrets", mechanism.k, 2)
    prior = dirichlet_alpha_over(alpha, mechanism.alphabet)
    draws = arguments.whole("draws", draws, 2)
    mechanism = mechanism.as_finite()
    if not identifiable(mechanism):
        raise NotInvertible(
            f"the reports of {mechanism} do not identify the distribution, so no estimate's error "
            "vanishes; see theory.identifiable"
        )
    matrix = mechanism.matrix()[:, mechanism.matrix().any(axis=0)]
    missed = ""
    with one_thread():
        if k == 2:
            means, errors, missed = _by_quadrature(matrix, prior)
        else:
            # With three secrets or more the simplex is sampled from the prior.
            values = _by_monte_carlo(matrix, prior, arguments.generator(rng), draws)
            means, errors = values.mean(axis=1), np.zeros(len(values))
            # The logarithm of no volume is minus infinity in every draw, without an error.
            known = np.isfinite(means)
            errors[known] = values[known].std(axis=1, ddof=1) / np.sqrt(draws)
    k1, k2, distribution, frequencies = (float(mean) for mean in means)
    first, second, third, fourth = (float(error) for error in errors)
    limits = BayesLimits(k, k1, k2, distribution, frequencies, (first, second, third, fourth))
    if arguments.flag("strict", strict) and missed:
        raise ConvergenceError(
            f"the quadrature ended before its goal, with errors up to {errors.max():.3g}: "
            f"{missed}; strict=False returns the limits with these errors",
            limits,
        )
    return limits


def _by_quadrature(matrix: Floats, prior: Floats) -> tuple[Floats, Floats, str]:
    """Means by quadrature for two secrets, their errors, and the rule's warnings.

    The integrals have the weight p^(alpha_1 - 1) (1 - p)^(alpha_2 - 1), whose poles at the ends are
    part of the rule. A report that excludes a secret adds a logarithm of p or of 1 - p to that; the
    integral is then over the log-odds, in which it is smooth. So it is for a large alpha, whose
    weight is a narrow peak.
    """
    is_peaked = prior.sum() > MAX_ALPHA_OF_SHARES and prior.min() > MIN_ALPHA_OF_PEAKS
    rule = _over_the_log_odds if is_peaked or (matrix == 0).any() else _over_the_share
    middle = _integrands(matrix, np.array([[0.5, 0.5]]))[:, 0]

    def mean(which: int) -> tuple[float, float, str]:
        # Where reports hide nothing, the second constant is that of no volume at all.
        if middle[which] == -np.inf:
            return -np.inf, 0.0, ""
        return rule(
            lambda p, rest: float(_integrands(matrix, np.array([[p, rest]]))[which, 0]), prior
        )

    means, errors, warning = zip(*(mean(which) for which in range(4)), strict=True)
    return np.array(means), np.array(errors), next(filter(None, warning), "")


def _over_the_share(f: Callable[[float, float], float], prior: Floats) -> tuple[float, float, str]:
    # Imported late: it is slow to load and seldom needed.
    from scipy.integrate import quad

    value, error, _, *warning = quad(
        lambda p: f(p, 1 - p),
        0,
        1,
        weight="alg",
        wvar=tuple(prior - 1),
        epsabs=0,
        epsrel=1e-11,
        limit=200,
        full_output=True,
    )
    # The prior's density is the rule's weight over the beta function.
    scale = np.exp(-betaln(*prior))
    return scale * value, scale * error, " ".join(str(warning[0]).split()) if warning else ""


def _over_the_log_odds(
    f: Callable[[float, float], float], prior: Floats
) -> tuple[float, float, str]:
    # Imported late: it is slow to load and seldom needed.
    from scipy.integrate import quad

    def at(u: float) -> tuple[Floats, float]:
        # p and 1 - p, and the density of the log-odds.
        logs = -np.logaddexp(0, [-u, u])
        return np.exp(logs), float(np.exp(prior @ logs - betaln(*prior)))

    def integrand(u: float) -> float:
        shares, density = at(u)
        return density * f(*shares)

    # The density has its peak at log(alpha_1 / alpha_2), is about as wide as a normal one of this
    # deviation, and falls like exp(alpha u) far from there. At the last ends p is still a double.
    centre, deviation = np.log(prior[0] / prior[1]), np.sqrt((1 / prior).sum())
    reach = NEGLIGIBLE_NATS / prior + NEGLIGIBLE_DEVIATIONS * deviation
    low = max(centre - reach[0], -MAX_LOG_ODDS)
    high = min(centre + reach[1], MAX_LOG_ODDS)
    value, error, _, *warning = quad(
        integrand, low, high, points=[centre], epsabs=0, epsrel=1e-11, limit=400, full_output=True
    )
    missed = " ".join(str(warning[0]).split()) if warning else ""
    for end in (low, high):
        shares, density = at(end)
        # Beyond the end the density falls at least at this rate. An integrand is at most about as
        # large as the log-odds.
        rate = abs(float(prior @ (shares[1], -shares[0])))
        beyond = density / rate * (MAX_LOG_ODDS + 1 / rate)
        error += beyond
        if beyond > MAX_BEYOND:
            missed = "alpha is so small that shares are needed which are no doubles"
    # The density is the exponential of a difference of numbers of this size.
    rounding = 4 * np.finfo(float).eps * abs(gammaln(prior.sum()))
    if rounding > MAX_ROUNDING:
        missed = "alpha is so large that its density is lost to rounding"
    return value, error + rounding * abs(value), missed


def _by_monte_carlo(matrix: Floats, prior: Floats, rng: Generator, draws: int) -> Floats:
    step = max(1, DRAWN_ENTRIES_AT_ONCE // matrix.size)
    sizes = [min(step, draws - start) for start in range(0, draws, step)]
    return np.concatenate(
        [_integrands(matrix, rng.dirichlet(prior, size)) for size in sizes], axis=1
    )


def _integrands(matrix: Floats, points: Floats) -> Floats:
    """Integrands -1/2 log det J, 1/2 log det C_F, tr C_P, tr C_F at each point, (4, points).

    If reports hide little, C_F = J^-1 - S would be lost to rounding. It equals J^-1 U with U = I -
    J S, which is B^T V B with V_xy = -p_y sum_z M_xz M_yz / P_z for x != y, and rows that sum to 0:
    sums of terms of one sign.
    """
    k = len(matrix)
    # In k - 1 coordinates a determinant is k times as large as in this orthonormal basis.
    basis = contrasts(k)
    along_it = basis.T @ matrix
    information = (along_it / (points @ matrix)[:, None, :]) @ along_it.T
    covariance = np.linalg.inv(information)
    # Off-diagonal entries of V; the diagonal makes the rows sum to 0, without cancellation.
    apart = -((matrix / (points @ matrix)[:, None, :]) @ matrix.T) * points[:, None, :]
    diagonal = np.arange(k)
    apart[:, diagonal, diagonal] = 0.0
    apart[:, diagonal, diagonal] = -apart.sum(axis=2)
    hidden = basis.T @ apart @ basis
    logdet = np.linalg.slogdet(information)[1]
    half = np.log(k) / 2
    return np.stack(
        [
            -logdet / 2 - half,
            (np.linalg.slogdet(hidden)[1] - logdet) / 2 - half,
            np.trace(covariance, axis1=1, axis2=2),
            np.trace(covariance @ hidden, axis1=1, axis2=2),
        ]
    )
