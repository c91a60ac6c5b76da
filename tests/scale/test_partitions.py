"""Reports in partitions, on this machine:
the same likelihood, the same certificate, and no more of it in memory.
"""

import io
import os
import pickle
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

import ibukit as ik
from ibukit import scale
from ibukit.channels.base import Channel
from ibukit.channels.partitioned import FOLD_ARITY, PartitionedChannel, sum_arrays, tree_fold
from ibukit.errors import AlphabetMismatch, DataChanged, ImpossibleReport, TooLarge
from ibukit.fisher_information import dense
from ibukit.scale import _blocks, _files
from ibukit.testing import check_channel
from scale_cases import draw

K, N = 40, 3000
RAPPOR = ik.Rappor(K, 2.0)
OUE = ik.OptimizedUnaryEncoding(K, 2.0)
SUBSETS = ik.SubsetSelection(K, 2.0, size=8)
ROWS = draw(1, N)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(_blocks, "MAX_BLOCK_ROWS", 700)


def drawn(mechanism, n=N):
    rng = np.random.default_rng(3)
    return mechanism.randomize(np.minimum(rng.geometric(0.3, n) - 1, 9), rng)


def saved(path, rows):
    np.save(path, rows)
    return path


def tree(leaves):
    """The tree by its definition: sixteen neighbours make one, level by level."""
    while len(leaves) > 1:
        leaves = [
            "(" + "".join(leaves[i : i + FOLD_ARITY]) + ")"
            for i in range(0, len(leaves), FOLD_ARITY)
        ]
    return leaves[0]


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 32, 255, 256, 257, 272, 4097])
def test_results_are_folded_by_one_tree(n):
    leaves = [f"{i}," for i in range(n)]
    assert tree_fold(iter(leaves), lambda some: "(" + "".join(some) + ")") == tree(leaves)


def test_another_order_of_adding_has_other_bits():
    numbers = list(np.random.default_rng(1).random((300, 5)))
    assert (
        tree_fold(numbers, sum_arrays).tobytes() != tree_fold(numbers[::-1], sum_arrays).tobytes()
    )
    np.testing.assert_allclose(tree_fold(numbers, sum_arrays), np.sum(numbers, axis=0), rtol=1e-13)


@pytest.mark.parametrize("mechanism", [RAPPOR, OUE, SUBSETS], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("packed", [False, True])
def test_the_channel_is_that_of_all_rows(tmp_path, mechanism, packed):
    rows = drawn(mechanism)
    path = saved(tmp_path / "rows.npy", np.packbits(rows, axis=1) if packed else rows)
    tally = scale.tally(path, mechanism, packed=packed)
    channel, whole = tally.operator, mechanism.channel(np.packbits(rows, axis=1))
    assert len(channel.partitions.sizes) == 5
    assert (tally.n, channel.k, channel.size) == (N, K, N)
    check_channel(channel)
    rng = np.random.default_rng(1)
    theta, w = rng.dirichlet(np.ones(K)), rng.random(N)
    np.testing.assert_allclose(channel.forward(theta), whole.forward(theta), rtol=1e-13)
    np.testing.assert_allclose(channel.adjoint(w), whole.adjoint(w), rtol=1e-13)
    np.testing.assert_allclose(channel.gram(w), whole.gram(w), rtol=1e-12)
    for counts in (tally.counts, np.ones(N), np.arange(1, N + 1)):
        ours, theirs = channel.score(theta, counts), whole.score(theta, counts)
        assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-13)
        assert ours.least == pytest.approx(theirs.least, rel=1e-13)
        np.testing.assert_allclose(ours.g, theirs.g, rtol=1e-12)


def assert_same_gap(whole, spread, counts, spread_counts, estimate):
    """As computed the gaps are equal; the bounds on rounding depend on how reports are summed."""
    theta, n = estimate.distribution, counts.sum().item()
    computed = whole.score(theta, counts).gap(n)
    assert spread.score(theta, spread_counts).gap(n) == pytest.approx(computed, abs=1e-14)
    for gap in (estimate.gap, whole.certificate(theta, counts, n)[1]):
        assert computed < gap < computed + 1e-12


def test_mle_is_the_same_call_with_the_same_certificate(tmp_path):
    spread, memory = scale.tally(saved(tmp_path / "rows.npy", ROWS), RAPPOR), RAPPOR.tally(ROWS)
    ours, theirs = ik.mle(spread), ik.mle(memory)
    assert ours.method.startswith("mle, parabola of the packed bits")
    assert ours.gap <= 1e-9
    assert_same_gap(memory.operator, spread.operator, memory.counts, spread.counts, ours)
    assert abs(ours.log_likelihood - theirs.log_likelihood) <= N * (ours.gap + theirs.gap)
    assert ik.gap(spread, ik.uniform(K)) == pytest.approx(ik.gap(memory, ik.uniform(K)), rel=1e-12)
    assert ik.gap(spread, ik.uniform(K)) > 1e-3, "the gap must be seen to tell"
    steps = ik.Steps(7)
    np.testing.assert_allclose(
        ik.ibu(spread, stop=steps).distribution, ik.ibu(memory, stop=steps).distribution
    )


