"""The sampling design of the respondents of a regression, and refits by replicate weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.errors import SeparatedDesign, WeightsRefused
from ibukit.estimators.regression.inputs import column, labels_of, refuse_bad_weights
from ibukit.estimators.regression.likelihood import Likelihood
from ibukit.estimators.regression.newton import maximise
from ibukit.estimators.regression.separation import refuse_if_separated
from ibukit.tally.survey import Survey
from ibukit.tally.survey_rows import within

MAX_STEPS = 200
# Largest gradient per report at the maximum of a replicate.
GRADIENT_TOLERANCE = 1e-9


def survey_of(
    counted: Floats,
    kept: Ints,
    data: Any,
    *,
    weights: Any,
    strata: Any,
    clusters: Any,
    replicate_weights: Any,
) -> Survey | None:
    """Return the survey of the respondents `kept`, or None if they are a simple sample.

    `counted` are the weights of all rows, ones if `weights` is None.
    """
    n = len(counted)
    names = {"stratum": ("strata", strata), "cluster": ("clusters", clusters)}
    labels = {
        key: np.array(list(map(str, labels_of(name, column(name, values, data), n))))
        for key, (name, values) in names.items()
        if values is not None
    }
    own = counted[kept]
    if replicate_weights is not None:
        if weights is None or labels:
            raise ValueError(
                "replicate_weights must be given with weights, and without strata and clusters, "
                "which they already express"
            )
        replicates = _replicate_weights(replicate_weights, data, n)[:, kept]
        deviations = ((replicates - own) ** 2).sum(axis=0)
        survey = Survey.of_rows(
            np.arange(len(kept)), own, replicates=replicates, deviations=deviations
        )
        # The scale is computed now, because computing it refuses factors without the weight.
        assert survey.scale > 0
        return survey
    if weights is None and not labels:
        return None
    survey = _survey(kept, own, labels)
    if len(kept) < n:
        # People without weight belong to the sample, as in the tally of a table.
        rest = np.flatnonzero(counted == 0)
        (survey,) = within([survey], _survey(rest, counted[rest], labels))
    survey.refuse_unknown_errors()
    return survey


def _survey(rows: Ints, weights: Floats, labels: dict[str, NDArray[Any]]) -> Survey:
    """Return the survey of some of the rows, which have labels of strata and clusters."""
    own = {key: values[rows].tolist() for key, values in labels.items()}
    return Survey.of_rows(np.arange(len(rows)), weights, **own)


def _replicate_weights(values: Any, data: Any, n: int) -> Floats:
    """Return a row for each replicate, shape (R, n); `values` has a column for each."""
    name = "replicate_weights"
    if isinstance(values, (list, tuple)) and all(isinstance(each, str) for each in values):
        columns = [column(name, each, data) for each in values]
        found = np.array([arguments.numbers(name, each, "numbers") for each in columns])
    else:
        found = arguments.numbers(name, arguments.whole_array(name, values), "numbers").T
    if found.ndim != 2 or len(found) < 2 or found.shape[1] != n:
        raise ValueError(
            f"{name} must be names of at least two columns of data, or have a row for each of {n} "
            f"rows of X and at least two columns, got shape {found.T.shape}"
        )
    refuse_bad_weights(name, found.T)
    if not found.any(axis=1).all():
        raise ValueError(f"{name} must not all be 0 in a column: no one is left")
    return found.copy()


def replicate_deviations(
    likelihood: Likelihood,
    centre: Floats,
    replicates: Floats,
    to_covariates: Floats,
    names: tuple[str, ...],
    secrets: tuple[Any, ...],
) -> Floats:
    """Return estimates with replicate weights minus the estimate `centre`, shape (R, p).

    The last three arguments are as `refuse_if_separated` takes them.
    """
    moved = np.empty((len(replicates), centre.size))
    for index, weights in enumerate(replicates):
        here = np.flatnonzero(weights > 0)
        drawn = replace(
            likelihood,
            design=likelihood.design[here],
            at=likelihood.at[here],
            weights=weights[here],
        )
        found = maximise(drawn, centre, MAX_STEPS)
        try:
            refuse_if_separated(drawn, *found[:2], to_covariates, names, secrets)
        except SeparatedDesign as error:
            raise SeparatedDesign(f"replicate_weights, column {index}: {error}") from None
        gradient = float(np.abs(found.derivatives.gradient).max()) / drawn.total
        if gradient > GRADIENT_TOLERANCE:
            raise WeightsRefused(
                f"replicate_weights must give a maximum near the estimate, column {index} does "
                f"not: the gradient per report is {gradient:.3g}; give strata and clusters instead"
            )
        moved[index] = (found.coefficients - centre).ravel()
    return moved
