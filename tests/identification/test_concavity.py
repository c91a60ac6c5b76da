"""strictly_concave: three equivalent tests, structure against the matrix,
and how many reports are enough.
"""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit.fisher_information import dense
from ibukit.identification import _binary_field, _null_spaces, concavity
from ibukit.tally.tally import pool
from ibukit.theory import strictly_concave
from oracles import exact

SQUARE = [
    ik.RandomizedResponse(6, 0.7),
    ik.TruncatedGeometric(6, 0.3),
    ik.Exponential(6, 1.0),
    ik.TruncatedPlanarGeometric(ik.Grid(2, 3), 0.8),
    ik.LinearLaplace(6, 0.5),
]


def brute_force_rank(tally):
    """Independent columns among those seen and the ones vector, less the ones vector."""
    columns = tally.matrix()
    return (
        np.linalg.matrix_rank(np.column_stack([np.ones(tally.k), columns / columns.max(axis=0)]))
        - 1
    )


def check(answer, tally):
    """The evidence: a direction in which no report changes and the sum neither."""
    assert bool(answer) == answer.strictly_concave == (answer.rank == tally.k - 1)
    if answer:
        assert answer.direction is None
        return
    w = answer.direction
    assert np.abs(w).sum() == pytest.approx(2)
    assert abs(w.sum()) < 1e-12
    forward = tally.operator.forward
    assert (np.abs(forward(w)) <= 1e-11 * forward(np.abs(w)) + 1e-300).all()


@pytest.mark.ledger("A-C1", "A-C3", "A-Def1")
@pytest.mark.erratum("A13")
@pytest.mark.parametrize("mechanism", SQUARE, ids=lambda mechanism: type(mechanism).__name__)
def test_k_minus_one_distinct_reports_suffice_and_k_minus_two_never(mechanism):
    for size in range(1, 7):
        for seen in combinations(range(6), size):
            tally = mechanism.tally(seen)
            answer = strictly_concave(tally)
            assert answer.rank == brute_force_rank(tally)
            assert bool(answer) == (size >= 5)
            check(answer, tally)


@pytest.mark.ledger("A-C2")
@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 4.0, 30.0])
def test_reports_beyond_an_end_count_as_that_end(epsilon):
    mechanism = ik.LinearGeometric(ik.Line(2, 6), epsilon)
    for reports, rank in (
        ([-9, 0, 1, 2], 1),
        ([3, 4, 5], 3),
        ([-9, 3, 4, 5], 4),
        ([-9, 3, 4, 50], 4),
        ([9, 7, 3], 2),
    ):
        tally = mechanism.tally(reports)
        answer = strictly_concave(tally)
        assert answer.rank == rank
        check(answer, tally)


@pytest.mark.ledger("A-T2")
@pytest.mark.parametrize(
    "mechanism", [ik.Rappor(7, 1.0), ik.OptimizedUnaryEncoding(7, 0.5)], ids=["RAPPOR", "OUE"]
)
def test_bit_rows_have_the_rank_of_their_integers(mechanism, rng):
    seen = []
    for _ in range(200):
        rows = (rng.random((rng.integers(1, 12), 7)) < rng.uniform(0.1, 0.9)).astype(int)
        if rng.random() < 0.3:
            rows[:, 3] = rows[:, 5]
        tally = mechanism.tally(rows)
        answer = strictly_concave(tally)
        assert answer.rank == exact.rank(np.column_stack([np.ones(7, dtype=int), rows.T])) - 1
        check(answer, tally)
        seen.append(bool(answer))
    assert 20 < sum(seen) < 180


@pytest.mark.ledger("A-L3")
def test_bits_that_only_the_reals_can_tell_apart():
    # any two of the three rows of two ones add up to the third where 1 + 1 = 0
    rows = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0]])
    ones = np.ones((1, 4), dtype=int)
    assert exact.rank_over_two(np.concatenate([ones, rows])) == 3
    answer = strictly_concave(ik.Rappor(4, 1.0).tally(rows))
    assert answer
    assert "1 + 1" not in answer.reason


@given(st.integers(1, 20), st.integers(1, 14), st.integers(0, 2**32 - 1))
def test_rank_over_the_field_with_two_elements(n, width, seed):
    rows = np.random.default_rng(seed).integers(0, 2, (n, width), dtype=np.uint8)
    assert _binary_field.rank(np.packbits(rows, axis=1), width) == exact.rank_over_two(rows)
    assert exact.rank_over_two(rows) <= exact.rank(rows)


def test_many_bit_rows_are_read_only_until_they_suffice(rng):
    rows = np.packbits(rng.integers(0, 2, (5000, 60), dtype=np.uint8), axis=1)
    assert _binary_field.rank(rows, 60) == 60
    rows[:2000, 0] &= 0b00111111  # two bits that are not set in the first stretches
    assert _binary_field.rank(rows[:2000], 60) == 58
    assert _binary_field.rank(rows, 60) == 60


