"""All fixed points of the iteration:
counted by hand, held against the map itself, and met by long runs of it.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, reject, settings
from scipy.optimize import linprog

import ibukit as ik
from ibukit.identification.fixed_points import FixedPoint, fixed_points
from instances import INSTANCES, NAMES, tallies
from oracles import naive


def with_infinite_data(mechanism, theta):
    return mechanism.tally_counts(np.rint(1e15 * mechanism.forward(theta)).astype(np.int64))


def supports(points):
    return {tuple(point.support.tolist()) for point in points}


def all_faces(k):
    return [tuple(np.flatnonzero(face >> np.arange(k) & 1).tolist()) for face in range(1, 2**k)]


def assert_fixed(tally, points):
    """What each result says of itself, computed again from the dense columns by the oracle."""
    columns = tally.matrix()
    for point in points:
        theta = point.distribution
        assert np.array_equal(np.flatnonzero(theta), point.support)
        assert (theta >= 0).all()
        assert abs(theta.sum() - 1) <= 1e-12
        assert np.abs(naive.ibu_step(columns, tally.counts, theta) - theta).max() <= 1e-12
        assert point.is_mle == (ik.gap(tally, theta) <= 1e-9)
        assert np.log(point.largest_ratio) == pytest.approx(
            naive.gap(columns, tally.counts, theta), abs=1e-12
        )
        expected = (
            naive.log_likelihood(columns, tally.counts, theta) + tally.counts @ tally.log_scale
        )
        assert point.log_likelihood == pytest.approx(expected, rel=1e-12, abs=1e-12 * tally.n)
        rows = columns[point.support] / columns.max(axis=0)
        assert point.dimension == len(rows) - np.linalg.matrix_rank(rows)
    assert len(supports(points)) == len(points)
    best = ik.mle(tally)
    assert points[0].is_mle
    assert abs(points[0].log_likelihood - best.log_likelihood) <= tally.n * (best.gap + 1e-9)
    assert (np.diff([point.log_likelihood for point in points]) <= 1e-9 * tally.n).all()


@pytest.mark.ledger("B-L43")
@pytest.mark.erratum("B1")
def test_the_lemma_of_one_fixed_point_has_fifteen():
    tally = with_infinite_data(ik.TruncatedGeometric(4, 1.0), [0.3, 0.2, 0.2, 0.3])
    points = fixed_points(tally)
    assert len(points) == 15
    assert supports(points) == set(all_faces(4))
    assert [point.is_mle for point in points] == [True] + [False] * 14
    np.testing.assert_allclose(points[0].distribution, [0.3, 0.2, 0.2, 0.3], atol=1e-13)
    # none of the others is near: it is not a matter of tolerance
    assert min(point.largest_ratio for point in points[1:]) > 1.1
    assert all(point.dimension == 0 for point in points)
    assert_fixed(tally, points)


@pytest.mark.erratum("B1")
def test_fewer_where_faces_have_their_maximum_on_a_border():
    tally = ik.TruncatedGeometric(4, 0.5).tally_counts([3, 2, 2, 3])
    points = fixed_points(tally)
    assert supports(points) == {(0,), (1,), (2,), (3,), (1, 2), (0, 2), (1, 3), (0, 3)}
    assert [point.is_mle for point in points] == [True] + [False] * 7
    np.testing.assert_allclose(points[0].distribution, [0, 0.5, 0.5, 0], atol=1e-13)
    assert_fixed(tally, points)


@pytest.mark.erratum("B1")
@pytest.mark.parametrize(
    "mechanism",
    [
        ik.RandomizedResponse(5, 0.7),
        ik.TruncatedGeometric(6, 0.3),
        ik.Rappor(4, 1.0),
        ik.Exponential(4, 1.0),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_every_vertex_is_fixed(mechanism, rng):
    tally = mechanism.simulate(rng.multinomial(500, rng.dirichlet(np.ones(mechanism.k))), rng)
    assert_fixed(tally, points := fixed_points(tally))
    assert {(x,) for x in range(mechanism.k)} <= supports(points)


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_every_kind_of_channel_and_pools(instance):
    assert_fixed(instance.tally, fixed_points(instance.tally))


def test_of_two_secrets_the_edge_is_solved_by_hand():
    # k = 2: on the edge q = theta M, so theta = (q_0 - M_10) / (M_00 - M_10), where that is a
    # probability
    inside = fixed_points(ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]).tally_counts([60, 40]))
    np.testing.assert_allclose(inside[0].distribution, [0.5, 0.5], atol=1e-14)
    assert supports(inside) == {(0,), (1,), (0, 1)}
    outside = fixed_points(ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]).tally_counts([95, 5]))
    assert supports(outside) == {(0,), (1,)}
    assert [point.is_mle for point in outside] == [True, False]


@pytest.mark.parametrize(
    "theta", [[0.5, 0.5, 0, 0], [0, 0.3, 0, 0.7], [0.2, 0, 0.1, 0.7], [0, 0, 1, 0]]
)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_secret_whose_probability_is_zero_is_not_found_twice(theta, epsilon):
    """The truth on a face: the face's point is the maximiser of all larger faces, too."""
    points = fixed_points(with_infinite_data(ik.TruncatedGeometric(4, epsilon), theta))
    (found,) = [point for point in points if point.is_mle]
    assert np.array_equal(found.support, np.flatnonzero(theta))
    assert not [point for point in points if set(found.support) < set(point.support)]


