"""Tallies of a law whose reports can be listed, drawn as counts of these reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.compositions import compositions
from ibukit.intervals.listed.window import listed_reports
from ibukit.intervals.resampling import seeded
from ibukit.mechanisms import FiniteMechanism
from ibukit.mechanisms.draws import drawable
from ibukit.tally.likelihood_rows import require_law
from ibukit.tally.tally import Tally

# Numbers of probabilities, in all parts together, and of secrets up to which compiled loops of k^2
# m operations maximise the likelihoods of drawn tallies. Beyond them it is faster to draw people
# and to leave each tally to the solvers of single ones.
MAX_LISTED_ENTRIES = 2**15
MAX_LISTED_SECRETS = 64
# Number of tallies up to which all of them are weighed, which takes as long as a few times 400
# draws.
MAX_TALLIES = 2**12


class ListedLaw:
    """The law of the counts of all possible reports, part by part.

    Parameters
    ----------
    mechanisms : list of FiniteMechanism
    numbers : list of int
        Number of reports of each mechanism.
    """

    def __init__(self, mechanisms: list[FiniteMechanism], numbers: list[int]):
        self._numbers, self.n = numbers, sum(numbers)
        self._matrices = [mechanism.matrix() for mechanism in mechanisms]
        self.rows: Floats = np.hstack(self._matrices)
        """Probabilities of each report, given each secret, shape (k, m)."""
        self.freedom = sum(matrix.shape[1] - 1 for matrix in self._matrices)
        """Degrees of freedom of the counts."""

    @classmethod
    def of(cls, tally: Tally) -> ListedLaw | None:
        """Return the law of a tally's reports; None if they cannot be listed or are too many."""
        require_law([part.mechanism for part in tally.parts], "a draw of other reports")
        if tally.k > MAX_LISTED_SECRETS:
            return None
        try:
            most = MAX_LISTED_ENTRIES // tally.k
            listed = [listed_reports(part, most) for part in tally.parts]
        except ValueError:
            return None
        if sum(each.k * each.m for each in listed) > MAX_LISTED_ENTRIES:
            return None
        return cls(listed, [part.n for part in tally.parts])

    def probabilities(self, theta: Floats) -> Floats:
        """Return the expected share of each report among all, shape (m,)."""
        parts = zip(self._matrices, self._numbers, strict=True)
        return np.concatenate([theta @ matrix * n for matrix, n in parts]) / self.n

    @cached_property
    def tallies(self) -> Ints | None:
        """All possible tallies, shape (t, m); None if there are too many or several mechanisms."""
        n, m = self.n, self.rows.shape[1]
        if len(self._numbers) > 1 or math.comb(n + m - 1, m - 1) > MAX_TALLIES:
            return None
        return compositions(n, m)

    def chances(self, tallies: Ints, theta: Floats) -> Floats:
        """Return the probabilities of tallies of one mechanism."""
        logs = xlogy(tallies, self.probabilities(theta)).sum(axis=1)
        return np.exp(gammaln(self.n + 1) - gammaln(tallies + 1).sum(axis=1) + logs)

    def draw(self, theta: Floats, states: Sequence[Mapping[str, Any]]) -> Ints:
        """Draw a tally from each state of a generator: counts of all reports, shape (draws, m).

        The same state gives nearly the same tally for another theta nearby.
        """
        laws = [drawable(theta @ matrix) for matrix in self._matrices]
        rng, tallies = seeded(0), []
        for state in states:
            rng.bit_generator.state = state
            parts = zip(laws, self._numbers, strict=True)
            tallies.append(np.concatenate([rng.multinomial(n, law) for law, n in parts]))
        return np.array(tallies)