@pytest.mark.ledger("A-T1", "A-L1")
def test_rank_curvature_and_pairs_agree(rng):
    """Rank k of [1, G], negative definite Hessian on the tangent space,
    and no two distributions alike to G.
    """
    answers = []
    for _ in range(200):
        k, s = rng.integers(2, 6, 2)
        columns = rng.random((k, s)) * rng.uniform(0.1, 0.9, s)
        if rng.random() < 0.4:
            columns[-1] = columns[0]
        rest = columns.sum(axis=1).max() * 1.1
        matrix = np.column_stack([columns, rest - columns.sum(axis=1)]) / rest
        tally = ik.MatrixMechanism(matrix).tally_counts([*rng.integers(1, 9, s), 0])
        answer = strictly_concave(tally)
        theta, phi = rng.dirichlet(np.ones(k), 2)
        G = tally.matrix()
        tangent = np.linalg.qr(np.ones((k, 1)), mode="complete")[0][:, 1:]
        weights = tally.counts / (theta @ G) ** 2
        hessian = -(tangent.T @ G * weights) @ (tangent.T @ G).T
        definite = np.linalg.eigvalsh(hessian).max() < -1e-13 * float(
            (G**2 @ weights).sum()
        )  # what rounding leaves
        assert bool(answer) == definite
        middle = [likelihood(tally, point) for point in (theta, (theta + phi) / 2, phi)]
        assert middle[1] - (middle[0] + middle[2]) / 2 > (1e-12 if answer else -1e-12)
        if not answer:
            w = answer.direction
            length = min(theta[w < 0] / -w[w < 0])
            other = theta + length * w
            assert likelihood(tally, other) == pytest.approx(likelihood(tally, theta), rel=1e-10)
            assert ik.total_variation(theta, np.maximum(other, 0)) > 1e-4
        check(answer, tally)
        answers.append(bool(answer))
    assert 50 < sum(answers) < 150


def likelihood(tally, theta):
    with np.errstate(divide="ignore"):
        return float(tally.counts @ np.log(tally.forward(theta)))


@pytest.mark.erratum("A10")
def test_with_zeros_the_theorem_needs_a_finite_likelihood():
    G = np.array([[0, 0.5], [0, 0.2], [1, 0.3]])
    matrix = np.column_stack([G, 1.3 - G.sum(axis=1)]) / 1.3
    tally = ik.MatrixMechanism(matrix).tally([0, 1])
    theta, phi = np.eye(3)[0], np.eye(3)[1]
    ends = [likelihood(tally, point) for point in (theta, (theta + phi) / 2, phi)]
    assert ends == [-np.inf] * 3  # equality in the lemma's (3)
    assert (theta - phi) @ G == pytest.approx([0, 0.3])  # which is said to need 0
    answer = strictly_concave(tally)
    assert answer
    assert "where L is finite" in answer.reason


def test_pooled_mechanisms_see_what_one_of_them_cannot(rng):
    one = ik.MatrixMechanism([[0.8, 0.2], [0.8, 0.2], [0.3, 0.7]])
    two = ik.MatrixMechanism([[0.8, 0.2], [0.3, 0.7], [0.8, 0.2]])
    tallies = [mechanism.tally_counts([3, 4]) for mechanism in (one, two)]
    assert [bool(strictly_concave(tally)) for tally in (*tallies, sum(tallies))] == [
        False,
        False,
        True,
    ]
    krr, line, bits = (
        ik.RandomizedResponse(4, 1.0),
        ik.TruncatedGeometric(4, 0.5),
        ik.Rappor(4, 1.0),
    )
    rest = line.tally([0])
    assert "one of the mechanisms alone" in strictly_concave(krr.tally([0, 1, 2]) + rest).reason
    for pooled in (
        krr.tally([0, 1]) + rest,
        krr.tally([0]) + rest,
        bits.tally([[1, 1, 0, 0]]) + krr.tally([0]) + rest,
    ):
        assert strictly_concave(pooled).rank == brute_force_rank(pooled)
        check(strictly_concave(pooled), pooled)


@pytest.mark.parametrize("mechanism", [ik.RandomizedResponse, ik.TruncatedGeometric])
def test_structure_needs_no_matrix(mechanism):
    k = 10**5
    for missing, expected in ((0, True), (1, True), (2, False), (500, False)):
        tally = mechanism(k, 0.01).tally(np.arange(k - missing))
        answer = strictly_concave(tally)
        assert bool(answer) == expected
        check(answer, tally)


def test_a_matrix_is_read_in_stretches(monkeypatch, rng):
    mechanism = ik.PlanarLaplace(ik.Grid(3, 4), 0.7)
    tally = mechanism.simulate(np.full(12, 50), rng) + ik.Rappor(mechanism.alphabet, 1.0).simulate(
        np.full(12, 3), rng
    )
    columns = list(_null_spaces.seen_columns(tally, np.arange(12)))
    monkeypatch.setattr(dense, "MATRIX_ENTRIES_AT_ONCE", 30)
    monkeypatch.setattr(_null_spaces, "MAX_COLUMNS", 1)
    again = _null_spaces.span(_null_spaces.seen_columns(tally, np.arange(12)), 12)
    assert again.rank == 12
    whole = np.linalg.svd(np.concatenate(columns, axis=1), compute_uv=False)
    assert again.singular_values == pytest.approx(whole, rel=1e-10)


