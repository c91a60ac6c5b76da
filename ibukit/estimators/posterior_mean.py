"""`posterior_mean`: the estimate of least mean squared error under a Dirichlet prior."""

from __future__ import annotations

from numpy.random import Generator

from ibukit._ground import arguments
from ibukit.bayes.fit import posterior, too_few_draws_message
from ibukit.domain.status import Status
from ibukit.domain.vectors import VectorLike
from ibukit.errors import ConvergenceError
from ibukit.estimate import Estimate
from ibukit.estimators.certificate import certified
from ibukit.tally.tally import Tally


def posterior_mean(
    tally: Tally,
    alpha: VectorLike,
    of: str = "distribution",
    *,
    method: str = "exact",
    rng: Generator | None = None,
    max_sweeps: int = 100_000,
    strict: bool = False,
) -> Estimate:
    r"""The posterior mean, which of all estimates has the least mean squared error.

    It is :math:`\mathbb E[P\mid \text{reports}]` or :math:`\mathbb E[F\mid \text{reports}]` under P
    ~ Dirichlet(:math:`\alpha`). The error is averaged over the prior, the secrets and the reports,
    and summed over the alphabet. Of what `posterior` gives, this is the mean alone, as an estimate
    like every other, with its likelihood and gap.

    Parameters
    ----------
    tally : Tally
        Of one mechanism or pooled over several.
    alpha : float, array_like or labelled, shape (k,)
        The prior's parameter, above 0; a single number is used for every secret.
    of : str
        "distribution" for the distribution of which the users are a sample, or "frequencies" for
        the frequencies among the users themselves.
    method : str
        "exact", "enumerate" or "gibbs", as for `posterior`.
    rng : numpy.random.Generator, optional
        Needed only by "gibbs".
    max_sweeps : int
        The largest number of sweeps of each of the four Gibbs chains.
    strict : bool
        Raise instead of returning an estimate for which Gibbs has not drawn well enough.

    Returns
    -------
    Estimate
        ``status`` is CLOSED_FORM. For Gibbs it is CONVERGED or MAX_ITER, ``method`` states the
        least effective sample size and the largest :math:`\hat R`, and ``n_iter`` is the number of
        sweeps. The estimate does not aim at the maximum of the likelihood, so ``gap`` is not small.
        For credible intervals use `posterior`.

    Raises
    ------
    ConvergenceError
        If `strict`, and :math:`\hat R` is above 1.01 or the effective sample size is below 400;
        carries ``.estimate``.
    AlphabetMismatch, ValueError, TooLarge, TypeError
        As `posterior`.

    References
    ----------
    .. [optimal] Lopuhaa-Zwakenberg, Li and Skoric, arXiv:1911.10499, Theorem 3.1.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([6, 3, 1])
    >>> ik.posterior_mean(tally, alpha=0.5).distribution.round(4)
    array([0.6341, 0.2339, 0.132 ])
    >>> ik.mle(tally).distribution.round(4)  # far from the prior's mean, 1/3 each
    array([0.8607, 0.1393, 0.    ])

    Under k-RR the mean is exact for any number of reports:

    >>> many = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([50_000, 28_000, 22_000])
    >>> ik.posterior_mean(many, alpha=0.5).distribution.round(4)
    array([0.7912, 0.187 , 0.0219])
    """
    found = posterior(tally, alpha, of, method=method, rng=rng, max_sweeps=max_sweeps)
    # The quality of draws belongs to the method's name, because an estimate has no place for it.
    drawn = ""
    if method == "gibbs":
        least, largest = found.effective_sample_size.min(), found.r_hat.max()
        drawn = f", least effective sample size {least:.0f}, largest R-hat {largest:.3f}"
    # The mean is a copy: an estimate freezes its array.
    estimate = certified(
        tally,
        found.mean.copy(),
        found.status,
        found.n_iter,
        f"posterior mean of the {of}, {method}{drawn}",
    )
    if arguments.flag("strict", strict) and found.status is Status.MAX_ITER:
        raise ConvergenceError(too_few_draws_message(found, max_sweeps), estimate)
    return estimate
