"""The ways to an interval, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ibukit._ground import arguments
from ibukit.domain.linear_functionals import Questions
from ibukit.estimate import Estimate
from ibukit.intervals.calibrated import calibrated
from ibukit.intervals.credible import credible
from ibukit.intervals.guaranteed import guaranteed
from ibukit.intervals.profile import profile
from ibukit.intervals.request import Asked, Ends
from ibukit.intervals.resampling import bootstrap
from ibukit.intervals.wald import wald

INTERVALS: dict[str, Callable[..., Ends]] = {
    "wald": wald,
    "profile": profile,
    "guaranteed": guaranteed,
    "calibrated": calibrated,
    "bootstrap": bootstrap,
    "credible": credible,
}
TARGETS = ("distribution", "frequencies")
# secrets up to which all profile intervals together take seconds
MAX_AT_ONCE = 300


def interval(
    estimate: Estimate,
    questions: Questions,
    level: float,
    method: str,
    target: str,
    options: dict[str, Any],
) -> Ends:
    """See `Estimate.interval`; `level` is checked.

    Examples
    --------
    >>> import ibukit as ik
    >>> from ibukit.domain.linear_functionals import asked
    >>> estimate = ik.mle(ik.RandomizedResponse(3, epsilon=2.0).tally_counts([600, 300, 100]))
    >>> lower, upper = interval(estimate, asked(None, estimate.alphabet), 0.95, "profile", "distribution", {})
    >>> lower.round(3), upper.round(3)
    (array([0.678, 0.241, 0.   ]), array([0.759, 0.322, 0.021]))
    """
    for name, given, known in (("method", method, INTERVALS), ("target", target, TARGETS)):
        if not arguments.is_one_of(given, known):
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {given!r}")
    return INTERVALS[method](Asked(estimate, questions, level, target), **options)


def usual(estimate: Estimate) -> str:
    """The method for tables and pictures, which show all probabilities: what takes seconds, and applies.

    Examples
    --------
    >>> import ibukit as ik
    >>> [usual(ik.mle(ik.RandomizedResponse(k, epsilon=2.0).tally([0, 1, 1]))) for k in (3, 3000)]
    ['profile', 'wald']
    """
    try:
        Asked(estimate, Questions(len(estimate), None), 0.95, "distribution").tally()
    except ValueError:
        return "wald"
    return "profile" if len(estimate) <= MAX_AT_ONCE else "wald"


def level_of_each(level: float, k: int, method: str, options: dict[str, Any]) -> float:
    """At what level each of k intervals is for all to hold together with probability `level`.

    Examples
    --------
    >>> level_of_each(0.9, 10, "profile", {}), level_of_each(0.9, 10, "guaranteed", {})
    (0.99, 0.9)
    """
    together = (
        arguments.is_one_of(method, ("guaranteed",)) and options.get("by", "boxes") == "boxes"
    )
    return level if together else 1 - (1 - level) / k
