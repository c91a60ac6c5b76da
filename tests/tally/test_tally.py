"""Tallies: counting, pooling, and the operators on the reports seen."""

import pickle
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit.tally import part as module
from ibukit.tally.tally import pool
from ibukit.testing import check_tally

GRID = ik.Grid(2, 2)
CODES = st.integers(0, 3)
# a mechanism on four secrets of each kind, and any reports of it
KINDS = [
    (ik.RandomizedResponse(4, 1.0), CODES),
    (ik.TruncatedGeometric(4, 0.5), CODES),
    (ik.LinearGeometric(4, 0.5), st.integers(-2000, 2000)),
    (ik.Rappor(4, 1.0), st.tuples(*[st.booleans()] * 4)),
    (ik.OptimizedUnaryEncoding(4, 1.0), st.tuples(*[st.integers(0, 1)] * 4)),
    (ik.PlanarGeometric(GRID, 1.0), st.tuples(st.integers(-900, 900), st.integers(-3, 3))),
    (ik.PlanarLaplace(GRID, 1.0), CODES),
    (
        ik.MatrixMechanism(
            [[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0.5, 0, 0, 0.5]]
        ),
        CODES,
    ),
]
LINE_KINDS = [kind for kind in KINDS if kind[0].alphabet == ik.Line(0, 3)]
kinds = pytest.mark.parametrize(
    ("mechanism", "report"), KINDS, ids=[type(m).__name__ for m, _ in KINDS]
)


def content(tally):
    """What a tally says, whatever the order of its parts:
    the counts of each mechanism's distinct reports.
    """
    return {
        part.mechanism: {
            np.asarray(report).tobytes(): int(count)
            for report, count in zip(part.reports, part.counts, strict=True)
        }
        for part in tally.parts
    }


@st.composite
def tallies(draw):
    parts = draw(st.lists(st.sampled_from(LINE_KINDS), min_size=1, max_size=3))
    return reduce(
        add,
        [
            mechanism.tally(draw(st.lists(report, min_size=1, max_size=5)), codes=True)
            for mechanism, report in parts
        ],
    )


@pytest.mark.ledger("A-D02")
def test_frequencies_are_the_empirical_distribution(rng):
    reports = rng.integers(0, 4, 1000)
    tally = ik.RandomizedResponse(4, 1.0).tally(reports)
    assert tally.n == 1000
    assert tally.counts.tolist() == [int((reports == z).sum()) for z in range(4)]
    assert np.array_equal(tally.frequencies, [(reports == z).mean() for z in range(4)])
    assert tally.frequencies.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.ledger("A-Def1")
def test_one_column_of_the_matrix_for_each_report_seen():
    rows = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    reports = np.array([2, 0, 2])
    tally = ik.MatrixMechanism(rows).tally(reports)
    np.testing.assert_allclose(tally.matrix(), rows[:, [0, 2]], rtol=1e-14)
    # the observations matrix G has one column for each user, G_xi = M_xz for the report z of user i
    which = np.searchsorted(tally.parts[0].reports, reports)
    np.testing.assert_allclose(tally.matrix()[:, which], rows[:, reports], rtol=1e-14)


@kinds
@given(data=st.data())
def test_splitting_the_reports_and_adding_is_the_identity(mechanism, report, data):
    reports = data.draw(st.lists(report, min_size=2, max_size=12))
    cut = data.draw(st.integers(1, len(reports) - 1))
    whole = mechanism.tally(reports, codes=True)
    pooled = mechanism.tally(reports[:cut], codes=True) + mechanism.tally(reports[cut:], codes=True)
    assert len(pooled.parts) == 1
    assert np.array_equal(pooled.parts[0].reports, whole.parts[0].reports)
    assert np.array_equal(pooled.counts, whole.counts)
    assert pooled.n == len(reports)


@kinds
@given(data=st.data())
def test_the_order_of_the_reports_does_not_matter(mechanism, report, data):
    reports = data.draw(st.lists(report, min_size=1, max_size=12))
    shuffled = data.draw(st.permutations(reports))
    assert content(mechanism.tally(shuffled, codes=True)) == content(
        mechanism.tally(reports, codes=True)
    )


