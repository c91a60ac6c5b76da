"""k-ary randomised response: one probability for the secret itself, another for all others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels._score_kernels import score_responses
from ibukit.channels.base import Channel, Score, gap_between


@dataclass(frozen=True, eq=False)
class ResponseChannel(Channel):
    """k-ary randomized response in O(k).

    :math:`M_{xz}` = `diagonal` if report z is secret x itself, else `off`.

    Parameters
    ----------
    k : int
        Number of secrets.
    reports : ndarray of int, shape (s,)
        The secret that each report names, each at most once.
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
        # The kernel adds up p, g and the logarithms in one pass over the reports.
        g, extra = np.zeros(self.k), self.diagonal - self.off
        total = float(theta.sum())
        log_likelihood, least, _ = score_responses(
            theta, g, total, self.reports, counts, self.off, extra
        )
        return Score(log_likelihood if least > 0 else -math.inf, g, least if least > 0 else 0.0)

    @override
    def certificate(self, theta: Floats, counts: Floats | Ints, n: float) -> tuple[float, float]:
        # With an empty g the kernel keeps the largest entry alone.
        no_g, total, extra = np.empty(0), float(theta.sum()), self.diagonal - self.off
        log_likelihood, least, largest = score_responses(
            theta, no_g, total, self.reports, counts, self.off, extra
        )
        return log_likelihood if least > 0 else -math.inf, gap_between(least, largest / n)

    @override
    def rows(self, secrets: Ints) -> Floats:
        return np.where(secrets[:, None] == self.reports, self.diagonal, self.off)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        # M = off + contrast E with E_xz = 1 if report z names secret x. So M diag(w) M^T is
        # off^2 sum(w) everywhere, off contrast (v_x + v_y) more with v = E w, and contrast^2 v_x
        # more on the diagonal.
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
