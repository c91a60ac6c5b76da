"""`posterior`: the posterior distribution under a Dirichlet prior, exact or by Gibbs sampling."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.bayes import _gibbs
from ibukit.bayes._count_recursion import posterior_of_totals
from ibukit.bayes._enumeration import posterior_by_splits
from ibukit.bayes._marginals import from_frequencies
from ibukit.bayes._randomized_response import randomized_response_posterior
from ibukit.bayes.posterior import Exact, Law, Posterior
from ibukit.domain.status import Status
from ibukit.domain.vectors import VectorLike, dirichlet_alpha_over
from ibukit.errors import ConvergenceError
from ibukit.tally.tally import Tally, check_bounded
from ibukit.tally.trials import refuse_trials

OF = ("distribution", "frequencies")
POSTERIOR_METHODS = ("exact", "enumerate", "gibbs")


def posterior(
    tally: Tally,
    alpha: VectorLike,
    of: str = "distribution",
    *,
    method: str = "exact",
    rng: Generator | None = None,
    max_sweeps: int = 100_000,
    strict: bool = False,
) -> Posterior:
    r"""The posterior of the distribution, or of the frequencies.

    The prior is :math:`P\sim\mathrm{Dirichlet}(\alpha)`; the frequencies are :math:`F=T/n`; the
    posterior is the law of P, or of F, given the reports. Given these, P has the density
    proportional to
    :math:`\prod_z\bigl(\sum_x p_x M_{xz}\bigr)^{\mathrm{counts}_z}\prod_x p_x^{\alpha_x-1}`, and
    :math:`T_{x}` is the number of users with secret x. Given T, P is
    :math:`\mathrm{Dirichlet}(\alpha + T)`, so that
    :math:`\mathbb E[P\mid\text{reports}]=(\alpha+n\,\mathbb E[F\mid\text{reports}])/(\alpha_0+n)`
    with :math:`\alpha_{0} = \sum_{x} \alpha_{x}`: one of the two means gives the other.

    Parameters
    ----------
    tally : Tally
        Reports of one mechanism, or pooled over several.
    alpha : float, array_like or labelled, shape (k,)
        The prior's parameter, above 0; a number is taken for every secret. 0.5 is Jeffreys' prior
        on the simplex, 1 is uniform.
    of : str
        "distribution", of which the users are a sample, or "frequencies" among the users
        themselves.
    method : str
        "exact" integrates along a parabola under k-RR, for up to about 1e8 equal reports, with a
        relative error of the mean of at most 1e-9 (or an absolute one of 1e-15); under other
        mechanisms it is a recursion over the totals, of k C(n + k, k) steps, whatever the number of
        different reports.
        "enumerate" sums over all matrices that split the reports by secret, as in [optimal]_, for
        small cases. "gibbs" draws, for any size; if reports get lost, only "gibbs" is possible, and
        only for the distribution.
    rng : numpy.random.Generator, optional
        Needed only by "gibbs".
    max_sweeps : int
        Largest number of sweeps of each of the four Gibbs chains, at least 1250.
    strict : bool
        Raise instead of returning a posterior that Gibbs has not drawn well enough.

    Returns
    -------
    Posterior
        Its ``status`` is MAX_ITER if `max_sweeps` sweeps were not enough for
        :math:`\hat R \le 1.01` and an effective sample size of 400 for every secret.

    Raises
    ------
    ConvergenceError
        If `strict` and :math:`\hat R` is above 1.01 or the effective sample size below 400; the
        error carries the posterior as ``.estimate``.
    AlphabetMismatch
        If the length of `alpha` is not that of the alphabet.
    MatrixUncertain
        If the matrix of a mechanism was measured (`MatrixMechanism.from_trials`).
    WeightsRefused, LikelihoodUnknown
        If the tally is weighted, or holds sums of bits only.
    ValueError
        If an entry of `alpha` is not a finite number above 0, or if `of`, `method` or `max_sweeps`
        is not a permitted value; or if reports get lost and anything but the distribution by
        "gibbs" is asked for.
    TooLarge
        If the method would take too many terms or too much memory; the message says how many, and
        what to use instead. Also if the prior is so uneven that the integrals are lost in
        rounding, or if the alphabet has no end.
    TypeError
        If `method` is "gibbs" and `rng` is not a generator.

    Notes
    -----
    Under k-RR, where report z has the probability :math:`l + c\,\theta_{z}`, each report of z
    either tells its secret, or its secret is a draw from :math:`\theta`. Of the :math:`s_{z}`
    reports of z, :math:`t_{z}` tell their secret. By
    :math:`\frac1{\Gamma(a)}=\frac1{2\pi i}\int e^u u^{-a}\,du` the sum over all t is a product, and
    with :math:`A = \alpha_{0}`

    .. math::

        \mathbb E[F_x\mid\text{reports}]=\frac{\int H\,\bigl((A+n)\,T_x+\alpha_x(n-T)\bigr)\,du}
        {n\int H\,(A+T)\,du},\qquad H(u)=e^u u^{-A-1}\prod_z B_z,

        B_z=\sum_t\binom{s_z}{t}\,\alpha_z\cdots(\alpha_z+t-1)\,(c/u)^t\,l^{s_z-t},

    where :math:`T_{z}` is the mean of t under the terms of :math:`B_{z}`, and
    :math:`T = \sum_{z} T_{z}`. This takes O(n) steps for each of tens to thousands of points
    [contour]_. Two quadrature rules without a common point must agree to 1e-9 in every mean and to
    1e-7 in every standard deviation. Only k-RR itself is computed in this way, not a pool of
    several levels.

    Gibbs sampling draws the secrets that reports tell, and P, in turn. A report's column of the
    channel is its least entry plus the rest: the first part tells nothing, so that only secrets of
    the second part are drawn, in O(k) per sweep under k-RR and from the packed bits of unary
    encodings. With up to 512 secrets a sweep ends with a Metropolis step, whose proposal is a walk
    under the parabola that touches the log-likelihood [approximation]_: draws are then nearly
    independent. Where many reports make the parabola a good approximation, which the chains find
    out while they warm up, all but one sweep in fifty are trajectories under it alone, reflected
    where a probability would fall below 0 [trajectories]_, each at the cost of one likelihood. If
    some :math:`\alpha` is below 1, trajectories are taken only if none of them was reflected in the
    warm-up. The mean is the average over the drawn p of :math:`\mathbb E[F\mid p, \text{reports}]`,
    which has less noise than draws of F. Chains start at draws from a wide prior.

    If reports get lost, with the efficiencies e, the density has the further factor
    :math:`(p \cdot e)^{-n}`. Given the totals t of the secrets that reports tell, and a rate r, P
    is a vector of independent gamma variables with the shapes :math:`\alpha_x + t_x` and the rates
    :math:`e_x + r`, divided by their sum; given P, r is a gamma variable of shape
    :math:`\alpha_0` and rate S, and S one of shape :math:`\sum t` and rate :math:`P \cdot e`.

    References
    ----------
    .. [optimal] Lopuhaa-Zwakenberg, Li and Skoric, arXiv:1911.10499, Theorem 3.1 and Propositions
       3.2 and A.3.
    .. [rhat] Vehtari, Gelman, Simpson, Carpenter and Burkner, "Rank-normalization, folding, and
       localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16,
       2021.
    .. [contour] Weideman and Trefethen, "Parabolic and hyperbolic contours for computing the
       Bromwich integral", Math. Comp. 76, 2007.
    .. [augmentation] Tanner and Wong, "The calculation of posterior distributions by data
       augmentation", JASA 82, 1987.
    .. [approximation] Christen and Fox, "Markov chain Monte Carlo using an approximation", J.
       Comput. Graph. Stat. 14, 2005.
    .. [trajectories] Pakman and Paninski, "Exact Hamiltonian Monte Carlo for truncated multivariate
       Gaussians", J. Comput. Graph. Stat. 23, 2014.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([6, 3, 1])
    >>> ik.posterior(tally, alpha=0.5).mean.round(4)
    array([0.6341, 0.2339, 0.132 ])
    >>> ik.posterior(tally, alpha=0.5, of="frequencies").mean.round(4)
    array([0.6792, 0.219 , 0.1018])
    >>> ik.posterior(tally, alpha=0.5, method="gibbs", rng=np.random.default_rng(1)).mean.round(1)
    array([0.6, 0.2, 0.1])
    """
    prior = dirichlet_alpha_over(
        alpha, check_bounded(tally, "a Dirichlet prior is over all secrets", lossy=True).alphabet
    )
    refuse_trials(
        [part.mechanism for part in tally.parts],
        "a posterior",
        "take mle(tally), whose intervals know the trials",
    )
    if not arguments.is_one_of(of, OF):
        raise ValueError(f"of must be 'distribution' or 'frequencies', got {of!r}")
    if not arguments.is_one_of(method, POSTERIOR_METHODS):
        raise ValueError(f"method must be 'exact', 'enumerate' or 'gibbs', got {method!r}")
    lossy = tally.efficiency is not None
    if lossy and (of, method) != ("distribution", "gibbs"):
        raise ValueError(
            "of must be 'distribution' and method 'gibbs' where reports may be lost, got "
            f"of={of!r}, method={method!r}: it is not known whose reports are missing, and there "
            "is no closed form"
        )
    max_sweeps = arguments.whole("max_sweeps", max_sweeps, _gibbs.WARM_UP + _gibbs.N_DRAWS)
    # E[P | F] = (alpha + n F) / (alpha_0 + n): errors of F shrink by this factor in P. If reports
    # get lost, the draws are of P.
    as_drawn = of == "frequencies" or lossy
    shrinkage = 1.0 if as_drawn else tally.n / (prior.sum() + tally.n)
    # Gibbs draws have Monte-Carlo errors and diagnostics; the other methods are exact.
    if method == "gibbs":
        with one_thread():
            draws = _gibbs.sample(tally, prior, of, arguments.generator(rng), max_sweeps)
        frequencies, log_evidence, sweeps = draws.mean(), math.nan, draws.sweeps
        status = Status.CONVERGED if draws.converged else Status.MAX_ITER
        law: Law = draws
        ess, r_hat = draws.effective_sample_size, draws.r_hat
    else:
        exact = _exact(tally, prior) if method == "exact" else posterior_by_splits(tally, prior)
        frequencies, log_evidence, sweeps, status = (
            exact.mean("frequencies"),
            exact.log_evidence,
            0,
            Status.CLOSED_FORM,
        )
        law = exact
        ess, r_hat = np.full(tally.k, np.inf), np.ones(tally.k)
    mean = frequencies if as_drawn else from_frequencies(frequencies, prior, tally.n)
    found = Posterior(
        mean=arguments.frozen(mean),
        standard_deviations=arguments.frozen(law.standard_deviations(of)),
        of=of,
        method=method,
        status=status,
        n_iter=sweeps,
        effective_sample_size=arguments.frozen(ess),
        r_hat=arguments.frozen(r_hat),
        log_evidence=log_evidence,
        alphabet=tally.alphabet,
        _law=law,
        _shrinkage=shrinkage,
    )
    if arguments.flag("strict", strict) and status is Status.MAX_ITER:
        raise ConvergenceError(too_few_draws_message(found, max_sweeps), found)
    return found


def _exact(tally: Tally, prior: Floats) -> Exact:
    """Exact law: by integrals under k-RR, by the recursion under all other mechanisms."""
    law = randomized_response_posterior(tally, prior)
    return posterior_of_totals(tally, prior) if law is None else law


def too_few_draws_message(posterior: Posterior, max_sweeps: int) -> str:
    """Message that says how far the Gibbs chains are from good enough, and what to do."""
    least, largest = posterior.effective_sample_size.min(), posterior.r_hat.max()
    return (
        f"max_sweeps={max_sweeps} sweeps were not enough: R-hat {largest:.4f} should be at most "
        f"{_gibbs.MAX_R_HAT}, the effective sample size {least:.0f} at least {_gibbs.MIN_ESS}; "
        "raise max_sweeps"
    )