def test_small_probabilities_are_found_beside_large_counts():
    # one report in 1e9: the maximiser has a probability of 1e-9, far above rounding
    tally = ik.MatrixMechanism(np.eye(3)).tally_counts([10**9, 1, 2])
    (point,) = fixed_points(tally)
    np.testing.assert_allclose(point.distribution * tally.n, [10**9, 1, 2], rtol=1e-12)
    assert_fixed(tally, (point,))


def test_a_maximiser_comes_first_even_if_hardly_likelier():
    # the edge is likelier by 1e-15 nats a report, and yet at the vertex g is 1.001
    points = fixed_points(
        ik.MatrixMechanism([[1 - 1e-9 / 1.001, 1e-9 / 1.001], [0, 1]]).tally_counts([10**9, 1])
    )
    assert [(tuple(point.support), point.is_mle) for point in points] == [
        ((0, 1), True),
        ((0,), False),
    ]
    assert points[1].largest_ratio == pytest.approx(1.001, abs=1e-6)


def test_rows_that_differ_in_rare_reports_only():
    """Without the rare reports the third row is the mean of the others;
    g = 1 at the uniform distribution, by hand.
    """
    rare = 1e-20 * np.array([[2, 2], [2, 2], [1, 3]])
    matrix = np.column_stack([[0.5, 0.2, 0.35], [0.5, 0.8, 0.65], rare])
    points = fixed_points(ik.MatrixMechanism(matrix).tally_counts([21, 39, 100, 140]))
    assert (tuple(points[0].support), points[0].dimension) == ((0, 1, 2), 0)
    np.testing.assert_allclose(points[0].distribution, 1 / 3, rtol=1e-12)


def test_rows_that_differ_in_their_twelfth_digit_are_not_taken_for_dependent():
    """With two reports g_x = 1 puts a row on a line, and no three of these four rows lie on one."""
    seen = np.array(
        [[8904508, 2569528], [8910446, 1661586], [8900374, 1743150], [8915105, 1764930]]
    )
    matrix = np.array([0.005862998280000000, 0.041469526000000]) + seen * [1e-18, 1e-16]
    for (ax, ay), (bx, by), (cx, cy) in itertools.combinations(
        [[*map(Fraction, row)] for row in matrix.tolist()], 3
    ):
        assert (bx - ax) * (cy - ay) != (cx - ax) * (by - ay)
    tally = ik.MatrixMechanism(np.column_stack([matrix, 1 - matrix.sum(axis=1)])).tally_counts(
        [1, 1, 0]
    )
    with pytest.raises(ik.ConvergenceError, match="rounding leaves it open"):
        fixed_points(tally)
    points = fixed_points(tally, strict=False)
    assert max(len(point.support) for point in points) <= 2
    assert_fixed(tally, points)


