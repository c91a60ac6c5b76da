"""`smooth` and `choose_penalty`: maximum likelihood with a penalty on roughness."""

from __future__ import annotations

import math
from typing import overload

import numpy as np
import scipy

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.channels import facts
from ibukit.domain.efficiency import to_seen
from ibukit.errors import ConvergenceError
from ibukit.estimate import Estimate, Status
from ibukit.estimate.estimate_groups import EstimateGroups
from ibukit.estimators import _plane_evidence
from ibukit.estimators._curvature import Determined
from ibukit.estimators._line_search import mean_log_likelihood
from ibukit.estimators._roughness import (
    Fit,
    Roughness,
    fit,
    nearest_fit,
    roughness_on,
    start_near,
    structure,
)
from ibukit.estimators.certificate import certified
from ibukit.estimators.groups import each_group
from ibukit.estimators.maximum_likelihood import mle
from ibukit.fisher_information import refuse_if_too_large
from ibukit.tally.likelihood import ratios
from ibukit.tally.tally import Tally, check_bounded
from ibukit.tally.tally_groups import TallyGroups

# Factor between two penalties that are tried.
PENALTY_FACTOR = math.sqrt(10)
# Nats of evidence below the best so far at which a penalty ends the search.
HOPELESS_NATS = 50.0
# Number of cells of a plane up to which a penalty is chosen by determinants, which take two seconds
# there; beyond it by derivatives of the evidence (`_plane_evidence`).
MAX_CELLS_BY_DETERMINANTS = 700
# Share of the uniform distribution in a start near the maximum likelihood, which has zeros.
LIFT = 1e-3
OF = ("distribution", "frequencies")


@overload
def smooth(
    tally: Tally,
    penalty: float | None = ...,
    tol: float = ...,
    of: str = ...,
    *,
    strict: bool = ...,
) -> Estimate: ...


@overload
def smooth(
    tally: TallyGroups,
    penalty: float | None = ...,
    tol: float = ...,
    of: str = ...,
    *,
    strict: bool = ...,
) -> EstimateGroups: ...


