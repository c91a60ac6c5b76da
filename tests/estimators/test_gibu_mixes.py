"""GIBU over mechanisms of any kinds:
a loop over the users, other people's maximisers, and the order of pooling.
"""

import itertools

import numpy as np
import pytest

import ibukit as ik
from ibukit.tally.tally import pool
from instances import Instance
from oracles import free_will, naive
from second_solvers import by_least_squares, by_quasi_newton

K = 6
LINE, GRID = ik.Line(0, K - 1), ik.Grid(2, 3, cell_size=(1.0, 1.5))
WIDE = np.random.default_rng(21).dirichlet(np.full(K + 3, 0.4), K)
FAR = list(range(-6, 12))
CELLS = [(r, c) for r in range(-2, 4) for c in range(-2, 5)]
ROWS = naive.all_bit_rows(K)
# mechanism; all its reports, or as many as shall occur; their columns by the oracle
krr = [(ik.RandomizedResponse(LINE, e), range(K), naive.k_rr(K, e)) for e in (0.3, 3.0)]
noise = [
    (ik.TruncatedGeometric(LINE, e), range(K), naive.truncated_geometric(K, e)) for e in (0.2, 1.5)
]
rappor = [(ik.Rappor(LINE, e), ROWS, naive.rappor(K, e)) for e in (0.5, 4.0)]
wide = (ik.MatrixMechanism(WIDE, LINE), range(K + 3), WIDE)
endless = (ik.LinearGeometric(LINE, 0.7), FAR, naive.geometric(range(K), FAR, 0.7))
sets = (ik.SubsetSelection(LINE, 1.0, 1), np.eye(K, dtype=int)[::-1], naive.k_rr(K, 1.0)[:, ::-1])
oue = (ik.OptimizedUnaryEncoding(LINE, 1.0), ROWS, naive.oue(K, 1.0))
plane = (
    ik.TruncatedPlanarGeometric(GRID, 1.2),
    range(K),
    naive.truncated_planar_geometric(2, 3, 1.0, 1.5, 1.2),
)
endless_plane = (
    ik.PlanarGeometric(GRID, 1.2),
    CELLS,
    naive.planar_geometric(naive.cells(2, 3), CELLS, 1.0, 1.5, 1.2),
)
on_cells = (ik.RandomizedResponse(GRID, 1.0), range(K), naive.k_rr(K, 1.0))
MIXES = {
    "k-RR and RAPPOR": [krr[0], rappor[1]],
    "k-RR and geometric": [krr[0], noise[1]],
    "k-RR and a matrix with more reports": [krr[1], wide],
    "k-RR, RAPPOR and geometric without ends": [krr[0], rappor[0], endless],
    "planar, with and without ends, and k-RR": [plane, endless_plane, on_cells],
    "OUE, RAPPOR and subsets": [oue, rappor[0], sets],
    "two of a kind, never side by side": [
        krr[0],
        noise[0],
        rappor[0],
        wide,
        krr[1],
        rappor[1],
        endless,
        noise[1],
    ],
}
mixes = pytest.mark.parametrize("name", MIXES)


def drawn(name, rng, most=12):
    """One instance for each mechanism, a few dozen users each."""
    made = []
    for mechanism, reports, columns in MIXES[name]:
        counts = rng.integers(0, most, len(reports)) * (rng.random(len(reports)) < 0.7)
        counts[0] += 1
        tally = mechanism.tally(np.repeat(np.asarray(reports), counts, axis=0))
        made.append(Instance(type(mechanism).__name__, tally, columns, counts))
    return made


def stacked(groups):
    return np.concatenate([g.matrix for g in groups], axis=1), np.concatenate(
        [g.counts for g in groups]
    )


@pytest.mark.ledger("C-E18", "C-Alg1")
@pytest.mark.parametrize("steps", [1, 10, 1000])
@mixes
def test_gibu_is_an_average_over_the_users(name, steps, rng):
    groups = drawn(name, rng)
    expected = free_will.gibu(free_will.users([(g.matrix, g.counts) for g in groups]), steps)
    found = ik.ibu(sum(g.tally for g in groups), stop=ik.Steps(steps))
    assert np.abs(found.distribution - expected).max() <= 1e-12
    # negative control: reports counted under the next mechanism's columns where they have as many
    if steps == 10 and groups[0].matrix.shape == groups[-1].matrix.shape:
        swapped = [
            (groups[-1].matrix, groups[0].counts),
            *[(g.matrix, g.counts) for g in groups[1:]],
        ]
        assert (
            np.abs(found.distribution - free_will.gibu(free_will.users(swapped), steps)).max()
            > 1e-4
        )


