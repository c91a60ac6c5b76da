"""Differences and ratios of w . theta in two independent samples: the methods by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, readable
from ibukit._ground.threads import one_thread
from ibukit.domain.linear_functionals import LinearFunctionals, normal_quantile
from ibukit.errors import TooLarge
from ibukit.intervals.comparison.designs import errors_of_differences
from ibukit.intervals.comparison.profiles import JointProfile, Sample
from ibukit.intervals.guaranteed import guaranteed
from ibukit.intervals.request import Ends, IntervalRequest

# Largest number of functionals times secrets. A comparison takes 4 to 50 times as long as an
# interval, so this limit is lower than the one for intervals. At the limit a comparison takes
# minutes on a structured channel, and hours on a matrix of hundreds of secrets.
MAX_FUNCTIONALS_TIMES_SECRETS = 2**22
# A guaranteed p-value is found from above, to within this factor; and the least one looked for.
P_VALUE_FACTOR, MIN_P_VALUE = 1.01, 1e-12


class Compared(NamedTuple):
    """Ends of the differences and ratios, and p-values of equality, each of shape (r,)."""

    difference: Ends
    ratio: Ends
    """NaN where a weight is negative."""
    p_values: Floats


def compare_by(
    method: str, first: IntervalRequest, second: IntervalRequest, options: dict[str, Any]
) -> Compared:
    """Return the ends and p-values by one method, for two requests of the same functionals.

    Examples
    --------
    >>> import ibukit as ik
    >>> from ibukit.domain.linear_functionals import parse_functionals
    >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
    >>> yes = parse_functionals("yes", mechanism.alphabet)
    >>> young, old = (
    ...     IntervalRequest(mechanism.tally_counts(counts), None, yes, level=0.95)
    ...     for counts in ([600, 400], [500, 500])
    ... )
    >>> compare_by("profile", young, old, {}).p_values.round(6)
    array([7.e-06])
    """
    if not arguments.is_one_of(method, METHODS):
        raise ValueError(
            f"method must be one of {', '.join(map(repr, METHODS))} for two tallies, got {method!r}"
        )
    return METHODS[method](first, second, **options)


def _profile(first: IntervalRequest, second: IntervalRequest) -> Compared:
    functionals = first.functionals
    r, k = len(functionals), functionals.k
    if r * k > MAX_FUNCTIONALS_TIMES_SECRETS:
        raise TooLarge(
            f"profile likelihoods of two tallies for {readable(r)} questions of {readable(k)} "
            'secrets would take hours: ask for fewer by of=..., or take method="wald"'
        )
    z = normal_quantile(first.level)
    one, other = Sample(first.checked_tally()), Sample(second.checked_tally())
    with one_thread():
        rows = [_profile_row(one, other, w, z) for w in _each(functionals)]
    return _columns(rows)


def _profile_row(one: Sample, other: Sample, w: Floats, z: float) -> tuple[float, ...]:
    ratio = (1.0, 1.0) if has_ratio(w) else (math.nan, math.nan)
    if not np.ptp(w):
        return 0.0, 0.0, *ratio, 1.0
    # The lower ends are the upper ones of the samples exchanged.
    ahead, behind = JointProfile(one, other, w), JointProfile(other, one, w)
    if has_ratio(w):
        inverse = behind.largest_ratio(z)
        ratio = (1 / inverse if inverse else math.inf), ahead.largest_ratio(z)
    from_smaller = ahead if one.value(w) <= other.value(w) else behind
    lower, upper = -behind.largest_difference(z), ahead.largest_difference(z)
    return lower, upper, *ratio, from_smaller.p_value()


def _wald(first: IntervalRequest, second: IntervalRequest) -> Compared:
    functionals = first.functionals
    (one, error), (other, other_error) = _with_errors(first), _with_errors(second)
    both = errors_of_differences(first, second, error, other_error)
    z = both.critical_values(first.level)
    margin = z * both.errors
    lower, upper = one - other - margin, one - other + margin
    # Where both errors are 0, equal values have the p-value 1 and others 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(one == other, 0.0, np.abs(one - other) / both.errors)
    columns = (one, other, z * error, z * other_error, z**2 * both.covariances)
    rows = [
        (0.0, 0.0, *fieller(*row)) if has_ratio(w) else (0.0, 0.0, math.nan, math.nan)
        for w, row in zip(functionals.each(), np.transpose(columns).tolist(), strict=True)
    ]
    _, _, low, high = np.array(rows).T
    ranges = functionals.ranges
    return Compared(
        (np.maximum(lower, -ranges), np.minimum(upper, ranges)),
        (low, high),
        both.p_values(scores),
    )


def fieller(
    first: float, second: float, margin: float, other_margin: float, shared: float = 0.0
) -> tuple[float, float]:
    """Return the ratios r >= 0 with |first - r second| <= the margin of this difference.

    If `second` is within its margin of 0, the ratios have no upper end. The margin of the
    difference is the root of margin^2 - 2 r shared + r^2 other_margin^2.

    Examples
    --------
    >>> fieller(0.5, 0.25, 0.0, 0.125), fieller(0.5, 0.125, 0.125, 0.125)
    ((1.3333333333333333, 4.0), (1.875, inf))
    """
    if not (math.isfinite(margin) and math.isfinite(other_margin)):
        return 0.0, math.inf
    # a r^2 - 2 b r + c <= 0.
    a, b = second**2 - other_margin**2, first * second - shared
    c = first**2 - margin**2
    root = math.sqrt(max(b * b - a * c, 0.0))
    # Without cancellation: the smaller root if a > 0, else the only root that is positive.
    lower = c / (b + root) if b + root > 0 else math.inf
    return (lower if c > 0 else 0.0), ((b + root) / a if a > 0 else math.inf)


def _guaranteed(first: IntervalRequest, second: IntervalRequest, **options: Any) -> Compared:
    rows = []
    for row in range(len(first.functionals)):
        mark = np.arange(len(first.functionals)) == row
        part = first.functionals.part(mark)
        rows.append(
            _guaranteed_row(
                replace(first, functionals=part), replace(second, functionals=part), options
            )
        )
    return _columns(rows)


def _guaranteed_row(
    first: IntervalRequest, second: IntervalRequest, options: dict[str, Any]
) -> tuple[float, ...]:
    def both(error: float) -> list[tuple[float, float]]:
        # The samples are independent: both intervals hold with the product of their levels.
        level = math.sqrt(1 - error)
        ends = (guaranteed(replace(each, level=level), **options) for each in (first, second))
        return [(float(lower[0]), float(upper[0])) for lower, upper in ends]

    def overlap(error: float) -> bool:
        (a, b), (c, d) = both(error)
        return a <= d and c <= b

    (a, b), (c, d) = both(1 - first.level)
    (w,) = first.functionals.each()
    ratio = (math.nan, math.nan)
    if has_ratio(w):
        ratio = (a / d if d > 0 else 0.0, b / c if c > 0 else math.inf)
    if not np.ptp(w):
        return 0.0, 0.0, 1.0, 1.0, 1.0
    return a - d, b - c, *ratio, _largest_error(overlap)


def _largest_error(overlap: Callable[[float], bool]) -> float:
    """Return the largest error probability at which two intervals overlap, slightly too large."""
    low, high = MIN_P_VALUE, 1.0
    if not overlap(low):
        return low
    while high > P_VALUE_FACTOR * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if overlap(middle) else (low, middle)
    return high


def has_ratio(w: Floats) -> bool:
    """Return whether the values w . theta are never negative, nor always 0."""
    return bool(w.min() >= 0 and w.max() > 0)


def _with_errors(request: IntervalRequest) -> Ends:
    assert request.standard_errors is not None, "an estimate knows its standard errors"
    return request.functionals.values(request.theta), request.standard_errors()


def _each(functionals: LinearFunctionals) -> Iterator[Floats]:
    yield from tqdm(
        functionals.each(), total=len(functionals), desc="comparisons", disable=None, leave=False
    )


def _columns(rows: Sequence[tuple[float, ...]]) -> Compared:
    lower, upper, low, high, p_values = np.array(rows, dtype=np.float64).T
    return Compared((lower + 0.0, upper + 0.0), (low, high), p_values)


METHODS: dict[str, Callable[..., Compared]] = {
    "profile": _profile,
    "wald": _wald,
    "guaranteed": _guaranteed,
}