@pytest.mark.parametrize("share", [0.003, 3e-9])
def test_a_continuum_beside_a_report_in_a_billion(share):
    """All secrets but the first make the rare report likelier than it is,
    so every face with the first fits exactly.
    """
    tally = ik.MatrixMechanism([[1, 0], [1 - share, share], [0.5, 0.5], [0.9, 0.1]]).tally_counts(
        [10**9, 1]
    )
    points = fixed_points(tally)
    fitting = {face for face in all_faces(4) if face[0] == 0 and len(face) > 1}
    assert supports(points) == fitting | {(1,), (2,), (3,)}
    # with so small a share the first two's g hardly depends on the mass of the second, and that of
    # the others does
    hard = {(0, 1)} if share < 1e-6 else set()
    assert {tuple(point.support.tolist()) for point in points if point.is_mle} | hard == fitting
    assert_fixed(tally, points)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-2, 0.1, 0.0002461793967957444])
def test_secrets_that_are_seen_equally_rarely(epsilon):
    """By symmetry the uniform distribution on any of them is fixed,
    with 1e9 reports of another kind, too.
    """
    matrix = naive.k_rr(38, epsilon)[[12, 30, 4, 18]]
    tally = ik.MatrixMechanism(matrix).tally_counts([1] * 10 + [10**9] + [1] * 27)
    points = fixed_points(tally)
    # where exactly they are, g does not tell: it hardly depends on how the rare secrets share their
    # mass
    assert supports(points) == set(all_faces(4))
    assert_fixed(tally, points)


TWINS = ik.MatrixMechanism([[0.45, 0.10, 0.45], [0.05, 0.90, 0.05], [0.45, 0.10, 0.45]])


def test_a_continuum():
    """Matrix (12) of the consistency paper:
    nothing distinguishes the first secret from the third.
    """
    tally = TWINS.tally_counts([1, 4, 1])
    points = fixed_points(tally)
    assert_fixed(tally, points)
    found = {tuple(point.support.tolist()): point for point in points}
    assert set(found) == set(all_faces(3))
    assert {support for support, point in found.items() if point.is_mle} == {
        (0, 1),
        (1, 2),
        (0, 1, 2),
    }
    assert {support for support, point in found.items() if point.dimension} == {(0, 2), (0, 1, 2)}
    # 0.9 t + 0.1 (1 - t) = 4/6
    middle = (4 / 6 - 0.1) / 0.8
    np.testing.assert_allclose(found[0, 1].distribution, [1 - middle, middle, 0], atol=1e-14)
    np.testing.assert_allclose(
        found[0, 1, 2].distribution, [(1 - middle) / 2, middle, (1 - middle) / 2], atol=1e-14
    )
    np.testing.assert_allclose(found[0, 2].distribution, [0.5, 0, 0.5], atol=1e-14)


def test_a_continuum_that_a_border_cuts_off():
    """Dependent rows whose maximisers all leave out a secret: the larger faces hold no point."""
    matrix = [[0.8, 0.2], [0.5, 0.5], [0.2, 0.8]]
    tally = ik.MatrixMechanism(matrix).tally_counts([8, 2])  # only the first secret fits, exactly
    assert supports(fixed_points(tally)) == {(0,), (1,), (2,)}
    tally = ik.MatrixMechanism(matrix).tally_counts([6, 4])
    points = fixed_points(tally)
    assert supports(points) == {(0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2)}
    assert {tuple(point.support.tolist()): point.dimension for point in points}[0, 1, 2] == 1
    assert_fixed(tally, points)


def some_mle_is_positive(tally):
    """Maximise min theta over the distributions that fit as well as one maximiser:
    a program in the full space.
    """
    columns = tally.matrix()
    k, s = columns.shape
    scale = columns.max(axis=0)
    found = linprog(
        c=np.r_[np.zeros(k), -1.0],
        A_ub=np.column_stack([-np.eye(k), np.ones(k)]),
        b_ub=np.zeros(k),
        A_eq=np.column_stack([(columns / scale).T, np.zeros(s)]),
        b_eq=ik.mle(tally, tol=1e-13).distribution @ (columns / scale),
    )
    return -found.fun > 1e-4