def test_equal_partitions_give_equal_bits(tmp_path):
    """Where the rows lie, and whether they are packed,
    makes no difference; how they are cut does.
    """
    paths = [saved(tmp_path / f"{i}.npy", rows) for i, rows in enumerate(np.split(ROWS, 10))]
    packed = [
        saved(tmp_path / f"packed{i}.npy", np.packbits(rows, axis=1))
        for i, rows in enumerate(np.split(ROWS, 10))
    ]
    tallies = [
        scale.tally(paths, RAPPOR),
        scale.tally([str(path) for path in packed], RAPPOR, packed=True),
        scale.tally(np.split(ROWS, 10), RAPPOR),
        scale.tally(ROWS, RAPPOR),
    ]
    bits = [ik.mle(tally).distribution.tobytes() for tally in tallies]
    assert bits[0] == bits[1] == bits[2] != bits[3]


def test_tallies_in_partitions_pool_with_all_others(tmp_path):
    counted = ik.RandomizedResponse(K, 1.0).tally(np.arange(500) % 10)
    spread = scale.tally(saved(tmp_path / "rows.npy", ROWS), RAPPOR)
    both, memory = spread + counted + spread, RAPPOR.tally(ROWS) + counted + RAPPOR.tally(ROWS)
    assert (both.n, len(both.parts), len(memory.parts)) == (2 * N + 500, 3, 2)
    found = ik.mle(both)
    assert found.gap <= 1e-9
    assert_same_gap(memory.operator, both.operator, memory.counts, both.counts, found)
    more = scale.tally(ROWS[:100], RAPPOR) + RAPPOR.tally(ROWS[100:])
    assert ik.gap(more, ik.uniform(K)) == pytest.approx(
        ik.gap(RAPPOR.tally(ROWS), ik.uniform(K)), rel=1e-12
    )


def test_counts_of_one_take_no_memory(tmp_path):
    tally = scale.tally(saved(tmp_path / "rows.npy", ROWS), RAPPOR)
    assert tally.counts.strides == (0,)
    assert RAPPOR.tally(ROWS).counts.strides == (8,), "the test must see what takes memory"
    again = pickle.loads(pickle.dumps(tally))
    assert len(pickle.dumps(tally)) < N
    assert ik.mle(again).distribution.tobytes() == ik.mle(tally).distribution.tobytes()


def test_factors_left_out_are_in_the_likelihood():
    """With thousands of secrets a row's probability is beyond the doubles."""
    mechanism = ik.Rappor(4000, 1.0)
    rows = mechanism.randomize(np.arange(30), np.random.default_rng(1))
    spread, memory = scale.tally(np.split(rows, 3), mechanism), mechanism.tally(rows)
    assert memory.log_offset != 0
    assert spread.log_offset == pytest.approx(memory.log_offset, rel=1e-13)
    assert ik.ibu(memory, stop=ik.Steps(2)).log_likelihood == pytest.approx(
        spread.operator.score(ik.ibu(memory, stop=ik.Steps(2)).distribution, spread.counts)[0]
        + spread.log_offset
    )
    with pytest.raises(TooLarge, match="needs the probability of each"):
        _ = spread.parts[0].log_scale


@pytest.mark.parametrize(
    ("mechanism", "reports"),
    [
        (ik.RandomizedResponse(7, 1.0), np.arange(900) ** 2 % 7),
        (ik.LinearGeometric(ik.Line(None, None), 0.5), np.arange(-400, 500) ** 3 % 11),
        (ik.Rappor(6, 1.0), draw(1, 900, k=10)[:, :6]),
    ],
    ids=["k-RR", "integers", "few bits"],
)
def test_what_counting_reduces_is_counted(tmp_path, mechanism, reports):
    ours, whole = (
        scale.tally(saved(tmp_path / "reports.npy", reports), mechanism),
        mechanism.tally(reports),
    )
    assert np.array_equal(ours.counts, whole.counts)
    assert np.array_equal(ours.parts[0].reports, whole.parts[0].reports)
    assert (ours.alphabet, ours.full_alphabet) == (whole.alphabet, whole.full_alphabet)
    assert not np.array_equal(ours.counts, mechanism.tally(reports[:-1]).counts)


