"""Mechanisms for numbers and places, for the tests of what all mechanisms promise."""

import ibukit as ik

LINE, GRID = ik.Line(-4, 3), ik.Grid(3, 4, cell_size=(1.0, 0.5))
# one of each class whose reports are real numbers in finitely many classes, and one on integers
LISTED = [
    ik.SquareWave(LINE, 1.0),
    ik.SquareWave(LINE, 1.0, "uniform", 12),
    ik.DiscreteSquareWave(LINE, 1.0),
    ik.Piecewise(LINE, 1.0),
    ik.Duchi(LINE, 1.0),
    ik.HybridMechanism(LINE, 1.0),
    ik.Staircase(LINE, 1.0),
]
GAUSSIAN = [
    ik.DiscreteGaussian(LINE, 1.5),
    ik.LinearGaussian(LINE, 1.5),
    ik.PlanarGaussian(GRID, 0.8),
]
NUMBERS = [*LISTED, *GAUSSIAN]
# of each, a change that it refuses, and how
BAD_NUMBERS = [
    *[
        (m, {"epsilon": -1.0}, ValueError, "epsilon must be a finite number above 0")
        for m in LISTED
    ],
    *[
        (m, {"alphabet": 1}, ValueError, "number of secrets must be at least 2, got 1")
        for m in LISTED
    ],
    *[
        (m, {"alphabet": ik.Alphabet(["a", "b"])}, TypeError, "alphabet must be a Line")
        for m in NUMBERS[:-1]
    ],
    *[
        (m, {"sigma": 0}, ValueError, "sigma must be a finite number above 0, got 0")
        for m in GAUSSIAN
    ],
    (
        LISTED[0],
        {"secrets": "ends"},
        ValueError,
        'secrets must be "centre" or "uniform", got \'ends\'',
    ),
    (LISTED[1], {"report_bins": 0}, ValueError, "report_bins must be at least 1, got 0"),
    (LISTED[6], {"gamma": 1.5}, ValueError, r"gamma must be in \[0, 1\], got 1.5"),
    (LISTED[6], {"gamma": 1e-20}, ValueError, "gamma must be 0 or at least"),
    (GAUSSIAN[0], {"sigma": 0.1}, ValueError, "sigma must be from 0.12 to 1e"),
    (GAUSSIAN[2], {"alphabet": LINE}, TypeError, "alphabet must be a Grid"),
]