def test_a_continuum_of_maximisers_reaches_inside_where_a_linear_program_says_so(rng):
    agreed = {True: 0, False: 0}
    for _ in range(60):
        matrix = rng.dirichlet(np.ones(2), 4) @ rng.dirichlet(np.ones(6), 2)
        tally = ik.MatrixMechanism(matrix).tally_counts(
            rng.multinomial(200, matrix[rng.integers(0, 4)])
        )
        points = fixed_points(tally)
        assert_fixed(tally, points)
        inside = some_mle_is_positive(tally)
        assert ((0, 1, 2, 3) in supports(points)) == inside
        agreed[inside] += 1
    assert min(agreed.values()) >= 5, agreed


def test_dependent_only_on_the_reports_seen():
    """An unseen report tells two rows apart;
    among the seen ones the second secret is half as likely as the first.
    """
    tally = ik.MatrixMechanism([[0.6, 0.4, 0.0], [0.3, 0.2, 0.5], [0.1, 0.9, 0.0]]).tally_counts(
        [5, 5, 0]
    )
    points = fixed_points(tally)
    assert supports(points) == {(0,), (1,), (2,), (0, 2), (1, 2)}
    assert_fixed(tally, points)


def test_impossible_reports_leave_faces_out():
    """Under the first two secrets alone the third report cannot be:
    there the map is not defined.
    """
    matrix = [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [0.1, 0.1, 0.8]]
    points = fixed_points(ik.MatrixMechanism(matrix).tally_counts([3, 3, 2]))
    assert not {(0,), (1,), (0, 1)} & supports(points)
    assert (2,) in supports(points)
    seen = fixed_points(ik.MatrixMechanism(matrix).tally_counts([3, 3, 0]))
    assert {(0,), (1,), (2,)} <= supports(seen)


def test_a_secret_that_explains_nothing_has_no_mass():
    points = fixed_points(
        ik.MatrixMechanism([[0.5, 0.5], [0.0, 1.0], [0.9, 0.1]]).tally_counts([3, 0])
    )
    assert supports(points) == {(0,), (2,)}


def test_one_secret():
    (point,) = fixed_points(ik.MatrixMechanism([[0.25, 0.75]]).tally_counts([1, 5]))
    assert point.distribution.tolist() == [1.0]
    assert (point.is_mle, point.dimension, round(point.largest_ratio, 12)) == (True, 0, 1)
    assert point.log_likelihood == pytest.approx(np.log(0.25) + 5 * np.log(0.75))


def test_one_report():
    """L = log p of that report:
    the vertices, and the faces on which all secrets make it equally likely.
    """
    points = fixed_points(ik.TruncatedGeometric(5, 0.5).tally([2]))
    assert {tuple(point.support.tolist()): point.dimension for point in points} == {
        **dict.fromkeys([(0,), (1,), (2,), (3,), (4,)], 0),
        **dict.fromkeys([(0, 4), (1, 3)], 1),
    }
    assert [tuple(point.support) for point in points if point.is_mle] == [(2,)]


def test_equal_rows_are_all_fixed():
    points = fixed_points(
        ik.MatrixMechanism(np.tile([0.2, 0.3, 0.5], (4, 1))).tally_counts([1, 2, 3])
    )
    assert supports(points) == set(all_faces(4))
    for point in points:
        assert point.is_mle
        assert point.dimension == len(point.support) - 1
        np.testing.assert_allclose(
            point.distribution[point.support], 1 / len(point.support), atol=1e-14
        )


def test_pooled_tallies(rng):
    theta = rng.dirichlet(np.ones(5))
    mechanisms = [ik.RandomizedResponse(5, 1.0), ik.Rappor(5, 1.0), ik.LinearGeometric(5, 0.3)]
    tally = sum(mechanism.simulate(rng.multinomial(300, theta), rng) for mechanism in mechanisms)
    points = fixed_points(tally)
    assert_fixed(tally, points)
    np.testing.assert_allclose(
        points[0].distribution, ik.mle(tally, tol=1e-13).distribution, atol=1e-6
    )


def test_reports_beyond_the_range_of_a_double():
    tally = ik.LinearGeometric(3, 1.0).tally([5000, -4000, 1, 1])
    assert_fixed(tally, fixed_points(tally))


