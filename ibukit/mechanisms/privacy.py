"""What a matrix gives away: its tight level, local (LDP) and metric (d-privacy), and what an adversary makes of it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ibukit import _validate
from ibukit._validate import Floats, Ints
from ibukit.alphabet import Alphabet

# guesses whose expected losses differ by less, relatively, are alike: the sums are no more exact than that
TIE = 1e-12


class HasMatrix(Protocol):
    """Anything with a channel matrix over an alphabet of secrets."""

    @property
    def alphabet(self) -> Alphabet:
        """The secrets, with their distances."""

    def matrix(self) -> Floats:
        """The channel matrix, shape (k, m)."""


def epsilon_ldp(mechanism: HasMatrix) -> float:
    """The least epsilon of local differential privacy: max over x, x', z of log(M_xz / M_x'z).

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``; reports that no secret produces do not count.

    Returns
    -------
    float
        In nats; inf if a report is possible under one secret and impossible under another. An entry too small for a
        double, below about e^-745, counts as impossible.

    References
    ----------
    .. [kasiviswanathan2011] S. P. Kasiviswanathan et al., "What can we learn privately?", SIAM J. Comput. 40(3), 2011.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.privacy.epsilon_ldp(ik.RandomizedResponse(5, epsilon=2.0))
    2.0
    """
    logs = _logs(mechanism)
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def epsilon_metric(mechanism: HasMatrix) -> float:
    """The least epsilon of d-privacy: max over x != x', z of log(M_xz / M_x'z) / d(x, x').

    Geo-indistinguishability is d-privacy with d in km, and epsilon is then per km.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()`` and an ``alphabet``, whose distances are used.

    Returns
    -------
    float
        In nats per unit of distance; 0 for a single secret, inf as in `epsilon_ldp`.

    References
    ----------
    .. [chatzikokolakis2013] K. Chatzikokolakis et al., "Broadening the scope of differential privacy using metrics",
       PETS 2013.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 9), epsilon=0.5)
    >>> round(ik.privacy.epsilon_metric(mechanism), 12)
    0.5
    """
    logs = _logs(mechanism)
    d = mechanism.alphabet.distances()
    worst = 0.0
    for x in range(1, len(logs)):
        with np.errstate(invalid="ignore"):
            ratios = np.abs(logs[:x] - logs[x])
        # NaN: a report impossible under both secrets, which bounds nothing; fmax passes over it
        ratios = np.fmax.reduce(ratios, axis=1)
        worst = max(worst, float((ratios / d[:x, x]).max()))
    return worst


def best_guess(mechanism: HasMatrix, prior: ArrayLike, loss: ArrayLike | None = None) -> Ints:
    """The guess of least expected loss after each report: argmin_z sum_x prior_x M_xy loss(x, z).

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    prior : array_like, shape (k,)
        What the adversary believes before the report.
    loss : array_like, shape (k, guesses), optional
        What guess z costs the adversary if the secret is x; by default the alphabet's distances, where the guesses are
        the secrets.

    Returns
    -------
    ndarray of int, shape (m,)
        Codes of guesses, the smallest among equals (relatively within 1e-12). After a report that is never made every
        guess is as good as any other, so its entry is 0.

    Raises
    ------
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` or `loss` is not made for k secrets.
    ValueError
        If a loss is negative, infinite or NaN.

    References
    ----------
    .. [shokri2012] R. Shokri et al., "Protecting location privacy: optimal strategy against localization attacks",
       CCS 2012.

    Examples
    --------
    After the report 2 the secret is most likely 2, but the middle is never far off:

    >>> import ibukit as ik
    >>> ik.privacy.best_guess(ik.RandomizedResponse(3, epsilon=1.0), prior=[0.5, 0.25, 0.25])
    array([0, 1, 1])
    """
    costs = _costs(mechanism, prior, loss)
    return np.asarray((costs <= costs.min(axis=1, keepdims=True) * (1 + TIE)).argmax(axis=1), dtype=np.int64)


def adversary_loss(mechanism: HasMatrix, prior: ArrayLike, loss: ArrayLike | None = None) -> float:
    """The adversary's expected loss by best guesses: sum_y min_z sum_x prior_x M_xy loss(x, z).

    The larger, the more private the mechanism is against an adversary with this prior and this loss.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    prior : array_like, shape (k,)
        What the adversary believes before the report.
    loss : array_like, shape (k, guesses), optional
        What guess z costs the adversary if the secret is x; by default the alphabet's distances.

    Returns
    -------
    float
        In the loss's unit.

    Raises
    ------
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` or `loss` is not made for k secrets.
    ValueError
        If a loss is negative, infinite or NaN.

    References
    ----------
    .. [shokri2012] R. Shokri et al., "Protecting location privacy: optimal strategy against localization attacks",
       CCS 2012.

    Examples
    --------
    Who guesses the report itself is right with probability e / (e + 2), and nobody can do better:

    >>> import ibukit as ik
    >>> round(ik.privacy.adversary_loss(ik.RandomizedResponse(ik.Alphabet(["a", "b", "c"]), 1.0), ik.uniform(3)), 4)
    0.4239
    """
    return float(_costs(mechanism, prior, loss).min(axis=1).sum())


def quality_loss(mechanism: HasMatrix, prior: ArrayLike, loss: ArrayLike | None = None) -> float:
    """The user's expected loss by reporting through the mechanism: sum_xy prior_x M_xy loss(x, y).

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    prior : array_like, shape (k,)
        How the secrets are distributed.
    loss : array_like, shape (k, m), optional
        What report y costs the user whose secret is x; by default the alphabet's distances, for mechanisms whose
        reports are the secrets' own codes.

    Returns
    -------
    float
        In the loss's unit; never below `adversary_loss` for the same loss, since the report itself can be guessed.

    Raises
    ------
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` is not made for k secrets, or `loss` for k secrets and m reports.
    ValueError
        If a loss is negative, infinite or NaN.

    References
    ----------
    .. [shokri2012] R. Shokri et al., "Protecting location privacy: optimal strategy against localization attacks",
       CCS 2012.

    Examples
    --------
    >>> import ibukit as ik
    >>> round(ik.privacy.quality_loss(ik.TruncatedGeometric(ik.Line(0, 9), epsilon=1.0), ik.uniform(10)), 4)
    0.7163
    """
    matrix = mechanism.matrix()
    weights = _validate.distribution("prior", prior, len(matrix))
    values = mechanism.alphabet.distances() if loss is None else loss
    return float(weights @ (matrix * _validate.losses("loss", values, *matrix.shape)).sum(axis=1))


def _costs(mechanism: HasMatrix, prior: ArrayLike, loss: ArrayLike | None) -> Floats:
    """sum_x prior_x M_xy loss(x, z), shape (m, guesses)."""
    matrix = mechanism.matrix()
    weights = _validate.distribution("prior", prior, len(matrix))
    values = mechanism.alphabet.distances() if loss is None else loss
    return np.asarray((matrix.T * weights) @ _validate.losses("loss", values, len(matrix)))


def _logs(mechanism: HasMatrix) -> Floats:
    matrix = mechanism.matrix()
    possible = matrix.any(axis=0)
    with np.errstate(divide="ignore"):
        return np.log(matrix[:, possible])
