"""The walk along the vertices of a polytope:
against a linear programme for each end, closed forms, and rounding.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import linprog

import ibukit as ik
from ibukit.identification import _polytope_ranges, _simplex_dictionary
from ibukit.identification._polytope import Polytope, UnsolvedProgramme
from ibukit.identification._polytope_ranges import bound_of, ranges
from ibukit.identification._simplex_dictionary import Dictionary, Stuck


def basis_of(rows):
    """Orthonormal directions along which no sum of the rows changes, shape (free, size)."""
    return np.ascontiguousarray(null_space(np.asarray(rows, dtype=float)).T)


@st.composite
def polytopes(draw):
    """Small ones: most of their vertices have more zeros than they need,
    and some masses are 0 in all of them.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.integers(2, 9))
    kind = draw(st.sampled_from(["general", "whole numbers", "alike"]))
    rows = rng.random((draw(st.integers(0, size - 2)), size))
    if kind != "general":
        rows = rng.integers(0, 3, rows.shape)
    if kind == "alike":
        rows[:, rng.integers(size)] = rows[:, 0]
    centre = rng.dirichlet(np.ones(size))
    if draw(st.booleans()):
        centre[rng.integers(size)] = 0
        centre /= centre.sum()
    return centre, np.vstack([np.ones(size), rows])


def one_by_one(centre, rows):
    """Least and greatest of each mass, by a linear programme for each."""
    units = np.eye(len(centre))
    ends = [
        [linprog(s * unit, A_eq=rows, b_eq=rows @ centre).fun * s for unit in units]
        for s in (1, -1)
    ]
    return np.array(ends)


def birkhoff(n):
    """Square tables with all marginals 1 / n: each entry may be anything from 0 to 1 / n."""
    return np.full(n * n, 1 / n**2), np.vstack(
        [np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))]
    )


def check(found, centre, rows):
    """Both ends are attained, at points of the polytope."""
    points = np.array(found.vertices)
    np.testing.assert_allclose(points.min(axis=0), found.lower, atol=1e-9)
    np.testing.assert_allclose(points.max(axis=0), found.upper, atol=1e-9)
    assert points.min() >= 0
    np.testing.assert_allclose(points @ rows.T, np.tile(rows @ centre, (len(points), 1)), atol=1e-8)


@given(polytopes())
@settings(max_examples=80)
def test_a_linear_programme_for_each_end_says_the_same(polytope):
    centre, rows = polytope
    basis = basis_of(rows)
    if not len(basis):
        return
    found = ranges(centre, basis)
    assert found.left == 0
    check(found, centre, rows)
    lower, upper = one_by_one(centre, rows)
    np.testing.assert_allclose(found.lower, lower, atol=1e-7)
    np.testing.assert_allclose(found.upper, upper, atol=1e-7)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_tables_with_given_margins_whose_vertices_have_many_zeros_too_many(n):
    centre, rows = birkhoff(n)
    found = ranges(centre, basis_of(rows))
    assert found.left == 0
    check(found, centre, rows)
    np.testing.assert_allclose(found.lower, 0, atol=1e-12)
    np.testing.assert_allclose(found.upper, 1 / n, atol=1e-12)


def test_a_hundred_and_fifty_groups_that_share_their_mass():
    """Of secrets with the same row each may have all of the group's mass, or nothing."""
    group = np.arange(400) % 150
    mechanism = ik.compose(ik.RandomizedResponse(400, 3.0), np.eye(150)[group])
    tally = mechanism.tally_counts(np.arange(1000, 1150))
    found = ik.theory.mle_set(tally)
    mass = np.bincount(group, found.estimate.distribution)[group]
    alone = np.bincount(group)[group] == 1
    np.testing.assert_allclose(found.upper, mass, atol=1e-9)
    np.testing.assert_allclose(found.lower, np.where(alone, mass, 0), atol=1e-9)


@given(polytopes(), st.integers(0, 2**32))
@settings(max_examples=40)
def test_whatever_the_slopes_are_the_bound_is_true(polytope, seed):
    centre, rows = polytope
    basis = basis_of(rows)
    if not len(basis):
        return
    rng = np.random.default_rng(seed)
    lower, upper = one_by_one(centre, rows)
    elements = rng.permutation(len(centre))[: len(basis)]
    for x in range(len(centre)):
        slopes = rng.normal(size=len(basis))
        assert bound_of(x, 1, elements, slopes, centre, basis) >= upper[x] - 1e-9
        assert bound_of(x, -1, elements, slopes, centre, basis) >= -lower[x] - 1e-9