def smooth(
    tally: Tally | TallyGroups,
    penalty: float | None = None,
    tol: float = 1e-9,
    of: str = "distribution",
    *,
    strict: bool = True,
) -> Estimate | EstimateGroups:
    r"""The maximum penalised likelihood estimate, a smooth distribution.

    Maximise :math:`L(\theta) - \lambda R(\theta)` over the simplex, where :math:`\lambda` is the
    penalty.

    .. math:: R(\theta)=\sum_{x\sim y}\frac{(\sqrt{\theta_x}-\sqrt{\theta_y})^2}{d(x,y)^2}

    is Good's roughness: it is small where the probabilities of neighbours are nearly the same,
    relative to their size. Neighbours are consecutive integers of a Line, bins of equal width as
    `pandas.cut` makes them, and cells of a Grid that share a side. Both terms are concave, so that
    there is one maximiser, whether or not the reports identify the distribution, and it can be
    certified. The maximiser tends to the MLE as the penalty vanishes, and to the uniform
    distribution as the penalty grows.

    Parameters
    ----------
    tally : Tally
        Of one mechanism or pooled over several, over a Line or a Grid.
    penalty : float, optional
        In nats times the square of the alphabet's unit, for all reports together. By default it is
        `choose_penalty(tally)`, chosen from the reports alone.
    tol : float
        The penalised mean log-likelihood is certified to be within `tol` nats per report of its
        maximum. Where reports get lost, this is the maximum among the distributions of which the
        same share is seen.
    of : str
        "distribution" for :math:`\theta` itself, of which the users are a sample; or "frequencies"
        for the frequencies among the users themselves:
        :math:`F_x=\sum_z q_z\,\theta_x M_{xz}/(\theta M)_z`, the mean over the reports of what each
        says of its sender's secret.
    strict : bool
        Raise where `tol` is missed. False returns the best estimate found, with the status
        MAX_ITER.

    Returns
    -------
    Estimate
        ``status`` is CONVERGED, ``method`` states the penalty, and ``n_iter`` is the number of
        Newton steps at that penalty. As for every estimate, ``gap`` is computed from what is
        returned: no distribution is more likely by more than ``gap`` nats per report.

    Raises
    ------
    AlphabetMismatch
        If the alphabet is neither a Line nor a Grid, nor bins of equal width.
    TooLarge
        If the alphabet has no end; or if it has more than 10,000 elements and a step takes matrices
        of shape (k, k). It does so for all reports but those of one mechanism of geometric noise on
        a line, or of planar noise on a grid.
    ConvergenceError
        If `strict` and no certificate of `tol` was reached; carries the best ``.estimate``.
    ValueError
        If `penalty` or `tol` is not a finite number above 0, `of` is neither of its two words, or
        reports are weighted (the subclass `WeightsRefused`).

    Notes
    -----
    With :math:`\gamma_x=n\,g_x-\mathrm{penalty}\;\partial R/\partial\theta_x`, where g holds the
    ratios of `ibu`, it follows from concavity that the penalised log-likelihood of any :math:`\phi`
    exceeds that of :math:`\theta` by at most :math:`\max \gamma - \theta \cdot \gamma`. A step of
    Newton's method on :math:`\log \theta` costs O(k) for one mechanism of geometric noise on a line
    (0.4 s of work for 2,000 values, 11 s for 100,000). For one mechanism of planar noise on more
    than 700 cells a step at a given penalty takes conjugate gradients by Fourier transforms, and
    memory for some vectors of k numbers (6 s of work for 256 x 256 cells). The conjugate gradients
    end where the system is solved to a part in :math:`10^4`, which may cost one more step but does
    not change the certificate. Otherwise a step takes a matrix of shape (k, k), which suits
    alphabets of a few thousand values. With a penalty that is a tiny fraction of the default one,
    the estimate is a row of spikes, like the MLE, and may be impossible to certify.

    Where reports get lost, as in an unfolding (``ik.smooth(ik.unfold(counts, matrix).tally)``), the
    likelihood is that of the reports seen, but :math:`\theta` and R are those of all secrets, and
    numbers of events are :math:`n\,\theta_x/\sum_y\theta_y e_y`. The share
    :math:`\sum_x \theta_x e_x` enters the objective by a term that is not concave: the certificate
    then holds only among distributions with the same share; as the share itself varies, the
    objective is stationary. Where secrets are seen very unequally the objective can have two
    maxima, so it is maximised from the uniform distribution and from the maximum likelihood, and
    the better result is taken.

    Which `of` to choose: people drawn from a smooth distribution are not themselves smoothly
    distributed, and with weak noise the reports show how they are in fact distributed.
    :math:`\theta` leaves this out, while F takes in as much of it as the reports bear. F is one
    step of `ibu` from :math:`\theta`. If the users were drawn from :math:`\theta`, F is
    :math:`\mathbb E[F\mid \text{reports}]`, and so the estimate of least squared error. F is no
    less likely than :math:`\theta`, tends to :math:`\theta` where reports tell nothing, and is the
    reports' own distribution where they tell all. Where the frequencies of these users are wanted,
    take F: with noise so weak that the raw reports are closer to these frequencies than
    :math:`\theta` is, F is as close as the reports.

    Why this smoother: it was chosen on the ages of Adult and on Manhattan's check-ins, each at four
    strengths of rather strong noise. There smoothed EM [silverman]_ and g-modelling [efron]_, whose
    parameters were also chosen from the reports alone, were ahead of it by at most 6 % in mean EMD
    (standard error 5 %), and each was behind it by more than 40 % somewhere
    (``benchmarks/smoothers.py``). On data with heaps at round values, which are not smooth, this
    smoother can be half as far again from the truth as `ibu` stopped at the best step; but the MLE
    is no better. Smoothed EM maximises nothing that could be certified, and g-modelling maximises
    nothing concave.

    References
    ----------
    .. [good] Good and Gaskins, "Nonparametric roughness penalties for probability densities",
       Biometrika 58, 1971.
    .. [silverman] Silverman, Jones, Wilson and Nychka, "A smoothed EM approach to indirect
       estimation problems, with particular reference to stereology and emission tomography", J. R.
       Statist. Soc. B 52, 1990.
    .. [efron] Efron, "Empirical Bayes deconvolution estimates", Biometrika 103, 2016.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> ages = ik.datasets.load_adult_ages()
    >>> mechanism = ik.TruncatedGeometric(ages.alphabet, epsilon=0.05)
    >>> tally = mechanism.simulate(ages.counts, np.random.default_rng(1))
    >>> rough, curve = ik.mle(tally), ik.smooth(tally)
    >>> for estimate in (rough, curve):
    ...     print(round(ik.emd(estimate.distribution, ages.distribution, ages.alphabet), 1))
    1.7
    0.7
    >>> ik.smooth(tally, penalty=1e9).distribution.round(3)[[0, 50, 99]]  # too smooth
    array([0.01, 0.01, 0.01])

    With weak noise, and the people's own frequencies as the truth:

    >>> mechanism = ik.TruncatedGeometric(ages.alphabet, epsilon=3.0)
    >>> tally = mechanism.simulate(ages.counts, np.random.default_rng(1))
    >>> for estimate in (ik.mle(tally), ik.smooth(tally), ik.smooth(tally, of="frequencies")):
    ...     print(round(ik.emd(estimate.distribution, ages.distribution, ages.alphabet), 3))
    0.009
    0.016
    0.009
    """
    if not arguments.is_one_of(of, OF):
        raise ValueError(f"of must be 'distribution' or 'frequencies', got {of!r}")
    if isinstance(tally, TallyGroups):
        return each_group(tally, lambda one: smooth(one, penalty, tol, of, strict=strict))
    roughness = _roughness_of(tally)
    if of == "frequencies" and tally.efficiency is not None:
        raise ValueError(
            "of must be 'distribution' where reports may be lost: it is not known whose are missing"
        )
    tol = arguments.positive("tol", tol)
    how = "given"
    if penalty is None:
        penalty, how = choose_penalty(tally), "with the most evidence"
    penalty = arguments.positive("penalty", penalty)
    with one_thread():
        optimum = _best_fit(tally, roughness, penalty, tol)
        met = optimum.excess <= tol
        status = Status.CONVERGED if met else Status.MAX_ITER
        target = "of the frequencies, " if of == "frequencies" else ""
        method = f"smooth, {target}penalty={penalty:.6g} {how}"
        theta = (
            optimum.theta if of == "distribution" else _frequencies_of_users(tally, optimum.theta)
        )
        theta = to_seen(theta, tally.efficiency)
        estimate = certified(tally, theta, status, optimum.n_iter, method)
    if arguments.flag("strict", strict) and not met:
        raise ConvergenceError(
            f"tol={tol:g} was not certified: the penalised log-likelihood is within "
            f"{optimum.excess:.3g} nats per report of its maximum after {optimum.n_iter} steps at "
            f"penalty={penalty:g}; take a larger tol, a larger penalty, mle(tally), which has "
            "none, or strict=False for the estimate as it is",
            estimate,
        )
    return estimate


