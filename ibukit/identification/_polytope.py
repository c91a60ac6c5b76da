"""Polytope of the distributions with a given fit, explored by linear programmes.

It is {theta >= 0 : theta = centre + y N for some y}, where the rows of N are an orthonormal basis
of what the reports cannot see. Every point keeps the fit to rounding, whatever the tolerance of the
solver; only theta >= 0 depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from scipy.linalg import qr

from ibukit._ground.arguments import Floats, Ints
from ibukit.identification._polytope_ranges import ranges

# The tightest tolerances that HiGHS accepts. Masses are multiplied by their number, so they are
# about 1.
TIGHT_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# A mass below this is 0 up to the solver's tolerance.
ZERO_MASS = 1e-9
# Options to try in turn: HiGHS stops if it cannot meet a tolerance.
FALLBACK_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"presolve": True},
    {name: 100 * tolerance for name, tolerance in TIGHT_TOLERANCES.items()},
)


class UnsolvedProgramme(Exception):
    """Raised if the solver gives up on a programme that has a solution."""


@dataclass
class Polytope:
    """A nonnegative centre (size,) with sum 1, and a basis N of free directions, (free, size)."""

    centre: Floats
    basis: Floats
    vertices: list[Floats] = field(default_factory=list)
    """Vertices found so far."""
    unsolved: int = 0
    """Number of ends of ranges that no programme found: there the range goes to 0 or 1."""

    def maximiser(self, weights: Floats) -> Floats:
        """Return a vertex at which weights . theta is maximal."""
        solution = self._from_vertex(weights) if self.vertices else None
        vertex = self._from_centre(weights) if solution is None else solution
        self.vertices.append(vertex)
        return vertex

    def ranges(self) -> tuple[Floats, Floats]:
        """Least and greatest mass of each element; both are attained at one of the `vertices`.

        One walk along the vertices finds most of the ends; each of the others takes a linear
        programme.
        """
        walked = ranges(self.centre, self.basis)
        self.vertices.extend(walked.vertices)
        return self.by_programmes(walked.lower, walked.upper)

    def by_programmes(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Fill in the ends that are nan by a linear programme each."""
        for x in np.flatnonzero(np.isnan(lower) | np.isnan(upper)):
            unit = np.zeros(len(self.centre))
            unit[x] = 1
            for bound, sign in ((upper, 1), (lower, -1)):
                if np.isnan(bound[x]):
                    self._find(int(x), sign * unit, bound, lower, upper)
        return lower, upper

    def _find(self, x: int, weights: Floats, bound: Floats, lower: Floats, upper: Floats) -> None:
        """Find one end of a range, and record what its vertex proves about others."""
        try:
            self._record_bounds(self.maximiser(weights), lower, upper)
            bound[x] = self.vertices[-1][x]
        except UnsolvedProgramme:
            bound[x] = 1.0 if bound is upper else 0.0
            self.unsolved += 1

    def distance(self, point: Floats) -> float:
        """Total variation distance to the nearest point: min of sum |point - theta| / 2."""
        size, free = len(self.centre), len(self.basis)
        # The unknowns are y, then bounds on |point - theta|.
        cost = np.r_[np.zeros(free), np.full(size, 0.5)]
        apart = np.eye(size)
        rows = np.block(
            [
                [-self.basis.T, np.zeros((size, size))],
                [self.basis.T, -apart],
                [-self.basis.T, -apart],
            ]
        )
        rest = (point - self.centre) * size
        bounds = [(None, None)] * free + [(0, None)] * size
        solution = _solve(cost, rows, np.r_[self.centre * size, rest, -rest], bounds)
        return max(float(solution.fun), 0.0) / size

    def _record_bounds(self, vertex: Floats, lower: Floats, upper: Floats) -> None:
        """Record all bounds that one vertex proves.

        Near a vertex every mass is linear in the masses that are 0 at it. If none of its slopes is
        positive, the mass is maximal there; if none is negative, it is minimal. This is the dual
        certificate of a vertex.
        """
        lower[vertex == 0] = 0
        elements = self._coordinates(vertex)
        if elements is not None:
            slopes = self._slopes(elements)
            highest, lowest = (slopes <= 0).all(axis=1), (slopes >= 0).all(axis=1)
            upper[highest], lower[lowest] = vertex[highest], vertex[lowest]

    def _coordinates(self, vertex: Floats) -> Ints | None:
        """Return elements that are 0 at a vertex and determine a point of the polytope."""
        free = len(self.basis)
        zeros = np.flatnonzero(vertex == 0)
        if len(zeros) < free:
            return None
        # A pivoted QR picks independent columns among the zeros; the vertex is degenerate if it
        # fails.
        _, upper, order = qr(self.basis[:, zeros], mode="economic", pivoting=True)
        if abs(upper[-1, free - 1]) < 1e-8 * abs(upper[0, 0]):
            return None
        return np.sort(zeros[order[:free]])

    def _slopes(self, elements: Ints) -> Floats:
        """Slopes S with theta = vertex + S theta[elements] on the plane of the polytope."""
        slopes = np.linalg.solve(self.basis[:, elements], self.basis).T
        return np.where(np.abs(slopes) < 1e-9, 0.0, slopes)

    def _from_vertex(self, weights: Floats) -> Floats | None:
        """Solve from the best vertex so far: there the programme starts feasible, and is small."""
        start = max(self.vertices, key=lambda vertex: float(weights @ vertex))
        elements = self._coordinates(start)
        if elements is None:
            return None
        slopes = self._slopes(elements)
        size = len(self.centre)
        others = np.setdiff1d(np.arange(size), elements)
        # In terms of the masses that are 0 at the vertex (all at least 0) the others must stay
        # nonnegative.
        solution = _solve_once(
            -(weights @ slopes), -slopes[others], start[others] * size, (0, None)
        )
        return (
            None
            if solution is None
            else self._exact_vertex(start + slopes @ (np.maximum(solution.x, 0) / size))
        )

    def _from_centre(self, weights: Floats) -> Floats:
        size = len(self.centre)
        solution = _solve(-(self.basis @ weights), -self.basis.T, self.centre * size, (None, None))
        return self._exact_vertex(self.centre + solution.x @ self.basis / size)

    def _exact_vertex(self, theta: Floats) -> Floats:
        """Vertex that the solver means: exact zeros, and the rest computed from them."""
        on = np.where(theta * len(theta) < ZERO_MASS, 0.0, theta)
        elements = self._coordinates(on)
        if elements is not None:
            # Solve for the point at which the chosen elements are exactly 0.
            y = np.linalg.solve(self.basis[:, elements].T, -self.centre[elements])
            exact = self.centre + y @ self.basis
            exact[elements] = 0
            if exact.min() * len(theta) > -ZERO_MASS:
                on = np.maximum(exact, 0)
        return on / on.sum()


def _solve_once(
    cost: Floats, rows: Floats, most: Floats, bounds: Any, **how: Any
) -> scipy.optimize.OptimizeResult | None:
    """Minimise cost . y where rows y <= most, by HiGHS' dual simplex; None if it gives up."""
    options: Any = {**TIGHT_TOLERANCES, "presolve": False, **how}
    solution = scipy.optimize.linprog(
        cost, A_ub=rows, b_ub=most, bounds=bounds, method="highs-ds", options=options
    )
    return solution if solution.success else None


def _solve(cost: Floats, rows: Floats, most: Floats, bounds: Any) -> scipy.optimize.OptimizeResult:
    """Solve with presolve, then with looser tolerances, if the first attempt fails.

    The programme is feasible and bounded, so a failure is numerical.
    """
    for how in FALLBACK_OPTIONS:
        found = _solve_once(cost, rows, most, bounds, **how)
        if found is not None:
            return found
    raise UnsolvedProgramme(
        "a linear programme over the set of MLEs was not solved, though it is feasible and bounded"
    )
