"""The interval methods by name, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.threads import one_thread
from ibukit.domain.linear_functionals import LinearFunctionals, normal_quantile
from ibukit.intervals.betting import betting
from ibukit.intervals.calibrated import calibrated
from ibukit.intervals.clopper_pearson import clopper_pearson
from ibukit.intervals.credible import credible
from ibukit.intervals.profile import profile
from ibukit.intervals.request import Ends, IntervalRequest
from ibukit.intervals.resampling import bootstrap
from ibukit.intervals.universal import averaged, cross_fitted, halved
from ibukit.tally.tally import Tally

TARGETS = ("distribution", "frequencies")
# Number of secrets up to which the profile intervals of all of them take seconds. Tables and
# pictures of more take Wald's, which are immediate.
MAX_SECRETS_PROFILED_BY_DEFAULT = 300


def wald(request: IntervalRequest) -> Ends:
    """Return w . theta -+ z standard errors, cut at the values that distributions can have."""
    functionals = request.functionals
    assert request.standard_errors is not None, "an estimate knows its standard errors"
    margin = normal_quantile(request.level) * request.standard_errors()
    middle = functionals.values(request.theta)
    return (
        np.maximum(middle - margin, functionals.least),
        np.minimum(middle + margin, functionals.most),
    )


# The guaranteed intervals that split the reports at random, and so take a seed.
RANDOM_SPLITS: dict[str, Callable[..., Ends]] = {
    "betting": betting,
    "split": halved,
    "cross-fitted": cross_fitted,
    "averaged": averaged,
}


def guaranteed(request: IntervalRequest, by: str = "boxes", seed: int = 0, **options: Any) -> Ends:
    """Return ends that cover at every number of reports, by the construction `by`.

    `seed` is that of the random splits of the reports, which "boxes" has not.
    """
    if not arguments.is_one_of(by, {"boxes", *RANDOM_SPLITS}):
        raise ValueError(
            f"by must be one of {', '.join(map(repr, ['boxes', *RANDOM_SPLITS]))}, got {by!r}"
        )
    with one_thread():
        return (
            clopper_pearson(request, **options)
            if by == "boxes"
            else RANDOM_SPLITS[by](request, seed, **options)
        )


INTERVALS: dict[str, Callable[..., Ends]] = {
    "wald": wald,
    "profile": profile,
    "guaranteed": guaranteed,
    "calibrated": calibrated,
    "bootstrap": bootstrap,
    "credible": credible,
}


def interval(request: IntervalRequest, method: str, options: dict[str, Any]) -> Ends:
    """Return the ends by one method; `Estimate.interval` documents methods and options.

    Examples
    --------
    >>> import ibukit as ik
    >>> from ibukit.domain.linear_functionals import parse_functionals
    >>> estimate = ik.mle(ik.RandomizedResponse(3, epsilon=2.0).tally_counts([600, 300, 100]))
    >>> functionals = parse_functionals(None, estimate.alphabet)
    >>> request = IntervalRequest(estimate.tally, estimate.distribution, functionals, level=0.95)
    >>> lower, upper = interval(request, "profile", {})
    >>> lower.round(3), upper.round(3)
    (array([0.678, 0.241, 0.   ]), array([0.759, 0.322, 0.021]))
    """
    for name, given, known in (
        ("method", method, INTERVALS),
        ("target", request.target, TARGETS),
    ):
        if not arguments.is_one_of(given, known):
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {given!r}")
    return INTERVALS[method](request, **options)


def default_method(tally: Tally | None, theta: arguments.Floats) -> str:
    """Return the method for tables and pictures of all probabilities: quick, and applicable.

    Examples
    --------
    >>> import ibukit as ik
    >>> for k in (3, 3000):
    ...     estimate = ik.mle(ik.RandomizedResponse(k, epsilon=2.0).tally([0, 1, 1]))
    ...     print(default_method(estimate.tally, estimate.distribution))
    profile
    wald
    """
    k = len(theta)
    try:
        IntervalRequest(tally, theta, LinearFunctionals(k, None), 0.95).checked_tally()
    except ValueError:
        return "wald"
    return "profile" if k <= MAX_SECRETS_PROFILED_BY_DEFAULT else "wald"


def level_of_each(level: float, k: int, method: str, options: dict[str, Any]) -> float:
    """Return the level of each of k intervals for all to hold together with probability `level`.

    The boxes of "guaranteed" hold together as they are; for other methods this is Bonferroni's
    correction.

    Examples
    --------
    >>> level_of_each(0.9, 10, "profile", {}), level_of_each(0.9, 10, "guaranteed", {})
    (0.99, 0.9)
    """
    together = (
        arguments.is_one_of(method, ("guaranteed",)) and options.get("by", "boxes") == "boxes"
    )
    return level if together else 1 - (1 - level) / k
