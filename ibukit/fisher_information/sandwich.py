"""Covariances of weighted estimates by the design of a survey: the sandwich of Binder.

With J the information of the weighted likelihood, the estimate of w . theta moves by the total of
w_i u(z_i) over the reports, u_z = w^T Z (Z^T J Z)^-1 Z^T M_z / (theta M)_z, to first order. Its
variance is that of this total by the design.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs

from ibukit._ground.arguments import Floats, readable
from ibukit._ground.threads import one_thread
from ibukit.domain.efficiency import jacobian_of_all, to_all, to_seen
from ibukit.errors import TooLarge
from ibukit.fisher_information.dense import (
    CONDITION_MARGIN,
    FLAT_EIGENVALUE,
    FLAT_SHARE,
    _bordered,
    _directions,
    _norm,
    channel_blocks,
    refuse_if_too_large,
)
from ibukit.solvers import Problem, maximise, maximise_near
from ibukit.tally.survey import Survey
from ibukit.tally.tally import Tally, make_tally_part

# Numbers in the influences of the functionals that are looked at together: 128 MB.
INFLUENCES_AT_ONCE = 2**24
# Numbers in the influences of all probabilities, beyond which their covariance is refused: 1 GB.
MAX_INFLUENCES = 2**27
# The estimates of a tally's replicates, which are computed only once.
_REPLICATES: WeakKeyDictionary[Tally, tuple[Floats, Floats]] = WeakKeyDictionary()


class Influences(NamedTuple):
    """Amounts by which a report of weight 1 moves estimates of functionals, to first order."""

    of_reports: Floats
    """u, shape (r, s)."""
    naive: Floats
    """Variances if each report counted as often as its weight says, shape (r,)."""
    undetermined: NDArray[np.bool_]
    """True for functionals along which the likelihood is flat, shape (r,)."""


def design_variances(tally: Tally, theta: Floats, weights: Floats | None) -> Floats:
    """Return the variances of W . theta by the design, shape (r,); inf if undetermined.

    If `weights` is None, these are the variances of every probability.
    """
    return naive_and_design_variances(tally, theta, weights)[1]


def naive_and_design_variances(
    tally: Tally, theta: Floats, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return variances of W . theta as if weights were counts, and by the design, shape (r,)."""
    survey = _survey_of(tally)
    refuse_if_too_large(tally.k, "standard errors of weighted reports")
    weights = np.eye(tally.k) if weights is None else weights
    size = max(1, INFLUENCES_AT_ONCE // max(len(survey.at), tally.k))
    moved = _replicate_deviations(tally, survey) if len(survey.replicates) else None
    naive, design = [], []
    for start in range(0, len(weights), size):
        some = weights[start : start + size]
        found = influences(tally, theta, some)
        if moved is None:
            variances = survey.variances(found.of_reports)
        else:
            variances = survey.scale * ((moved @ some.T) ** 2).sum(axis=0)
        naive.append(np.where(found.undetermined, np.inf, found.naive))
        design.append(np.where(found.undetermined, np.inf, variances))
    return np.concatenate(naive), np.concatenate(design)


def design_covariance(tally: Tally, theta: Floats) -> Floats:
    """Return the covariances by the design, shape (k, k); inf for undetermined secrets."""
    survey, k = _survey_of(tally), tally.k
    if k * len(survey.at) > MAX_INFLUENCES:
        raise TooLarge(
            f"covariance of {k} secrets and {readable(len(survey.at))} reports by cluster would "
            "take more memory than there is; standard_errors() needs less"
        )
    found = influences(tally, theta, np.eye(k))
    if len(survey.replicates):
        moved = _replicate_deviations(tally, survey)
        covariance = survey.scale * (moved.T @ moved)
    else:
        covariance = survey.covariance(found.of_reports)
    covariance[found.undetermined] = covariance[:, found.undetermined] = np.inf
    return covariance


def variances_of_differences(
    one: Tally, other: Tally, theta: Floats, other_theta: Floats, weights: Floats | None
) -> tuple[Floats, int]:
    """Return the variances of W . (theta - other_theta) for groups of one table, shape (r,).

    Also return the degrees of freedom of the design that both have in common.
    """
    surveys, at = [_survey_of(one), _survey_of(other)], np.arange(len(one.counts))
    both = Survey.joined(surveys, [at, len(at) + np.arange(len(other.counts))])
    weights = np.eye(one.k) if weights is None else weights
    if len(both.replicates):
        moved = _replicate_deviations(one, surveys[0]) - _replicate_deviations(other, surveys[1])
        return both.scale * ((moved @ weights.T) ** 2).sum(axis=0), both.degrees_of_freedom
    size = max(1, INFLUENCES_AT_ONCE // max(len(both.at), one.k))
    found = []
    for start in range(0, len(weights), size):
        some = weights[start : start + size]
        ahead = influences(one, theta, some).of_reports
        behind = influences(other, other_theta, some).of_reports
        found.append(both.variances(np.hstack([ahead, -behind])))
    return np.concatenate(found), both.degrees_of_freedom


def influences(tally: Tally, theta: Floats, weights: Floats) -> Influences:
    """Return by how much each distinct report moves W . theta, per unit of its weight."""
    if tally.efficiency is not None:
        # Theta is estimated among the secrets seen and mapped to all, to first order.
        weights = weights @ jacobian_of_all(theta, tally.efficiency)
        tally, theta = tally.among_seen, to_seen(theta, tally.efficiency)
    if tally.k == 1:
        r = len(weights)
        return Influences(np.zeros((r, len(tally.counts))), np.zeros(r), np.zeros(r, dtype=bool))
    centred = weights - weights.mean(axis=1, keepdims=True)
    with one_thread():
        directions, undetermined = _solved(tally, theta, centred)
        blocks = [
            _block(directions, channel.rows(np.arange(tally.k)), theta)
            for part in tally.parts
            for _, channel in channel_blocks(part, tally.k)
        ]
    naive = np.maximum((directions * centred).sum(axis=1), 0.0)
    return Influences(np.hstack(blocks), naive, undetermined)


def _solved(tally: Tally, theta: Floats, centred: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return W Z (Z^T J Z)^+ Z^T for centred rows W, and which of them move where J is flat."""
    matrix, _ = _bordered(tally, theta)
    norm = _norm(matrix)
    factor, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    limit = CONDITION_MARGIN * tally.k * FLAT_EIGENVALUE
    if not failed and dpocon(factor, norm, uplo="L")[0] > limit:
        solved, _ = dpotrs(factor, np.asfortranarray(centred.T), lower=1)
        # Rounding may leave a part along the direction that changes the sum; it is taken off.
        return solved.T - solved.T.mean(axis=1, keepdims=True), np.zeros(len(centred), dtype=bool)
    values, vectors, flat = _directions(_bordered(tally, theta)[0])
    along = centred @ vectors
    lost = (along[:, flat] ** 2).sum(axis=1) > FLAT_SHARE * (centred**2).sum(axis=1)
    return (along[:, ~flat] / values[~flat]) @ vectors[:, ~flat].T, lost


def _block(directions: Floats, columns: Floats, theta: Floats) -> Floats:
    # Directions keep the sum, so the mean of a column can be subtracted without an effect; under
    # strong noise it is nearly all of the column.
    return (directions @ (columns - columns.mean(axis=0))) / (theta @ columns)


def _survey_of(tally: Tally) -> Survey:
    survey = tally.survey
    assert survey is not None, "the caller asks only where the weights are known"
    survey.refuse_unknown_errors()
    return survey


def _replicate_deviations(tally: Tally, survey: Survey) -> Floats:
    """Return the replicates' maximum likelihood estimates minus that of the tally, shape (R, k)."""
    if tally not in _REPLICATES:
        seen = tally.among_seen
        centre = maximise(seen.operator, seen.counts).theta
        estimates = np.array(
            [
                _replicate_estimate(seen, counts, centre)
                for counts in survey.replicate_counts(len(seen.counts))
            ]
        )
        _REPLICATES[tally] = centre, estimates
    centre, estimates = _REPLICATES[tally]
    efficiency = tally.efficiency
    return np.array([to_all(each, efficiency) for each in estimates]) - to_all(centre, efficiency)


def _replicate_estimate(tally: Tally, counts: Floats, centre: Floats) -> Floats:
    """Return the maximum likelihood estimate with other weights, of which some may be 0."""
    parts = tuple(
        make_tally_part(part.mechanism, part.reports, own)
        for part, own in tally.split(counts)
        if (own > 0).any()
    )
    if not parts:
        # A replicate without a report of this group says nothing: its estimate stays.
        return centre
    drawn = Tally(parts, tally.full_alphabet)
    return maximise_near(Problem(drawn.operator, drawn.counts), centre)