def test_a_witness_without_a_plain_one(monkeypatch, rng):
    matrix = rng.dirichlet(np.ones(3), 5)
    monkeypatch.setattr(_null_spaces, "_sparse_null_vectors", lambda found: iter(()))
    tally = ik.MatrixMechanism(matrix).tally([0, 1, 2])
    check(strictly_concave(tally), tally)


def test_one_report_and_one_secret():
    answer = strictly_concave(ik.MatrixMechanism([[0.1, 0.9], [0.4, 0.6], [0.4, 0.6]]).tally([0]))
    assert answer.rank == 1
    assert strictly_concave(ik.MatrixMechanism([[0.1, 0.9]]).tally([0, 1])).rank == 0
    assert strictly_concave(ik.LinearGeometric(ik.Line(3, 3), 1.0).tally([0, 9]))
    assert strictly_concave(ik.RandomizedResponse(2, 1.0).tally([1]))


def test_a_report_that_carries_no_information():
    answer = strictly_concave(ik.MatrixMechanism([[0.5, 0.2, 0.3], [0.5, 0.3, 0.2]]).tally([0, 0]))
    assert (bool(answer), answer.rank) == (False, 0)


def test_bad_input():
    with pytest.raises(TypeError, match="tally must be a Tally"):
        strictly_concave([1, 2, 3])
    with pytest.raises(ik.errors.ImpossibleReport, match="no secret can produce"):
        ik.MatrixMechanism([[0.5, 0.0, 0.5], [0.2, 0.0, 0.8]]).tally([1])
    large = ik.MatrixMechanism(np.full((5001, 2), 0.5))
    with pytest.raises(ValueError, match="k must be at most 5000"):
        strictly_concave(large.tally([0]))


def test_nothing_spans_nothing():
    assert _null_spaces.span([np.zeros((4, 2))], 4).rank == 0


def test_one_part_with_impossible_reports_is_enough_to_say_so():
    some, none = (
        ik.MatrixMechanism([[1, 0], [0.5, 0.5]]),
        ik.MatrixMechanism([[0.75, 0.25], [0.5, 0.5]]),
    )
    for parts, said in (((some, none), True), ((none, none), False)):
        tally = pool([part.tally_counts([2, 3]) for part in parts])
        assert ("cannot produce some report" in concavity._finite_only(tally)) == said


def test_two_secrets_that_are_told_apart_by_nothing_are_the_witness(rng):
    matrix = rng.dirichlet(np.ones(30), 20)
    matrix[13] = matrix[4]
    answer = strictly_concave(ik.MatrixMechanism(matrix).tally_counts(np.ones(30, dtype=int)))
    assert np.flatnonzero(answer.direction).tolist() == [4, 13]
    check(answer, ik.MatrixMechanism(matrix).tally_counts(np.ones(30, dtype=int)))


def test_the_reason_has_the_least_singular_value():
    span = _null_spaces.span([np.diag([4.0, 2.0, 0.5])], 3)
    answer = concavity._by_rank(span, 3, "")
    assert (bool(answer), answer.rank) == (True, 2)
    assert "the least singular value 0.12" in answer.reason  # relative to the largest


@pytest.mark.parametrize(("second", "rank"), [(1e-14, 1), (1e-12, 2)])
def test_what_is_rounding_in_a_tall_matrix_depends_on_its_length(second, rank):
    """The largest singular value times the longer side times eps,
    as in numpy: 400 rows leave 9e-14.
    """
    tall = np.zeros((400, 2))
    tall[0, 0], tall[1, 1] = 1.0, second
    assert _null_spaces.span([tall], 400).rank == np.linalg.matrix_rank(tall) == rank


def test_the_row_of_ones_counts_where_bits_are_one_row_short():
    """Two of three secrets' rows were seen:
    the third is what is left of the ones, and no matrix is decomposed.
    """
    answer = ik.theory.strictly_concave(ik.Rappor(3, 1.0).tally([[1, 0, 0], [0, 1, 0]]))
    assert answer
    assert answer.reason.startswith(
        "bits: 2 of the rows seen are independent beside the row of ones"
    )


def test_rows_that_are_sorted_suffice_as_soon(rng, monkeypatch):
    rows = np.packbits(rng.random((20_000, 60)) < 0.05, axis=1)
    rows = rows[np.lexsort(rows.T[::-1])]
    seen, reduced = [], _binary_field._reduced
    monkeypatch.setattr(
        _binary_field,
        "_reduced",
        lambda rows, width: seen.append(len(rows)) or reduced(rows, width),
    )
    assert _binary_field.rank(rows, 60) == 60
    assert sum(seen) < 1000
