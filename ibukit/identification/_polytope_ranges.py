"""Ranges of all masses of a polytope in one walk along its vertices, with dual proofs.

If no slope of theta_x at a vertex is positive, theta_x is greatest there; if none is negative, it
is least there. A pivot changes every row of the dictionary at once, so each vertex is read for all
the ends that it proves, and the search for the next end starts where the last was found: most ends
take few pivots, and none takes a linear programme of its own.
"""

from __future__ import annotations

import numpy as np
from tqdm import tqdm

from ibukit._ground.arguments import Floats, Ints
from ibukit.identification._simplex_dictionary import SLOPE_TOLERANCE, Dictionary, Stuck

# A dual bound that is this near to the mass attained proves an end.
PROOF_TOLERANCE = 1e-8
# Pivots on the way to one end, for each mass; more mean that rounding leads in circles.
MAX_PIVOTS_PER_MASS = 20


def bound_of(
    x: int, sign: int, elements: Ints, slopes: Floats, centre: Floats, basis: Floats
) -> float:
    """Bound that slopes prove about sign * theta_x on the whole polytope, for any slopes.

    theta_x - slopes . theta_elements is constant on the polytope, up to the residual of the slopes
    times the distance of two distributions, at most sqrt(2). And slopes . theta_elements is at most
    the largest slope of that sign.
    """
    along = np.zeros(len(centre))
    along[elements] = slopes
    constant = centre[x] - along @ centre
    lacking = float(np.linalg.norm(basis[:, x] - basis @ along))
    return float(sign * constant + (sign * slopes).max(initial=0.0) + 2**0.5 * lacking)


class VertexRanges:
    """Ends found so far, nan if not yet found, and the vertices at which they are attained."""

    def __init__(self, size: int) -> None:
        self.lower, self.upper = np.full(size, np.nan), np.full(size, np.nan)
        self.vertices: list[Floats] = []

    @property
    def left(self) -> int:
        """Number of ends not found yet."""
        return int(np.isnan(self.lower).sum() + np.isnan(self.upper).sum())

    def _sides(self) -> tuple[tuple[int, Floats], tuple[int, Floats]]:
        return (1, self.upper), (-1, self.lower)

    def nearest(self, at: Dictionary) -> tuple[int, int] | None:
        """Nearest end: a mass, and 1 for its greatest or -1 for its least.

        It is the one with the fewest slopes of the wrong sign.
        """
        best, fewest = None, np.inf
        for sign, ends in self._sides():
            rows = np.flatnonzero(np.isnan(ends[at.others]))
            against = np.count_nonzero(sign * at.slopes[rows] > SLOPE_TOLERANCE, axis=1)
            if rows.size and against.min() < fewest:
                best, fewest = (int(at.others[rows[against.argmin()]]), sign), float(against.min())
        # All ends of the masses that are positive here are known, but a mass that is 0 here may
        # still have an unknown maximum.
        if best is None and (zeros := at.elements[np.isnan(self.upper[at.elements])]).size:
            best = int(zeros[0]), 1
        return best

    def read(self, at: Dictionary) -> None:
        """Record every end that a vertex attains and proves."""
        theta, before = at.vertex(), self.left
        if not at.holds(theta):
            return
        self.lower[theta == 0] = 0.0
        for sign, ends in self._sides():
            rows = np.flatnonzero(np.isnan(ends[at.others]))
            for row in rows[(sign * at.slopes[rows] <= SLOPE_TOLERANCE).all(axis=1)]:
                x = int(at.others[row])
                bound = bound_of(x, sign, at.elements, at.slopes[row], at.centre, at.basis)
                if abs(bound - sign * theta[x]) <= PROOF_TOLERANCE:
                    ends[x] = theta[x]
        # A vertex is kept only if it proves a new end.
        if self.left < before:
            self.vertices.append(theta)

    def reach(self, at: Dictionary, x: int, sign: int) -> None:
        """Pivot until the end of mass x is found."""
        ends = self.upper if sign > 0 else self.lower
        for _ in range(MAX_PIVOTS_PER_MASS * at.size):
            j = at.entering_element(x, sign)
            if j is not None:
                at.pivot(j)
                continue
            self.read(at)
            if not np.isnan(ends[x]):
                return
            # If a fresh dictionary proves nothing, rounding is in the way. Otherwise the dictionary
            # is computed anew, and the search goes on once more.
            if not at.pivots:
                break
            at.refresh()
        raise Stuck


def ranges(centre: Floats, basis: Floats) -> VertexRanges:
    """Ranges of a centre (size,) and an orthonormal basis (free, size).

    An end that rounding hides stays nan.
    """
    found = VertexRanges(len(centre))
    try:
        at = Dictionary(centre, basis)
        found.read(at)
        with tqdm(total=found.left, desc="ranges of the MLEs", disable=None, leave=False) as bar:
            while (end := found.nearest(at)) is not None:
                before = found.left
                found.reach(at, *end)
                bar.update(before - found.left)
    except Stuck:
        pass
    return found