def walked(centre, basis, pivots=3):
    """A dictionary some pivots away from where it began."""
    at = Dictionary(centre, basis)
    for _ in range(pivots):
        at.pivot(0)
    return at


def test_pivots_keep_the_dictionary_and_its_sums_of_squares(rng):
    rows = np.vstack([np.ones(12), rng.random((4, 12))])
    centre, basis = rng.dirichlet(np.ones(12)), basis_of(rows)
    at = walked(centre, basis, 25)
    theta = at.vertex()
    assert at.holds(theta)
    np.testing.assert_allclose(theta[at.others], at.values, atol=1e-12)
    np.testing.assert_allclose(at.squares, (at.slopes**2).sum(axis=0), rtol=1e-6)
    order = np.argsort(at.others)
    slopes, values = at.slopes[order].copy(), at.values[order].copy()
    at.refresh()
    np.testing.assert_allclose(slopes, at.slopes, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(values, at.values, atol=1e-12)


def test_what_rounding_has_spoilt_is_no_proof_and_is_computed_anew(rng):
    rows = np.vstack([np.ones(12), rng.random((4, 12))])
    centre, basis = rng.dirichlet(np.ones(12)), basis_of(rows)
    whole = ranges(centre, basis)
    at = walked(centre, basis)
    at.slopes = at.slopes * (1 + 1e-4)
    spoilt = _polytope_ranges.VertexRanges(12)
    spoilt.read(at)
    assert np.isnan(spoilt.upper).all(), "slopes that are not those of the polytope"
    at.refresh()
    at.values = at.values + 1e-4 * np.arange(1, len(at.values) + 1)
    left = spoilt.left
    spoilt.read(at)
    assert spoilt.left == left, "a vertex that is none of the polytope"
    at.slopes, at.pivots = at.slopes * (1 + 1e-4), 1
    while (end := spoilt.nearest(at)) is not None:
        spoilt.reach(at, *end)
    np.testing.assert_allclose(spoilt.upper, whole.upper, atol=1e-9)
    np.testing.assert_allclose(spoilt.lower, whole.lower, atol=1e-9)


@pytest.mark.parametrize("limit", [0, 1])
def test_where_the_walk_is_stuck_linear_programmes_go_on(monkeypatch, limit):
    centre, rows = birkhoff(3)
    monkeypatch.setattr(_polytope_ranges, "MAX_PIVOTS_PER_MASS", limit)
    if not limit:
        assert ranges(centre, basis_of(rows)).left > 0
    polytope = Polytope(centre, basis_of(rows))
    lower, upper = polytope.ranges()
    assert polytope.unsolved == 0
    np.testing.assert_allclose(lower, 0, atol=1e-9)
    np.testing.assert_allclose(upper, 1 / 3, atol=1e-9)


def test_directions_that_doubles_cannot_tell_apart_are_given_up():
    basis = np.array([[1.0, -1.0, 0.0], [1.0, -1.0, 1e-17]])
    with pytest.raises(Stuck):
        Dictionary(np.full(3, 1 / 3), basis)
    assert np.isnan(ranges(np.full(3, 1 / 3), basis).upper).all()


def test_no_two_shifts_are_equal():
    shifts = _simplex_dictionary._distinct_numbers(5000)
    assert len(np.unique(shifts)) == 5000
    assert shifts.min() >= 1
    assert shifts.max() < 2


def test_ends_without_a_solution_are_counted_one_by_one(monkeypatch):
    centre, rows = birkhoff(3)
    polytope = Polytope(centre, basis_of(rows))
    highest, asked = polytope.maximiser, []

    def at_times(weights):
        asked.append(len(asked) % 3 == 1)
        if asked[-1]:
            raise UnsolvedProgramme
        return highest(weights)

    monkeypatch.setattr(polytope, "maximiser", at_times)
    lower, upper = polytope.by_programmes(np.full(9, np.nan), np.full(9, np.nan))
    assert polytope.unsolved == sum(asked) > 1
    assert (lower <= centre).all()
    assert (upper >= centre).all()


def test_a_corner_with_a_negative_mass_is_no_corner():
    """Where rounding led there, the walk ends:
    from a third each along (1, -3, 2) the first mass ends last.
    """
    at = Dictionary(np.full(3, 1 / 3), np.array([[1.0, -3.0, 2.0]]) / np.sqrt(14))
    at.elements = np.array([0])
    with pytest.raises(Stuck):
        at.refresh()
