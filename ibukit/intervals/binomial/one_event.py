"""Questions that one event of the reports decides: Clopper and Pearson's interval.

Under k-RR a report is in a set S of secrets with the probability q |S| + (p - q) theta(S), and
under unary encodings and subset selection bit j is 1 with the probability q + (p - q) theta_j. So
the count of the event is binomial, whatever the other shares are. The interval for theta(S) is
therefore exact and does not share its level with any other, but it holds for this question alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.linear_functionals import has_two_values, parse_functionals
from ibukit.intervals.clopper_pearson import clopper_pearson
from ibukit.intervals.finite_reports import codes_of
from ibukit.intervals.request import IntervalRequest
from ibukit.mechanisms import MatrixMechanism, RandomizedResponse
from ibukit.mechanisms.categorical.independent_bits import is_bits
from ibukit.tally.tally import Tally


def tally_of_event(tally: Tally, w: Floats) -> Tally | None:
    """Return the reports as two kinds; the first secret merges those of the larger weight.

    None if w does not have two values, or if no event of the reports has a probability that depends
    on w . theta alone.
    """
    inside = w == w.max()
    if len(tally.parts) > 1 or inside.all() or not has_two_values(w):
        return None
    (part,) = tally.parts
    mechanism: Any = part.mechanism
    if type(mechanism) is RandomizedResponse:
        size = int(inside.sum())
        p, q = mechanism.truth, mechanism.lie
        probabilities = np.array([p + (size - 1) * q, size * q])
        seen = int(part.counts[inside[codes_of(part)]].sum())
    elif is_bits(mechanism) and 1 in (inside.sum(), (~inside).sum()):
        one = inside.sum() == 1
        bit = int(np.flatnonzero(inside if one else ~inside)[0])
        probabilities = np.array([mechanism.p_one, mechanism.p_zero])[:: 1 if one else -1]
        # Bit j of a row of bytes is the bit of value 2^(7 - j % 8).
        ones = part.reports[:, bit // 8] >> (7 - bit % 8) & 1
        seen = int(part.counts @ ones.astype(np.int64))
    else:
        return None
    rows = np.column_stack([probabilities, 1 - probabilities])
    return MatrixMechanism(rows).tally_counts([seen, part.n - seen])


def one_event(request: IntervalRequest, w: Floats, event: Tally) -> tuple[float, float]:
    """Return the ends of w . theta from the tally of its event."""
    share = parse_functionals([[1.0, 0.0]], event.alphabet)
    lower, upper = clopper_pearson(replace(request, tally=event, functionals=share))
    least, most = float(w.min()), float(w.max())
    return least + (most - least) * float(lower[0]), least + (most - least) * float(upper[0])
