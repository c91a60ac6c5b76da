"""The earth mover's distance on large grids: few pairs of cells, and a bound over all of them."""

import numpy as np
import ot
import pytest

import ibukit as ik
from ibukit.evaluation import losses, sparse_transport
from ibukit.evaluation.sparse_transport import TOLERANCE, certified_cost

SIDE = 27


def blob(row, col, width, side=SIDE):
    y, x = np.mgrid[:side, :side] / side
    return _normed(np.exp(-((y - row) ** 2 + (x - col) ** 2) / (2 * width**2)))


def _normed(weights):
    return weights.ravel() / weights.sum()


def instance(kind, rng, side=SIDE):
    """Two distributions on a square: near and far, smooth and rough, and many optimal plans."""
    k, uniform, half = side**2, np.full(side**2, side**-2), np.arange(side**2) < side**2 // 2
    smooth = (blob(0.3, 0.3, 0.1, side) + blob(0.7, 0.6, 0.2, side)) / 2
    return {
        "rough": lambda: rng.dirichlet(np.ones(k), 2),
        "far": lambda: (blob(0.2, 0.3, 0.08, side), blob(0.8, 0.6, 0.12, side)),
        "sample": lambda: (smooth, rng.multinomial(10 * k, smooth) / (10 * k)),
        "few atoms": lambda: (smooth, rng.dirichlet(np.full(k, 0.02))),
        "one side small": lambda: (uniform, blob(0.5, 0.5, 0.05, side)),
        "tied": lambda: (_normed(half), _normed(~half)),
        "chessboard": lambda: (
            _normed(np.indices((side, side)).sum(axis=0) % 2),
            _normed(np.indices((side, side)).sum(axis=0) % 2 == 0),
        ),
    }[kind]()


KINDS = ["rough", "far", "sample", "few atoms", "one side small", "tied", "chessboard"]


@pytest.mark.parametrize("kind", KINDS)
def test_few_pairs_give_the_cost_of_all(kind, rng):
    p, q = instance(kind, rng)
    for grid in (ik.Grid(SIDE, SIDE), ik.Grid(9, 81, cell_size=(0.4, 250.0))):
        expected = ot.emd2(p, q, grid.distances(), numItermax=10**7)
        assert certified_cost(grid, p - q) == pytest.approx(expected, rel=TOLERANCE)
        assert certified_cost(grid, q - p) == pytest.approx(expected, rel=TOLERANCE)


def test_a_large_grid_needs_few_pairs_and_no_matrix_of_distances(rng, monkeypatch):
    solve, sizes = ot.emd, []

    def counted(supply, demand, distances, **how):
        sizes.append(distances.nnz)
        return solve(supply, demand, distances, **how)

    monkeypatch.setattr(ot, "emd", counted)
    # Memory of all distances, or the simplex on all pairs, would be the old way.
    for name in ("_distances_between", "distances"):
        monkeypatch.setattr(ik.Grid, name, None)
    side = 60
    p, q = instance("rough", rng, side)
    pairs = np.sum(p > q) * np.sum(p < q)
    assert ik.emd(p, q, ik.Grid(side, side)) > 0
    assert max(sizes) <= 40 * side**2 < 0.05 * pairs
    assert len(sizes) <= 20


def test_a_cost_that_the_bound_does_not_prove_is_not_returned(rng, monkeypatch):
    p, q = instance("far", rng)
    grid = ik.Grid(SIDE, SIDE)
    expected = ik.emd(p, q, grid)
    # One round on pairs that were guessed: the plan costs more than the bound.
    monkeypatch.setattr(sparse_transport, "FIRST_PAIRS", 1)
    monkeypatch.setattr(sparse_transport, "MAX_ROUNDS", 1)
    assert certified_cost(grid, p - q) is None
    # All pairs are then taken, as on small grids.
    monkeypatch.setattr(losses, "MAX_ALL_PAIRS", 0)
    assert ik.emd(p, q, grid) == pytest.approx(expected, rel=1e-12)


def test_a_plan_that_loses_mass_or_was_given_up_is_not_returned(rng, monkeypatch):
    p, q = instance("sample", rng)
    grid, solve = ik.Grid(SIDE, SIDE), ot.emd

    def losing(supply, demand, distances, **how):
        plan, log = solve(supply, demand, distances, **how)
        return 0.999 * plan, log | {"cost": 0.999 * log["cost"]}

    def given_up(*args, **how):
        plan, log = solve(*args, **how)
        return plan, log | {"warning": "too many steps"}

    for broken in (losing, given_up):
        monkeypatch.setattr(ot, "emd", broken)
        assert certified_cost(grid, p - q) is None


def test_each_cell_has_a_pair_in_the_first_plan(rng):
    for rows, columns in ((1, 5), (5, 1), (40, 7), (200, 300)):
        supply, demand = rng.dirichlet(np.ones(rows)), rng.dirichlet(np.ones(columns))
        some, more = sparse_transport._some_plan(supply, demand)
        assert set(some) == set(range(rows))
        assert set(more) == set(range(columns))
        assert len(some) <= 3 * (rows + columns)


def test_an_older_pot_solves_on_all_pairs(monkeypatch, rng):
    monkeypatch.setattr(losses, "MAX_ALL_PAIRS", 0)
    p, q = instance("rough", rng)
    grid = ik.Grid(SIDE, SIDE)
    expected = ik.emd(p, q, grid)
    monkeypatch.setattr(ot, "__version__", "0.9.6.post1")
    assert certified_cost(grid, p - q) is None
    assert ik.emd(p, q, grid) == pytest.approx(expected, rel=2 * TOLERANCE)
