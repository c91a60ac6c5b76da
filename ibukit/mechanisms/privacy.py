"""The tight privacy level of a matrix, local (LDP) and metric (d-privacy)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ibukit._validate import Floats
from ibukit.alphabet import Alphabet


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


def _logs(mechanism: HasMatrix) -> Floats:
    matrix = mechanism.matrix()
    possible = matrix.any(axis=0)
    with np.errstate(divide="ignore"):
        return np.log(matrix[:, possible])
