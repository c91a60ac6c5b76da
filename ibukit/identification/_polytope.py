"""The distributions with the fit of a given one: {theta >= 0 : theta = centre + y N for some y}, by linear programmes.

N is an orthonormal basis of what the reports cannot see, so every point of the polytope keeps the
fit to rounding, whatever the tolerance of the solver; only theta >= 0 is left to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.optimize import OptimizeResult, linprog

from ibukit._ground.arguments import Floats, Ints
from ibukit.identification._polytope_ranges import ranges

# the least that HiGHS takes; masses are multiplied by their number, so that they are about 1
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# a mass below this is a zero that the solver's tolerance blurred
ZERO = 1e-9
# ways to solve a programme, should the first give up: HiGHS stops where it cannot meet a tolerance
FALLBACK_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"presolve": True},
    {name: 100 * tolerance for name, tolerance in TIGHT.items()},
)


class Unsolved(Exception):
    """The solver gave up on a programme, which has a solution."""


@dataclass
class Polytope:
    """A centre (size,), positive or zero, with sum 1, and a basis N of the free directions, shape (free, size)."""

    centre: Floats
    basis: Floats
    vertices: list[Floats] = field(default_factory=list)
    """Those found so far."""
    unsolved: int = 0
    """Ends of ranges that no programme found: there the range goes to 0 or 1."""

    def highest(self, weights: Floats) -> Floats:
        """A vertex at which weights . theta is as large as it gets."""
        solution = self._from_vertex(weights) if self.vertices else None
        vertex = self._from_centre(weights) if solution is None else solution
        self.vertices.append(vertex)
        return vertex

    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the greatest mass of each element; both are attained at one of the `vertices`.

        By one walk along the vertices; what it leaves open, by a linear programme each.
        """
        walked = ranges(self.centre, self.basis)
        self.vertices.extend(walked.vertices)
        return self.by_programmes(walked.lower, walked.upper)

    def by_programmes(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """The same where some or all ends are nan, with a linear programme for each of them that is still missing."""
        for x in np.flatnonzero(np.isnan(lower) | np.isnan(upper)):
            unit = np.zeros(len(self.centre))
            unit[x] = 1
            for bound, sign in ((upper, 1), (lower, -1)):
                if np.isnan(bound[x]):
                    self._find(int(x), sign * unit, bound, lower, upper)
        return lower, upper

    def _find(self, x: int, weights: Floats, bound: Floats, lower: Floats, upper: Floats) -> None:
        """One end of a range, and what its vertex says of others."""
        try:
            self._record_bounds(self.highest(weights), lower, upper)
            bound[x] = self.vertices[-1][x]
        except Unsolved:
            bound[x] = 1.0 if bound is upper else 0.0
            self.unsolved += 1

    def distance(self, point: Floats) -> float:
        """Total variation to the nearest point: min over theta of sum |point - theta| / 2."""
        size, free = len(self.centre), len(self.basis)
        # y, then what |point - theta| is at most
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
        """Read from one vertex all bounds that it proves: near it every mass is linear in those that are 0 at it."""
        lower[vertex == 0] = 0
        elements = self._coordinates(vertex)
        if elements is not None:
            slopes = self._slopes(elements)
            highest, lowest = (slopes <= 0).all(axis=1), (slopes >= 0).all(axis=1)
            upper[highest], lower[lowest] = vertex[highest], vertex[lowest]

    def _coordinates(self, vertex: Floats) -> Ints | None:
        """Elements that are 0 at a vertex and determine a point of the polytope."""
        free = len(self.basis)
        zeros = np.flatnonzero(vertex == 0)
        if len(zeros) < free:
            return None
        _, upper, order = qr(self.basis[:, zeros], mode="economic", pivoting=True)
        if abs(upper[-1, free - 1]) < 1e-8 * abs(upper[0, 0]):
            return None
        return np.sort(zeros[order[:free]])

    def _slopes(self, elements: Ints) -> Floats:
        """S with theta = vertex + S theta[elements] on the plane of the polytope."""
        slopes = np.linalg.solve(self.basis[:, elements], self.basis).T
        return np.where(np.abs(slopes) < 1e-9, 0.0, slopes)

    def _from_vertex(self, weights: Floats) -> Floats | None:
        """From the vertex that is best so far: there the programme starts feasible, and is small."""
        start = max(self.vertices, key=lambda vertex: float(weights @ vertex))
        elements = self._coordinates(start)
        if elements is None:
            return None
        slopes = self._slopes(elements)
        size = len(self.centre)
        others = np.setdiff1d(np.arange(size), elements)
        solution = _solve_once(
            -(weights @ slopes), -slopes[others], start[others] * size, (0, None)
        )
        return (
            None
            if solution is None
            else self._cleaned(start + slopes @ (np.maximum(solution.x, 0) / size))
        )

    def _from_centre(self, weights: Floats) -> Floats:
        size = len(self.centre)
        solution = _solve(-(self.basis @ weights), -self.basis.T, self.centre * size, (None, None))
        return self._cleaned(self.centre + solution.x @ self.basis / size)

    def _cleaned(self, theta: Floats) -> Floats:
        """The vertex that the solver means: exact zeros, and the rest from them as far as doubles go."""
        on = np.where(theta * len(theta) < ZERO, 0.0, theta)
        elements = self._coordinates(on)
        if elements is not None:
            y = np.linalg.solve(self.basis[:, elements].T, -self.centre[elements])
            exact = self.centre + y @ self.basis
            exact[elements] = 0
            if exact.min() * len(theta) > -ZERO:
                on = np.maximum(exact, 0)
        return np.asarray(on / on.sum())


def _solve_once(
    cost: Floats, rows: Floats, most: Floats, bounds: Any, **how: Any
) -> OptimizeResult | None:
    """Minimise cost . y where rows y <= most, by HiGHS' dual simplex; None where it gives up on the tolerances."""
    options: Any = {**TIGHT, "presolve": False, **how}
    solution = linprog(
        cost, A_ub=rows, b_ub=most, bounds=bounds, method="highs-ds", options=options
    )
    return solution if solution.success else None


def _solve(cost: Floats, rows: Floats, most: Floats, bounds: Any) -> OptimizeResult:
    """The same, with second and third thoughts; a programme that is feasible and bounded has a solution."""
    for how in FALLBACK_OPTIONS:
        found = _solve_once(cost, rows, most, bounds, **how)
        if found is not None:
            return found
    raise Unsolved(
        "a linear programme over the set of MLEs was not solved, though it is feasible and bounded"
    )