def choose_penalty(tally: Tally) -> float:
    r"""The penalty with the most evidence, for `smooth`.

    .. math:: \arg\max_\lambda\;\log\frac{\int e^{L-\lambda R}}{\int e^{-\lambda R}}.

    Read as a prior, :math:`\exp (-\lambda\,R(\theta))` is a Bingham distribution of
    :math:`\sqrt{\theta}` on the sphere. Both integrals are over that sphere and are taken by
    Laplace's approximation, the second one around the uniform distribution. Up to a constant the
    logarithm is :math:`L-\lambda R+\tfrac{k-1}{2}\log\lambda-\tfrac12\log\det H` at the penalised
    maximum, where H holds the second derivatives along the sphere. The choice needs neither the
    truth nor random splits of the reports: the same tally gives the same penalty.

    Parameters
    ----------
    tally : Tally
        Over a Line or a Grid.

    Returns
    -------
    float
        In nats times the square of the alphabet's unit, with a relative error of about 1 % (for
        planes see the notes). Where the reports show no departure from the uniform distribution, it
        is large enough to make the estimate uniform.

    Raises
    ------
    AlphabetMismatch
        If the alphabet is neither a Line nor a Grid, nor bins of equal width.
    TooLarge
        If the alphabet has no end; or if it has more than 10,000 elements and a step takes matrices
        of shape (k, k). It does so for all reports but those of one mechanism of geometric noise on
        a line, or of planar noise on a grid.
    WeightsRefused
        If reports are weighted.

    Notes
    -----
    For one mechanism of planar noise on more than 700 cells it is not :math:`\log \det H` that is
    computed, but only how it changes with the penalty:
    :math:`d\,\log \det H / d\,\log \lambda = \operatorname{tr} H^{-1}\,H'` is the mean of k + x .
    (H' - H) x over random x of covariance :math:`H^{-1}`, of which sixteen are drawn by conjugate
    gradients, the same ones for every tally. This leaves the penalty uncertain by a few per cent,
    which costs less than a nat of evidence.

    References
    ----------
    .. [mackay] MacKay, "Bayesian interpolation", Neural Computation 4, 1992 (the evidence).
    .. [good] Good and Gaskins, "Nonparametric roughness penalties for probability densities",
       Biometrika 58, 1971.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(6, epsilon=2.0)
    >>> nearly_uniform = mechanism.tally_counts([600, 620, 560, 580, 640, 600])
    >>> rough = mechanism.tally_counts([600, 1200, 200, 900, 100, 700])
    >>> ik.choose_penalty(nearly_uniform) > 1e5, ik.choose_penalty(rough) < 100
    (True, True)
    """
    roughness = _roughness_of(tally)
    if tally.k == 1:
        # With a single secret every penalty gives the same estimate.
        return 1.0
    with one_thread():
        return _most_evidence(tally, roughness)


