"""Mechanisms of every kind, small and large, private and not,
for the tests of what all of them promise.
"""

import numpy as np

import ibukit as ik

EPSILONS = (1e-3, 1.0, 20.0)
SQUARE, OBLONG, TALL = (
    ik.Grid(3, 3),
    ik.Grid(3, 4, cell_size=(1.0, 0.5)),
    ik.Grid(4, 3, cell_size=(0.3, 1.1)),
)
LONE_ROW, LONE_COLUMN, FOUR = ik.Grid(1, 6, cell_size=0.5), ik.Grid(5, 1), ik.Grid(2, 2)
TRIANGLE = ik.Alphabet(["a", "b", "c"], distances=[[0, 1, 2], [1, 0, 1.5], [2, 1.5, 0]])
# noise of this level spreads over some 500 cells each way, one of 1e-3 over more than a test's time
# allows
SPREAD = 0.1


def _rows(k, m, zeros=0.0):
    rng = np.random.default_rng(k + m)
    rows = rng.random((k, m)) * (rng.random((k, m)) >= zeros)
    rows[:, 0] += 0.01
    return rows / rows.sum(axis=1, keepdims=True)


# local differential privacy: epsilon is attained
LOCAL = [
    mechanism(alphabet, epsilon)
    for mechanism, alphabets in (
        (ik.RandomizedResponse, (2, 3, 40, TRIANGLE, SQUARE)),
        (ik.Rappor, (2, 3, 8, FOUR)),
        (ik.OptimizedUnaryEncoding, (2, 3, 8, TRIANGLE)),
        (ik.SubsetSelection, (2, 3, 8, FOUR)),
    )
    for alphabet in alphabets
    for epsilon in EPSILONS
]
# metric privacy on a line: attained but by Laplace noise on two values
LINE = [
    mechanism(alphabet, epsilon)
    for mechanism, alphabets in (
        (ik.TruncatedGeometric, (2, 3, 30, ik.Line(-4, 3))),
        (ik.LinearLaplace, (3, 30, ik.Line(-4, 3))),
    )
    for alphabet in alphabets
    for epsilon in EPSILONS
]
# in the plane: attained where some cell is inside the border
# every pair of secrets attains it; in the plane it exists from some epsilon on
TIGHT = [
    *[ik.TightConstraints(alphabet, eps) for alphabet in (2, 3, 30, TRIANGLE) for eps in EPSILONS],
    *[
        ik.TightConstraints(grid, eps)
        for grid in (SQUARE, OBLONG, TALL, LONE_ROW)
        for eps in (2.0, 20.0)
    ],
]
PLANE = [
    ik.TruncatedPlanarGeometric(grid, eps)
    for grid in (SQUARE, OBLONG, TALL)
    for eps in (SPREAD, 1.0, 20.0)
]
ATTAINED = [*LOCAL, *LINE, *TIGHT, *PLANE]

NOT_ATTAINED = [
    *[ik.LinearLaplace(2, epsilon) for epsilon in EPSILONS],
    *[ik.TruncatedPlanarGeometric(FOUR, epsilon) for epsilon in (SPREAD, 1.0, 20.0)],
    *[
        ik.PlanarLaplace(grid, epsilon)
        for grid in (SQUARE, FOUR)
        for epsilon in (SPREAD, 1.0, 20.0)
    ],
    *[ik.PlanarLaplace(grid, epsilon) for grid in (OBLONG, LONE_ROW) for epsilon in (0.3, 20.0)],
    *[ik.Exponential(alphabet, eps) for alphabet in (2, 30, TRIANGLE, OBLONG) for eps in EPSILONS],
]
OTHERS = [
    *[
        ik.TruncatedPlanarGeometric(grid, epsilon)
        for grid in (LONE_ROW, LONE_COLUMN)
        for epsilon in (SPREAD, 1.0, 20.0)
    ],
    ik.PlanarLaplace(LONE_COLUMN, 2.0),
    ik.MatrixMechanism(_rows(5, 5)),
    ik.MatrixMechanism(_rows(3, 7)),
    ik.MatrixMechanism(_rows(9, 4, zeros=0.5)),
    ik.MatrixMechanism(np.eye(4)),
    ik.compose(ik.RandomizedResponse(5, 1.0), _rows(5, 3)),
]
FINITE = [*ATTAINED, *NOT_ATTAINED, *OTHERS]
# on all integers, and on all cells of the plane
UNBOUNDED = [
    *[
        ik.LinearGeometric(line, eps)
        for line in (ik.Line(7, 7), 2, 30, ik.Line(-4, 3))
        for eps in EPSILONS
    ],
    *[
        ik.PlanarGeometric(grid, eps)
        for grid in (ik.Grid(1, 1), FOUR, OBLONG, LONE_ROW)
        for eps in (SPREAD, 1.0, 20.0)
    ],
]
ALL = [*FINITE, *UNBOUNDED]
# one of each class
KINDS = [
    ik.RandomizedResponse(5, 1.0),
    ik.Rappor(6, 1.0),
    ik.OptimizedUnaryEncoding(6, 1.0),
    ik.SubsetSelection(6, 1.0),
    ik.LinearGeometric(ik.Line(-4, 3), 1.0),
    ik.TruncatedGeometric(ik.Line(-4, 3), 1.0),
    ik.LinearLaplace(ik.Line(-4, 3), 1.0),
    ik.PlanarGeometric(OBLONG, 1.0),
    ik.TruncatedPlanarGeometric(OBLONG, 1.0),
    ik.PlanarLaplace(OBLONG, 1.0),
    ik.Exponential(OBLONG, 1.0),
    ik.TightConstraints(OBLONG, 2.0),
    ik.MatrixMechanism(_rows(5, 7)),
    ik.UnaryEncoding(6, 0.6, 0.2),
]
# one of each class that a test file of its own holds to its contract
PROTOCOLS = [
    ik.HadamardMechanism(6, 1.0),
    ik.HadamardResponse(6, 1.0),
    ik.HistogramEncoding(6, 1.0),
    ik.ThresholdedHistogram(6, 1.0),
    ik.DiscreteGaussian(ik.Line(-4, 3), 2.0),
    ik.LinearGaussian(ik.Line(-4, 3), 2.0),
    ik.PlanarGaussian(OBLONG, 2.0),
    ik.Duchi(ik.Line(-4, 3), 1.0),
    ik.Piecewise(ik.Line(-4, 3), 1.0),
    ik.HybridMechanism(ik.Line(-4, 3), 1.0),
    ik.SquareWave(ik.Line(-4, 3), 1.0),
    ik.DiscreteSquareWave(ik.Line(-4, 3), 1.0),
    ik.Staircase(ik.Line(-4, 3), 1.0),
    ik.LocalHashing(6, 1.0),
    ik.BloomRappor(6, bits=8, hashes=2, cohorts=4, f=0.5, p=0.5, q=0.75),
    ik.CountMeanSketch(6, 1.0, rows=4, width=4),
    ik.HadamardCountMeanSketch(6, 1.0, rows=4, width=4),
    ik.LongitudinalResponse(6, 1.0, 2.0),
    ik.LongitudinalUnaryEncoding.osue(6, 1.0, 2.0),
    ik.LongitudinalHashing(6, 1.0, 2.0),
    ik.LinkedRounds(6, (0.75, 0.25), (0.75, 0.25), 3),
]


def name(mechanism):
    """A test's id."""
    shape = getattr(mechanism.alphabet, "cell_shape", "")
    return f"{type(mechanism).__name__}-{mechanism.k}{shape}-{mechanism.epsilon:.4g}"