def test_packed_rows_of_few_bits_are_counted_too():
    mechanism, bits = ik.Rappor(6, 1.0), draw(1, 900, k=10)[:, :6]
    ours = scale.tally(np.packbits(bits, axis=1), mechanism, packed=True)
    assert np.array_equal(ours.counts, mechanism.tally(bits).counts)


def test_what_needs_the_reports_says_so(tmp_path, monkeypatch):
    tally = scale.tally(saved(tmp_path / "rows.npy", ROWS), RAPPOR)
    with pytest.raises(TooLarge, match="3000 reports of this tally are not in memory"):
        ik.inv(tally)
    monkeypatch.setattr("ibukit.channels.partitioned.MAX_GATHERED_REPORTS", 100)
    with pytest.raises(TooLarge, match="the partitions hold 3000 reports, more than"):
        tally.forward(ik.uniform(K))
    assert ik.mle(tally).gap <= 1e-9, "what sums over the reports has no limit"


@pytest.mark.parametrize(
    "mechanism", [ik.HistogramEncoding(4, 1.0), ik.PlanarLaplace(ik.Grid(2, 2), 1.0).of_points]
)
def test_summaries_of_files_leave_checks_out_that_need_the_probability_of_each_report(
    tmp_path, mechanism
):
    rng = np.random.default_rng(0)
    secrets = mechanism.alphabet.labels_of(np.arange(300) % 4)
    np.save(tmp_path / "reports.npy", mechanism.randomize(secrets, rng))
    found = ik.mle(scale.tally(tmp_path / "reports.npy", mechanism))
    # A pool of them is summarised, too.
    for estimate in (found, ik.mle(found.tally + mechanism.simulate([1, 2, 3, 4], rng))):
        assert "do not fit" not in str(estimate.summary(method="wald"))
        for test in (estimate.fit_test, estimate.pool_test):
            with pytest.raises(TooLarge, match=r"are not in memory.*take mechanism.tally\(rows\)"):
                test()


def test_a_file_that_changed_between_passes_is_refused(tmp_path):
    path = saved(tmp_path / "rows.npy", ROWS)
    tally = scale.tally(path, RAPPOR)
    assert ik.mle(tally).gap <= 1e-9
    before = path.stat()
    for rows in (ROWS[:-1], ROWS[::-1]):
        saved(path, rows)
        # Also where the clock is too coarse to tell.
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        with pytest.raises(DataChanged, match=r"rows\.npy was written to after it was tallied"):
            ik.mle(tally)
    assert path.stat().st_size == before.st_size, "the last has the size of the first"


@dataclass(frozen=True, eq=False)
class Columns(Channel):
    """A matrix through forward and adjoint alone."""

    matrix: np.ndarray

    @property
    def k(self):
        return len(self.matrix)

    @property
    def size(self):
        return self.matrix.shape[1]

    def forward(self, theta):
        return theta @ self.matrix

    def adjoint(self, w):
        return self.matrix @ w


def test_any_channel_may_lie_in_partitions():
    """A mechanism whose reports cannot be listed and are no bits, as coordinates are."""

    class Points(ik.Mechanism):
        alphabet, epsilon = ik.Line(0, 4), 1.0

        def __post_init__(self):
            pass

        def draw(self, secrets, rng):
            return secrets + rng.normal(size=len(secrets))

        def check_reports(self, reports):
            return np.asarray(reports, dtype=float)

        def channel(self, reports):
            return Columns(np.exp(-((np.arange(5)[:, None] - reports) ** 2) / 2))

    mechanism = Points()
    points = mechanism.randomize(np.repeat([0, 1, 4], 300), np.random.default_rng(1))
    spread = scale.tally(points, mechanism)
    assert isinstance(spread.operator, PartitionedChannel)
    found = ik.mle(spread)
    assert found.gap <= 1e-9
    whole = mechanism.channel(points)
    assert_same_gap(whole, spread.operator, np.ones(900), spread.counts, found)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_shows_each_pass_and_is_silent_off_a_terminal(monkeypatch):
    tally = scale.tally(ROWS, RAPPOR)
    for screen, speaks in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", screen)
        tally.operator.score(ik.uniform(K), tally.counts)
        assert ("pass over the rows" in screen.getvalue()) is speaks


def wrong(rows, places, value):
    rows = rows.copy()
    rows[places] = value
    return rows