@given(tallies(), tallies(), tallies())
def test_addition_is_associative_and_commutative(one, two, three):
    assert content((one + two) + three) == content(one + (two + three))
    assert content(one + two) == content(two + one)
    assert content(sum([one, two, three])) == content(one + two + three)
    assert (one + two).n == one.n + two.n


def test_the_same_mechanism_merges_and_another_is_kept_apart():
    mild, strict = ik.RandomizedResponse(3, 2.0), ik.RandomizedResponse(3, 1.0)
    pooled = (
        mild.tally([0, 1, 1])
        + strict.tally([1])
        + ik.RandomizedResponse(ik.Line(0, 2), 2.0).tally([2, 1])
    )
    assert [part.mechanism for part in pooled.parts] == [mild, strict]
    assert [part.counts.tolist() for part in pooled.parts] == [[1, 3, 1], [1]]
    assert pooled.counts.tolist() == [1, 3, 1, 1]
    theta, w = np.array([0.2, 0.3, 0.5]), np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(
        pooled.forward(theta), [*mild.forward(theta), strict.forward(theta)[1]], rtol=1e-14
    )
    back = mild.adjoint(w[:3]) + strict.adjoint([0, 4.0, 0])
    np.testing.assert_allclose(pooled.adjoint(w), back, rtol=1e-14)


@given(st.lists(tallies(), min_size=1, max_size=6))
def test_pooling_many_at_once_is_their_sum(many):
    assert content(pool(many)) == content(sum(many))
    assert [part.mechanism for part in pool(many).parts] == [
        part.mechanism for part in sum(many).parts
    ]


def test_a_pool_of_many_is_merged_once_for_each_mechanism(monkeypatch):
    """So that thousands take linear time;
    one after the other they would be copied again and again.
    """
    mechanisms = [ik.RandomizedResponse(4, epsilon) for epsilon in (0.5, 1.0, 2.0)]
    many = [mechanism.tally([z]) for z in (0, 1, 2, 3, 0) for mechanism in mechanisms[: 1 + z]]
    made, make = [], module.make_tally_part

    def counting(mechanism, reports, counts=None):
        made.append((mechanism, len(reports)))
        return make(mechanism, reports, counts)

    monkeypatch.setattr(module, "make_tally_part", counting)
    pooled = pool(many)
    assert made == [(mechanisms[0], 5), (mechanisms[1], 3), (mechanisms[2], 2)]
    assert pooled.n == len(many) == 10
    alone = pool(many[:1])
    assert alone.parts[0] is many[0].parts[0]


@given(tallies(), st.integers(0, 2**32))
def test_pools_keep_the_contract(tally, seed):
    check_tally(tally, rng=np.random.default_rng(seed))


@pytest.mark.parametrize(
    "other",
    [
        ik.RandomizedResponse(4, 1.0),
        ik.RandomizedResponse(ik.Line(1, 3), 1.0),
        ik.RandomizedResponse(ik.Grid(1, 3), 1.0),
    ],
)
def test_tallies_over_different_alphabets_do_not_add(other):
    tally = ik.RandomizedResponse(3, 1.0).tally([0])
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"same secrets, got Line\(0, 2\) and (Line|Grid)\("
    ):
        tally + other.tally([0], codes=True)
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"and Line\(0, 2\)"):
        other.tally([0], codes=True) + tally


def test_only_tallies_add():
    tally = ik.RandomizedResponse(3, 1.0).tally([0])
    for stranger in (1, 0.0, "t", [tally], None):
        with pytest.raises(TypeError):
            tally + stranger
        with pytest.raises(TypeError):
            stranger + tally


@kinds
@given(data=st.data())
def test_tallies_pickle_without_their_matrices(mechanism, report, data):
    tally = mechanism.tally(data.draw(st.lists(report, min_size=1, max_size=6)), codes=True)
    before = tally.forward([0.1, 0.2, 0.3, 0.4])
    again = pickle.loads(pickle.dumps(tally))
    assert content(again) == content(tally)
    assert np.array_equal(again.forward([0.1, 0.2, 0.3, 0.4]), before)
    assert content(again + tally) == content(tally + tally)


