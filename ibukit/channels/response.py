"""k-ary randomised response: one probability for the secret itself, another for all others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_fallback import NumpyUntilWorthCompiling
from ibukit._ground.rounding import gamma, underflow
from ibukit._ground.typing import override
from ibukit.channels._score_kernels import (
    BLOCK,
    additions_in_blocks,
    score_few_responses,
    score_responses,
    sum_few_in_blocks,
    sum_in_blocks,
)
from ibukit.channels.base import Channel, Score, upper_gap

# The closed form counts its calls here as well, because an estimate makes both kinds of calls.
FIRST_CALLS = NumpyUntilWorthCompiling()


@dataclass(frozen=True, eq=False)
class ResponseChannel(Channel):
    """k-ary randomized response in O(k).

    :math:`M_{xz}` = `diagonal` if report z is secret x itself, else `off`.

    Parameters
    ----------
    k : int
        Number of secrets.
    reports : ndarray of int, shape (s,)
        The secret that each report names; no secret is named more than once.
    diagonal, off : float
        Entry of the secret itself, and of all others.

    Examples
    --------
    >>> import numpy as np
    >>> channel = ResponseChannel(3, np.array([0, 2]), diagonal=0.6, off=0.2)
    >>> channel.forward(np.array([0.5, 0.5, 0.0]))
    array([0.4, 0.2])
    """

    k: int
    reports: Ints
    diagonal: float
    off: float

    @property
    @override
    def size(self) -> int:
        return len(self.reports)

    @cached_property
    def _all_in_order(self) -> bool:
        return len(self.reports) == self.k and bool((self.reports == np.arange(self.k)).all())

    @override
    def forward(self, theta: Floats) -> Floats:
        own = theta if self._all_in_order else theta[self.reports]
        return self.off * theta.sum() + (self.diagonal - self.off) * own

    @override
    def adjoint(self, w: Floats) -> Floats:
        # Gathering and scattering would take longer than the sums.
        if self._all_in_order:
            return (self.diagonal - self.off) * w + self.off * w.sum()
        back = np.full(self.k, self.off * w.sum())
        back[self.reports] += (self.diagonal - self.off) * w
        return back

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        g = np.zeros(self.k)
        log_likelihood, least, _ = self._scored(theta, g, self._total(theta), counts)
        return Score(log_likelihood if least > 0 else -math.inf, g, least if least > 0 else 0.0)

    @override
    def certificate(self, theta: Floats, counts: Floats | Ints, n: float) -> tuple[float, float]:
        # With an empty g the kernel keeps the largest entry alone.
        no_g, total = np.empty(0), self._total(theta)
        log_likelihood, least, largest = self._scored(theta, no_g, total, counts)
        upper = largest * (1 + self._error(total, least))
        return log_likelihood if least > 0 else -math.inf, upper_gap(least, upper, counts, n)

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        score = self.score(theta, counts)
        return score.raised(self._error(self._total(theta), score.least))

    def _total(self, theta: Floats) -> float:
        # The loop adds up in an order of its own, so that the size alone decides which one is used.
        return sum_few_in_blocks(theta) if self.k <= BLOCK else sum_in_blocks(theta)

    def _scored(
        self, theta: Floats, g: Floats, total: float, counts: Floats | Ints
    ) -> tuple[float, float, float]:
        # The kernel adds up p, g and the logarithms in one pass over the reports. To compile it
        # takes longer than all else that a first call does.
        by_numpy = self.k <= BLOCK and FIRST_CALLS.takes_one()
        score = score_few_responses if by_numpy else score_responses
        extra = self.diagonal - self.off
        return score(theta, g, total, self.reports, counts, self.off, extra)

    def _error(self, total: float, least: float) -> float:
        """Bound on the relative error of the largest g; `total` is the sum of theta.

        The kernels add up masses and weights in blocks of blocks. Around them a term goes through
        ten products, sums and quotients, the contrast among them.
        """
        additions = additions_in_blocks(self.k) + additions_in_blocks(len(self.reports))
        error = gamma(additions + 12)
        if self.diagonal < self.off and self.k > 1:
            # Here products with the contrast are subtracted, so errors are relative to what they
            # are subtracted from. The largest g is at least half of that: the report that names its
            # secret has at most half of the weights, or no report names it.
            error *= 4 * max(1.0, 2 * self.off * total / least) if least > 0 else math.inf
        error += 2 * underflow(self.k, least)
        return error / (1 - error) if error < 0.5 else math.inf

    @override
    def rows(self, secrets: Ints) -> Floats:
        return np.where(secrets[:, None] == self.reports, self.diagonal, self.off)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        # M = off + contrast E with E_xz = 1 if report z names secret x. So M diag(w) M^T is off^2
        # sum(w) everywhere, plus off contrast (v_x + v_y) with v = E w, plus contrast^2 v_x on the
        # diagonal.
        contrast = self.diagonal - self.off
        own = np.zeros(self.k)
        own[self.reports] = contrast * weights
        total += self.off * own + (self.off * own + self.off**2 * weights.sum())[:, None]
        total.flat[:: self.k + 1] += contrast * own

    @override
    def take(self, reports: slice | Ints) -> ResponseChannel:
        return replace(self, reports=self.reports[reports])

    @override
    def unit_columns(self) -> ResponseChannel:
        # A single secret has no other, so `off` does not occur in the matrix.
        largest = max(self.diagonal, self.off) if self.k > 1 else self.diagonal
        return replace(self, diagonal=self.diagonal / largest, off=self.off / largest)