@pytest.mark.parametrize(
    ("rows", "mechanism", "packed", "error", "said"),
    [
        (ROWS, "RAPPOR", False, TypeError, "mechanism must be a mechanism, got 'RAPPOR'"),
        (
            ROWS,
            ik.RandomizedResponse(3, 1.0),
            True,
            ValueError,
            "packed must be False for RandomizedResponse",
        ),
        (
            ROWS.tolist(),
            RAPPOR,
            False,
            TypeError,
            r"mechanism.tally\(rows\) takes reports in a list",
        ),
        ({1: 2}, RAPPOR, False, TypeError, "rows must be a Dask collection, .* got dict"),
        ([], RAPPOR, False, ValueError, "rows must hold at least one report, got none"),
        (ROWS[:0], RAPPOR, False, ValueError, "rows must hold at least one report, got none"),
        (
            np.empty(0, int),
            ik.RandomizedResponse(3, 1.0),
            False,
            ValueError,
            "at least one report, got none",
        ),
        (np.array(3), RAPPOR, False, ValueError, "rows must be arrays of reports"),
        (ROWS[:, 1:], RAPPOR, False, AlphabetMismatch, r"shape \(n, 40\), got shape \(700, 39\)"),
        (wrong(ROWS, (2500, 7), 2), RAPPOR, False, AlphabetMismatch, "rows of 0 and 1, got 2"),
        (ROWS, RAPPOR, True, AlphabetMismatch, r"shape \(n, 5\).*got uint8 of shape \(700, 40\)"),
        (
            np.packbits(ROWS, axis=1).astype(int),
            RAPPOR,
            True,
            AlphabetMismatch,
            "got int64 of shape",
        ),
        (
            np.full((3, 6), 255, np.uint8),
            ik.Rappor(41, 1.0),
            True,
            AlphabetMismatch,
            "0 in the 7 bits after the 41",
        ),
        (np.packbits(ROWS, axis=1), SUBSETS, True, AlphabetMismatch, "must be sets of 8 secrets"),
        ("nowhere.npy", RAPPOR, False, FileNotFoundError, "nowhere.npy"),
        (
            __file__,
            RAPPOR,
            False,
            ValueError,
            r"rows must name .npy files.*test_partitions.py is not one",
        ),
    ],
)
def test_wrong_rows_are_named(rows, mechanism, packed, error, said):
    with pytest.raises(error, match=said):
        scale.tally(rows, mechanism, packed=packed)


def test_a_report_that_no_secret_can_produce_is_named():
    class Strict(ik.Rappor):
        def channel(self, reports):
            return Columns(
                np.broadcast_to((reports[:, 0] != 255).astype(float), (self.k, len(reports)))
            )

    rows = wrong(ROWS, np.s_[1500, :8], 1)
    with pytest.raises(
        ImpossibleReport, match=r"partition 2 of rows has .*which no secret can produce"
    ):
        scale.tally(rows, Strict(K, 2.0))


def pieces_with(monkeypatch, entries):
    """Matrices are made from so many entries at a time."""
    monkeypatch.setattr(dense, "PARTITION_ENTRIES_AT_ONCE", entries)
    monkeypatch.setattr(dense, "MATRIX_ENTRIES_AT_ONCE", entries)


def test_standard_errors_are_those_of_all_rows(tmp_path, monkeypatch):
    estimate = ik.mle(RAPPOR.tally(ROWS))
    expected = estimate.standard_errors()
    pieces_with(
        monkeypatch, 70 * K
    )  # far fewer rows than there are, and no divisor of their number
    for rows in (saved(tmp_path / "rows.npy", ROWS), np.array_split(ROWS, 7)):
        spread = scale.tally(rows, RAPPOR)
        found = replace(estimate, tally=spread)
        np.testing.assert_allclose(found.standard_errors(), expected, rtol=1e-9)
        np.testing.assert_allclose(found.covariance(), estimate.covariance(), rtol=1e-7, atol=1e-12)
    other = replace(estimate, tally=scale.tally(ROWS[:1000], RAPPOR)).standard_errors()
    assert (other > 1.5 * expected).all(), "the rows must be seen to matter"


def test_standard_errors_of_reports_pooled_with_others(tmp_path, monkeypatch):
    counted = ik.RandomizedResponse(K, 1.0).tally_counts(np.arange(1, K + 1))
    pieces_with(monkeypatch, 70 * K)
    memory = ik.mle(RAPPOR.tally(ROWS) + counted)
    both = scale.tally(saved(tmp_path / "rows.npy", ROWS), RAPPOR) + counted
    np.testing.assert_allclose(
        replace(memory, tally=both).standard_errors(), memory.standard_errors(), rtol=1e-9
    )


def test_a_pass_makes_the_information_whatever_the_number_of_secrets(monkeypatch):
    spread, passes = scale.tally(np.array_split(ROWS, 3), RAPPOR), []
    each = _files.BlockPartitions._results
    monkeypatch.setattr(
        _files.BlockPartitions,
        "_results",
        lambda self, *what: passes.append(1) or each(self, *what),
    )
    information = dense.observed_information(spread, ik.uniform(K))
    np.testing.assert_allclose(
        information, dense.observed_information(RAPPOR.tally(ROWS), ik.uniform(K)), rtol=1e-9
    )
    assert len(passes) == 1
