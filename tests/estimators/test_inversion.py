"""Matrix inversion: its closed forms against linear algebra,
its repairs against their definitions, its refusals.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.estimators._post_processing import POST
from ibukit.mechanisms.inversion_error import inversion_error
from oracles import naive

# mechanism, its matrix by the oracle: closed forms first, then the general solve
SQUARE = [
    (ik.RandomizedResponse(7, 0.3), naive.k_rr(7, 0.3)),
    (ik.RandomizedResponse(2, 5.0), naive.k_rr(2, 5.0)),
    (ik.TruncatedGeometric(9, 0.2), naive.truncated_geometric(9, 0.2)),
    (ik.TruncatedGeometric(2, 1.0), naive.truncated_geometric(2, 1.0)),
    (ik.TruncatedGeometric(3, 2.0), naive.truncated_geometric(3, 2.0)),
    (ik.Exponential(6, 1.0), naive.exponential(naive.line_distances(6), 1.0)),
    (ik.LinearLaplace(6, 1.0), naive.linear_laplace(6, 1.0)),
    (
        ik.TruncatedPlanarGeometric(ik.Grid(2, 3), 2.0),
        naive.truncated_planar_geometric(2, 3, 1.0, 1.0, 2.0),
    ),
    (ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.9, 0.1], [0.3, 0.7]])),
]
IDS = [f"{type(mechanism).__name__}-{mechanism.k}" for mechanism, _ in SQUARE]


@pytest.mark.ledger("A-D07")
@pytest.mark.parametrize(("mechanism", "matrix"), SQUARE, ids=IDS)
def test_raw_inversion_solves_the_linear_system(mechanism, matrix, rng):
    for alpha in (0.2, 1.0, 5.0):
        counts = rng.multinomial(3000, rng.dirichlet(np.full(mechanism.m, alpha)))
        estimate = ik.inv(mechanism.tally_counts(counts), post="none")
        expected = naive.inv(matrix, counts)
        scale = np.linalg.cond(matrix) * np.abs(expected).max()
        assert np.abs(estimate.distribution - expected).max() <= 1e-14 * scale
        assert estimate.distribution.sum() == pytest.approx(1, abs=1e-14 * scale)
        assert np.abs(estimate.distribution @ matrix - counts / 3000).max() <= 1e-14 * scale


@pytest.mark.parametrize("k", [2, 3, 50])
def test_the_tridiagonal_inverse_on_a_long_line(k):
    # exact where linear algebra on the matrix loses digits: the frequencies of a known distribution
    # come back
    mechanism = ik.TruncatedGeometric(k, 0.01)
    theta = np.arange(1.0, k + 1) / (k * (k + 1) / 2)
    frequencies = theta @ mechanism.matrix()
    v = mechanism.invert(np.arange(k), frequencies)
    assert np.abs(v - theta).max() <= 1e-10


@pytest.mark.parametrize(("mechanism", "matrix"), SQUARE, ids=IDS)
def test_its_error_is_that_of_the_inverse_matrix(mechanism, matrix, rng):
    """N E ||v - theta||^2 = sum_z (theta M)_z ||r_z||^2 - ||theta||^2,
    with r_z the rows of M^-1.
    """
    norms = (np.linalg.inv(matrix) ** 2).sum(axis=1)
    for theta in (
        rng.dirichlet(np.ones(len(matrix))),
        np.eye(len(matrix))[0],
        np.eye(len(matrix))[-1],
    ):
        expected = theta @ matrix @ norms - theta @ theta
        assert inversion_error(mechanism).at(theta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "mechanism", [ik.Rappor(6, 1.3), ik.OptimizedUnaryEncoding(6, 1.3)], ids=["RAPPOR", "OUE"]
)
def test_unary_encodings_are_debiased_bit_by_bit(mechanism, rng):
    p_one = {"Rappor": np.exp(0.65) / (1 + np.exp(0.65)), "OptimizedUnaryEncoding": 0.5}[
        type(mechanism).__name__
    ]
    p_zero = {"Rappor": 1 / (1 + np.exp(0.65)), "OptimizedUnaryEncoding": 1 / (1 + np.exp(1.3))}
    p_zero = p_zero[type(mechanism).__name__]
    rows = rng.integers(0, 2, (300, 6))
    estimate = ik.inv(mechanism.tally(rows), post="none")
    expected = (rows.mean(axis=0) - p_zero) / (p_one - p_zero)
    assert np.abs(estimate.distribution - expected).max() <= 1e-13
    # exactly right on the reports' true distribution: a left inverse of the channel
    theta = rng.dirichlet(np.ones(6))
    matrix = naive.rappor(6, 1.3) if p_one != 0.5 else naive.oue(6, 1.3)
    assert np.abs(mechanism.invert(mechanism._all_reports, theta @ matrix) - theta).max() <= 1e-13


@pytest.mark.parametrize("epsilon", [5e-15, 1e-12, 1e-6])
@pytest.mark.parametrize(
    "kind",
    [ik.RandomizedResponse, ik.Rappor, ik.OptimizedUnaryEncoding],
    ids=lambda kind: kind.__name__,
)
def test_the_smallest_epsilon_divides_by_what_it_should(kind, epsilon):
    mechanism = kind(4, epsilon)
    reports = np.array([0, 0, 1])
    v = ik.inv(
        mechanism.tally(reports if mechanism.m == 4 else np.eye(4)[reports]), post="none"
    ).distribution
    # to first order the two probabilities differ by eps / 4, for k = 4 in all three
    assert v[0] - v[1] == pytest.approx((2 / 3 - 1 / 3) / (epsilon / 4), rel=1e-5)


def test_more_reports_than_secrets(rng):
    matrix = rng.dirichlet(np.ones(6), 3)
    mechanism, theta = ik.MatrixMechanism(matrix), np.array([0.5, 0.3, 0.2])
    assert np.abs(mechanism.invert(np.arange(6), theta @ matrix) - theta).max() <= 1e-13
    counts = rng.multinomial(500, theta @ matrix)
    expected = counts / 500 @ np.linalg.pinv(matrix)
    assert (
        np.abs(ik.inv(mechanism.tally_counts(counts), post="none").distribution - expected).max()
        <= 1e-12
    )


@pytest.mark.ledger("A-D08", "A-D09")
@pytest.mark.parametrize("seed", range(10))
def test_both_repairs_are_what_their_definitions_say(seed):
    rng = np.random.default_rng(seed)
    mechanism = ik.TruncatedGeometric(8, 0.3)
    counts = rng.multinomial(200, rng.dirichlet(np.ones(8)) @ mechanism.matrix())
    tally = mechanism.tally_counts(counts)
    raw = ik.inv(tally, post="none")
    assert (raw.distribution < 0).any(), "nothing to repair"
    clipped, projected = ik.inv(tally, post="normalize"), ik.inv(tally, post="project")
    assert clipped.distribution == pytest.approx(
        naive.clip_and_normalize(raw.distribution), abs=1e-14
    )
    assert projected.distribution == pytest.approx(naive.project(raw.distribution), abs=1e-12)
    assert projected.distribution == pytest.approx(
        naive.project_to_simplex(raw.distribution), abs=1e-6
    )
    for estimate in (clipped, projected):
        assert (estimate.distribution >= 0).all()
        assert estimate.distribution.sum() == pytest.approx(1, abs=1e-15)
        assert (estimate.status, estimate.n_iter) == (ik.Status.CLOSED_FORM, 0)
        assert estimate.gap == ik.gap(tally, estimate.distribution) > 0
    # of the two, the projection is the nearer to v; they differ, or the comparison says nothing
    near, far = (np.linalg.norm(e.distribution - raw.distribution) for e in (projected, clipped))
    assert near < far


def test_the_projection_meets_the_optimality_conditions(rng):
    mechanism = ik.TruncatedGeometric(30, 0.1)
    tally = mechanism.simulate(rng.multinomial(5000, ik.uniform(30)), rng)
    v, p = (ik.inv(tally, post=post).distribution for post in ("none", "project"))
    # p = max(v - tau, 0) with one tau for all
    tau = (v - p)[p > 0]
    assert np.ptp(tau) <= 1e-12 * np.abs(v).max()
    assert (v[p == 0] <= tau.max() + 1e-12 * np.abs(v).max()).all()


def test_the_default_is_the_projection():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([60, 30, 10])
    assert np.array_equal(ik.inv(tally).distribution, ik.inv(tally, post="project").distribution)
    assert [ik.inv(tally, post=post).method for post in ("none", "normalize", "project")] == [
        "INV",
        "INV-N",
        "INV-P",
    ]


def test_status_and_gap_off_the_simplex_and_on_it():
    mechanism = ik.RandomizedResponse(3, 1.0)
    off = ik.inv(mechanism.tally_counts([60, 30, 10]), post="none")
    assert (off.status, off.gap) == (ik.Status.OFF_SIMPLEX, np.inf)
    assert off.distribution.min() < 0
    tally = mechanism.tally_counts([40, 35, 25])
    on = ik.inv(tally, post="none")
    assert on.status is ik.Status.CLOSED_FORM
    assert on.distribution.min() > 0
    # v M = q is the best fit there is, so on the simplex inversion is the maximiser
    # It is a maximiser, so what is left is the bound on rounding.
    assert on.gap == ik.gap(tally, on.distribution) <= 1e-14
    sums_elsewhere = ik.inv(ik.Rappor(3, 1.0).tally([[1, 1, 0], [0, 1, 1]]), post="none")
    assert sums_elsewhere.distribution.sum() != pytest.approx(1)
    assert sums_elsewhere.status is ik.Status.OFF_SIMPLEX


MAX_ON_THE_DIAGONAL = [
    [0.36, 0.06, 0.28, 0.30],
    [1 / 28, 10 / 28, 8 / 28, 9 / 28],
    [5 / 22, 4 / 22, 7 / 22, 6 / 22],
    [9 / 34, 5 / 34, 8 / 34, 12 / 34],
]
SINGULAR = {
    "equal rows": [[0.3, 0.7], [0.3, 0.7]],
    "dependent rows": [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.25, 0.5, 0.25]],
    "more secrets than reports": [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]],
    "largest on the diagonal": MAX_ON_THE_DIAGONAL,
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("post", ["none", "normalize", "project"])
def test_singular_channels_are_refused(name, post):
    mechanism = ik.MatrixMechanism(SINGULAR[name])
    rank = np.linalg.matrix_rank(np.array(SINGULAR[name]))
    with pytest.raises(ik.errors.NotInvertible, match=f"rank {rank} for {mechanism.k} secrets"):
        ik.inv(mechanism.tally([0, 1, 1]), post=post)


@pytest.mark.erratum("B4")
def test_largest_entries_on_the_diagonal_do_not_make_a_channel_invertible():
    matrix = np.array(MAX_ON_THE_DIAGONAL)
    others = np.where(np.eye(4, dtype=bool), 0, matrix)
    assert (np.diag(matrix) > others.max(axis=0)).all()
    assert (np.diag(matrix) > others.max(axis=1)).all()
    assert abs(np.linalg.det(matrix)) <= 1e-16
    with pytest.raises(ik.errors.NotInvertible, match="rank 3 for 4 secrets"):
        ik.inv(ik.MatrixMechanism(matrix).tally([0, 1, 2, 3]))


def test_reports_that_cannot_be_listed_are_refused():
    for tally in (
        ik.LinearGeometric(4, 1.0).tally([0, 7]),
        ik.PlanarGeometric(ik.Grid(2, 2), 1.0).tally([[0, 3]]),
    ):
        with pytest.raises(
            ik.errors.NotInvertible, match=r"LinearGeometric|PlanarGeometric"
        ) as caught:
            ik.inv(tally)
        assert "no square channel matrix" in str(caught.value)


def test_pools_are_refused():
    pooled = ik.RandomizedResponse(3, 1.0).tally([0]) + ik.RandomizedResponse(3, 2.0).tally([1])
    with pytest.raises(
        ValueError, match="tally must hold reports of one mechanism, but it pools 2"
    ):
        ik.inv(pooled)


@pytest.mark.parametrize("post", ["simplex", "PROJECT", "", None])
def test_unknown_repairs_are_refused(post):
    with pytest.raises(
        ValueError,
        match=r"post must be one of 'none', 'normalize', 'project', 'norm-mul', .*, got ",
    ):
        ik.inv(ik.RandomizedResponse(3, 1.0).tally([0]), post=post)


def test_nothing_positive_to_normalize():
    tally = ik.Rappor(3, 1.0).tally([[0, 0, 0], [0, 0, 0]])
    with pytest.raises(ik.errors.InvalidDistribution, match="INV has no positive component"):
        ik.inv(tally, post="normalize")
    assert ik.inv(tally).distribution == pytest.approx(ik.uniform(3))


@pytest.mark.parametrize(
    ("post", "expected"),
    [
        ("none", [0.7, 0.4, 0.1, -0.2]),
        ("base-pos", [0.7, 0.4, 0.1, 0.0]),
        ("norm", [0.7, 0.4, 0.1, -0.2]),
        ("norm-mul", [7 / 12, 4 / 12, 1 / 12, 0.0]),
        ("normalize", [7 / 12, 4 / 12, 1 / 12, 0.0]),
        ("norm-sub", [19 / 30, 10 / 30, 1 / 30, 0.0]),
        ("project", [19 / 30, 10 / 30, 1 / 30, 0.0]),
        ("norm-cut", [7 / 11, 4 / 11, 0.0, 0.0]),
    ],
)
def test_each_way_by_hand(post, expected):
    """Under k-RR that tells the truth with 1/2 and else any of four: v = 2 q - 1/4."""
    tally = ik.RandomizedResponse(4, np.log(5)).tally_counts([475, 325, 175, 25])
    found = ik.inv(tally, post=post)
    np.testing.assert_allclose(found.distribution, expected, atol=1e-12)
    off = post in ("none", "base-pos", "norm")
    assert (found.status is ik.Status.OFF_SIMPLEX) is off
    assert (found.gap == np.inf) is off


@pytest.mark.parametrize(
    ("v", "norm", "cut"),
    [
        ([0.5, 0.2, -0.1], [0.5 + 0.4 / 3, 0.2 + 0.4 / 3, -0.1 + 0.4 / 3], [5 / 7, 2 / 7, 0.0]),
        ([0.5, 0.5, 0.5, -0.2], [0.425, 0.425, 0.425, -0.275], [0.5, 0.5, 0.0, 0.0]),
        ([1.5, 0.2], [1.15, -0.15], [1.0, 0.0]),
    ],
)
def test_sums_that_are_not_1(v, norm, cut):
    """Of bits, whose debiased frequencies sum to anything; of equal entries the first are kept."""
    np.testing.assert_allclose(POST["norm"][1](np.array(v)), norm, atol=1e-15)
    np.testing.assert_allclose(POST["norm-cut"][1](np.array(v)), cut, atol=1e-15)


def test_nothing_positive_to_cut():
    tally = ik.Rappor(3, 1.0).tally([[0, 0, 0], [0, 0, 0]])
    with pytest.raises(
        ik.errors.InvalidDistribution, match="so Norm-Cut is not defined; use post='project'"
    ):
        ik.inv(tally, post="norm-cut")
