"""Asymptotic earth mover's distance of the maximum likelihood estimate on a line."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.vectors import VectorLike
from ibukit.fisher_information import contrasts
from ibukit.mechanisms import Mechanism
from ibukit.mechanisms.matrix import as_mechanism
from ibukit.theory.asymptotics import interior_distribution, principal_axes


def asymptotic_emd(mechanism: Mechanism | ArrayLike, theta: VectorLike) -> float:
    r"""The limiting earth mover's distance of the MLE on a line.

    The limit of :math:`\sqrt{n}\,E` EMD(MLE, :math:`\theta`) is

    .. math:: \sqrt{\tfrac2\pi}\,\sum_j\mathrm{gap}_j\sqrt{(SCS^\top)_{jj}}.

    Here C is the asymptotic covariance of the maximum likelihood estimate, as in `asymptotic_mse`;
    row j of S, which has k - 1 rows, adds up the probabilities of all secrets before the j-th gap
    between neighbours, and :math:`\mathrm{gap}_{j}` is the width of that gap. On a line the earth
    mover's distance is the sum of the absolute differences of the distribution functions, each of
    which tends to a normal variable, and :math:`\sqrt{2 / \pi}\,\sigma` is the mean absolute value
    of a normal variable with mean 0 and standard deviation :math:`\sigma`.

    Parameters
    ----------
    mechanism : Mechanism or array_like, shape (k, m)
        Over a `Line`, or any alphabet whose distances are those of points on a line. A
        row-stochastic matrix is taken as a `MatrixMechanism` over Line(0, k - 1).
    theta : array_like or labelled, shape (k,)
        Distribution of the secrets, without zeros.

    Returns
    -------
    float
        The limit, in the alphabet's unit; divided by :math:`\sqrt{n}`, it is the earth mover's
        distance to expect.

    Raises
    ------
    InvalidDistribution
        If `theta` is not on the simplex, or has a zero: at the boundary the estimate is not
        asymptotically normal.
    AlphabetMismatch
        If `theta` does not have one probability for each secret.
    NotInvertible
        If the reports do not identify :math:`\theta`.
    ValueError
        If the alphabet is not on a line (there is no such formula in the plane), if the reports
        cannot be listed or get lost, or if there are more than 5,000 secrets.

    References
    ----------
    .. [vaart1998] A. W. van der Vaart, "Asymptotic Statistics", Cambridge University Press, 1998,
       section 5.5.
    .. [vallender1974] S. S. Vallender, "Calculation of the Wasserstein distance between probability
       distributions on the line", Theory Probab. Appl. 18, 1974.

    Examples
    --------
    k-RR keeps epsilon-d-privacy on a line too, and at a small epsilon it beats geometric noise:

    >>> import ibukit as ik
    >>> theta, kinds = ik.uniform(3), (ik.TruncatedGeometric, ik.RandomizedResponse)
    >>> [round(asymptotic_emd(kind(3, 0.1), theta), 1) for kind in kinds]
    [36.4, 22.2]
    """
    mechanism = as_mechanism(mechanism)
    p = interior_distribution("theta", theta, mechanism.alphabet)
    sums = cumulative_sums(mechanism.alphabet)
    if mechanism.k == 1:
        return 0.0
    with one_thread():
        axes, values = principal_axes(mechanism.as_finite(), p)
        loadings = sums @ contrasts(mechanism.k) @ axes / values
    return float(np.sqrt((loadings**2).sum(axis=1)).sum())


def cumulative_sums(alphabet: Alphabet) -> Floats:
    """Rows sqrt(2/pi) gap_j 1[x before gap j], shape (k - 1, k), of an alphabet on a line."""
    distances = alphabet.distances()
    place = distances[distances[0].argmax()]
    if not np.allclose(np.abs(place[:, None] - place), distances, rtol=1e-9, atol=0):
        raise ValueError(
            "alphabet must lie on a line: elsewhere the limit of the earth mover's distance has no "
            f"closed form, got {alphabet!r}; the squared error has one on any alphabet"
        )
    # On a line the distance is the sum over gaps of |F(x) - G(x)| times the gap, and the mean of
    # |N(0, s^2)| is sqrt(2 / pi) s.
    order = np.sort(place)
    gaps = np.sqrt(2 / np.pi) * np.diff(order)
    return gaps[:, None] * (place <= order[:-1, None])
