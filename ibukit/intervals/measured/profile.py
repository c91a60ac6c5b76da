r"""The joint profile of a share for two secrets and two reports, where their matrix was measured.

With v the share of the second secret, a_x the probability of the first report of secret x, and p =
(1 - v) a_0 + v a_1, the log-likelihood of reports and trials is n_1 log p + n_2 log(1 - p) + sum_x
t_x1 log a_x + t_x2 log(1 - a_x). For a given v it is concave in (a_0, a_1). Its maximum f(v) has
the slope f'(v) = d (a_1 - a_0), where d = n_1 / p - n_2 / (1 - p). So f turns at no more than two
places:

- where d = 0: both a_x are the shares of the trials and p is the share of the reports, which is
  the estimate;
- where a_0 = a_1: both are a, the share of first reports among all trials and reports together. Let
  q be this share among the n reports alone, and share_1 among the T_1 trials of the second secret.
  The equation for a_1 is T_1 (share_1 - a) = -v d a (1 - a), where d a (1 - a) = n (q - a), and it
  gives v.

Between these places f is monotone, so that the ends of {v : f(v) >= floor} are found without a
search for other maxima.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from scipy.special import xlogy

from ibukit._ground.arguments import Floats
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals.finite_reports import counts_of_all_reports
from ibukit.intervals.request import Ends, IntervalRequest, ends
from ibukit.tally.tally import Tally
from ibukit.tally.trials import trials_of

# Tolerances of the roots: for the probability of a report, which may be small, and for a share.
PROBABILITY_TOLERANCE, SHARE_TOLERANCE = 1e-18, 1e-13
# Lower end of the search for the probability of a report that was seen, far below any that fits
# best.
MIN_PROBABILITY = 1e-100


def applies(tally: Tally) -> bool:
    """Return whether the tally has one mechanism, measured, of two secrets and two reports."""
    trials = trials_of(tally.parts[0].mechanism)
    return len(tally.parts) == 1 and trials is not None and trials.shape == (2, 2)


class JointProfile:
    """{v : f(v) >= max f - z^2 / 2}, v the share of either secret."""

    def __init__(self, tally: Tally, level: float):
        (part,) = tally.parts
        trials = trials_of(part.mechanism)
        assert trials is not None, "the matrix is measured"
        self._trials = trials.astype(np.float64)
        self._counts = counts_of_all_reports(part).astype(np.float64)
        self._drop = normal_quantile(level) ** 2 / 2

    def highest(self, w: Floats) -> float:
        """Return the upper end of w . theta."""
        least, most = float(w.min()), float(w.max())
        # The rows are in the order of their weights: the second secret has the larger one.
        return least + (most - least) * self._last(self._trials[np.argsort(w)])

    def _last(self, trials: Floats) -> float:
        """Return the largest v with f(v) >= max f - drop."""

        def above(v: float) -> float:
            return self.fit(v, trials) - floor

        places = self._turns(trials)
        fits = [self.fit(v, trials) for v in places]
        floor = max(fits) - self._drop
        for i in range(len(places) - 1, -1, -1):
            if fits[i] >= floor:
                # f falls below the floor once between this place and the next one, if there is one.
                return (
                    1.0
                    if i == len(places) - 1
                    else scipy.optimize.brentq(
                        above, places[i], places[i + 1], xtol=SHARE_TOLERANCE
                    )
                )
        return 1.0

    def _turns(self, trials: Floats) -> list[float]:
        """Return 0, 1, and between them the places where f may turn, in ascending order."""
        n, totals = self._counts.sum(), trials.sum(axis=1)
        q, shares = self._counts[0] / n, trials[:, 0] / totals
        common = (self._counts[0] + trials[:, 0].sum()) / (n + trials.sum())
        candidates = []
        if shares[0] != shares[1]:
            candidates.append((q - shares[0]) / (shares[1] - shares[0]))
        if q != common:
            candidates.append(totals[1] * (common - shares[1]) / (n * (q - common)))
        return sorted({0.0, 1.0, *(float(v) for v in candidates if 0 < v < 1)})

    def fit(self, v: float, trials: Floats) -> float:
        """Return f(v): the largest log-likelihood where the second secret has the share v."""
        theta, (n_1, n_2) = (1 - v, v), self._counts.tolist()

        def rows(p: float) -> list[tuple[float, float]]:
            slope = (n_1 / p if n_1 else 0.0) - (n_2 / (1 - p) if n_2 else 0.0)
            return [
                (most_likely(t_1, t_2, x * slope), most_likely(t_2, t_1, -x * slope))
                for x, (t_1, t_2) in zip(theta, trials.tolist(), strict=True)
            ]

        def excess(p: float) -> float:
            return sum(x * a for x, (a, _) in zip(theta, rows(p), strict=True)) - p

        # The excess falls in p. If a report was not seen, its probability may be 0.
        low, high = (MIN_PROBABILITY if n_1 else 0.0), (math.nextafter(1, 0) if n_2 else 1.0)
        if excess(low) <= 0:
            best = low
        elif excess(high) >= 0:
            best = high
        else:
            best = scipy.optimize.brentq(excess, low, high, xtol=PROBABILITY_TOLERANCE)
        found = np.array(rows(best))
        # Both columns are computed, so that a probability next to 0 or 1 keeps its digits.
        p = np.array(theta) @ found
        return float(xlogy(self._counts, p).sum() + xlogy(trials, found).sum())


def most_likely(t_1: float, t_2: float, slope: float) -> float:
    """Return the a in [0, 1] that maximises t_1 log a + t_2 log(1 - a) + slope a.

    It is a root of slope a^2 + (t_1 + t_2 - slope) a - t_1 = 0, computed without cancellation.
    """
    root = math.hypot(slope + t_1 - t_2, 2 * math.sqrt(t_1 * t_2))
    linear = t_1 + t_2 - slope
    if linear >= 0:
        return 2 * t_1 / (linear + root) if linear + root else 0.0
    return (root - linear) / (2 * slope)


def profile(request: IntervalRequest) -> Ends:
    """Return the ends of the joint profile of the share, over all matrices."""
    request.refuse_frequencies("profile")
    return ends(JointProfile(request.checked_tally(), request.level), request.functionals)
