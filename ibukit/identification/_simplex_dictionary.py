"""A vertex of {theta >= 0 : theta = centre + y N} with its simplex dictionary, and the pivots from one to the next.

At a vertex f masses are 0 and determine the others: theta_i = v_i + sum_j S_ij theta_j over these
f. A pivot lets one of them grow until another mass is 0 and takes its place: a change of S by a
matrix of rank 1.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.linalg.blas import dger

from ibukit._ground.arguments import Floats, Ints

# slopes up to here are 0: they change a mass by no more than that, as all masses sum to 1
NO_SLOPE = 1e-9
# a mass below this, divided by how many there are, is 0
NO_MASS = 1e-9
# how far rounding may take a vertex from the polytope
OFF_BY_ROUNDING = 1e-9


class Stuck(Exception):
    """Rounding has the better of the dictionary."""


class Dictionary:
    """The masses that are 0, those that they determine, and how."""

    def __init__(self, centre: Floats, basis: Floats) -> None:
        self.centre, self.basis = centre, basis
        self.free, self.size = basis.shape
        self.least = NO_MASS / self.size
        self.elements = self._first_elements()
        self.refresh()

    def refresh(self) -> None:
        """From the polytope itself, without what many pivots have rounded."""
        self.others: Ints = np.setdiff1d(np.arange(self.size), self.elements)
        factor = lu_factor(self.basis[:, self.elements])
        self.slopes: Floats = np.asfortranarray(lu_solve(factor, self.basis[:, self.others]).T)
        values = self.centre[self.others] - self.slopes @ self.centre[self.elements]
        if not (values > -OFF_BY_ROUNDING).all():  # also where they are no numbers
            raise Stuck
        self.values: Floats = np.where(values > self.least, values, 0.0)
        # what parts masses that are 0 together, so that no pivot is undone: as if each had a little
        self.shifts: Floats = _unequal(len(values))
        self.squares: Floats = np.einsum("ij,ij->j", self.slopes, self.slopes)
        self.pivots = 0

    def _first_elements(self) -> Ints:
        """Down from the centre along one direction after the other, each until a mass is 0."""
        slopes, values = np.array(self.basis.T, order="F"), self.centre.copy()
        moving = np.ones(self.size, dtype=bool)
        elements = np.empty(self.free, dtype=np.int64)
        for j in range(self.free):
            down = np.where(moving, -slopes[:, j], 0.0)
            if down.max() < -down.min():
                down = -down
            row = self._first_to_be_zero(down, values, np.ones(self.size))
            values = np.maximum(values - values[row] / down[row] * down, 0.0)
            column, leaving = slopes[:, j].copy(), slopes[row].copy()
            slopes = dger(-1 / leaving[j], column, leaving, a=slopes, overwrite_a=1)
            slopes[:, j] = column / leaving[j]
            moving[row], elements[j] = False, row
        return elements

    def _first_to_be_zero(self, down: Floats, values: Floats, shifts: Floats) -> int:
        """The row whose mass is the first to be 0 as it falls by `down`; of some that are 0 now, by their shifts."""
        rows = np.flatnonzero(down > NO_SLOPE)
        if not rows.size:
            raise Stuck
        # after the longest of these steps no mass is below 0 by more than `least`
        reach = ((values[rows] + self.least) / down[rows]).min()
        near = rows[values[rows] <= reach * down[rows]]
        if (values[near] > 0).any():
            return int(near[np.argmax(down[near])])  # the steepest: it loses no digits
        return int(near[np.argmin(shifts[near] / down[near])])

    def pivot(self, j: int) -> None:
        """Let the j-th of the elements grow until another mass is 0."""
        column = self.slopes[:, j].copy()
        row = self._first_to_be_zero(-column, self.values, self.shifts)
        leaving, entry = self.slopes[row].copy(), column[row]
        ratio = leaving / entry
        # sums of squares of the new columns, from those of the old
        rest = column @ column - entry**2
        products = column @ self.slopes - entry * leaving
        self.squares += ratio**2 * (rest + 1) - 2 * ratio * products - leaving**2
        self.squares[j] = (rest + 1) / entry**2
        self.squares = np.maximum(self.squares, 0.0)
        step, shift = -self.values[row] / entry, -self.shifts[row] / entry
        self.values += step * column
        self.shifts += shift * column
        self.values[row], self.shifts[row] = step, shift
        self.slopes = dger(-1 / entry, column, leaving, a=self.slopes, overwrite_a=1)
        self.slopes[row] = -ratio
        self.slopes[:, j] = column / entry
        self.slopes[row, j] = 1 / entry
        self.elements[j], self.others[row] = self.others[row], self.elements[j]
        self.values[self.values <= self.least] = 0.0
        low = (self.values == 0) & (self.shifts <= 0)
        self.shifts[low] = _unequal(len(low))[low]
        self.pivots += 1

    def entering(self, x: int, sign: int) -> int | None:
        """The element along which sign * theta_x climbs most for the way made; None at its maximum."""
        inside = np.flatnonzero(self.elements == x)
        if inside.size:
            return int(inside[0]) if sign > 0 else None
        climbs = sign * self.slopes[np.flatnonzero(self.others == x)[0]]
        j = int(np.argmax(climbs / np.sqrt(1 + self.squares)))
        return j if climbs[j] > NO_SLOPE else self._any_up(climbs)

    def _any_up(self, climbs: Floats) -> int | None:
        j = int(np.argmax(climbs))
        return j if climbs[j] > NO_SLOPE else None

    def vertex(self) -> Floats:
        """All masses."""
        theta = np.zeros(self.size)
        theta[self.others] = self.values
        return np.asarray(theta / theta.sum())

    def holds(self, theta: Floats) -> bool:
        """Whether a vertex is one of the polytope, up to rounding."""
        away = theta - self.centre
        return bool(np.linalg.norm(away - (self.basis @ away) @ self.basis) <= OFF_BY_ROUNDING)


def _unequal(n: int) -> Floats:
    """Numbers between 1 and 2 of which no two are equal."""
    return np.asarray(1 + np.arange(1, n + 1) * 0.6180339887498949 % 1, dtype=np.float64)