@pytest.mark.ledger("C-T1")
@pytest.mark.parametrize("solver", [by_quasi_newton, by_least_squares])
@mixes
def test_the_maximum_is_within_the_gaps_of_another_solver(name, solver, rng):
    groups = drawn(name, rng)
    matrix, counts = stacked(groups)
    tally = sum(g.tally for g in groups)
    theirs = solver(matrix, counts)
    their_gap = naive.gap(matrix, counts, theirs)
    their_value = naive.log_likelihood(matrix, counts, theirs)
    assert their_gap <= 1e-4, "or there would be little to compare with"
    for ours in (ik.mle(tally, tol=1e-11), ik.ibu(tally, stop=ik.Gap(1e-7), accelerate=True)):
        assert ours.gap <= 1e-7
        assert ours.gap == pytest.approx(naive.gap(matrix, counts, ours.distribution), abs=1e-12)
        value = naive.log_likelihood(matrix, counts, ours.distribution)
        assert ours.log_likelihood == pytest.approx(value, rel=1e-12)
        assert abs(value - their_value) <= tally.n * (ours.gap + their_gap) + 1e-12 * abs(value)


@mixes
def test_sum_gibu_and_any_order_of_pooling_are_the_same(name, rng):
    groups = [g.tally for g in drawn(name, rng)]
    stop = ik.Steps(50)
    first = ik.ibu(sum(groups), stop=stop)
    orders = list(itertools.permutations(groups))[:: max(1, len(groups) - 2)][:12]
    halves = sum(groups[::2]) + sum(groups[1::2])
    ways = [ik.gibu(groups, stop=stop), ik.gibu(iter(groups), stop=stop), ik.ibu(halves, stop=stop)]
    ways += [ik.ibu(sum(order), stop=stop) for order in orders]
    for found in ways:
        assert np.abs(found.distribution - first.distribution).max() <= 1e-14
        assert found.log_likelihood == pytest.approx(first.log_likelihood, rel=1e-14)
        assert found.gap == pytest.approx(first.gap, abs=1e-13)
    # reports that came in twice, under a mechanism already there
    twice = ik.ibu(sum(groups) + groups[0], stop=stop)
    again = ik.gibu([groups[0], *groups[::-1]], stop=stop)
    assert np.abs(twice.distribution - again.distribution).max() <= 1e-14
    assert np.abs(twice.distribution - first.distribution).max() > 1e-4


@pytest.mark.parametrize("accelerate", [False, True])
def test_a_mechanism_for_every_user(accelerate, rng):
    """Three hundred levels of three kinds in turn, one user each."""
    kinds = [
        (ik.RandomizedResponse, naive.k_rr),
        (ik.TruncatedGeometric, naive.truncated_geometric),
    ]
    tallies, columns = [], []
    for i, epsilon in enumerate(rng.uniform(0.5, 4, 300)):
        secret = [rng.choice(K, p=[0.4, 0.05, 0.05, 0.1, 0.1, 0.3])]
        if i % 3 == 2:
            row = ik.Rappor(LINE, epsilon).randomize(secret, rng)
            tallies.append(ik.Rappor(LINE, epsilon).tally(row))
            columns.append(naive.rappor(K, epsilon, row.tolist())[:, 0])
        else:
            kind, matrix = kinds[i % 3]
            report = kind(LINE, epsilon).randomize(secret, rng)
            tallies.append(kind(LINE, epsilon).tally(report))
            columns.append(matrix(K, epsilon)[:, report[0]])
    tally = pool(tallies)
    assert (len(tally.parts), tally.n) == (300, 300)
    by_user = np.array(columns).T
    if not accelerate:
        found = ik.ibu(tally, stop=ik.Steps(100))
        assert np.abs(found.distribution - free_will.gibu(by_user, 100)).max() <= 1e-12
    found, best = ik.ibu(tally, accelerate=accelerate), ik.mle(tally, tol=1e-10)
    assert found.gap <= 1e-6
    ones = np.ones(300, dtype=int)
    assert naive.gap(by_user, ones, found.distribution) <= 1e-6 * (1 + 1e-6)
    assert naive.gap(by_user, ones, best.distribution) <= 1e-10 + 1e-13


@pytest.mark.parametrize("nothing", [{"tallies": []}, {"tallies": iter(())}])
def test_nothing_to_pool(nothing):
    with pytest.raises(ValueError, match="tallies must hold at least one tally, got none"):
        ik.gibu(**nothing)


def test_what_is_no_tally(rng):
    tally = ik.RandomizedResponse(3, 1.0).tally([0])
    with pytest.raises(TypeError, match=r"got one tally: pass \[tally\]"):
        ik.gibu(tally)
    with pytest.raises(TypeError, match=r"tally must be a Tally, .* got RandomizedResponse"):
        ik.gibu([tally, ik.RandomizedResponse(3, 1.0)])
    with pytest.raises(TypeError, match=r"tally must be a Tally, .* got int"):
        ik.ibu(sum([]))
