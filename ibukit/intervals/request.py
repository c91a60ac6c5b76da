"""`IntervalRequest`, which every interval method takes, and the ends of a confidence region."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol

import numpy as np
from tqdm import tqdm

from ibukit._ground.arguments import Floats, readable
from ibukit._ground.threads import one_thread
from ibukit.domain.linear_functionals import LinearFunctionals
from ibukit.errors import TooLarge, WeightsRefused
from ibukit.tally.tally import Tally, check_bounded, check_tally

# Lower and upper ends of the intervals, both of shape (r,).
Ends = tuple[Floats, Floats]
# Functionals times secrets. On a structured channel, where each interval takes O(k), 2**28 take
# about an hour; larger requests are refused with TooLarge.
MAX_FUNCTIONALS_TIMES_SECRETS = 2**28


@dataclass(frozen=True)
class IntervalRequest:
    """Intervals for linear functionals w . theta at one level.

    Attributes
    ----------
    tally : Tally or None
        The reports. Only Wald's method can do without them.
    theta : ndarray, shape (k,)
        The estimate, on the simplex. The resampling methods simulate from it, and Wald's intervals
        are centred at it; the others start from the reports alone.
    functionals : LinearFunctionals
    level : float
        Strictly between 0 and 1.
    target : str
        "distribution", or the people's own "frequencies".
    standard_errors : callable, optional
        Returns the standard errors of the functionals at theta, shape (r,). Only Wald's method
        calls it.
    """

    tally: Tally | None
    theta: Floats
    functionals: LinearFunctionals
    level: float
    target: str = "distribution"
    standard_errors: Callable[[], Floats] | None = None

    def checked_tally(self, *, lossy: bool = False, weighted: bool = False) -> Tally:
        """Return the reports; ValueError if there are none or their likelihood is of another kind.

        Reports that get lost are accepted only with `lossy`. Weighted reports are accepted only
        with `weighted`, and only if the weights behind the sums are known.
        """
        if self.tally is None:
            raise ValueError(
                "estimate has no tally: intervals need the reports it was computed from"
            )
        known = self.tally.weighted and self.tally.survey is not None
        if self.tally.weighted and not (weighted and known):
            raise refused_weights(known)
        if self.tally.efficiency is not None and not lossy:
            raise ValueError(
                "tally must be of reports that do not get lost for this interval, got one with "
                'efficiencies: take method="profile", "credible", "bootstrap", "wald", or '
                '"guaranteed" with by="boxes"'
            )
        try:
            return check_bounded(
                check_tally(self.tally, lossy=lossy, weighted=weighted),
                "an interval must count the secrets beyond the reports",
                lossy=lossy,
                weighted=weighted,
            )
        except ValueError as error:
            raise type(error)(f'{error}; method="wald" needs no more than the estimate') from None

    def refuse_frequencies(self, method: str) -> None:
        """Raise ValueError if the target is the frequencies, which `method` does not cover."""
        if self.target != "distribution":
            lossy = self.tally is not None and self.tally.efficiency is not None
            where = " where reports may be lost" if lossy else f" with method={method!r}"
            raise ValueError(f"target must be 'distribution'{where}, got {self.target!r}")

    def refuse_if_too_slow(self, method: str) -> None:
        """Raise TooLarge if all functionals together would take hours."""
        r, k = len(self.functionals), self.functionals.k
        if r * k > MAX_FUNCTIONALS_TIMES_SECRETS:
            raise TooLarge(
                f"{method} intervals for {readable(r)} questions of {readable(k)} secrets would "
                'take hours: ask for fewer by of=..., or take method="wald"'
            )


def refused_weights(known: bool) -> WeightsRefused:
    """Return the error of an interval for whole counts only; `known` says if weights are known."""
    advice = (
        'method="profile" and "wald" take the design of the survey into account'
        if known
        else "only sums of them are known: make the tally by Tally.from_table(..., weighted=True) "
        'of a row for each report, for method="profile" and "wald"'
    )
    return WeightsRefused(f"tally must hold whole counts for this interval, got weights; {advice}")


class Region(Protocol):
    """A confidence region: a set of distributions that contains the truth with some probability."""

    def highest(self, w: Floats) -> float:
        """Return an upper bound on w . theta over the region, w of shape (k,)."""


def ends(region: Region | Iterable[Region], functionals: LinearFunctionals) -> Ends:
    """Return bounds on the range of each functional over a region, outside the range if not exact.

    Each functional may have a region of its own.
    """
    regions = region if isinstance(region, Iterable) else repeat(region)
    with one_thread():
        # The lower end of w is minus the upper end of -w; a constant w has one value.
        pairs = [
            (-own.highest(-w), own.highest(w)) if np.ptp(w) else (w[0], w[0])
            for own, w in tqdm(
                zip(regions, functionals.each(), strict=False),
                total=len(functionals),
                desc="intervals",
                disable=None,
                leave=False,
            )
        ]
    lower, upper = np.array(pairs).T
    # Adding 0.0 turns -0.0 into 0.0.
    return lower + 0.0, upper
