"""mle_set: every maximiser is in it, nothing else is, and its ranges are attained."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from ibukit.identification._polytope import Polytope, UnsolvedProgramme
from ibukit.identification.maximisers import MAX_POINT_WIDTH, bound_on_ratios
from ibukit.tally.likelihood import ratios
from ibukit.theory import mle_set
from instances import instances, tallies
from oracles import exact, naive

FOUR = ik.MatrixMechanism([[0.10, 0.45, 0.45], [0.45, 0.10, 0.45], [0.45, 0.45, 0.10]])
TWELVE = ik.MatrixMechanism([[0.45, 0.10, 0.45], [0.05, 0.90, 0.05], [0.45, 0.10, 0.45]])


def endless(mechanism, theta):
    """The tally of so many reports
    that their frequencies are their probabilities, to fifteen digits.
    """
    return mechanism.tally_counts(np.rint(1e15 * mechanism.forward(theta)).astype(np.int64))


def cut_grid(side, epsilon):
    """Planar noise on side x side cells,
    of which the collector keeps the last row and column out.
    """
    grid = ik.Grid(side, side)
    keep = np.minimum(np.indices((side, side)), side - 2)
    cut = np.eye((side - 1) ** 2)[(keep[0] * (side - 1) + keep[1]).ravel()]
    return ik.compose(ik.TruncatedPlanarGeometric(grid, epsilon), cut)


def random_tally(rng):
    """Small, and mostly with a channel that leaves something open."""
    k, m = rng.integers(2, 6), rng.integers(2, 5)
    matrix = rng.dirichlet(np.ones(m), k)
    if rng.random() < 0.4:
        matrix[-1] = matrix[0]
    mechanism = ik.MatrixMechanism(matrix)
    if rng.random() < 0.5:
        return endless(mechanism, rng.dirichlet(np.ones(k)))
    return mechanism.simulate(rng.multinomial(rng.integers(1, 60), rng.dirichlet(np.ones(k))), rng)


def check(found, tally, points=50):
    """What every answer promises about itself; of many points some."""
    assert found.unique == (found.dimension == 0)
    assert (found.lower <= found.upper + 1e-12).all()
    assert found.identified.all() if found.unique else not found.identified.all()
    for bound, ends in (
        (found.lower, found.points.min(axis=0)),
        (found.upper, found.points.max(axis=0)),
    ):
        assert bound == pytest.approx(ends, abs=1e-9)  # attained
    fit = tally.forward(found.estimate.distribution)
    for point in found.points[:: max(1, len(found.points) // points)]:
        assert point.min() >= 0
        assert point.sum() == pytest.approx(1, abs=1e-12)
        assert tally.forward(point) == pytest.approx(fit, rel=1e-6)
        assert ik.gap(tally, point) <= found.estimate.gap + 1e-7
        assert found.distance(point) < 1e-7


def test_agrees_with_all_vertices_found_by_trying(rng):
    dimensions = []
    for _ in range(150):
        tally = random_tally(rng)
        found = mle_set(tally)
        check(found, tally)
        corners = exact.vertices(tally.matrix(), tally.forward(found.estimate.distribution), 1e-7)
        assert found.lower == pytest.approx(corners.min(axis=0), abs=1e-5)
        assert found.upper == pytest.approx(corners.max(axis=0), abs=1e-5)
        assert found.dimension == np.linalg.matrix_rank(corners - corners[0], tol=1e-5)
        dimensions.append(found.dimension)
    assert min(np.bincount(dimensions, minlength=4)[:3]) >= 10


@pytest.mark.ledger("A-X4", "A-F5b", "A-P1")
@pytest.mark.parametrize(
    ("tally", "dimension"),
    [
        (FOUR.tally([1]), 1),
        (FOUR.tally([1, 0]), 0),
        (TWELVE.tally_counts([1, 4, 1]), 1),
        (TWELVE.tally_counts([0, 4, 0]), 0),
        (endless(cut_grid(3, 0.5), np.array([6, 1, 2, 3, 7, 4, 5, 9, 8]) / 45), 5),
        (endless(cut_grid(4, 0.7), np.full(16, 1 / 16)), 7),
        (ik.Rappor(6, 1.0).tally([[1, 1, 0, 0, 1, 0], [0, 1, 0, 1, 0, 0]]), 0),
        (ik.Rappor(6, 1.0).tally([[1, 1, 0, 0, 1, 0]]), 2),
    ],
    ids=["(4) one", "(4) two", "(12) six", "(12) four", "3x3", "4x4", "RAPPOR two", "RAPPOR one"],
)
def test_contains_every_end_of_ibu_from_fifty_starts(tally, dimension, rng):
    found = mle_set(tally)
    assert found.dimension == dimension
    check(found, tally)
    ends = []
    for _ in range(50):
        start = rng.dirichlet(np.ones(tally.k))
        end = ik.ibu(
            tally, start=start, stop=ik.Gap(1e-11), max_iter=100_000, accelerate=True
        ).distribution
        assert found.distance(end) < 1e-4
        assert (found.lower - 2e-4 <= end).all()
        assert (end <= found.upper + 2e-4).all()
        ends.append(end)
    spread = np.ptp(ends, axis=0)
    assert (spread[found.identified] < 4e-4).all()
    # the starts find much of every range, so that a set too large would be noticed
    assert (spread >= (found.upper - found.lower) / 10).all()


def test_a_point_outside_is_seen_to_be_outside():
    found = mle_set(TWELVE.tally_counts([1, 4, 1]))
    assert found.distance([0.5, 0.0, 0.5]) == pytest.approx(17 / 24, abs=1e-9)
    assert found.distance([0.2, 17 / 24, 0.8 - 17 / 24]) < 1e-12
    unique = mle_set(TWELVE.tally_counts([0, 4, 0]))
    assert unique.distance([0.25, 0.5, 0.25]) == pytest.approx(0.5)
    three = mle_set(ik.Rappor(6, 1.0).tally([[1, 1, 0, 0, 1, 0]]))  # any mixture of three secrets
    assert three.distance([0, 0.25, 0, 0.75, 0, 0]) == pytest.approx(0.75)


def test_masses_that_are_forced_to_nothing_take_dimensions_away():
    # two pairs of secrets alike, one of which has no mass
    rows = np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]])
    found = mle_set(endless(ik.MatrixMechanism(rows), [0, 0, 0.5, 0.5]))
    assert found.dimension == 1
    assert found.upper == pytest.approx([0, 0, 1, 1], abs=1e-7)


@pytest.mark.ledger("A-X12", "A-F5b")
def test_a_corner_from_which_every_free_direction_leads_out_is_the_only_maximiser():
    """The third secret is seen as half of each other:
    nothing but masses that are not negative tells them apart.
    """
    mechanism = ik.MatrixMechanism([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.375, 0.375, 0.25]])
    found = ik.theory.mle_set(mechanism.tally_counts([500, 250, 250]))
    assert (found.unique, found.dimension, found.points.tolist()) == (True, 0, [[1, 0, 0]])
    assert "no other distribution has the same fit" in found.reason
    between = ik.theory.mle_set(mechanism.tally_counts([375, 375, 250]))
    assert (between.unique, between.dimension) == (False, 1)


def test_the_papers_two_cases():
    four = mle_set(TWELVE.tally_counts([0, 4, 0]))
    assert four.unique
    assert four.lower == pytest.approx([0, 1, 0], abs=1e-12)
    assert not ik.theory.strictly_concave(TWELVE.tally_counts([0, 4, 0]))
    six = mle_set(TWELVE.tally_counts([1, 4, 1]))
    assert sorted(six.points.tolist()) == pytest.approx(
        np.array([[0, 17 / 24, 7 / 24], [7 / 24, 17 / 24, 0]])
    )
    assert six.identified.tolist() == [False, True, False]


@pytest.mark.ledger("A-X64")
def test_a_sum_can_be_determined_where_its_terms_are_not():
    found = mle_set(endless(cut_grid(4, 0.7), np.arange(1, 17) / 136))
    assert not found.identified.any()
    for x in range(16):
        assert found.bounds(np.eye(16)[x]) == pytest.approx(
            (found.lower[x], found.upper[x]), abs=1e-9
        )
    tiny = found.bounds(1e-12 * np.arange(16))
    least, greatest = found.bounds(np.arange(16))
    assert tiny == pytest.approx((1e-12 * least, 1e-12 * greatest), rel=1e-6, abs=0)
    assert least < np.arange(16) @ np.arange(1, 17) / 136 < greatest
    low, high = found.bounds(-7e5 * np.ones(16))
    assert low == pytest.approx(high) == pytest.approx(-7e5)
    column = np.tile(np.arange(4) < 2, 4).astype(float)
    low, high = found.bounds(column)
    assert high - low < 0.5 * (found.upper - found.lower) @ column


def test_where_the_mle_is_always_unique_the_general_way_says_so_too(rng):
    """k-RR and geometric noise charge reported values only:
    40 cases against the same channel as a plain matrix.
    """
    for _ in range(40):
        k = rng.integers(2, 12)
        mechanism = rng.choice([ik.RandomizedResponse, ik.TruncatedGeometric])(
            int(k), rng.uniform(0.05, 3)
        )
        counts = rng.multinomial(rng.integers(1, 40), rng.dirichlet(np.full(k, 0.3)))
        short = mle_set(mechanism.tally_counts(counts))
        plain = mle_set(ik.MatrixMechanism(mechanism.matrix()).tally_counts(counts))
        assert (short.unique, plain.unique) == (True, True)
        assert short.lower == pytest.approx(plain.lower, abs=1e-5)
        assert short.lower[counts == 0].max(initial=0) < 1e-7


@given(st.data())
@settings(max_examples=60)
def test_no_maximiser_has_mass_that_was_ruled_out(data):
    """The bound on g at every MLE, computed far from it, against g at an MLE."""
    tally = data.draw(tallies())
    best = ik.mle(tally, tol=1e-12)
    _, g = ratios(tally, best.distribution)
    for steps in (1, 10, 1000):
        early = ik.ibu(tally, stop=ik.Steps(steps))
        p, _ = ratios(tally, early.distribution)
        bound = bound_on_ratios(tally, p, early.gap)
        assert (bound >= g - 1e-5).all()  # g itself is known to the square root of its gap
        if early.gap > 1e-3:
            assert not (bound_on_ratios(tally, p, 0.0) >= g + early.gap).all()


@pytest.mark.parametrize("instance", instances(), ids=lambda instance: instance.name)
def test_every_kind_of_tally(instance, rng):
    found = mle_set(instance.tally)
    check(found, instance.tally)
    if ik.theory.strictly_concave(instance.tally):
        assert found.unique
    counts = instance.counts[instance.counts > 0]
    columns = instance.matrix[:, instance.counts > 0]
    for point in found.points:
        assert naive.gap(columns, counts, point) < 1e-7


def test_relabelling_the_secrets_relabels_the_set(rng):
    matrix = rng.dirichlet(np.ones(3), 6)
    theta, order = rng.dirichlet(np.ones(6)), rng.permutation(6)
    one = mle_set(endless(ik.MatrixMechanism(matrix), theta))
    two = mle_set(endless(ik.MatrixMechanism(matrix[order]), theta[order]))
    assert one.dimension == two.dimension == 3
    assert two.lower == pytest.approx(one.lower[order], abs=1e-7)
    assert two.upper == pytest.approx(one.upper[order], abs=1e-7)


def test_a_pooled_tally_may_determine_what_its_parts_do_not():
    one = ik.MatrixMechanism([[0.8, 0.2], [0.8, 0.2], [0.3, 0.7]])
    two = ik.MatrixMechanism([[0.8, 0.2], [0.3, 0.7], [0.8, 0.2]])
    theta = np.array([0.2, 0.5, 0.3])
    first, second = endless(one, theta), endless(two, theta)
    assert [mle_set(t).unique for t in (first, second, first + second)] == [False, False, True]
    assert mle_set(first + second).lower == pytest.approx(theta, abs=1e-6)


def test_one_report_one_secret_and_none_of_use():
    assert mle_set(ik.RandomizedResponse(5, 1.0).tally([2])).upper.tolist() == [0, 0, 1, 0, 0]
    assert mle_set(ik.MatrixMechanism([[0.4, 0.6]]).tally([0])).lower.tolist() == [1]
    nothing = mle_set(ik.MatrixMechanism(np.full((4, 2), 0.5)).tally([1]))
    assert (nothing.dimension, nothing.lower.tolist(), nothing.upper.tolist()) == (
        3,
        [0] * 4,
        [1] * 4,
    )


@pytest.mark.slow
@pytest.mark.ledger("A-X64")
def test_a_real_map_cut_at_its_border():
    """San Francisco in 16 x 24 cells of which 14 x 20 are reported:
    384 secrets, a polytope of 104 dimensions.
    """
    city = ik.datasets.load_gowalla("san_francisco")
    rows, columns = np.divmod(np.arange(384), 24)
    codes = np.clip(rows - 1, 0, 13) * 20 + np.clip(columns - 2, 0, 19)
    mechanism = ik.compose(ik.TruncatedPlanarGeometric(city.alphabet, 1.0), np.eye(280)[codes])
    tally = endless(mechanism, city.distribution)
    found = mle_set(tally)
    assert found.dimension == 104
    check(found, tally, points=10)
    # 15 digits of the frequencies, through a channel that takes some of them
    assert (found.lower <= city.distribution + 1e-5).all()
    assert (city.distribution <= found.upper + 1e-5).all()
    assert found.distance(city.distribution) < 1e-5


@pytest.mark.parametrize("n", [1000, 100_000])
def test_a_planar_map_of_384_cells(n, rng):
    city = ik.datasets.load_gowalla("san_francisco")
    mechanism = ik.TruncatedPlanarGeometric(city.alphabet, 1.0)
    tally = mechanism.simulate(rng.multinomial(n, city.distribution), rng)
    assert ik.theory.identifiable(mechanism).rank == 384
    assert mle_set(tally).unique


def test_an_estimate_knows_what_is_identified():
    tally = TWELVE.tally_counts([1, 4, 1])
    for estimate in (ik.ibu(tally), ik.mle(tally), ik.ibu(tally, stop=ik.Steps(1))):
        assert estimate.identified.tolist() == [False, True, False]
    raw = ik.inv(ik.RandomizedResponse(3, 1.0).tally_counts([9, 0, 1]), post="none")
    assert raw.identified.all()
    with pytest.raises(ValueError, match="estimate has no tally"):
        _ = ik.Estimate(
            np.ones(1), 0.0, 0.0, ik.Status.CONVERGED, 0, "by hand", ik.Line(0, 0)
        ).identified


def test_bad_input():
    with pytest.raises(TypeError, match="tally must be a Tally"):
        mle_set(np.ones(3))
    found = mle_set(TWELVE.tally_counts([1, 4, 1]))
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"weights must have shape \(3,\), got \(2,\)"
    ):
        found.bounds([1, 2])
    with pytest.raises(ValueError, match="weights must be finite, got nan"):
        found.bounds([1, 2, np.nan])
    with pytest.raises(ik.errors.InvalidDistribution, match="theta must sum to 1"):
        found.distance([0.5, 0.2, 0.2])


def test_width_is_what_the_documentation_says():
    assert MAX_POINT_WIDTH == 1e-7
    assert "to 1e-7" in type(mle_set(TWELVE.tally([1]))).identified.__doc__


@pytest.mark.parametrize(
    ("size", "determined"), [(1.0, True), (1e-6, True), (1e-10, False), (0.0, False)]
)
def test_masses_that_hardly_move_along_a_direction_are_no_coordinates(size, determined):
    """Two masses that are 0 at a vertex,
    the second of which moves by `size` of the first in its own direction.
    """
    polytope = Polytope(
        np.array([0.3, 0.3, 0.2, 0.2]), np.array([[1.0, 0.0, -1.0, 0.0], [0.0, size, 0.0, -1.0]])
    )
    found = polytope._coordinates(np.array([0.0, 0.0, 0.5, 0.5]))
    assert (None if found is None else found.tolist()) == ([0, 1] if determined else None)


def test_weights_are_taken_for_counts():
    matrix = [[0.6, 0.2, 0.2], [0.2, 0.4, 0.4], [0.2, 0.4, 0.4]]
    counts = np.array([5, 3, 4])
    whole, weighted = (
        ik.theory.mle_set(
            ik.MatrixMechanism(matrix).tally_counts(numbers, weighted=numbers.dtype == float)
        )
        for numbers in (counts, counts / 4)
    )
    np.testing.assert_allclose(weighted.lower, whole.lower, atol=1e-9)
    np.testing.assert_allclose(weighted.upper, whole.upper, atol=1e-9)
    assert whole.identified.tolist() == weighted.identified.tolist() == [True, False, False]


def test_a_sum_whose_programme_is_not_solved_has_what_the_ranges_imply(monkeypatch):
    found = ik.theory.mle_set(TWELVE.tally_counts([1, 4, 1]))

    def unsolved(self, weights):
        raise UnsolvedProgramme

    monkeypatch.setattr(Polytope, "maximiser", unsolved)
    weights = np.array([1.0, -2.0, 3.0])
    low = np.where(weights > 0, found.lower, found.upper) @ weights
    high = np.where(weights > 0, found.upper, found.lower) @ weights
    assert found.bounds(weights, strict=False) == pytest.approx((low, high), rel=1e-12)
    with pytest.raises(ik.ConvergenceError) as error:
        found.bounds(weights)
    assert error.value.estimate == pytest.approx((low, high), rel=1e-12)


def test_a_distance_whose_programme_is_not_solved_is_at_least_that_from_the_ranges(monkeypatch):
    found = ik.theory.mle_set(TWELVE.tally_counts([1, 4, 1]))

    def unsolved(self, theta):
        raise UnsolvedProgramme

    exact = found.distance([0.1, 0.1, 0.8])
    monkeypatch.setattr(Polytope, "distance", unsolved)
    outside = np.maximum(found.lower - [0.1, 0.1, 0.8], 0) + np.maximum(
        [0.1, 0.1, 0.8] - found.upper, 0
    )
    least = found.distance([0.1, 0.1, 0.8], strict=False)
    assert least == pytest.approx(outside.sum() / 2)
    assert 0 < least <= exact + 1e-12
    assert found.distance(found.estimate.distribution, strict=False) == pytest.approx(0, abs=1e-9)
    with pytest.raises(ik.ConvergenceError):
        found.distance([0.1, 0.1, 0.8])


def test_a_vertex_is_read_to_the_last_digit():
    """Two masses are 0 at it; the others follow from them, whatever the solver left in them."""
    basis = np.array([[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0]])
    polytope = Polytope(np.array([0.3, 0.3, 0.2, 0.2]), basis)
    found = polytope._exact_vertex(np.array([0.0, 0.0, 0.5 + 3e-9, 0.5 - 2e-9]))
    np.testing.assert_allclose(found, [0, 0, 0.5, 0.5], rtol=0, atol=1e-15)


def test_the_bound_on_ratios_is_the_root_that_the_gap_allows():
    """Every report tells its secret, so the bound is 1 + r,
    with r^2 = 4/3 c r + 2 c and c = gap / q.
    """
    tally = ik.MatrixMechanism(np.eye(2)).tally_counts([50, 50])
    for gap in (1e-6, 0.01, 0.4):
        r = bound_on_ratios(tally, np.full(2, 0.5), gap) - 1
        np.testing.assert_allclose(r**2, 8 / 3 * gap * r + 4 * gap, rtol=1e-8)
