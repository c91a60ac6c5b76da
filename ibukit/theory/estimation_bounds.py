"""Lower bounds on the mean squared error of any estimate, from entropies and from epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.threads import one_thread
from ibukit.domain.alphabet import Line
from ibukit.domain.vectors import VectorLike, dirichlet_alpha_over, distribution_over
from ibukit.identification.identifiability import refuse_if_too_large_to_decompose
from ibukit.theory._overflow import number_of_secrets, refuse_overflow


def posterior_entropy_bound(entropy: float, *, k: int, n: int | None = None) -> float:
    r"""Lower bound on the mean squared error of any estimate.

    It follows from the uncertainty that remains once the reports are known. For the distribution,
    with h the differential entropy h(P | reports) of any k - 1 of its k probabilities:

    .. math::

        \mathbb E\lVert\hat P-P\rVert^2\ge c\,e^{2h/(k-1)},\qquad
        c=\frac{(k-1)\,k^{1/(k-1)}}{2\pi e}.

    For the frequencies F of n users, with H the entropy H(F | reports):

    .. math::

        n^{2}\,E\,\lVert \hat F - F\rVert ^{2} \ge \max (k\,e(H) - k / 12, 2\,\pi\,e\,c\,e(H) -
        (k - 1)(k + 2) / (12\,k)), \qquad e(H) = \exp (2\,H / (k - 1)) / (2\,\pi\,e).

    Parameters
    ----------
    entropy : float
        Nats; -inf for reports that leave nothing open.
    k : int
        Number of secrets, at least 2.
    n : int, optional
        Number of users. If it is given, `entropy` is that of the frequencies, and the bound is on
        their error.

    Returns
    -------
    float
        The bound, summed over the k secrets; at least 0.

    Raises
    ------
    ValueError
        If `k` or `n` is out of range, or `entropy` is NaN or inf.

    Notes
    -----
    The paper's (23) has k in the place of :math:`2\,\pi\,e\,c`, and k is the smaller one for k > 2.
    Its (24) is stated without the terms that are subtracted here, and is then true only for large
    n: k-RR at k = 2, :math:`\varepsilon = 9`, n = 3 breaks it.

    Proof of (23) with c: the covariance of P given the reports has k - 1 positive eigenvalues,
    whose product is k times the determinant of any k - 1 rows and columns; their sum is at least k
    - 1 times the geometric mean; a Gaussian has the greatest entropy of all laws with the same
    covariance; exp is convex, which carries the bound from each outcome to the mean. To the whole
    numbers T = n F add noise that gives them a density. Noise that is uniform on the unit cube in k
    - 1 coordinates gives the first form, as in [massey]_, averaged over the coordinate left out;
    noise that is uniform on the Voronoi cell of the lattice of whole vectors with sum 0, of volume
    :math:`\sqrt{k}` and second moment (k-1)(k+2) / (12 k), gives the other [conway]_.

    References
    ----------
    .. [frequency] Lopuhaä-Zwakenberg, Li and Škorić, arXiv:1911.10499, Theorem 4.1, (23) and (24).
    .. [massey] J. L. Massey, "On the entropy of integer-valued random variables", Beijing Int.
       Workshop on Information Theory, 1988.
    .. [conway] Conway and Sloane, "Voronoi regions of lattices, second moments of polytopes, and
       quantization", IEEE Trans. Inf. Theory 28(2), 1982.

    Examples
    --------
    A posterior that is Gaussian with the same variance in all directions attains the bound; here
    the variance is 0.01 in each of two directions:

    >>> import numpy as np
    >>> entropy = np.log(2 * np.pi * np.e * 0.01) - np.log(3) / 2  # of two of the three coordinates
    >>> round(posterior_entropy_bound(entropy, k=3), 6)
    0.02
    """
    secrets = number_of_secrets(k, 2)
    with refuse_overflow(entropy=entropy):
        return _entropy_bound(_nats(entropy), secrets, n)


def _nats(entropy: Any) -> float:
    if (
        isinstance(entropy, bool)
        or not isinstance(entropy, Real)
        or not arguments.as_float(entropy) < np.inf
    ):
        raise ValueError(f"entropy must be a number of nats below inf, got {entropy!r}")
    return float(entropy)


def _entropy_bound(entropy: float, secrets: int, n: int | None) -> float:
    uncertain = float(np.exp(2 * entropy / (secrets - 1)) / (2 * np.pi * np.e))
    sharp = entropy_factor(secrets) * uncertain
    if n is None:
        return sharp
    users = arguments.whole("n", n, 1)
    # Uniform noise on a cell around each vector of whole numbers T = n F turns entropy into
    # differential entropy, and the variance of the noise is subtracted. The cell is the unit cube
    # in k - 1 coordinates, or the Voronoi cell of the lattice of vectors with sum 0.
    cube = secrets * uncertain - secrets / 12
    cell = sharp - (secrets - 1) * (secrets + 2) / (12 * secrets)
    return max(cube, cell, 0.0) / users**2


def entropy_factor(k: int) -> float:
    """Factor (k-1) k^(1/(k-1)): 2 at k = 2 and above k for k > 2; the paper has k instead."""
    return float((k - 1) * k ** (1 / (k - 1)))


@dataclass(frozen=True)
class LdpBounds:
    r"""Bounds from epsilon alone, with our own constants. See `ldp_bounds`.

    Attributes
    ----------
    k1 : float
        K1 is at least this, in nats.
    k2 : float
        K2 is at least this, in nats.
    distribution : float
        The limit of :math:`n\,E\,\lVert \hat P - P\rVert ^{2}` is at least this.
    frequencies : float
        The limit of :math:`n\,E\,\lVert \hat F - F\rVert ^{2}` is at least this.

    Examples
    --------
    >>> ldp_bounds(2, epsilon=1.0).k1.__round__(4)
    -0.5413
    """

    k1: float
    k2: float
    distribution: float
    frequencies: float


def ldp_bounds(k: int, epsilon: float) -> LdpBounds:
    r"""Lower bounds for every epsilon-private mechanism and any prior.

    The bounds have the form of the paper's Theorems 4.4 and 4.5, with our own constants.

        :math:`K_1 \ge -(k - 1)\,\log (e^{\varepsilon} - 1)`,
        :math:`K_2 \ge -k\,\varepsilon / 2 - (k - 1)\,\log (e^{\varepsilon} - 1)`, lim
        :math:`n\,E\,\lVert \hat P - P\rVert ^{2} \ge k / (e^{\varepsilon} - 1)^{2}`, lim
        :math:`n\,E\,\lVert \hat F - F\rVert ^{2} \ge k\,e^{-k\,\varepsilon / (k - 1)} /
        (e^{\varepsilon} - 1)^{2}`.

    They are far from what is attainable except for k = 2 and small epsilon; `least_asymptotic_mse`
    is closer for the distribution.

    Parameters
    ----------
    k : int
        Number of secrets, at least 2.
    epsilon : float
        Local differential privacy, nats.

    Returns
    -------
    LdpBounds

    Raises
    ------
    ValueError
        If `k` or `epsilon` is out of range.

    Notes
    -----
    The constants are ours. What the paper says of its own constants (any prior,
    :math:`k / (n\,\varepsilon^{2})` for small epsilon, tight at k = 2) also holds of these. Unlike
    the paper's (60), they do not depend on the number of reports. Proof: with :math:`m_{z}` the
    least entry of column z, the differences of its entries are at most :math:`(e^{\varepsilon} -
    1)\,m_{z}`, :math:`(\theta M)_z\ge m_z` and :math:`\sum_{z} m_{z} \le 1`, so the trace of J in k
    - 1 coordinates is at most :math:`(k - 1)(e^{\varepsilon} - 1)^{2}`, and the determinant of J is
    at most :math:`(\operatorname{tr} J / (k - 1))^{k - 1}`. Given report z the secrets have
    probabilities :math:`\psi_x\ge e^{-\varepsilon}\theta_x`, and log det is concave, so
    :math:`\log\det N\ge\sum_z(\theta M)_z\sum_x\log\psi_x\ge-k\varepsilon+\sum_x\log\theta_x`. The
    bounds on the errors then follow by the paper's (51) and (52).

    References
    ----------
    .. [frequency] Lopuhaä-Zwakenberg, Li and Škorić, arXiv:1911.10499, Theorems 4.4 and 4.5,
       (54)-(60).

    Examples
    --------
    >>> import ibukit as ik
    >>> bound = ik.theory.ldp_bounds(10, epsilon=0.1).distribution
    >>> attained = ik.theory.asymptotic_mse(ik.SubsetSelection(10, epsilon=0.1), ik.uniform(10))
    >>> round(bound, 1), round(attained, 1)
    (904.1, 3245.4)
    """
    secrets, eps = number_of_secrets(k, 2), arguments.positive("epsilon", epsilon)
    # log(e^eps - 1) without overflow
    log_gain = eps + float(np.log(-np.expm1(-eps)))
    k1 = -(secrets - 1) * log_gain
    k2 = k1 - secrets * eps / 2
    with refuse_overflow(k=secrets, epsilon=eps):
        by_k1, by_k2 = (secrets * float(np.exp(2 * bound / (secrets - 1))) for bound in (k1, k2))
    return LdpBounds(k1, k2, by_k1, by_k2)


def least_asymptotic_mse(k: int, epsilon: float, theta: VectorLike | None = None) -> float:
    r"""Lower bound on `asymptotic_mse` over all private mechanisms.

    It holds for all epsilon-private mechanisms, at the given :math:`\theta` or, if none is given,
    at every :math:`\theta`. At every :math:`\theta`:

    .. math:: \operatorname{tr}C\ge\frac{(k-1)^2}{k\,(e^{\varepsilon/2}-1)^2}.

    At a given :math:`\theta` there is a second bound, with :math:`s_{i}` the singular values of
    :math:`D^{1 / 2}\,(I - \theta^{1 / 2}\,{\theta^{1 / 2}}^{\top})` and
    :math:`D = \operatorname{diag} (\theta)`:

    .. math::

        \operatorname{tr} C \ge 4\,e^{\varepsilon} / (e^{\varepsilon} - 1)^{2}\,(\sum_{i}
        s_{i})^{2},

    and :math:`\sum_{i} s_{i} \ge \sum_{x} \sqrt{\theta_{x}}` (1 - :math:`\theta_x`), with equality
    at uniform :math:`\theta`, where the bound is
    :math:`4\,(k - 1)^{2}\,e^{\varepsilon} / (k\,(e^{\varepsilon} - 1)^{2})`. `SubsetSelection`
    attains this last bound wherever :math:`k / (e^{\varepsilon} + 1)` is whole.

    Parameters
    ----------
    k : int
        Number of secrets, at least 2.
    epsilon : float
        Local differential privacy, nats.
    theta : array_like or labelled, shape (k,), optional
        Distribution of the secrets; the greater of the two bounds is returned.

    Returns
    -------
    float
        The bound, to be divided by n. Under any prior the limit of
        :math:`n\,E\,\lVert \hat P - P\rVert ^{2}` is at least the mean of this bound, and for the
        frequencies at least the mean of the bound less :math:`1 - \lVert \theta\rVert ^{2}`.

    Raises
    ------
    ValueError
        If `k` or `epsilon` is out of range, or if `theta` is given and k is above 5,000.
    InvalidDistribution
        If `theta` is not on the simplex.
    AlphabetMismatch
        If `theta` does not have one probability for each secret.

    Notes
    -----
    Both bounds are ours, and stronger than what can be proved of (59) in [frequency]_. That no
    mechanism has a smaller worst case than subset selection, in the limit of many users, is due to
    Ye and Barg [ye2017]_; here it is proved at uniform :math:`\theta`, and the bounds above at any
    other. Proofs: write :math:`M_{xz}=m_z(1+c\,u_{xz})`, :math:`c = e^{\varepsilon} - 1`, u in [0,
    1]. (1) The trace of J on the directions that keep the sum is at most :math:`c^{2}\,k\,\sum_{z}
    m_{z}\,s_{z}\,(1 - s_{z})`, where :math:`s_{z}` is the mean of :math:`u_{xz}` over x, and
    :math:`\sum_{z} m_{z}\,(1 + c\,s_{z}) = 1`, so the trace is at most :math:`c^{2}\,k\,\max_{s}
    s\,(1 - s) / (1 + c\,s) = k\,(e^{\varepsilon / 2} - 1)^{2}`; and :math:`\operatorname{tr} J^{-1}
    \ge (k - 1)^{2} / \operatorname{tr} J`. (2) :math:`W = D^{1 / 2}\,J\,D^{1 / 2}` has
    :math:`\theta^{1 / 2}` as an eigenvector with eigenvalue 1; the sum of its other eigenvalues is
    :math:`\sum_{z} m_{z}\,c^{2}\,\operatorname{Var}_{\theta} (u_{z}) / (1 + c\,v_{z})`, with
    :math:`v_{z}` the mean of :math:`u_{xz}` under :math:`\theta`, which is at most
    :math:`\sum_z(\theta M)_z\,c^{2}\,v_{z}\,(1 - v_{z}) / (1 + c\,v_{z})^{2} \le c^{2} /
    (4\,e^{\varepsilon})`. With Q the projection orthogonal to :math:`\theta^{1 / 2}`,
    :math:`\operatorname{tr} C = \operatorname{tr} (W^{-1}\,Q\,D\,Q)` on its range, and by Cauchy
    and Schwarz :math:`\operatorname{tr} W\,\operatorname{tr} (W^{-1}\,B) \ge (\operatorname{tr}
    B^{1 / 2})^{2}`. At k = 2 k-RR attains the first bound at every :math:`\theta` in the limit of
    small epsilon.

    References
    ----------
    .. [frequency] Lopuhaä-Zwakenberg, Li and Škorić, arXiv:1911.10499, Theorem 4.5 and the remarks
       on it.
    .. [ye2017] Ye and Barg, "Asymptotically optimal private estimation under mean square loss",
       arXiv:1708.00059.

    Examples
    --------
    Sets of five of ten secrets are as good as anything can be, to within a quarter of a percent:

    >>> import ibukit as ik
    >>> mechanism, theta = ik.SubsetSelection(10, epsilon=0.1), ik.uniform(10)
    >>> round(ik.theory.asymptotic_mse(mechanism, theta), 1)
    3245.4
    >>> round(least_asymptotic_mse(10, epsilon=0.1, theta=theta), 1)
    3237.3
    """
    secrets, eps = number_of_secrets(k, 2), arguments.positive("epsilon", epsilon)
    with refuse_overflow(k=secrets, epsilon=eps):
        anywhere = float((secrets - 1) ** 2 / secrets / np.expm1(eps / 2) ** 2)
    if theta is None:
        return anywhere
    root = np.sqrt(distribution_over("theta", theta, Line(0, secrets - 1)))
    refuse_if_too_large_to_decompose(secrets, "without theta there is a bound for any k")
    with one_thread():
        # The sum of singular values of D^(1/2) (I - root root^T) is the trace norm in the bound.
        total = np.linalg.svd(np.diag(root) - np.outer(root**2, root), compute_uv=False).sum()
    return max(anywhere, float((total / np.sinh(eps / 2)) ** 2))


class BinaryResponseMse(NamedTuple):
    r"""The errors of matrix inversion with two secrets. See `binary_response_mse`.

    Attributes
    ----------
    distribution : float
        :math:`E\,\lVert v - P\rVert ^{2}`, summed over the two secrets.
    frequencies : float
        :math:`E\,\lVert v - F\rVert ^{2}`, summed over the two secrets.

    Examples
    --------
    >>> round(binary_response_mse(epsilon=1.0, n=10, alpha=0.5).frequencies, 5)
    0.18413
    """

    distribution: float
    frequencies: float


def binary_response_mse(epsilon: float, *, n: int, alpha: ArrayLike) -> BinaryResponseMse:
    r"""Mean squared errors of matrix inversion with two secrets.

    The mechanism is randomised response, and the errors have a closed form:

        distribution
        :math:`(2 / n)\,(e^{\varepsilon} / (e^{\varepsilon} - 1)^{2} + E[P_{1}\,P_{2}])`,
        frequencies :math:`(2 / n)\,e^{\varepsilon} / (e^{\varepsilon} - 1)^{2}`,

    for P drawn from a Dirichlet prior; both are summed over the two secrets.

    Parameters
    ----------
    epsilon : float
        Nats.
    n : int
        Number of users.
    alpha : float or array_like, shape (2,)
        The prior's parameter; it matters only through
        :math:`E[P_{1}\,P_{2}] = \alpha_{1}\,\alpha_{2} / (\alpha_{0}\,(\alpha_{0} + 1))`.

    Returns
    -------
    BinaryResponseMse
        The pair (distribution, frequencies).

    Raises
    ------
    ValueError
        If an argument is out of range.
    AlphabetMismatch
        If `alpha` is neither a number nor of shape (2,).

    Notes
    -----
    Proof: given P, the count of a report is binomial; given the secrets, it is a sum of two
    binomials with variance :math:`n\,e^{\varepsilon} / (e^{\varepsilon} + 1)^{2}`. For small
    :math:`\varepsilon`, n times these errors tends to the bounds of `ldp_bounds` at k = 2; the
    ratios are :math:`e^{\varepsilon} + (e^{\varepsilon} - 1)^{2}\,E[P_{1}\,P_{2}]` and
    :math:`e^{3\,\varepsilon}`.

    References
    ----------
    .. [frequency] Lopuhaä-Zwakenberg, Li and Škorić, arXiv:1911.10499, Proposition 4.6 and
       Corollary 4.7, (65), (66), (76), (77).

    Examples
    --------
    >>> [round(error, 5) for error in binary_response_mse(epsilon=1.0, n=10, alpha=0.5)]
    [0.20913, 0.18413]
    """
    users, eps = arguments.whole("n", n, 1), arguments.positive("epsilon", epsilon)
    prior = dirichlet_alpha_over(alpha, Line(0, 1))
    product = float(prior[0] / prior.sum() * prior[1] / (prior.sum() + 1))
    with refuse_overflow(epsilon=eps):
        noise = float(1 / (2 * np.sinh(eps / 2)) ** 2)
    return BinaryResponseMse(2 / users * (noise + product), 2 / users * noise)
