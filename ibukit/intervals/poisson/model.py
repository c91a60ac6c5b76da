"""Poisson counts over a background, and regions of the numbers behind them.

Counts n_z are Poisson with the means nu = lambda M + b. A region is a set of vectors lambda >= 0;
its ends are those of the numbers, w . lambda, or of the shares, w . lambda / sum lambda.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.domain.linear_functionals import LinearFunctionals
from ibukit.intervals.request import Ends, ends


@dataclass(frozen=True, eq=False)
class PoissonModel:
    """Counts with their response and background.

    Attributes
    ----------
    response : ndarray, shape (k, m)
        Expected counts of each report for one secret.
    counts, background : ndarray, shape (m,)
    """

    response: Floats
    counts: Floats
    background: Floats

    @cached_property
    def efficiency(self) -> Floats:
        """Expected counts of all reports together for one secret, e, shape (k,)."""
        return self.response.sum(axis=1)

    @cached_property
    def among_seen(self) -> Floats:
        """Response for one count of each secret, M_xz / e_x, whose rows sum to 1."""
        return self.response / self.efficiency[:, None]

    def check_whole(self, method: str) -> PoissonModel:
        """Return the model; ValueError if its counts are weights."""
        if (self.counts != np.rint(self.counts)).any():
            wrong = self.counts[self.counts != np.rint(self.counts)][0]
            raise ValueError(
                f"counts must be whole numbers with method={method!r}, which depends on how many "
                f'events there are, got {wrong:g}; method="wald" takes weights'
            )
        return self


class PoissonRegion(Protocol):
    """A set of vectors lambda >= 0 that contains the true one with a known probability."""

    def highest_number(self, w: Floats) -> float:
        """Return an upper bound on w . lambda over the region, w of shape (k,)."""

    def highest_share(self, w: Floats) -> float:
        """Return an upper bound on w . lambda / sum lambda over the region."""


def number_ends(region: PoissonRegion, functionals: LinearFunctionals) -> Ends:
    """Return bounds on the range of the numbers w . lambda of each functional."""
    with one_thread():
        pairs = [(-region.highest_number(-w), region.highest_number(w)) for w in functionals.each()]
    lower, upper = np.array(pairs).T
    # Numbers are not negative. Adding 0.0 turns -0.0 into 0.0.
    return cut_at_zero(lower, upper, functionals)


def cut_at_zero(lower: Floats, upper: Floats, functionals: LinearFunctionals) -> Ends:
    """Cut ends of w . lambda at 0, for weights of one sign, where lambda >= 0."""
    lower = np.where(functionals.least >= 0, np.maximum(lower, 0.0), lower)
    upper = np.where(functionals.most <= 0, np.minimum(upper, 0.0), upper)
    return lower + 0.0, upper + 0.0


@dataclass(frozen=True)
class _Shares:
    """A region of numbers as one of distributions."""

    region: PoissonRegion

    def highest(self, w: Floats) -> float:
        return min(self.region.highest_share(w), float(w.max()))


def share_ends(region: PoissonRegion, functionals: LinearFunctionals) -> Ends:
    """Return bounds on the range of the shares w . lambda / sum lambda of each functional."""
    return ends(_Shares(region), functionals)