def _roughness_of(tally: Tally) -> Roughness:
    """Return the alphabet's roughness; TooLarge if `smooth` would need too large a matrix."""
    roughness = roughness_on(
        check_bounded(tally, "a smooth curve does not end with the reports", lossy=True).alphabet
    )
    if structure(roughness, tally.operator) is None:
        refuse_if_too_large(
            tally.k, "smooth", ", or mle(tally) and ibu(tally), which need no matrix"
        )
    return roughness


def _best_fit(tally: Tally, roughness: Roughness, penalty: float, tol: float) -> Fit:
    optimum = _along_path(tally, roughness, penalty, tol, PENALTY_FACTOR**4)
    if optimum.excess > tol:
        # A fit may be out of reach from one with a hundred times its penalty.
        slowly = _along_path(tally, roughness, penalty, tol, PENALTY_FACTOR)
        optimum = min(optimum, slowly, key=lambda each: each.excess)
    if tally.efficiency is None:
        return optimum
    # If reports get lost there may be two maxima, one near the uniform distribution and one near
    # the most likely distribution. A search starts from each, and the better result is taken.
    likely = mle(tally, strict=False).distribution
    start = np.log(tally.k * (likely + LIFT / tally.k) / (1 + LIFT))
    other = fit(tally, roughness, penalty / tally.n, start, tol)
    fits = [each for each in (optimum, other) if each.excess <= tol] or [optimum, other]

    def value(each: Fit) -> float:
        fitted = mean_log_likelihood(tally, each.theta)
        return fitted - penalty / tally.n * roughness(each.u)

    return max(fits, key=value)


