r"""The region of answers whose likelihood ratio is not unusually large among drawn tallies.

To test an answer v, tallies are drawn from the most likely distribution with this answer. The
answer is accepted if the share of tallies whose ratio is at least the observed one is above 1 -
level. Tallies that tie with the observed one belong to the share. The share is not a monotone
function of v, because the tallies are discrete, so the accepted answers may have gaps. Each end is
therefore sought from outside.

Answers whose ratio is above `largest_ratio` are certainly out. From there inwards, evenly spaced
answers are tested until one is accepted, and bisection between it and its rejected neighbour
refines the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from ibukit._ground.arguments import Floats, Ints
from ibukit.intervals.listed._ratio_kernels import maximum, reach
from ibukit.intervals.listed.fixed_answer import FACE_TOLERANCE, FixedAnswer, most_likely
from ibukit.intervals.listed.largest_ratio import largest_ratio
from ibukit.intervals.listed.law import ListedLaw
from ibukit.intervals.profile import Profile
from ibukit.intervals.resampling import rank_of, seeded
from ibukit.intervals.tilted_likelihood import Likelihood

# Evenly spaced answers between the estimate and what is excluded for certain: the number tested by
# draws, and the number tested by all tallies.
ANSWERS_BY_DRAWS, ANSWERS_BY_TALLIES = 24, 100
# Error allowed in a drawn ratio, and in the observed one: ratios that differ by less are ties.
DRAWN_TOLERANCE, OBSERVED_TOLERANCE = 0.01, 1e-4
# An end is found to within this change of the square root of the ratio, divided by the square root
# of the number of draws: a fifth of the Monte-Carlo error.
END_TOLERANCE = 0.4
# The weights of all tallies count as being as precise as a simulation of this many draws.
EQUIVALENT_DRAWS = 10**6
# Probability of rejecting, after some of the draws, what all draws might accept.
EARLY_REJECTION = 1e-3
# Tallies drawn before it is asked whether more are needed.
DRAWS_AT_ONCE = 45
# Number of tallies weighed at a time, if all are weighed: mostly the most likely are enough.
TALLIES_AT_ONCE = 64
# Complementarity theta_x s_x, in reports, at which the searches of drawn tallies begin.
CENTRE_IN_REPORTS = 0.3


# Marks tallies whose ratio is as large as the observed one.
Reached = Callable[[Ints], NDArray[np.bool_]]


class Test(NamedTuple):
    """The result of the test of one answer."""

    accepted: bool
    ratio: float


class ListedRegion:
    """Answers accepted by the simulated test of the likelihood ratio."""

    def __init__(self, law: ListedLaw, likelihood: Likelihood, level: float, draws: int, seed: int):
        assert likelihood.rows is not None, "the channel is dense"
        self._n, self._law, self._likelihood = law.n, law, likelihood
        self._rows = likelihood.rows
        self._error = 1 - level
        # A generator takes ten times as long to make from a seed as from its state.
        seeds = seeded(seed).integers(2**63, size=draws).tolist()
        self._states = [seeded(each).bit_generator.state for each in seeds]
        # An answer is accepted if at least this many drawn ratios reach the observed one.
        self._needed = draws - rank_of(draws, level) + 1
        self._largest = largest_ratio(likelihood.k, law.freedom, self._n, 1 - level)

    def highest(self, w: Floats) -> float:
        """Return the value of w . theta above which no answer was accepted."""
        least, most = float(w.min()), float(w.max())
        return least + (most - least) * self._end((w - least) / (most - least))

    def test(self, w: Floats, v: float) -> Test:
        """Test the answer v, for weights from 0 to 1."""
        likelihood, n = self._likelihood, self._n
        answer = FixedAnswer.of(w, v)
        found = most_likely(self._rows, likelihood.q, answer, OBSERVED_TOLERANCE / 2 / n)
        ratio, least = (2 * n * max(likelihood.best.fit - fit, 0.0) for fit in found[1:])
        if least > self._largest:
            return Test(False, ratio)
        # A ratio that might tie with the observed one counts as a tie.
        return Test(self._is_reached(found.theta, answer, least - OBSERVED_TOLERANCE), ratio)

    def _is_reached(self, theta: Floats, answer: FixedAnswer, observed: float) -> bool:
        """Return whether enough of the tallies drawn from theta reach the ratio `observed`."""
        law, k = self._law, len(theta)
        p = law.probabilities(theta)
        possible = p > 0
        rows = np.ascontiguousarray(law.rows[:, possible])
        of_v = rows[answer.face]
        whole, centre = np.ones((1, k)), CENTRE_IN_REPORTS / self._n
        # A point inside, not far from theta.
        start = (theta + 1 / k) / 2
        rest = maximum(rows, p[possible], whole, start, 0.0, centre)[:3]
        start_of_v = answer.inside.copy()
        rest_of_v = maximum(of_v, p[possible], answer.equalities, start_of_v, 0.0, centre)[:3]

        def are_reached(tallies: Ints) -> NDArray[np.bool_]:
            return reach(
                tallies[:, possible],
                rows,
                whole,
                (start, *rest),
                of_v,
                answer.equalities,
                (start_of_v, *rest_of_v),
                observed,
                DRAWN_TOLERANCE,
            )

        if law.tallies is None:
            return self._by_draws(theta, are_reached)
        return self._by_all_tallies(law.tallies, theta, are_reached)

    def _by_draws(self, theta: Floats, are_reached: Reached) -> bool:
        reached = 0
        for begin in range(0, len(self._states), DRAWS_AT_ONCE):
            states = self._states[begin : begin + DRAWS_AT_ONCE]
            reached += int(are_reached(self._law.draw(theta, states)).sum())
            if reached >= self._needed:
                return True
            if bdtr(reached, begin + len(states), self._error) < EARLY_REJECTION:
                return False
        return False

    def _by_all_tallies(self, tallies: Ints, theta: Floats, are_reached: Reached) -> bool:
        chances = self._law.chances(tallies, theta)
        order = np.argsort(-chances, kind="stable")
        tallies, chances = tallies[order], chances[order]
        # The probability of the tallies that were not yet looked at.
        left = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
        reached = 0.0
        for begin in range(0, len(tallies), TALLIES_AT_ONCE):
            some = slice(begin, begin + TALLIES_AT_ONCE)
            reached += float(chances[some] @ are_reached(tallies[some]))
            if reached > self._error:
                return True
            if reached + left[min(begin + TALLIES_AT_ONCE, len(tallies))] <= self._error:
                return False
        return False

    def _end(self, w: Floats) -> float:
        best, n = self._likelihood.best, self._n
        estimate = float(w @ best.theta)
        _, farthest = Profile(self._likelihood, self._likelihood.floor(self._largest, n)).bracket(w)
        answers, draws = ANSWERS_BY_TALLIES, EQUIVALENT_DRAWS
        if self._law.tallies is None:
            answers, draws = ANSWERS_BY_DRAWS, len(self._states)
        tolerance = END_TOLERANCE / math.sqrt(draws)
        inside, outside = estimate, farthest
        root_inside, root_outside = 0.0, math.inf
        for v in np.linspace(farthest, estimate, answers, endpoint=False):
            result = self.test(w, v)
            if result.accepted:
                if v == farthest:
                    return v
                inside, root_inside = v, math.sqrt(result.ratio)
                break
            outside, root_outside = v, math.sqrt(result.ratio)
        while root_outside - root_inside > tolerance and outside - inside > FACE_TOLERANCE:
            v = (inside + outside) / 2
            result = self.test(w, v)
            if result.accepted:
                inside, root_inside = v, math.sqrt(result.ratio)
            else:
                outside, root_outside = v, math.sqrt(result.ratio)
        return outside