def test_a_large_channel_does_not_travel():
    tally = ik.TruncatedPlanarGeometric(ik.Grid(20, 20), 1.0).tally(np.arange(400), codes=True)
    tally.forward(np.full(400, 1 / 400))  # now 400 x 400 doubles, 1.3 MB, are cached
    # 400 reports, 400 counts and the labels of 400 cells are four times 400 integers
    assert len(pickle.dumps(tally)) < 5 * 400 * 8


@kinds
@given(data=st.data())
def test_what_a_tally_hands_out_is_read_only(mechanism, report, data):
    tally = mechanism.tally(data.draw(st.lists(report, min_size=1, max_size=6)), codes=True)
    pooled = tally + ik.MatrixMechanism(np.eye(4), tally.alphabet).tally([0], codes=True)
    for array in (
        tally.counts,
        tally.frequencies,
        tally.parts[0].reports,
        pooled.counts,
        pooled.frequencies,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_tally_does_not_change_with_the_array_it_was_made_from():
    reports, counts = np.array([0, 1, 2]), np.array([4, 5, 6])
    mechanism = ik.RandomizedResponse(3, 1.0)
    tally, listed = mechanism.tally(reports, codes=True), mechanism.tally_counts(counts)
    reports[:], counts[:] = 2, 9
    assert tally.counts.tolist() == [1, 1, 1]
    assert listed.counts.tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.RandomizedResponse(3, 1.0),
        ik.Rappor(3, 1.0),
        ik.Exponential(3, 1.0),
        ik.OptimizedUnaryEncoding(3, 2.0),
    ],
)
def test_counts_of_all_reports_are_a_tally_of_the_listed_reports(mechanism, rng):
    counts = rng.integers(0, 3, mechanism.m)
    codes = np.repeat(np.arange(mechanism.m), counts)
    reports = (codes[:, None] >> np.arange(3)[::-1]) & 1 if mechanism.m == 8 else codes
    listed, counted = mechanism.tally(reports, codes=True), mechanism.tally_counts(counts)
    assert content(listed) == content(counted)
    np.testing.assert_allclose(counted.matrix(), mechanism.matrix()[:, counts > 0], rtol=1e-14)


def test_bit_rows_are_packed():
    reports = np.random.default_rng(1).integers(0, 2, (50, 1000))
    part = ik.Rappor(1000, 1.0).tally(reports).parts[0]
    assert part.reports.dtype == np.uint8
    assert part.reports.shape == (50, 125)
    unpacked = np.unpackbits(part.reports, axis=1)
    assert {row.tobytes() for row in unpacked} == {
        row.tobytes() for row in reports.astype(np.uint8)
    }


@kinds
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_matrix_and_dot_test(mechanism, report, data, seed):
    rng = np.random.default_rng(seed)
    tally = mechanism.tally(data.draw(st.lists(report, min_size=1, max_size=8)), codes=True)
    matrix = tally.matrix()
    assert matrix.shape == (4, len(tally.counts))
    theta, w = rng.dirichlet(np.ones(4)), rng.normal(size=len(tally.counts))
    np.testing.assert_allclose(tally.forward(theta), theta @ matrix, rtol=1e-12)
    scale = np.abs(matrix) @ np.abs(w)
    assert (np.abs(tally.adjoint(w) - matrix @ w) <= 1e-12 * scale).all()


def test_vectors_of_the_wrong_length_are_named():
    tally = ik.RandomizedResponse(3, 1.0).tally([0, 1])
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"theta must have shape \(3,\), got \(2,\)"
    ):
        tally.forward([0.5, 0.5])
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"w must have shape \(2,\), got \(3,\)"):
        tally.adjoint([1, 2, 3])


def test_repr_is_short_however_many_mechanisms():
    pooled = sum(ik.RandomizedResponse(3, 1.0 + i).tally([0, 1]) for i in range(5))
    assert repr(pooled).startswith("Tally(n=10, k=3, 10 distinct reports of RandomizedResponse, ")
    assert len(repr(pooled)) < 120