def _along_path(
    tally: Tally, roughness: Roughness, penalty: float, tol: float, factor: float
) -> Fit:
    """Return the fit at the end of a path of falling penalties, each by this factor.

    Each fit starts from that of the larger penalty before it.
    """
    optimum, weight = (
        _uniform_fit(tally.k),
        max(penalty, _uniform_penalty(tally, roughness)) / tally.n,
    )
    while weight > 1.001 * penalty / tally.n:
        start = start_near(tally, roughness, optimum, weight)
        optimum = fit(tally, roughness, weight, start, 1e-6)
        weight = max(weight / factor, penalty / tally.n)
    start = start_near(tally, roughness, optimum, penalty / tally.n)
    return fit(tally, roughness, penalty / tally.n, start, tol)


def _frequencies_of_users(tally: Tally, theta: Floats) -> Floats:
    """Return E[F | reports] if users are drawn from theta: the mean posterior of secrets."""
    _, g = ratios(tally, theta)
    frequencies = theta * g
    return frequencies / frequencies.sum()


def _most_evidence(tally: Tally, roughness: Roughness) -> float:
    n, tried, fits = tally.n, [], [_uniform_fit(tally.k)]
    penalties = _falling_penalties(tally, roughness)
    if tally.k > MAX_CELLS_BY_DETERMINANTS and facts.as_planar(tally.operator) is not None:
        return _plane_evidence.most_evidence(tally, roughness, penalties, fits[0], HOPELESS_NATS)
    # Penalties fall by a constant factor, until the evidence is far below the best so far.
    best = -math.inf
    for penalty in penalties:
        start = start_near(tally, roughness, fits[-1], penalty / n)
        optimum = fit(tally, roughness, penalty / n, start, 1e-9, determined=True)
        evidence = _evidence(tally, roughness, penalty, optimum)
        tried.append((penalty, evidence))
        fits.append(optimum)
        best = max(best, evidence)
        if evidence < best - HOPELESS_NATS:
            break
    i = int(np.argmax([evidence for _, evidence in tried]))
    # At an end of the sequence there is no interval to refine.
    if i in (0, len(tried) - 1):
        return tried[i][0]

    def loss(log_penalty: float) -> float:
        weight = math.exp(log_penalty) / n
        start = start_near(tally, roughness, nearest_fit(fits[i:], weight), weight)
        again = fit(tally, roughness, weight, start, 1e-9, determined=True)
        fits.append(again)
        return -_evidence(tally, roughness, math.exp(log_penalty), again)

    # Between its two neighbours the maximum is located to a hundredth of log penalty.
    bounds = math.log(tried[i + 1][0]), math.log(tried[i - 1][0])
    return math.exp(
        float(
            scipy.optimize.minimize_scalar(
                loss, bounds=bounds, method="bounded", options={"xatol": 0.01}
            ).x
        )
    )


def _falling_penalties(tally: Tally, roughness: Roughness) -> list[float]:
    # At the best penalty lambda R <= (k - 1) / 2, and R is at most twice the largest degree. A
    # hundredth of the penalty that follows from this is certainly too small.
    least = (tally.k - 1) / (4 * float(roughness.degrees.max())) / 100
    penalties = [_uniform_penalty(tally, roughness)]
    while (smaller := penalties[-1] / PENALTY_FACTOR) > least:
        penalties.append(smaller)
    return penalties


def _evidence(tally: Tally, roughness: Roughness, penalty: float, optimum: Fit) -> float:
    """Return the log evidence by Laplace's approximation; see `choose_penalty`."""
    if not isinstance(optimum.curvature, Determined):
        return -math.inf
    root = np.sqrt(optimum.theta)
    # The determinant on the tangent space of the sphere, the directions orthogonal to sqrt theta.
    log_det = optimum.curvature.log_det + math.log(float(root @ optimum.curvature.solve(root)))
    fitted = tally.n * mean_log_likelihood(tally, optimum.theta) - penalty * roughness(optimum.u)
    return fitted + ((tally.k - 1) * math.log(penalty) - log_det) / 2


def _uniform_penalty(tally: Tally, roughness: Roughness) -> float:
    """Return a penalty whose estimate is practically uniform."""
    if tally.k == 1:
        return 1.0
    return 100 * tally.n / roughness.least_eigenvalue


def _uniform_fit(k: int) -> Fit:
    return Fit(np.zeros(k), math.inf, 0)
