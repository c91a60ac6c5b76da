"""Laplace noise on a fine lattice, drawn in whole numbers, for `release`.

The side of a cell is divided into an odd number of steps, so that every cell's centre is a point of
the lattice, and no point belongs to two cells. Moved from one centre to another, the lattice stays
the same: so the noise has one law for all secrets, with probabilities proportional to e^(-eps d),
where d is the distance from the secret. By the triangle inequality its level is then at most eps,
if sides and eps are taken as the fractions that their doubles are, and the likelihood of points is
that of the continuous noise, up to a constant.

Each point stands for the rectangle around it, in which no place is farther from it than delta, half
a diagonal. Within the rectangle e^(-eps d) changes by a factor of at most e^(eps delta), and so
does the sum by which it is divided. Hence the probability of a point, or of any set of points, is
that of the continuous noise on these rectangles, times a factor between e^-eta and e^eta, where
eta = 2 eps delta. Steps of at most 2^-20 / eps make eta at most 2^-20 on a line, and at most
sqrt(2) 2^-20 in a plane. For two laws so near each other, the Kullback-Leibler divergence is at
most eta^2 / 2 (Bun and Steinke, TCC 2016, Proposition 3.3).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Line
from ibukit.domain.grid import Grid
from ibukit.errors import NoExactSampler

# Least number of steps of a lattice in the length 1 / epsilon.
STEPS_PER_SCALE = 2**20
# Limits within which a report leaves the whole numbers of 64 bits with a probability below e^-2000:
# the least number of nats in a step, and the most steps in a row of cells.
MIN_NATS_PER_STEP = Fraction(1, 2**50)
MAX_STEPS = 2**61


class LatticeAxis(NamedTuple):
    """One direction of a lattice: cells, steps in each, and nats (eps times length) of a step."""

    cells: int
    each: int
    nats: Fraction

    @classmethod
    def of(cls, epsilon: float, side: float, cells: int) -> LatticeAxis:
        """Divide cells of this side into the least odd number of steps that are fine enough."""
        # Both doubles are taken as the fractions that they are, so the level holds exactly. An odd
        # number of steps puts the centres of all cells on the lattice, and no point on their edges.
        length = Fraction(epsilon) * Fraction(side)
        each = math.ceil(length * STEPS_PER_SCALE) | 1
        if length / each < MIN_NATS_PER_STEP or cells * length * STEPS_PER_SCALE > MAX_STEPS:
            raise NoExactSampler(
                f"epsilon times the distance of neighbours, {epsilon:g} times {side:g}, must be "
                f"from 2^-50 to 2^41 / {cells} (cells in a row), because noise without roundings "
                "is drawn in steps of 64-bit whole numbers: take neighbours "
                f"{'farther apart' if length < 1 else 'closer together, or fewer'}"
            )
        return cls(cells, each, length / each)

    def centre(self, cells: Ints) -> Ints:
        """Places of cells' centres, in steps from the centre of the first cell."""
        return cells * self.each

    def nearest(self, places: Ints) -> Ints:
        """Code of the nearest cell of each place; the odd number of steps leaves no ties."""
        return np.clip((places + self.each // 2) // self.each, 0, self.cells - 1)

    def in_cells(self, places: Ints) -> Floats:
        """Distance of each place from the centre of the first cell, in cells, as a double."""
        return places / self.each


class LineLattice:
    """Lattice on a line, with two-sided geometric noise."""

    def __init__(self, line: Line, epsilon: float):
        self.line = line
        self.steps = LatticeAxis.of(epsilon, 1.0, len(line))

    def draw(self, secrets: NDArray[Any], random_bits: exact.RandomBits) -> Ints:
        """Places in steps from the first element, shape (n,)."""
        return self.steps.centre(secrets) + exact.two_sided_geometric(
            self.steps.nats, len(secrets), random_bits
        )

    def codes(self, secrets: NDArray[Any], random_bits: exact.RandomBits) -> Ints:
        """Codes of the nearest elements."""
        return self.steps.nearest(self.draw(secrets, random_bits))

    def points(self, secrets: NDArray[Any], random_bits: exact.RandomBits) -> Floats:
        """Places on the lattice as real numbers, each rounded to a double."""
        return self.line.first + self.steps.in_cells(self.draw(secrets, random_bits))


class PlaneLattice:
    """Lattice on a grid, with noise that falls with the Euclidean distance."""

    def __init__(self, grid: Grid, epsilon: float):
        self.grid = grid
        height, width = grid.cell_shape
        self.north = LatticeAxis.of(epsilon, height, grid.n_rows)
        self.east = LatticeAxis.of(epsilon, width, grid.n_cols)

    def draw(self, secrets: NDArray[Any], random_bits: exact.RandomBits) -> Ints:
        """Places (north, east) in steps from the centre of the south-west cell, shape (n, 2)."""
        # Noise with a probability proportional to e^(-nats), added to the centre of the secret's
        # cell.
        row, col = np.divmod(secrets, self.grid.n_cols)
        centres = np.column_stack([self.north.centre(row), self.east.centre(col)])
        noise = exact.planar_geometric(
            Fraction(1), self.north.nats, self.east.nats, len(secrets), random_bits
        )
        return centres + noise

    def codes(self, secrets: NDArray[Any], random_bits: exact.RandomBits) -> Ints:
        """Codes of the nearest cells."""
        north, east = self.draw(secrets, random_bits).T
        return self.north.nearest(north) * self.grid.n_cols + self.east.nearest(east)

    def points(self, secrets: NDArray[Any], random_bits: exact.RandomBits) -> Floats:
        """Points (x, y) from the south-west corner: places, each coordinate rounded to a double."""
        north, east = self.draw(secrets, random_bits).T
        height, width = self.grid.cell_shape
        return np.column_stack(
            [(self.east.in_cells(east) + 0.5) * width, (self.north.in_cells(north) + 0.5) * height]
        )
