r"""Test whether the parts of a tally agree on one distribution.

The statistic is :math:`2\,(\sum_A\max_\theta L_A(\theta)-\max_\theta\sum_A L_A(\theta))` over
groups A of mechanisms. It is what the log-likelihood would gain, times two, if each group had a
distribution of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats, whole
from ibukit._ground.threads import one_thread
from ibukit.intervals.resampling import seeded
from ibukit.model_checks.draws import (
    CLEAR,
    bound_of_p_value,
    checked_tally,
    draw_part,
    log_likelihoods,
    monte_carlo_p_value,
    most_likely,
)
from ibukit.model_checks.model_check import SURPRISING, ModelCheck
from ibukit.tally.part import TallyPart, on_alphabet
from ibukit.tally.tally import Tally, pool

# Groups that the parts of a large pool form. More would cost power: what people choose by their
# secret is mostly how private to be, which neighbours in that order share.
MAX_GROUPS = 8
REMEDY = (
    "ik.combine_results(tally, ik.inv) weighs each mechanism by its people and does not need it"
)


def pool_test(tally: Tally, draws: int = 999, seed: int = 0) -> ModelCheck:
    """Test whether all mechanisms agree on one distribution; `Estimate.pool_test` documents it.

    Examples
    --------
    >>> import ibukit as ik
    >>> careful, careless = (ik.RandomizedResponse(3, epsilon=e) for e in (1.0, 3.0))
    >>> alike = careful.tally_counts([500, 300, 250]) + careless.tally_counts([700, 200, 100])
    >>> other = careful.tally_counts([250, 300, 500]) + careless.tally_counts([700, 200, 100])
    >>> pool_test(alike).is_surprising, pool_test(other).is_surprising
    (False, True)
    """
    draws, rng = whole("draws", draws, 0), seeded(seed)
    if len(checked_tally(tally).parts) < 2:
        raise ValueError(
            "tally must pool the reports of at least two mechanisms, but it has those of one"
        )
    with one_thread():
        groups = _groups(tally)
        theta = most_likely(tally)
        gains = _gains(groups, tally, theta)
        statistic = max(float(np.sum(gains)), 0.0)

        alone = [Tally((part,), full_alphabet=tally.full_alphabet) for part in tally.parts]
        bound = bound_of_p_value(statistic, alone, [theta] * len(alone))
        if bound <= CLEAR or not draws:
            how = f"p at most {bound:.2g} by chi-square"
            return _told(statistic, bound, how, gains)

        def draw() -> float:
            drawn = [
                pool([_unbounded(draw_part(part, theta, rng), tally) for part in each.parts])
                for each in groups
            ]
            return float(np.sum(_gains(drawn, pool(drawn), theta)))

        p_value, taken = monte_carlo_p_value(statistic, draw, draws, "pool test")
    how = f"p = {p_value:.2g} by {taken} draws from the common estimate"
    return _told(statistic, p_value, how, gains)


def _told(statistic: float, p_value: float, how: str, gains: list[float]) -> ModelCheck:
    found = f"likelihood ratio {statistic:.4g} of {len(gains)} groups, {how}"
    if p_value <= SURPRISING:
        reason = (
            f"The mechanisms tell different distributions: {found}. People may have chosen theirs "
            f"by their secret, and a common estimate is then biased; {REMEDY}."
        )
    else:
        reason = (
            f"The mechanisms do not contradict one common distribution: {found}. If people may "
            f"have chosen theirs by their secret all the same, {REMEDY}."
        )
    return ModelCheck(statistic, p_value, reason, tuple(gains))


def _unbounded(drawn: Tally, tally: Tally) -> Tally:
    """Return a drawn tally over all secrets that `tally` has, even beyond the drawn reports."""
    if tally.full_alphabet is None:
        return drawn
    only = drawn.parts[0]
    return on_alphabet(only.mechanism, tally.full_alphabet).tally(only.reports, counts=only.counts)


def _gains(groups: list[Tally], together: Tally, start: Floats) -> list[float]:
    """Return twice what each group gains by a distribution of its own."""
    common = dict(
        zip(
            (part.mechanism for part in together.parts),
            log_likelihoods(together, most_likely(together, start)),
            strict=True,
        )
    )
    gains = []
    for each in groups:
        own = sum(log_likelihoods(each, most_likely(each, start)))
        gains.append(2 * (own - sum(common[_named(part, together)] for part in each.parts)))
    return gains


def _named(part: TallyPart, together: Tally) -> Any:
    """Return the mechanism as the pooled tally has it."""
    if together.full_alphabet is None:
        return part.mechanism
    return on_alphabet(part.mechanism, together.alphabet)


def _groups(tally: Tally) -> list[Tally]:
    """Return the parts, or groups of neighbours in the order of kind and level of privacy."""
    parts = list(tally.parts)
    if len(parts) > MAX_GROUPS:
        parts.sort(key=lambda part: _level(part.mechanism))
    sizes = np.array([part.n for part in parts])
    # A part belongs to the group in which its middle lies.
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    place = np.arange(len(parts)) if len(parts) <= MAX_GROUPS else (middle * MAX_GROUPS).astype(int)
    return [
        Tally(
            tuple(part for part, at in zip(parts, place, strict=True) if at == group),
            full_alphabet=tally.full_alphabet,
        )
        for group in np.unique(place)
    ]


def _level(mechanism: Any) -> tuple[str, float]:
    return type(mechanism).__name__, float(getattr(mechanism, "epsilon", 0.0))
