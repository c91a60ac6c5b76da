"""Intervals of weighted reports: quantiles by the degrees of freedom, and profiles by the design.

Let L be the weighted log-likelihood, and d = V / V_0 the design effect of w . theta: its variance
by the design, over the variance that it would have if the weights were counts. Then 2 (max L - max
L given w . theta) is about d times chi-squared with one degree of freedom (Rao and Scott 1984), so
that

    {theta : 2 (max L - L(theta)) <= d t^2}

is a region whose range of w . theta is its interval; t is the quantile of Student's distribution.
"""

from __future__ import annotations

import math

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.fisher_information import naive_and_design_variances
from ibukit.intervals import lossy_profile
from ibukit.intervals import profile as of_counts
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.intervals.tilted_likelihood import likelihood_of_tally
from ibukit.tally.tally import Tally


def wald(request: IntervalRequest) -> Ends:
    """Return w . theta -+ z standard errors, cut at the values that distributions can have."""
    functionals = request.functionals
    assert request.standard_errors is not None, "an estimate knows its standard errors"
    margin = request.standard_errors() * critical_value(request)
    middle = functionals.values(request.theta)
    return (
        np.maximum(middle - margin, functionals.least),
        np.minimum(middle + margin, functionals.most),
    )


def profile(request: IntervalRequest) -> Ends:
    """Return the ends of the profile likelihood; for weighted reports, with design effects.

    See the module. If every report weighs the same and is a sampling unit of its own, the design
    effect is n / (n - 1), and apart from this factor the interval is that of counts.
    """
    if request.tally is None or not request.tally.weighted:
        return lossy_profile.profile(request)
    request.refuse_frequencies("profile")
    request.refuse_if_too_slow("profile")
    tally = request.checked_tally(weighted=True)
    likelihood = likelihood_of_tally(tally)
    drops = _drops(tally, likelihood.best.theta, request)
    regions = (of_counts.Profile(likelihood, likelihood.best.fit - drop) for drop in drops.tolist())
    return ends(regions, request.functionals)


def critical_value(request: IntervalRequest) -> float:
    """Return the half-width of an interval in standard errors.

    It is the quantile of Student's distribution if the errors are those of the design of a survey:
    they have the degrees of freedom of its clusters. Otherwise it is the normal one.
    """
    tally = request.tally
    survey = None if tally is None or not tally.weighted else tally.survey
    return normal_quantile(request.level) if survey is None else survey.quantile(request.level)


def _drops(tally: Tally, theta: Floats, request: IntervalRequest) -> Floats:
    """Return how far the mean log-likelihood may fall for each functional, d t^2 / 2 n."""
    survey = tally.survey
    assert survey is not None, "a checked tally has it"
    if survey.degrees_of_freedom < 1:
        # Every distribution remains possible.
        return np.full(len(request.functionals), math.inf)
    naive, design = naive_and_design_variances(tally, theta, request.functionals.weights)
    # The effect in a flat direction is not known, but the likelihood leaves this direction open
    # anyway. The mean effect of the weights, n / effective n, takes its place.
    kish = tally.n / survey.effective_n
    usable = np.isfinite(naive) & (naive > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = np.where(usable, design / naive, kish)
    t = survey.quantile(request.level)
    return effect * t**2 / 2 / tally.n
