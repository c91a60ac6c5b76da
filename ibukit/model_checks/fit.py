r"""Test whether the reports fit their mechanism.

The deviance of a part of a tally, :math:`G = 2\sum_z c_z\log\frac{c_z/n}{(\theta M)_z}` at its
maximum likelihood estimate, compares the mechanism with the free multinomial, under which the
reports may have any distribution.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats, whole
from ibukit._ground.threads import one_thread
from ibukit.channels import DenseChannel
from ibukit.intervals.resampling import seeded
from ibukit.model_checks.draws import (
    CLEAR,
    EQUAL_STATISTICS,
    bound_of_p_value,
    certificate_for,
    checked_tally,
    draw_part,
    log_likelihoods,
    monte_carlo_p_value,
    most_likely,
    secrets_found,
)
from ibukit.model_checks.model_check import SURPRISING, ModelCheck
from ibukit.solvers import maximise
from ibukit.tally.tally import Tally, TallyPart

# Share of distinct reports in all from which on frequencies say next to nothing of the law.
MANY_DISTINCT = 0.5


def fit_test(tally: Tally, draws: int = 999, seed: int = 0) -> ModelCheck:
    """Test whether each mechanism made its reports; `Estimate.fit_test` documents it.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(4, epsilon=1.0)
    >>> fit_test(mechanism.tally_counts([500, 250, 150, 100])).p_value > 0.05
    True
    >>> fit_test(mechanism.tally_counts([500, 100, 350, 50])).p_value < 1e-9
    True
    """
    draws, rng = whole("draws", draws, 0), seeded(seed)
    with one_thread():
        alone = [_alone(tally, part) for part in checked_tally(tally).parts]
        fits = [most_likely(each) for each in alone]
        deviances = tuple(
            max(_deviance(each, theta), 0.0) for each, theta in zip(alone, fits, strict=True)
        )
        statistic = float(np.sum(deviances))
        if statistic <= EQUAL_STATISTICS * len(alone):
            found = "Some distribution of the secrets explains the reports perfectly."
            return ModelCheck(statistic, 1.0, found, deviances)
        bound = bound_of_p_value(statistic, alone, fits)
        if bound <= CLEAR or not draws:
            how = "by chi-square with as many degrees of freedom as the reports have"
            return _told(tally, statistic, bound, f"{how}, p at most", deviances)

        def draw() -> float:
            return sum(_drawn(each, theta, rng) for each, theta in zip(alone, fits, strict=True))

        p_value, taken = monte_carlo_p_value(statistic, draw, draws, "fit test")
    return _told(tally, statistic, p_value, f"by {taken} draws from the best fit, p =", deviances)


def _alone(tally: Tally, part: TallyPart) -> Tally:
    return Tally((part,), full_alphabet=tally.full_alphabet)


def _drawn(tally: Tally, theta: Floats, rng: Generator) -> float:
    """Draw a deviance: that of the best fit which gives probability to the same secrets only.

    If a maximum is known to lie on a face of the simplex, its deviance behaves as if no
    distribution off this face were possible: given the face, it has a chi-square distribution,
    whose degrees of freedom are those of the reports minus those of the face.
    """
    drawn = draw_part(tally.parts[0], theta, rng)
    found = secrets_found(theta)
    rows = drawn.operator.rows(found)
    fit = maximise(DenseChannel(rows), drawn.counts, certificate_for(drawn), strict=False).theta
    with np.errstate(divide="ignore"):
        log_p = np.log(fit @ rows) + drawn.log_scale
    free = np.log(drawn.counts / drawn.n)
    return 2 * float(drawn.counts @ (free - log_p))


def _deviance(tally: Tally, theta: Floats) -> float:
    free = float(tally.counts @ np.log(tally.counts / tally.n))
    return 2 * (free - sum(log_likelihoods(tally, theta)))


def _told(
    tally: Tally, statistic: float, p_value: float, how: str, deviances: tuple[float, ...]
) -> ModelCheck:
    found = f"deviance {statistic:.4g}, {how} {p_value:.2g}"
    if p_value <= SURPRISING:
        worst = tally.parts[int(np.argmax(deviances))].mechanism
        where = f", worst under {worst}" if len(deviances) > 1 else ""
        reason = (
            f"The reports do not fit their mechanism: {found}{where}. No distribution of the "
            "secrets makes such reports likely; estimate and intervals take the mechanism for "
            "right. Check its level of privacy, its matrix, the labels of the reports, and whether "
            "people answered as they were asked."
        )
    else:
        reason = f"The reports do not contradict their mechanism: {found}."
        if len(tally.counts) > MANY_DISTINCT * tally.n:
            reason += " Nearly every report is different, so that the test sees little."
    return ModelCheck(statistic, p_value, reason, deviances)
