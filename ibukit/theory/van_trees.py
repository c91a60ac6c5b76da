"""Van Trees' inequality for Dirichlet priors: a lower bound on any estimate's error."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import expit

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Line
from ibukit.domain.vectors import VectorLike, dirichlet_alpha_over
from ibukit.theory._overflow import number_of_secrets, refuse_overflow

# Points of the quadrature for the mean over U.
QUADRATURE_POINTS = 200

# A few vectors of this length take a gigabyte.
MAX_PRIOR_LENGTH = 2**25


def van_trees_bound(
    k: int,
    epsilon: float,
    *,
    n: int,
    alpha: VectorLike,
    of: Literal["distribution", "frequencies"] = "distribution",
) -> float:
    r"""Lower bound on the mean squared error of any estimate.

    It holds for n reports of any epsilon-private mechanism that is non-interactive, that is, chosen
    before the first report: the same one for all users, or one for each user.

    P is drawn from a Dirichlet(:math:`\alpha`) prior. With :math:`\alpha_{0} = \sum \alpha` and
    :math:`t=\mathbb E[1-\lVert P\rVert^2]`,

    .. math::

        \mathbb E\lVert\hat P-P\rVert^2\ge\frac{t^2}{nv+\alpha_0t},\qquad v\ge\mathbb
        E\operatorname{tr}(S_PJ_PS_P),\quad S_p=\operatorname{diag}(p)-pp^\top,

    for every such v. For equal alphas v is the largest value, over the sizes j of sets of the k
    secrets, of

    .. math::

        c^{2}\,(\alpha_{1} + 1)\,(1 / (j\,\alpha_{1} + 1) + 1 / ((k - j)\,\alpha_{1} + 1)) / (1
        + c\,j / k)\,E[U^{2}\,(1 - U)^{2} / (1 + c\,U)],

    with :math:`c = e^{\varepsilon} - 1` and U drawn from Beta(:math:`j\,\alpha_{1}`,
    :math:`(k - j)\,\alpha_{1}`); subset selection attains this v. For alphas that are not all
    equal, :math:`v = (e^{\varepsilon} - 1)^{2} / (4\,e^{\varepsilon})\,E[\lVert P\rVert ^{2}]^{1 /
    2}`. At n = 0 the bound would be :math:`t / \alpha_{0}`, the prior's own variance and the error
    of the constant guess E[P]. If every :math:`\alpha` is above 2, there is also the bound

    .. math::

        E\,\lVert \hat P - P\rVert ^{2} \ge (k - 1)^{2} / (n\,k\,(e^{\varepsilon / 2} - 1)^{2} +
        I),

    with I the expected squared gradient of the prior's log density along the simplex. For the
    frequencies the bound on the distribution, B, becomes
    :math:`((\alpha_{0} + n) / n)^{2}\,(B - t / (\alpha_{0} + n))`.

    Parameters
    ----------
    k : int
        Number of secrets, at least 2.
    epsilon : float
        Local differential privacy, nats.
    n : int
        Number of users, at least 1.
    alpha : float, array_like or labelled, shape (k,)
        The prior's parameter; a number is the same for all secrets: 0.5 is Jeffreys' prior.
    of : {"distribution", "frequencies"}
        Whose error is bounded.

    Returns
    -------
    float
        The greatest of the bounds that apply, summed over the k secrets; at least 0.

    Raises
    ------
    ValueError
        If an argument is out of range or `of` is unknown.
    AlphabetMismatch
        If `alpha` is neither a number nor of shape (k,).

    Notes
    -----
    The paper has bounds only for n tending to infinity; this one is ours. Another private form of
    the inequality is in [asoodeh]_. Proof: for a field C(p) of matrices that vanishes fast enough
    at the border, partial integration gives :math:`\mathbb E[(\hat P-P)\cdot(C\nabla\log
    L+\operatorname{div}(fC)/f)]=\mathbb E\operatorname{tr}C`, with f the prior's density and L the
    likelihood; Cauchy and Schwarz, and the score's mean 0 given P, give :math:`\mathbb E\lVert\hat
    P-P\rVert^2\,\bigl(n\,\mathbb E\operatorname{tr}(CJC^\top)+\mathbb
    E\lVert\operatorname{div}(fC)/f\rVert^2\bigr)\ge(\mathbb E\operatorname{tr}C)^2`. :math:`C=S_p`
    has :math:`\operatorname{div}(fC)/f=\alpha-\alpha_0p`, whose expected square is
    :math:`\alpha_{0}\,t`, for every :math:`\alpha > 0`. With :math:`M_{xz}=m_z(1+c\,u_{xz})` and w
    the mean of :math:`u_{xz}` under P, :math:`\operatorname{tr} (S\,J\,S) = \sum_{z}
    m_{z}\,c^{2}\,\sum_{x} P_{x}^{2}\,(u_{xz} - w)^{2} / (1 + c\,w)`. Its mean is convex in
    :math:`u_{z}` (a square over a linear function), and
    :math:`\sum_{z} m_{z}\,(1 + c\,\operatorname{mean}_{x} u_{xz}) = 1`, so sets, u in {0, 1}, are
    the worst; equal alphas make their size all that matters. For other alphas the trace is at most
    :math:`\max_{x} P_{x} \le \lVert P\rVert` times the bound :math:`c^{2} / (4\,e^{\varepsilon})`
    in the notes of `least_asymptotic_mse`. C = identity needs :math:`\alpha > 2`, and J has a trace
    of at most :math:`k\,(e^{\varepsilon / 2} - 1)^{2}`, as in those notes. For the frequencies:
    given the secrets, P is Dirichlet(:math:`\alpha + n\,F`), with mean
    :math:`(\alpha + n\,F) / (\alpha_{0} + n)` and a variance of :math:`t / (\alpha_{0} + n)` on
    average.

    References
    ----------
    .. [gill1995] Gill and Levit, "Applications of the van Trees inequality: a Bayesian Cramér-Rao
       bound", Bernoulli 1(1/2), 1995.
    .. [asoodeh] Asoodeh and Zhang, "Contraction of locally differentially private mechanisms",
       arXiv:2210.13386.
    .. [frequency] Lopuhaä-Zwakenberg, Li and Škorić, arXiv:1911.10499, section 6: what is left open
       for small n.

    Examples
    --------
    Ten thousand reports on a thousand secrets at :math:`\varepsilon = 1`: no mechanism, with any
    estimator, is much better than answering 1/k for each secret without looking at the reports.

    >>> bound = van_trees_bound(k=1024, epsilon=1.0, n=10_000, alpha=0.5)
    >>> constant = (1 - 1 / 1024) / (512 + 1)
    >>> round(bound, 6), round(constant, 6)
    (0.001918, 0.001947)
    """
    users, secrets = arguments.whole("n", n, 1), number_of_secrets(k, 2, MAX_PRIOR_LENGTH)
    eps, prior = (
        arguments.positive("epsilon", epsilon),
        dirichlet_alpha_over(alpha, Line(0, secrets - 1)),
    )
    if not arguments.is_one_of(of, ("distribution", "frequencies")):
        raise ValueError(f'of must be "distribution" or "frequencies", got {of!r}')
    total = float(prior.sum())
    spread = float((prior * (total - prior)).sum() / (total * (total + 1)))  # t
    with refuse_overflow(epsilon=eps):
        bound = spread**2 / (users * _max_information(prior, eps) + total * spread)
        if (prior > 2).all():
            information = users * secrets * np.expm1(eps / 2) ** 2 + _prior_information(prior)
            bound = max(bound, float((secrets - 1) ** 2 / information))
    if of == "distribution":
        return bound
    return max(0.0, ((total + users) / users) ** 2 * (bound - spread / (total + users)))


def _max_information(prior: Floats, epsilon: float) -> float:
    """Value v, an upper bound on E tr(S J S) over all mechanisms of this epsilon."""
    total = float(prior.sum())
    # The bound for any alphas; for equal ones the worst sets of each size are compared.
    crude = np.sinh(epsilon / 2) ** 2 * np.sqrt((prior * (prior + 1)).sum() / (total * (total + 1)))
    if (prior != prior[0]).any():
        return float(crude)
    k, alpha, gain = len(prior), float(prior[0]), np.expm1(epsilon)
    inside: Floats = np.arange(1.0, k) * alpha
    outside: Floats = total - inside
    # E[U^2 (1-U)^2] times the bracket, and then 1 / (1 + c U) under Beta(inside + 2, outside + 2).
    squares = (alpha + 1) * inside * outside / (total * (total + 1) * (total + 3))
    conditional = _mean_inverse(inside + 2, outside + 2, gain)
    return float(min(crude, (gain**2 * squares * conditional / (1 + gain * inside / total)).max()))


def _mean_inverse(a: Floats, b: Floats, gain: float) -> Floats:
    """Mean of 1 / (1 + gain U) for U of Beta(a, b), a and b at least 2.

    The trapezoidal rule in y = log(U / (1 - U)), where the density has tails e^(ay) and e^(-by), is
    exact to rounding. As a hypergeometric function it is NaN in scipy for a + b in the hundreds.
    """
    width = np.sqrt(1 / a + 1 / b)
    y = np.log(a / b) + np.linspace(-40 / a - 10 * width, 40 / b + 10 * width, QUADRATURE_POINTS)
    log_density = -a * np.logaddexp(0, -y) - b * np.logaddexp(0, y)
    density = np.exp(log_density - log_density.max(axis=0))
    return (density / (1 + gain * expit(y))).sum(axis=0) / density.sum(axis=0)


def _prior_information(prior: Floats) -> float:
    """Prior information I = E ||grad log f||^2 on the simplex, from E 1/P_x^2 and E 1/(P_x P_y)."""
    total, k = float(prior.sum()), len(prior)
    own = float(((prior - 1) / (prior - 2)).sum())
    return (total - 1) * (total - 2) * (own - (k * (k - 1) + own) / k)