@settings(max_examples=100)
@given(tally=tallies())
def test_on_anything_small(tally):
    try:
        points = fixed_points(tally)
    except ik.ConvergenceError:  # rounding leaves a point open, as of rows that differ by 1e-8
        reject()
    assert_fixed(tally, points)
    possible = {(x,) for x, row in enumerate(tally.matrix()) if (row > 0).all()}
    assert {support for support in supports(points) if len(support) == 1} == possible


# The twin: the iteration itself, run long from inside each face. It ends at the face's maximiser,
# which is listed: under this face if all of it is positive, otherwise under a smaller one.

NEAR = 1e-6


def long_runs(columns, q, faces, rng, starts=3, steps=30_000):
    """Where the iteration ends from random starts in each face, shape (faces, starts, k)."""
    theta = np.zeros((len(faces), starts, len(columns)))
    for i, face in enumerate(faces):
        theta[i][:, list(face)] = rng.dirichlet(np.full(len(face), 3.0), starts)
    for _ in range(steps):
        theta *= (q / (theta @ columns)) @ columns.T
    return theta


def unlisted_ends(tally, points, rng):
    """Faces from which some run ends away from all points and sets listed."""
    columns, q = tally.matrix(), tally.counts / tally.n
    faces = all_faces(tally.k)
    lost = []
    for face, ends in zip(faces, long_runs(columns, q, faces, rng), strict=True):
        for end in ends:
            single = [
                p for p in points if p.dimension == 0 and np.abs(end - p.distribution).max() < NEAR
            ]
            within = [
                p
                for p in points
                if p.dimension
                and np.abs((end - p.distribution) @ columns).max() < NEAR
                and end[np.setdiff1d(np.arange(tally.k), p.support)].max(initial=0) < NEAR
            ]
            if not single + within:
                lost.append(face)
    return lost


def random_tally(seed):
    """Random rows with a duplicate in every third,
    and counts that most such rows explain poorly.
    """
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(5, 0.7), 4)
    if seed % 3 == 0:
        matrix[3] = matrix[1]
    return ik.MatrixMechanism(matrix).tally_counts(rng.integers(1, 50, 5))


@pytest.mark.parametrize("seed", range(6))
def test_long_runs_end_at_listed_points(seed, rng):
    tally = random_tally(seed)
    assert unlisted_ends(tally, fixed_points(tally), rng) == []


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_a_point_that_is_left_out_is_missed(seed, rng):
    tally = random_tally(seed)
    points = fixed_points(tally)
    left_out = next(point for point in points if len(point.support) > 1)
    others = tuple(point for point in points if point is not left_out)
    assert tuple(left_out.support.tolist()) in unlisted_ends(tally, others, rng)


def test_a_point_that_is_not_fixed_is_seen():
    tally = random_tally(1)
    point = fixed_points(tally)[0]
    moved = point.distribution.copy()
    moved[point.support[:2]] += [1e-6, -1e-6]
    spoilt = FixedPoint(moved, point.support, True, point.largest_ratio, 0, point.log_likelihood)
    with pytest.raises(AssertionError):
        assert_fixed(tally, (spoilt,))


def test_twelve_secrets_and_no_more(rng):
    # k-RR with every report seen about equally often: each face has its point
    points = fixed_points(ik.RandomizedResponse(12, 1.0).tally_counts(np.full(12, 100)))
    assert len(points) == 2**12 - 1
    assert sum(point.is_mle for point in points) == 1
    with pytest.raises(ValueError, match=r"at most 12 secrets, got 13: each of the 2\^k - 1 faces"):
        fixed_points(ik.RandomizedResponse(13, 1.0).tally([0]))


def test_only_tallies():
    with pytest.raises(TypeError, match=r"tally must be a Tally, .* got list"):
        fixed_points([1, 2, 3])


def test_results_are_read_only_and_readable():
    first, *others = fixed_points(TWINS.tally_counts([1, 4, 1]))
    assert isinstance(first, FixedPoint)
    with pytest.raises(ValueError, match="read-only"):
        first.distribution[0] = 1
    assert repr(first) == "FixedPoint([0.2917, 0.7083, 0], an MLE, log-likelihood -5.205)"
    assert repr(others[1]).endswith("an MLE, log-likelihood -5.205, one of a set of dimension 1)")
    assert "no MLE: largest ratio 3.074" in repr(others[2])
