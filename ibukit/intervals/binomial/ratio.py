r"""The exact likelihood-ratio interval of a binomial probability that is known to lie in a range.

With :math:`L_x(p) = x \log p + (n - x) \log (1 - p)` and :math:`g(x) = \max_p L_x(p)` over the
range, the likelihood ratio of p is :math:`R_p(x) = 2 (g(x) - L_x(p))`. If a of n were seen, p
belongs to the interval if :math:`P_p(R_p(X) \ge R_p(a)) > 1 - level` [fc]_.

Let p be above its estimate. All outcomes x up to a have a ratio at least as large as that of a,
because g is convex. An outcome x above a has a ratio that is as large while :math:`(x - a) \log (p
/ (1 - p)) \le g(x) - g(a)`, that is up to a point p = t(x), which grows with x. So between two of
these points the probability is that of two fixed tails, P(X <= a) and P(X >= b). The quotient of
their derivatives is monotone, so their sum first falls and then rises: on each piece its largest
values are at the ends. The last p of the interval is therefore one of the points t(b), or the only
root on a piece.

.. [fc] Feldman and Cousins, "Unified approach to the classical statistical analysis of small
   signals", Phys. Rev. D 57, 1998.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import scipy
from scipy.special import betainc, betaincc, expit, logit, xlog1py

from ibukit._ground.arguments import Floats, Ints

# Relative distance within which t(x) counts as the end of the range. This includes one more
# outcome, which can only make the interval longer.
TIE_TOLERANCE = 1e-12
# Pieces computed together, 32 kB for each array, and the parts into which more are divided.
PIECES_AT_ONCE, PARTS = 2**12, 2**6


class BinomialRatio:
    """Likelihood ratios of a binomial probability from `first` to `last`, for `seen` of n."""

    def __init__(self, seen: int, n: int, first: float, last: float):
        self._seen, self._n, self._first, self._last = seen, n, first, last
        self._best = min(max(seen / n, first), last)
        # Likelihoods are relative to that of a value near the estimate, so that differences of a
        # few nats keep their digits among 10^12 reports.
        self._centre = min(max(self._best, 0.5 / (n + 1)), (n + 0.5) / (n + 1))
        self._fit_seen = self._fit(np.array(seen))

    def upper_end(self, error: float) -> float:
        """Return the largest p of the interval at the level 1 - `error`."""
        if self._best == self._last:
            return self._last
        for b in self._pieces(error):
            left, right = self._in_range(b - 1), self._in_range(b)
            at_left, at_right = (
                self._lower_tail(p) + self._upper_tail(b, p) for p in (left, right)
            )
            inside = np.flatnonzero(np.maximum(at_left, at_right) > error)
            if len(inside):
                i = inside[-1]
                if at_right[i] > error:
                    return float(right[i])
                return self._root(b[i], left[i], right[i], error)
        return self._best

    def _pieces(self, error: float) -> Iterator[Ints]:
        """Yield runs of pieces b, in descending order, on which p may belong to the interval.

        P(X <= seen) falls with p and P(X >= b) rises, which bounds the probability on all pieces
        from one to another. Those for which it is not small enough are divided.
        """
        found = [(self._seen, self._last_piece(error))]
        while found:
            low, high = found.pop()
            if high - low <= PIECES_AT_ONCE:
                yield np.arange(low + 1, high + 1)
                continue
            step = -(-(high - low) // PARTS)
            ends = np.minimum(low + step * np.arange(PARTS + 1), high)
            bounds = self._lower_tail(self._in_range(ends[:-1]))
            bounds += self._upper_tail(ends[:-1] + 1, self._in_range(ends[1:]))
            parts = zip(ends[:-1].tolist(), ends[1:].tolist(), bounds, strict=True)
            found += [(low, high) for low, high, bound in parts if bound > error]

    def _root(self, b: int, left: float, right: float, error: float) -> float:
        def excess(p: float) -> float:
            tail = self._upper_tail(np.array(b), np.array(p))
            return float(self._lower_tail(np.array(p)) + tail) - error

        return float(scipy.optimize.brentq(excess, left, right, xtol=1e-15))

    def _last_piece(self, error: float) -> int:
        """Return the last piece on which p can belong to the interval.

        By Chernoff's bound both tails together are at most 2 exp(-R / 2).
        """
        most = 2 * math.log(2 / error)
        low, high = self._seen + 1, self._n + 1
        while low < high:
            middle = (low + high) // 2
            p = self._in_range(np.array(middle))
            ratio = 2 * (self._fit_seen - self._log_likelihood(np.array(self._seen), p))
            low, high = (low, middle) if ratio > most or p >= self._last else (middle + 1, high)
        return low

    def _log_likelihood(self, x: Ints, p: Floats) -> Floats:
        centre, failures = self._centre, self._n - x
        return np.asarray(
            xlog1py(x, (p - centre) / centre) + xlog1py(failures, (centre - p) / (1 - centre)),
            dtype=np.float64,
        )

    def _fit(self, x: Ints) -> Floats:
        """Return g(x)."""
        return self._log_likelihood(x, np.clip(x / self._n, self._first, self._last))

    def _in_range(self, x: Ints) -> Floats:
        """Return t(x), cut off at the estimate and at the end of the range.

        It is the estimate for outcomes up to the one seen, and the end of the range beyond n, the
        last outcome.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (self._fit(np.minimum(x, self._n)) - self._fit_seen) / (x - self._seen)
        t = np.where(x > self._n, 1.0, expit(logit(self._centre) + slope))
        t = np.clip(np.where(x <= self._seen, 0.0, t), self._best, self._last)
        return np.where(t >= self._last * (1 - TIE_TOLERANCE), self._last, t)

    def _lower_tail(self, p: Floats) -> Floats:
        """Return P(X <= seen), an integral of a beta density."""
        return betaincc(self._seen + 1, self._n - self._seen, p)

    def _upper_tail(self, b: Ints, p: Floats) -> Floats:
        """Return P(X >= b), which is 0 beyond n."""
        n = self._n
        tail = betainc(np.minimum(b, n), np.maximum(n + 1 - b, 1), p)
        return np.where(b > n, 0.0, np.asarray(tail, dtype=np.float64))
