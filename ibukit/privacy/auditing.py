"""What a sampler gives away at least, by its reports: a bound that needs no word of how it works."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import codes_of
from ibukit.errors import TooLarge

# pairs of secrets, times different reports: some seconds
MAX_COUNTS = 2**27
# reports that are drawn and kept: more do not fit in memory
MAX_AUDITED = 10**9


class OverAlphabet(Protocol):
    """Anything over an alphabet of secrets whose level is for all pairs, or per unit of distance."""

    metric: bool

    @property
    def alphabet(self) -> Alphabet:
        """The secrets."""


@dataclass(frozen=True)
class Audit:
    """What `audit` found.

    Attributes
    ----------
    epsilon : float
        The sampler's level is at least this, in nats (per unit of distance where the mechanism is
        metric), unless chance played a trick of probability 1 - `confidence`. It is 0 where nothing
        was found.
    confidence : float
    secrets : tuple
        Labels of the two secrets that were told apart best.
    seen : tuple of int
        How many of the reports of each fell into the event that was chosen.
    n : int
        How many reports of each there were, in the half that was not used to choose the event.

    Examples
    --------
    Who reports the secret is told apart by all reports, and none speaks against it:

    >>> import ibukit as ik
    >>> found = ik.privacy.audit(ik.RandomizedResponse(2, epsilon=1.0), lambda secrets: secrets, n=400)
    >>> found.seen, found.n
    ((100, 0), 100)
    """

    epsilon: float
    confidence: float
    secrets: tuple[Any, Any]
    seen: tuple[int, int]
    n: int


class _Event(NamedTuple):
    """A set of reports that is likelier under the first of two secrets."""

    score: float
    secrets: tuple[int, int]
    distance: float
    seen: tuple[int, int]


class _Pair(NamedTuple):
    """How often two secrets made each report, in the reports that rank, choose and judge, each of shape (2, s)."""

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
    secrets: ArrayLike | None = None,
) -> Audit:
    r"""Bound the level of a sampler from below by what it reports.

    Of two secrets x, y and a set E of reports, a sampler of level epsilon has
    :math:`P(E\mid x)\le e^{\varepsilon}P(E\mid y)`. One half of `n` reports chooses x, y and E: a
    quarter ranks the reports by how much likelier one secret makes them than the other, the next
    quarter chooses how many of the ranks to take. On the other half the two probabilities are
    bounded after Clopper and Pearson, each with half of what `confidence` leaves, and the logarithm
    of the quotient of the bounds (over the distance of x and y where the level is per unit of
    distance) is a bound of epsilon. It proves a leak where it is above the level that is claimed.
    It never proves that there is none: what a sampler does once in 10^9 reports is not seen in
    10^7.

    Parameters
    ----------
    mechanism : Mechanism
        Its alphabet, and whether its level is per unit of distance, are used.
    release : callable
        From labels of secrets, any number of them, to as many reports: ``mechanism.release``, or
        whatever is audited.
    n : int
        Reports in total, the same number of each secret and at least 4.
    confidence : float
        Probability with which the bound holds at least, above 0 and below 1.
    secrets : sequence, optional
        Labels of the secrets to tell apart, two at least; all by default, which takes time if they
        are many.

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
    .. [clopper1934] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case
       of the binomial", Biometrika 26, 1934.
    .. [jagielski2020] M. Jagielski, J. Ullman and A. Oprea, "Auditing differentially private machine learning",
       NeurIPS 2020.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(3, epsilon=1.0)
    >>> found = ik.privacy.audit(mechanism, mechanism.release, n=60_000, confidence=1 - 1e-9)
    >>> 0.5 < found.epsilon <= mechanism.release_epsilon
    True

    One that does nothing is caught:

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
            f"secrets must be two different ones at least, each named once, got {len(codes)}"
        )
    return codes, alphabet.labels_of(codes)


def _reports(release: Callable[[Any], Any], labels: NDArray[Any], each: int) -> NDArray[Any]:
    """Reports by secret, shape (secrets, each) or (secrets, each, width)."""
    try:
        reports = np.asarray(release(np.repeat(labels, each, axis=0)))
    except TypeError as error:
        raise TypeError(
            f"release must be a function from labels to reports, {release!r} is none: {error}"
        ) from error
    if reports.ndim == 0 or len(reports) != each * len(labels):
        raise ValueError(
            f"release must return one report for each of {each * len(labels)} secrets, got an "
            "array of shape "
            f"{reports.shape}"
        )
    return np.asarray(reports.reshape(len(labels), each, *reports.shape[1:]))


def _pairs(parts: Sequence[NDArray[Any]], codes: Ints) -> Iterator[_Pair]:
    """All pairs of secrets, with how often each of their reports was seen: as a whole, and of pairs each number alone.

    Of rows of bits, one for each secret, the bits of the two secrets are what is looked at: all 2^k
    rows are too many.
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
    views = [parts] + [[part[..., i] for part in parts] for i in range(width if width == 2 else 0)]
    for view in views:
        counted = _counted(view)
        for i, j in combinations(range(len(codes)), 2):
            yield _Pair((int(codes[i]), int(codes[j])), *(counts[[i, j]] for counts in counted))


def _two_bits(rows: NDArray[Any], x: int, y: int) -> Ints:
    return np.bincount(2 * rows[:, x].astype(np.int64) + rows[:, y], minlength=4)


def _counted(parts: Sequence[NDArray[Any]]) -> list[Ints]:
    """How often each secret made each report, shape (secrets, s) in each part."""
    k = len(parts[0])
    together = np.concatenate(parts, axis=1)
    rows = together.reshape(together.shape[0] * together.shape[1], *together.shape[2:])
    which = _numbered(rows if rows.ndim == 1 else rows.T).reshape(k, -1)
    s = int(which.max()) + 1
    if k * (k - 1) * s > MAX_COUNTS:
        raise TooLarge(
            f"{k * (k - 1) // 2} pairs of secrets with {s} different reports are too many to "
            "compare (the product may "
            f"be at most {MAX_COUNTS // 2}); name some of the secrets: audit(..., secrets=...)"
        )
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    return [
        np.array([np.bincount(row, minlength=s) for row in part])
        for part in np.split(which, ends, axis=1)
    ]


def _numbered(columns: NDArray[Any]) -> Ints:
    """Numbers 0, 1, ... of different reports: column by column, which is faster than rows at once."""
    which: Ints = np.zeros(columns.shape[-1], dtype=np.int64)
    for column in columns.reshape(-1, columns.shape[-1]):
        _, here = np.unique(column, return_inverse=True)
        _, which = np.unique(which * (int(here.max()) + 1) + here, return_inverse=True)
    return which


def _best_event(pair: _Pair, order: list[int], distance: float, confidence: float) -> _Event:
    """Of the sets of the likeliest reports the one whose bound promises most, by normal approximation."""
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
    hits, misses = event.seen
    error = (1 - confidence) / 2
    low = float(betaincinv(hits, n - hits + 1, error))  # not a number without a hit
    high = float(betaincinv(misses + 1, n - misses, 1 - error)) if misses < n else 1.0
    return max(0.0, math.log(low / high)) / event.distance if low > 0 else 0.0
