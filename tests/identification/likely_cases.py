"""Random mechanisms with reports, and an estimate on some of the secrets only,
for the tests of likely subsets.
"""

import numpy as np

import ibukit as ik

LEVELS = (0.05, 0.2, 1.0, 3.0)
CELLS = (1.0, 0.5, (1.0, 0.5), (0.3, 1.1))


def on_a_line(rng):
    k, epsilon = int(rng.integers(2, 40)), float(rng.choice(LEVELS))
    kind = rng.choice([ik.LinearGeometric, ik.TruncatedGeometric, ik.Exponential, ik.LinearLaplace])
    first = int(rng.integers(-20, 20))
    mechanism = kind(ik.Line(first, first + k - 1), epsilon)
    return mechanism, _some(mechanism, rng)


def on_a_map(rng):
    grid = ik.Grid(
        *(int(side) for side in rng.integers(1, 11, 2)), cell_size=CELLS[rng.integers(len(CELLS))]
    )
    kind = rng.choice(
        [ik.PlanarGeometric, ik.TruncatedPlanarGeometric, ik.PlanarLaplace, ik.Exponential]
    )
    mechanism = kind(grid, float(rng.choice([0.4, 1.0, 3.0])))
    return mechanism, _some(mechanism, rng)


def by_response(rng):
    mechanism = ik.RandomizedResponse(int(rng.integers(2, 60)), float(rng.choice(LEVELS)))
    return mechanism, _some(mechanism, rng)


def by_definition(rng):
    kind = rng.choice([ik.Rappor, ik.OptimizedUnaryEncoding, ik.SubsetSelection])
    mechanism = kind(int(rng.integers(2, 12)), float(rng.choice(LEVELS)))
    return mechanism, _some(mechanism, rng)


def _some(mechanism, rng):
    """Few reports, so that something is left out, of few neighbouring secrets."""
    n, k = int(rng.integers(1, 30)), mechanism.k
    low = rng.integers(0, k)
    return mechanism.draw(rng.integers(low, min(low + 1 + k // 4, k), n), rng)


def columns(mechanism, reports):
    """P(z given x) on the distinct reports, shape (k, s), and how often each was seen."""
    tally = mechanism.tally(reports, codes=True)
    return tally.matrix() * np.exp(tally.log_scale), tally.counts


def on_these(rows, counts):
    """The tally of the same reports if these are the only secrets:
    their rows, and all other reports in one column.
    """
    rest = np.maximum(1 - rows.sum(axis=1), 0)
    return ik.MatrixMechanism(np.column_stack([rows, rest])).tally_counts([*counts, 0])
