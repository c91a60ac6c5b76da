"""Exact intervals of two secrets with two kinds of reports, where every tally is enumerated."""

from __future__ import annotations

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.intervals.binomial.ratio import BinomialRatio
from ibukit.intervals.finite_reports import counts_of_all_reports, require_finite
from ibukit.mechanisms import FiniteMechanism
from ibukit.tally.tally import Tally


def has_two_kinds(tally: Tally) -> bool:
    """Return whether the tally has one mechanism, of two secrets and two possible reports."""
    mechanism = tally.parts[0].mechanism
    return (
        len(tally.parts) == 1
        and isinstance(mechanism, FiniteMechanism)
        and mechanism.k == 2
        and mechanism.m == 2
    )


class TwoKindsRegion:
    """The distributions that the exact test of the likelihood ratio does not reject.

    The number of reports of one kind is binomial, with a probability linear in the share of either
    secret.
    """

    def __init__(self, tally: Tally, level: float):
        (part,) = tally.parts
        self._columns = require_finite(part.mechanism).matrix()
        self._counts = counts_of_all_reports(part)
        self._error = 1 - level

    def highest(self, w: Floats) -> float:
        """Return the upper end of w . theta."""
        least, most = float(w.min()), float(w.max())
        # The share of the secret with the larger weight raises the probability of one report.
        rise = self._columns[np.argmax(w)] - self._columns[np.argmin(w)]
        report = int(np.argmax(rise))
        first, last = np.sort(self._columns[:, report])
        if first == last:
            # Both secrets make the same reports, which do not depend on the shares.
            return most
        seen, n = int(self._counts[report]), int(self._counts.sum())
        p = BinomialRatio(seen, n, first, last).upper_end(self._error)
        return least + (most - least) * min((p - first) / (last - first), 1.0)
