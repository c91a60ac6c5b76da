"""Simplex dictionary of a vertex of {theta >= 0 : theta = centre + y N}, and its pivots.

At a vertex f masses are 0 and determine the others: theta_i = v_i + sum_j S_ij theta_j over these
f. A pivot lets one of them grow until another mass is 0 and takes its place: an update of S by a
matrix of rank 1.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.linalg.blas import dger

from ibukit._ground.arguments import Floats, Ints

# Slopes up to this count as 0: they change a mass by no more than this, as all masses sum to 1.
SLOPE_TOLERANCE = 1e-9
# A mass below this over the number of masses is 0.
MASS_TOLERANCE = 1e-9
# Distance by which rounding may take a vertex from the polytope.
ROUNDING_TOLERANCE = 1e-9


class Stuck(Exception):
    """Raised if rounding errors make a pivot or a vertex meaningless."""


class Dictionary:
    """Masses that are 0 (`elements`), those that they determine (`others`), and the slopes."""

    def __init__(self, centre: Floats, basis: Floats) -> None:
        self.centre, self.basis = centre, basis
        self.free, self.size = basis.shape
        self.least = MASS_TOLERANCE / self.size
        self.elements = self._first_elements()
        self.refresh()

    def refresh(self) -> None:
        """Recompute the dictionary from the polytope, without the rounding of many pivots."""
        self.others: Ints = np.setdiff1d(np.arange(self.size), self.elements)
        factor = lu_factor(self.basis[:, self.elements])
        self.slopes: Floats = np.asfortranarray(lu_solve(factor, self.basis[:, self.others]).T)
        values = self.centre[self.others] - self.slopes @ self.centre[self.elements]
        # The negation also refuses nan.
        if not (values > -ROUNDING_TOLERANCE).all():
            raise Stuck
        self.values: Floats = np.where(values > self.least, values, 0.0)
        # Shifts break ties among masses that are 0, as if each had a little mass: no pivot is
        # undone, so degenerate vertices do not cycle.
        self._new_shifts = _distinct_numbers(len(values))
        self.shifts: Floats = self._new_shifts.copy()
        self.squares: Floats = np.einsum("ij,ij->j", self.slopes, self.slopes)
        self.pivots = 0

    def _first_elements(self) -> Ints:
        """Find a vertex: go from the centre along one direction after another, each to a zero."""
        slopes, values = np.array(self.basis.T, order="F"), self.centre.copy()
        moving = np.ones(self.size, dtype=bool)
        elements = np.empty(self.free, dtype=np.int64)
        for j in range(self.free):
            down = np.where(moving, -slopes[:, j], 0.0)
            if down.max() < -down.min():
                down = -down
            row = self._ratio_test(down, values, np.ones(self.size))
            values = np.maximum(values - values[row] / down[row] * down, 0.0)
            column, leaving = slopes[:, j].copy(), slopes[row].copy()
            slopes = dger(-1 / leaving[j], column, leaving, a=slopes, overwrite_a=1)
            slopes[:, j] = column / leaving[j]
            moving[row], elements[j] = False, row
        return elements

    def _ratio_test(self, down: Floats, values: Floats, shifts: Floats) -> int:
        """Ratio test: the row whose mass is the first to be 0 as it falls by `down`.

        Ties among masses that are 0 already are broken by their shifts.
        """
        rows = (down > SLOPE_TOLERANCE).nonzero()[0]
        if not rows.size:
            raise Stuck
        falls, masses = down[rows], values[rows]
        # By Harris' rule a row is allowed if its step takes no mass below 0 by more than `least`.
        reaches = (masses + self.least) / falls
        near = (masses <= reaches[reaches.argmin()] * falls).nonzero()[0]
        among = masses[near]
        if among[among.argmax()] > 0:
            # Among these rows the steepest loses the fewest digits.
            return int(rows[near[falls[near].argmax()]])
        return int(rows[near[(shifts[rows[near]] / falls[near]).argmin()]])

    def pivot(self, j: int) -> None:
        """Let the j-th of the elements grow until another mass is 0."""
        column = self.slopes[:, j].copy()
        row = self._ratio_test(-column, self.values, self.shifts)
        leaving, entry = self.slopes[row].copy(), column[row]
        ratio = leaving / entry
        # Update the sums of squares of the columns for steepest-edge pricing, from the old ones.
        length = 1 + column @ column
        self.squares += ratio * (ratio * length - 2 * (column @ self.slopes))
        self.squares[j] = length / entry**2 - 1
        np.maximum(self.squares, 0.0, out=self.squares)
        step, shift = -self.values[row] / entry, -self.shifts[row] / entry
        self.values += step * column
        self.shifts += shift * column
        self.values[row], self.shifts[row] = step, shift
        # Exchange the leaving and the entering mass: a rank-one update of the slopes.
        self.slopes = dger(-1 / entry, column, leaving, a=self.slopes, overwrite_a=1)
        self.slopes[row] = -ratio
        self.slopes[:, j] = column / entry
        self.slopes[row, j] = 1 / entry
        self.elements[j], self.others[row] = self.others[row], self.elements[j]
        self.values[self.values <= self.least] = 0.0
        low = (self.values == 0) & (self.shifts <= 0)
        np.copyto(self.shifts, self._new_shifts, where=low)
        self.pivots += 1

    def entering_element(self, x: int, sign: int) -> int | None:
        """Element along which sign * theta_x rises most per length; None at the maximum."""
        inside = (self.elements == x).nonzero()[0]
        if inside.size:
            return int(inside[0]) if sign > 0 else None
        climbs = sign * self.slopes[(self.others == x).nonzero()[0][0]]
        j = int((climbs / np.sqrt(1 + self.squares)).argmax())
        return j if climbs[j] > SLOPE_TOLERANCE else self._any_up(climbs)

    def _any_up(self, climbs: Floats) -> int | None:
        j = int(np.argmax(climbs))
        return j if climbs[j] > SLOPE_TOLERANCE else None

    def vertex(self) -> Floats:
        """Masses at the vertex, shape (size,)."""
        theta = np.zeros(self.size)
        theta[self.others] = self.values
        return theta / theta.sum()

    def holds(self, theta: Floats) -> bool:
        """Return True if a vertex belongs to the polytope, up to rounding."""
        away = theta - self.centre
        return bool(np.linalg.norm(away - (self.basis @ away) @ self.basis) <= ROUNDING_TOLERANCE)


def _distinct_numbers(n: int) -> Floats:
    """Distinct numbers between 1 and 2: fractional parts of multiples of the golden ratio."""
    return np.asarray(1 + np.arange(1, n + 1) * 0.6180339887498949 % 1, dtype=np.float64)
