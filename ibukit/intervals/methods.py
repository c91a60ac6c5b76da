"""The interval methods by name, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit.intervals import boundary, measured
from ibukit.intervals.calibrated import calibrated
from ibukit.intervals.credible import credible
from ibukit.intervals.design_effects import profile, wald
from ibukit.intervals.guaranteed import REGIONS, guaranteed
from ibukit.intervals.request import Ends, IntervalRequest
from ibukit.intervals.resampling import bootstrap
from ibukit.tally.tally import Tally
from ibukit.tally.trials import has_trials

TARGETS = ("distribution", "frequencies")
# Number of secrets up to which profile intervals for all of them take seconds. Tables and pictures
# of more secrets have Wald's intervals, which are immediate, unless these say nothing.
MAX_SECRETS_PROFILED_BY_DEFAULT = 300
# Number of void rows times secrets up to which profile intervals replace the Wald intervals of
# these rows, which takes about ten seconds.
MAX_VOID_ENTRIES_PROFILED = 2**18
# Method of rows of tallies whose weights are known by their sums only.
SUMS_OF_WEIGHTS = "wald, without squares of weights"
# Names of Wald's method in tables.
WALD = ("wald", SUMS_OF_WEIGHTS)
# Method of a row whose interval by Wald's method contains all possible values.
VOID = 'wald, void: see method="profile"'


def auto(request: IntervalRequest, draws: int | None = None, seed: int = 0) -> Ends:
    """Return the ends of the profile; its threshold allows for the boundary where this is possible.

    `draws` and `seed` are those of the threshold, see `boundary_profile`.
    """
    if auto_method(request) == "auto":
        return boundary.boundary_profile(request, draws, seed)
    return profile(request)


def auto_method(request: IntervalRequest) -> str:
    """Return "auto", or "profile" where no threshold can be drawn or all would take too long."""
    if request.target != "distribution" or boundary.applies(request):
        return "auto"
    return "profile"


INTERVALS: dict[str, Callable[..., Ends]] = {
    "auto": auto,
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
    chosen = INTERVALS[method]
    if request.tally is not None and has_trials(request.tally):
        chosen = measured.method_of(request, method, chosen)
    return chosen(request, **options)


def default_ends(request: IntervalRequest) -> tuple[Ends, NDArray[Any]]:
    """Return quick and applicable ends for tables and pictures, and the method of each row.

    The method is "auto" if rows times secrets are at most 300^2 ("auto" is "profile" beyond its own
    limits); otherwise it is Wald's. For the rows whose interval by Wald's method contains all
    possible values, it is "profile" if such rows times secrets are at most 2^18, and otherwise
    `VOID`.

    Examples
    --------
    >>> import ibukit as ik
    >>> from ibukit.domain.linear_functionals import parse_functionals
    >>> estimate = ik.mle(ik.RandomizedResponse(3, epsilon=2.0).tally_counts([600, 300, 100]))
    >>> functionals = parse_functionals(None, estimate.alphabet)
    >>> request = IntervalRequest(estimate.tally, estimate.distribution, functionals, level=0.95)
    >>> _, methods = default_ends(request)
    >>> print(*methods)
    auto auto auto
    """
    functionals = request.functionals
    r, k = len(functionals), functionals.k
    if request.tally is not None and has_trials(request.tally):
        return measured.default_ends(request)
    try:
        # A tally that has weights and loses reports as well is refused here.
        weighted = request.tally is not None and request.tally.weighted
        request.checked_tally(lossy=not weighted, weighted=weighted)
    except ValueError:
        return wald(request), np.full(r, name_in_tables("wald", request.tally), dtype=object)
    if r * k <= MAX_SECRETS_PROFILED_BY_DEFAULT**2:
        return auto(request), np.full(r, auto_method(request), dtype=object)
    lower, upper = wald(request)
    methods = np.full(r, "wald", dtype=object)
    void = (lower <= functionals.least) & (upper >= functionals.most) & (functionals.ranges > 0)
    if not void.any():
        return (lower, upper), methods
    if void.sum() * k > MAX_VOID_ENTRIES_PROFILED:
        methods[void] = VOID
        return (lower, upper), methods
    methods[void] = "profile"
    lower[void], upper[void] = profile(replace(request, functionals=functionals.part(void)))
    return (lower, upper), methods


def name_in_tables(method: str, tally: Tally | None) -> str:
    """Return the name of a method in tables, which says if weights are known by sums only."""
    unknown = tally is not None and tally.weighted and tally.survey is None
    return SUMS_OF_WEIGHTS if unknown and arguments.is_one_of(method, ("wald",)) else method


def for_all_together(
    level: float, k: int, method: str, options: dict[str, Any]
) -> tuple[float, dict[str, Any]]:
    """Return the level of each of k intervals, and options, so that all hold together with `level`.

    Ranges over one region of distributions, which "guaranteed" then takes, hold together as they
    are; for other methods the level of each interval is Bonferroni's.

    Examples
    --------
    >>> for_all_together(0.9, 10, "profile", {}), for_all_together(0.9, 10, "guaranteed", {})
    ((0.99, {}), (0.9, {'by': 'region'}))
    """
    if arguments.is_one_of(method, ("guaranteed",)) and options.get("by") is None:
        options = options | {"by": "region"}
    together = arguments.is_one_of(options.get("by"), REGIONS)
    return (level if together else 1 - (1 - level) / k), options
