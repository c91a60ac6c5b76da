"""Audit a sampler: a lower bound of its epsilon from drawn reports alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit._ground.binomial_bounds import binomial_bounds
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import LabelsLike, codes_of
from ibukit.errors import TooLarge

# Largest number of ordered pairs of secrets times different reports; comparing these takes seconds.
MAX_COUNTS = 2**27
# Largest number of reports, all of which are in memory at a time.
MAX_AUDITED = 10**9


class OverAlphabet(Protocol):
    """Anything over an alphabet of secrets, with epsilon for all pairs or per unit of distance."""

    @property
    def metric(self) -> bool:
        """True if epsilon is per unit of distance."""

    @property
    def alphabet(self) -> Alphabet:
        """The secrets."""


@dataclass(frozen=True)
class Audit:
    """Result of `audit`.

    Attributes
    ----------
    epsilon : float
        Lower bound of the sampler's epsilon, in nats (per unit of distance if the mechanism is
        metric). It is 0 if nothing was found, and wrong with a probability of at most 1 -
        `confidence`.
    confidence : float
    secrets : tuple
        Labels of the two secrets that are distinguished best.
    seen : tuple of int
        Number of reports of each of these two secrets that lie in the chosen event.
    n : int
        Number of reports of each of the two secrets, in the half that was not used to choose the
        event.

    Examples
    --------
    If the report is the secret itself, every report distinguishes the two secrets:

    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(2, epsilon=1.0)
    >>> found = ik.privacy.audit(mechanism, lambda secrets: secrets, n=400)
    >>> found.seen, found.n
    ((100, 0), 100)
    """

    epsilon: float
    confidence: float
    secrets: tuple[Any, Any]
    seen: tuple[int, int]
    n: int


class _Event(NamedTuple):
    """A set of reports that is more probable under the first of two secrets."""

    score: float
    secrets: tuple[int, int]
    distance: float
    seen: tuple[int, int]


class _Pair(NamedTuple):
    """Counts of each report under two secrets, shape (2, s), in the three parts of the reports.

    One part ranks the reports, one chooses the event, and one judges it.
    """

    secrets: tuple[int, int]
    ranking: Ints
    choosing: Ints
    judging: Ints


def audit(
    mechanism: OverAlphabet,
    release: Callable[[Any], Any],
    *,
    n: int = 100_000,
    confidence: float = 0.99,
    secrets: LabelsLike | None = None,
) -> Audit:
    r"""Bound the epsilon of a sampler from below by drawn reports.

    For any secrets x, y and set E of reports, a sampler with parameter epsilon has
    :math:`P(E\mid x)\le e^{\varepsilon}P(E\mid y)`. One half of the `n` reports is used to choose
    x, y and E: a quarter of all reports to rank the reports by the ratio of their probabilities
    under the two secrets, and the next quarter to choose how many of the ranks to take. From the
    other half the two probabilities are bounded by the method of Clopper and Pearson, each with
    error probability (1 - `confidence`) / 2. The logarithm of the quotient of the bounds is a bound
    of epsilon; if epsilon is per unit of distance, it is divided by the distance of x and y. A
    bound above the claimed epsilon proves a leak. No bound proves that there is none: an event of
    probability :math:`10^{-9}` is not seen in :math:`10^7` reports.

    Parameters
    ----------
    mechanism : Mechanism
        Its alphabet is used, and its attribute `metric`: whether epsilon is per unit of distance.
    release : callable
        The function to audit, such as ``mechanism.release``. It takes any number of labels of
        secrets and returns as many reports.
    n : int
        Number of reports in total: the same number for each secret, and at least 4.
    confidence : float
        Least probability with which the bound holds, above 0 and below 1.
    secrets : sequence, optional
        Labels of the secrets to distinguish, at least two. By default all, which takes long if
        there are many.

    Returns
    -------
    Audit

    Raises
    ------
    ValueError
        If there are fewer than two secrets or four reports of each, `confidence` is not between 0
        and 1, the alphabet has no end, or `release` does not return one report for each secret.
    TooLarge
        If there are too many pairs of secrets for the number of different reports.

    References
    ----------
    .. [clopper1934] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits
       illustrated in the case of the binomial", Biometrika 26, 1934.
    .. [jagielski2020] M. Jagielski, J. Ullman and A. Oprea, "Auditing differentially private
       machine learning", NeurIPS 2020.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(3, epsilon=1.0)
    >>> found = ik.privacy.audit(mechanism, mechanism.release, n=60_000, confidence=1 - 1e-9)
    >>> 0.5 < found.epsilon <= mechanism.release_epsilon
    True

    A sampler that adds no noise is detected:

    >>> ik.privacy.audit(mechanism, lambda secrets: secrets, n=6000).epsilon > 3
    True
    """
    if not callable(release):
        raise TypeError(f"release must be a function from labels to reports, got {release!r}")
    if not isinstance(getattr(mechanism, "alphabet", None), Alphabet):
        raise TypeError(
            "mechanism must be a mechanism, such as RandomizedResponse(k, epsilon), got "
            f"{mechanism!r}"
        )
    level = arguments.fraction("confidence", confidence, "()")
    codes, labels = _secrets(mechanism.alphabet, secrets)
    # Each secret makes four parts of reports: one ranks, one chooses, two judge.
    each = arguments.whole("n", n, 4 * len(codes), MAX_AUDITED) // (4 * len(codes))
    reports = _reports(release, labels, 4 * each)
    best: _Event | None = None
    for pair in _pairs(
        (reports[:, :each], reports[:, each : 2 * each], reports[:, 2 * each :]), codes
    ):
        d = float(mechanism.alphabet.distances()[pair.secrets]) if mechanism.metric else 1.0
        for order in ([0, 1], [1, 0]):
            event = _best_event(pair, order, d, level)
            best = event if best is None or event.score > best.score else best
    assert best is not None
    named = mechanism.alphabet.labels_of(np.array(best.secrets)).tolist()
    return Audit(_bound(best, 2 * each, level), level, (named[0], named[1]), best.seen, 2 * each)


def _secrets(alphabet: Alphabet, secrets: ArrayLike | None) -> tuple[Ints, NDArray[Any]]:
    if not alphabet.bounded:
        raise ValueError(
            f"mechanism must have an alphabet with an end, got {alphabet!r}; audit a part of it"
        )
    codes = np.arange(len(alphabet)) if secrets is None else codes_of("secrets", secrets, alphabet)
    if len(np.unique(codes)) < max(2, len(codes)):
        raise ValueError(
            f"secrets must be at least two different ones, each named once, got {len(codes)}"
        )
    return codes, alphabet.labels_of(codes)


def _reports(release: Callable[[Any], Any], labels: NDArray[Any], each: int) -> NDArray[Any]:
    """Draw reports by secret, shape (secrets, each) or (secrets, each, width)."""
    try:
        reports = np.asarray(release(np.repeat(labels, each, axis=0)))
    except TypeError as error:
        raise TypeError(
            f"release must be a function from labels to reports, but {release!r} is not: {error}"
        ) from error
    if reports.ndim == 0 or len(reports) != each * len(labels):
        raise ValueError(
            f"release must return one report for each of {each * len(labels)} secrets, got an "
            f"array of shape {reports.shape}"
        )
    return reports.reshape(len(labels), each, *reports.shape[1:])


def _pairs(parts: Sequence[NDArray[Any]], codes: Ints) -> Iterator[_Pair]:
    """Yield all pairs of secrets with the counts of their reports.

    Reports that are pairs of numbers are counted as a whole, and each number alone. If the reports
    are rows with a bit for each secret, only the bits of the two secrets are used, because 2^k
    different rows are too many.
    """
    reports = parts[0]
    width = reports.shape[2] if reports.ndim == 3 else 1
    if width > max(2, codes.max()) and all(np.isin(part, (0, 1)).all() for part in parts):
        for i, j in combinations(range(len(codes)), 2):
            x, y = int(codes[i]), int(codes[j])
            yield _Pair(
                (x, y), *(np.array([_two_bits(part[s], x, y) for s in (i, j)]) for part in parts)
            )
        return
    # For pairs of numbers: the pair as a whole, and each number alone.
    views = [parts] + [[part[..., i] for part in parts] for i in range(width if width == 2 else 0)]
    for view in views:
        counted = _counted(view)
        for i, j in combinations(range(len(codes)), 2):
            yield _Pair((int(codes[i]), int(codes[j])), *(counts[[i, j]] for counts in counted))


def _two_bits(rows: NDArray[Any], x: int, y: int) -> Ints:
    return np.bincount(2 * rows[:, x].astype(np.int64) + rows[:, y], minlength=4)


def _counted(parts: Sequence[NDArray[Any]]) -> list[Ints]:
    """Return the counts of each report under each secret, shape (secrets, s), for each part."""
    k = len(parts[0])
    # Reports of all parts get common numbers, so that counts can be compared.
    together = np.concatenate(parts, axis=1)
    rows = together.reshape(together.shape[0] * together.shape[1], *together.shape[2:])
    which = _numbered(rows if rows.ndim == 1 else rows.T).reshape(k, -1)
    s = int(which.max()) + 1
    if k * (k - 1) * s > MAX_COUNTS:
        raise TooLarge(
            f"{k * (k - 1) // 2} pairs of secrets with {s} different reports are too many to "
            f"compare (the product may be at most {MAX_COUNTS // 2}); name some of the secrets: "
            "audit(..., secrets=...)"
        )
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    return [
        np.array([np.bincount(row, minlength=s) for row in part])
        for part in np.split(which, ends, axis=1)
    ]


def _numbered(columns: NDArray[Any]) -> Ints:
    """Return the numbers 0, 1, ... of different reports."""
    # Combining column by column is faster than np.unique on whole rows.
    which: Ints = np.zeros(columns.shape[-1], dtype=np.int64)
    for column in columns.reshape(-1, columns.shape[-1]):
        here = _places(column)
        _, which = np.unique(which * (int(here.max()) + 1) + here, return_inverse=True)
    return which


def _places(column: NDArray[Any]) -> Ints:
    """Return the number of each value among the different ones."""
    try:
        return np.unique(column, return_inverse=True)[1]
    except TypeError:
        # Labels that have no order, such as 1 and "a", are numbered as they come.
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(value, len(numbers)) for value in column])


def _best_event(pair: _Pair, order: list[int], distance: float, confidence: float) -> _Event:
    """Return the set of top-ranked reports whose predicted bound of epsilon is largest."""
    # Sets of the r top-ranked reports are compared by the lower confidence bound of the log ratio
    # of their probabilities, in normal approximation; 1/2 is added to each count against zeros.
    first, second = pair.ranking[order]
    ranked = np.argsort((second + 0.5) / (first + 0.5), kind="stable")
    hits, misses = np.cumsum(pair.choosing[order][:, ranked], axis=1) + 0.5
    width = -ndtri((1 - confidence) / 2) * np.sqrt(1 / hits + 1 / misses)
    promised = (np.log(hits / misses) - width) / distance
    best = int(promised.argmax())
    seen = pair.judging[order][:, ranked[: best + 1]].sum(axis=1).tolist()
    x, y = (pair.secrets[i] for i in order)
    return _Event(float(promised[best]), (x, y), distance, (seen[0], seen[1]))


def _bound(event: _Event, n: int, confidence: float) -> float:
    """Return the lower bound of epsilon from the judging part of the reports."""
    (low, _), (_, high) = np.transpose(
        binomial_bounds(np.array(event.seen), n, (1 - confidence) / 2)
    ).tolist()
    return max(0.0, math.log(low / high)) / event.distance if low > 0 else 0.0
