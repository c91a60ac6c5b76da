"""Privacy and utility of a channel matrix: epsilons, losses, information.

All functions take their arguments in the order mechanism, prior, secret, block, loss.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.efficiency import observable_matrix
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.errors import TooLarge
from ibukit.privacy.closed_forms import registered

# Relative difference of expected losses up to which guesses count as equally good: rounding of the
# sums.
GUESS_TIE = 1e-12


class HasMatrix(Protocol):
    """Anything with a channel matrix over an alphabet of secrets."""

    @property
    def alphabet(self) -> Alphabet:
        """The secrets, with their distances."""

    def matrix(self) -> Floats:
        """The channel matrix, shape (k, m)."""


def epsilon_ldp(mechanism: HasMatrix) -> float:
    r"""Return the least epsilon of local differential privacy.

    It is the max over x, x', z of :math:`\log\frac{M_{xz}}{M_{x'z}}`.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``; reports that no secret produces do not count.

    Returns
    -------
    float
        In nats; inf if a report is possible under one secret and impossible under another. An entry
        too small for a double, below about :math:`e^{-745}`, counts as impossible, unless the
        mechanism knows its logarithm.

    Raises
    ------
    TooLarge
        If the matrix is too large, and no closed form is known.

    References
    ----------
    .. [kasiviswanathan2011] S. P. Kasiviswanathan et al., "What can we learn privately?", SIAM J.
       Comput. 40(3), 2011.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.privacy.epsilon_ldp(ik.RandomizedResponse(5, epsilon=2.0))
    2.0
    """
    try:
        logs = _logs(mechanism)
    except TooLarge:
        return _closed_epsilon(mechanism, metric=False)
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def epsilon_metric(mechanism: HasMatrix) -> float:
    r"""Return the least epsilon of d-privacy, per unit of distance.

    It is the max over :math:`x \ne x'`, z of :math:`\frac{\log(M_{xz}/M_{x'z})}{d(x,x')}`.
    Geo-indistinguishability is d-privacy with d in km, and epsilon is then per km.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()`` and an ``alphabet``, whose distances are used.

    Returns
    -------
    float
        In nats per unit of distance; 0 for a single secret, inf as in `epsilon_ldp`.

    Raises
    ------
    TooLarge
        If the matrix is too large, and no closed form is known.

    References
    ----------
    .. [chatzikokolakis2013] K. Chatzikokolakis et al., "Broadening the scope of differential
       privacy using metrics", PETS 2013.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 9), epsilon=0.5)
    >>> round(ik.privacy.epsilon_metric(mechanism), 12)
    0.5
    """
    try:
        logs = _logs(mechanism)
    except TooLarge:
        return _closed_epsilon(mechanism, metric=True)
    # Along a line both distances and log-ratios add up, so that neighbours have the largest ratio.
    if isinstance(mechanism.alphabet, Line):
        return _largest(logs[1:], logs[:-1])
    d = mechanism.alphabet.distances()
    worst = 0.0
    # Each secret is compared with all earlier ones at once, in no more memory than the matrix.
    for x in range(1, len(logs)):
        worst = max(worst, _largest(logs[:x], logs[x], d[:x, x]))
    return worst


def _largest(logs: Floats, others: Floats, distances: Floats | float = 1.0) -> float:
    """Largest difference of logarithms of pairs of rows, divided by the distance of each pair."""
    with np.errstate(invalid="ignore"):
        ratios = np.abs(logs - others)
    # A report that is impossible under both secrets gives inf - inf = NaN, which fmax skips.
    return float((np.fmax.reduce(ratios, axis=1) / distances).max(initial=0.0))


def _closed_epsilon(mechanism: HasMatrix, *, metric: bool) -> float:
    """Return the level in closed form; raise the error of the matrix if no form is known."""
    known = registered(mechanism).epsilon
    closed = known(mechanism, metric) if known else None
    # The matrix raises its own error.
    return float(_logs(mechanism).max() if closed is None else closed)


def best_guess(mechanism: HasMatrix, prior: VectorLike, loss: ArrayLike | None = None) -> Ints:
    r"""Return the best guess of the secret after each report.

    .. math:: \arg\min_z\sum_x\mathrm{prior}_x\,M_{xy}\,\mathrm{loss}(x,z).

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    prior : array_like or labelled, shape (k,)
        The adversary's belief before the report.
    loss : array_like, shape (k, guesses), optional
        The adversary's loss for the guess z if the secret is x; by default the alphabet's
        distances, for guesses that are secrets.

    Returns
    -------
    ndarray of int, shape (m,)
        Codes of guesses. Among guesses that are equally good (to a relative 1e-12) it is the
        smallest code. After a report that is never made every guess is as good as any other, so its
        entry is 0.

    Raises
    ------
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` or `loss` is not made for k secrets.
    ValueError
        If a loss is negative, infinite or NaN.
    TooLarge
        If the matrix is too large.

    References
    ----------
    .. [shokri2012] R. Shokri et al., "Protecting location privacy: optimal strategy against
       localization attacks", CCS 2012.

    Examples
    --------
    After the report 2 the secret is most likely 2, but the middle is never far off:

    >>> import ibukit as ik
    >>> ik.privacy.best_guess(ik.RandomizedResponse(3, epsilon=1.0), prior=[0.5, 0.25, 0.25])
    array([0, 1, 1])
    """
    costs = _costs(mechanism, prior, loss)
    # argmax finds the first of equally good guesses.
    ties = costs <= costs.min(axis=1, keepdims=True) * (1 + GUESS_TIE)
    return ties.argmax(axis=1).astype(np.int64)


def adversary_loss(mechanism: HasMatrix, prior: VectorLike, loss: ArrayLike | None = None) -> float:
    r"""Return the adversary's expected loss if every guess is optimal.

    It is

    .. math:: \sum_y\min_z\sum_x\mathrm{prior}_x\,M_{xy}\,\mathrm{loss}(x,z).

    The larger it is, the more private is the mechanism against an adversary with this prior and
    this loss.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    prior : array_like or labelled, shape (k,)
        The adversary's belief before the report.
    loss : array_like, shape (k, guesses), optional
        The adversary's loss for the guess z if the secret is x; by default the alphabet's
        distances.

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
    TooLarge
        If the matrix is too large.

    References
    ----------
    .. [shokri2012] R. Shokri et al., "Protecting location privacy: optimal strategy against
       localization attacks", CCS 2012.

    Examples
    --------
    A guess of the report itself is right with probability e / (e + 2), and no guess is better:

    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["a", "b", "c"], epsilon=1.0)
    >>> round(ik.privacy.adversary_loss(mechanism, ik.uniform(3)), 4)
    0.4239
    """
    return float(_costs(mechanism, prior, loss).min(axis=1).sum())


def quality_loss(mechanism: HasMatrix, prior: VectorLike, loss: ArrayLike | None = None) -> float:
    r"""Return the user's expected loss.

    .. math:: \sum_{xy}\mathrm{prior}_x\,M_{xy}\,\mathrm{loss}(x,y).

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    prior : array_like or labelled, shape (k,)
        How the secrets are distributed.
    loss : array_like, shape (k, m), optional
        The user's loss for the report y if the secret is x; by default the alphabet's distances,
        for mechanisms whose reports are the secrets' own codes.

    Returns
    -------
    float
        In the loss's unit; never below `adversary_loss` for the same loss, since the report itself
        can be guessed.

    Raises
    ------
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` is not made for k secrets, or `loss` for k secrets and m reports.
    ValueError
        If a loss is negative, infinite or NaN.
    TooLarge
        If the matrix is too large.

    References
    ----------
    .. [shokri2012] R. Shokri et al., "Protecting location privacy: optimal strategy against
       localization attacks", CCS 2012.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 9), epsilon=1.0)
    >>> round(ik.privacy.quality_loss(mechanism, ik.uniform(10)), 4)
    0.7163
    """
    matrix = observable_matrix(mechanism)
    weights = distribution_over("prior", prior, mechanism.alphabet)
    values = mechanism.alphabet.distances() if loss is None else loss
    return float(weights @ (matrix * arguments.losses("loss", values, *matrix.shape)).sum(axis=1))


def mutual_information(mechanism: HasMatrix, prior: VectorLike) -> float:
    r"""Return the mutual information of report and secret, in nats.

    .. math::

        I(x;y)=\sum_{xy}\mathrm{prior}_x\,M_{xy}\,\log\frac{M_{xy}}{\sum_w\mathrm{prior}_w\,M_{wy}}.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    prior : array_like or labelled, shape (k,)
        How the secrets are distributed.

    Returns
    -------
    float
        In nats per report: 0 if reports do not depend on secrets, and the prior's entropy if each
        report determines the secret.

    Raises
    ------
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` is not made for k secrets.
    TooLarge
        If the matrix is too large, and no closed form is known for this prior. For k-RR and
        Hadamard response there is one for every prior; for unary encodings and subset selection
        there is one for the uniform prior.

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Definition 2.2.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(2, epsilon=1.0)
    >>> round(ik.privacy.mutual_information(mechanism, prior=[0.5, 0.5]), 4)
    0.1109
    """
    try:
        matrix = observable_matrix(mechanism)
    except TooLarge:
        weights = distribution_over("prior", prior, mechanism.alphabet)
        known = registered(mechanism).information
        closed = known(mechanism, weights) if known else None
        if closed is None:
            raise
        return float(closed)
    weights = distribution_over("prior", prior, mechanism.alphabet)
    # rel_entr is M log(M / reports), 0 if M is 0; reports of probability 0 are left out.
    reports = weights @ matrix
    return max(0.0, float(weights @ rel_entr(matrix, reports).sum(axis=1, where=reports > 0)))


def block_mass(mechanism: HasMatrix, secret: int, block: ArrayLike) -> float:
    r"""Return the probability of a set of reports under one secret.

    It is :math:`\sum_{y\in B} M_{xy}`.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m).
    secret : int
        The code x.
    block : array_like of int
        Codes of the reports in B, each once; for a mask pass ``np.flatnonzero(mask)``.

    Raises
    ------
    AlphabetMismatch
        If `secret` or a report is not a code.
    ValueError
        If a report stands in `block` twice.
    TooLarge
        If the matrix is too large.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 9), epsilon=1.0)
    >>> round(ik.privacy.block_mass(mechanism, 5, [4, 5, 6]), 4)
    0.8021
    """
    row = _row(mechanism, secret)
    reports = arguments.codes("block", block, len(row))
    codes, times = np.unique(reports, return_counts=True)
    if (times > 1).any():
        raise ValueError(
            f"block must name each report once, got {codes[times.argmax()]} {times.max()} times"
        )
    return float(row[reports].sum())


def exposure(mechanism: HasMatrix, prior: VectorLike, secret: int) -> float:
    r"""Return the expected posterior probability of a secret after its own report.

    It is

    .. math::

        \mathbb E[P(x\mid Y)\mid x]=\sum_y
        M_{xy}\,\frac{\mathrm{prior}_x\,M_{xy}}{(\mathrm{prior}\,M)_y}.

    It is the probability that an adversary who knows the prior gives to the true secret, averaged
    over the reports: :math:`\mathrm{prior}_{x}` if reports do not depend on secrets, and 1 if they
    determine the secrets.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m).
    prior : array_like or labelled, shape (k,)
        The adversary's belief before the report.
    secret : int
        The code x.

    Raises
    ------
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `secret` is not a code, or `prior` is not made for k secrets.
    TooLarge
        If the matrix is too large.

    Examples
    --------
    >>> import ibukit as ik
    >>> round(ik.privacy.exposure(ik.RandomizedResponse(4, epsilon=1.0), ik.uniform(4), 0), 4)
    0.3177
    """
    row = _row(mechanism, secret)
    weights = distribution_over("prior", prior, mechanism.alphabet)
    # Only reports that the secret can make: others may have probability 0 under the prior.
    made = row > 0
    seen = _reports(mechanism, weights)[made]
    joint = weights[int(secret)] * row[made]
    return float(row[made] @ np.divide(joint, seen, out=np.zeros_like(seen), where=joint > 0))


def mean_displacement(mechanism: HasMatrix, secret: int, loss: ArrayLike | None = None) -> float:
    r"""Return the mean distance of a secret's reports from the secret.

    For secret x it is :math:`\sum_{y} M_{xy}\,d(x, y)`.

    Parameters
    ----------
    mechanism : FiniteMechanism
        Anything with ``matrix()``, shape (k, m), and an ``alphabet``.
    secret : int
        The code x.
    loss : array_like, shape (k, m), optional
        Distances from every secret to every report, for mechanisms whose reports are not the
        secrets' own codes; by default the distances of the alphabet.

    Returns
    -------
    float
        In the unit of the distances. Its mean over a prior is `quality_loss`.

    Raises
    ------
    AlphabetMismatch
        If `secret` is not a code, or `loss` is not made for k secrets and m reports.
    ValueError
        If a distance is negative, infinite or NaN.
    TooLarge
        If the matrix is too large.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 9), epsilon=1.0)
    >>> [round(ik.privacy.mean_displacement(mechanism, secret), 4) for secret in (5, 0)]
    [0.8403, 0.4254]
    """
    prior = np.zeros(len(observable_matrix(mechanism)))
    # The mean displacement is the quality loss if everybody has this secret.
    prior[arguments.codes("secret", [secret], len(prior))[0]] = 1
    return quality_loss(mechanism, prior, loss)


def _row(mechanism: HasMatrix, secret: int) -> Floats:
    try:
        matrix = observable_matrix(mechanism)
    except TooLarge:
        k = len(mechanism.alphabet)
        own = arguments.codes("secret", [secret], k)[0]
        return _reports(mechanism, (np.arange(k) == own).astype(np.float64))
    return matrix[arguments.codes("secret", [secret], len(matrix))[0]]


def _reports(mechanism: HasMatrix, weights: Floats) -> Floats:
    """Distribution of the reports, without the matrix if it is too large."""
    try:
        return weights @ observable_matrix(mechanism)
    except TooLarge:
        return mechanism.forward(weights)  # type: ignore[attr-defined]


def _costs(mechanism: HasMatrix, prior: VectorLike, loss: ArrayLike | None) -> Floats:
    """Return sum_x prior_x M_xy loss(x, z), shape (m, guesses)."""
    matrix = observable_matrix(mechanism)
    weights = distribution_over("prior", prior, mechanism.alphabet)
    values = mechanism.alphabet.distances() if loss is None else loss
    return (matrix.T * weights) @ arguments.losses("loss", values, len(matrix))


def _logs(mechanism: HasMatrix) -> Floats:
    known = registered(mechanism).log_matrix
    with np.errstate(divide="ignore"):
        logs = known(mechanism) if known else np.log(observable_matrix(mechanism))
    # Reports that no secret makes bound nothing.
    possible = logs.max(axis=0) > -np.inf
    return np.asarray(logs[:, possible])
