"""`ModelCheck`: a statistic, its p-value, and a sentence on what they say."""

from __future__ import annotations

from dataclasses import dataclass

# p-value up to which a sentence says that an assumption fails.
SURPRISING = 0.01


@dataclass(frozen=True)
class ModelCheck:
    """Result of `Estimate.fit_test` and `Estimate.pool_test`.

    Attributes
    ----------
    statistic : float
        Twice a difference of log-likelihoods, in nats; 0 if the assumption explains the reports as
        well as its alternative does.
    p_value : float
        Probability of a statistic that is at least as large, if the assumption holds.
    reason : str
        What was found, how, and what to do.
    parts : tuple of float
        For `fit_test` the statistic of each part of the tally, for `pool_test` that of each group
        of parts.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(["no", "yes"], epsilon=2.0).tally_counts([1980, 20])
    >>> check = ik.mle(tally).fit_test()
    >>> check.p_value < 1e-9
    True
    >>> check.reason.split(":")[0]
    'The reports do not fit their mechanism'
    """

    statistic: float
    p_value: float
    reason: str
    parts: tuple[float, ...]

    @property
    def is_surprising(self) -> bool:
        """True if the p-value is at most 0.01."""
        return self.p_value <= SURPRISING
