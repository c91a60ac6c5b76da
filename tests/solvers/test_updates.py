"""The compiled steps of every structure:
against the oracle, their own source, and plain forward and adjoint.
"""

import itertools

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import (
    BitChannel,
    DenseChannel,
    LineChannel,
    ResponseChannel,
    StackedChannel,
    offset_masses,
    plane,
)
from ibukit.solvers import _em_kernels, em
from ibukit.solvers.em import BatchedSteps, evaluate, updates_of
from instances import INSTANCES, Bent, Instance, TransposedAdjoint, with_operator
from oracles import naive

ABSOLUTE = 1e-12
SOME = {instance.name: instance for instance in INSTANCES}


def of_k(*names):
    return [SOME[name] for name in names]


def pool(parts):
    return Instance(
        "",
        sum(part.tally for part in parts),
        np.concatenate([part.matrix for part in parts], axis=1),
        np.concatenate([part.counts for part in parts]),
    )


def by_fourier(rng):
    """A planar channel as a large grid has it, on a small one."""
    grid = ik.Grid(3, 4)
    mechanism = ik.TruncatedPlanarGeometric(grid, 0.8)
    counts = rng.integers(1, 40, len(grid))
    channel = plane.remapped(grid, offset_masses.geometric_table(grid, 0.8), np.arange(len(grid)))
    return Instance(
        "", with_operator(mechanism.tally_counts(counts), channel), mechanism.matrix(), counts
    )


def dense(rng, k, s):
    matrix = rng.dirichlet(np.ones(s), k)
    counts = rng.integers(1, 40, s)
    return Instance("", ik.MatrixMechanism(matrix).tally_counts(counts), matrix, counts)


def line(rng, k, eps):
    counts = rng.integers(1, 40, k)
    return Instance(
        "",
        ik.TruncatedGeometric(k, eps).tally_counts(counts),
        naive.truncated_geometric(k, eps),
        counts,
    )


def response(rng, k, eps):
    counts = rng.integers(0, 40, k)
    return Instance(
        "", ik.RandomizedResponse(k, eps).tally_counts(counts), naive.k_rr(k, eps), counts
    )


def unary(rng, k, eps):
    counts = rng.integers(0, 40, 2**k)
    return Instance("", ik.Rappor(k, eps).tally_counts(counts), naive.rappor(k, eps), counts)


# what tests/instances.py does not have: convolutions, groups of four reports and the rest,
# neighbours of a kind
FURTHER = {
    "planar by Fourier transform": by_fourier,
    "dense 3 x 1": lambda rng: dense(rng, 3, 1),
    "dense 9 x 4": lambda rng: dense(rng, 9, 4),
    "dense 4 x 11": lambda rng: dense(rng, 4, 11),
    "three dense": lambda rng: pool([dense(rng, 6, 3), dense(rng, 6, 8), dense(rng, 6, 5)]),
    "three lines": lambda rng: pool([line(rng, 9, eps) for eps in (0.1, 3.0, 0.7)]),
    "three k-RR": lambda rng: pool([response(rng, 7, eps) for eps in (2.0, 0.3, 1.0)]),
    "three RAPPORs": lambda rng: pool([unary(rng, 5, eps) for eps in (0.2, 4.0, 1.0)]),
    "RAPPOR, k-RR, RAPPOR, line, k-RR": lambda rng: pool(
        [
            unary(rng, 5, 0.5),
            response(rng, 5, 3.0),
            unary(rng, 5, 2.0),
            line(rng, 5, 0.5),
            response(rng, 5, 0.4),
        ]
    ),
    "two lines, k-RR, two lines": lambda rng: pool(
        [
            line(rng, 6, 0.2),
            line(rng, 6, 0.9),
            response(rng, 6, 1.0),
            line(rng, 6, 0.4),
            line(rng, 6, 2.0),
        ]
    ),
}


@pytest.mark.parametrize("steps", [1, 10, 1000])
@pytest.mark.parametrize("make", FURTHER.values(), ids=FURTHER)
def test_iterates_are_those_of_the_oracle(make, steps, rng):
    instance = make(rng)
    ours = ik.ibu(instance.tally, stop=ik.Steps(steps)).distribution
    assert np.abs(ours - naive.ibu(instance.matrix, instance.counts, steps)).max() <= ABSOLUTE


@pytest.mark.parametrize(
    "names",
    list(itertools.permutations(["k-RR", "truncated geometric", "RAPPOR", "geometric"], 3)),
    ids=", ".join,
)
def test_stacks_in_any_order(names):
    instance = pool(of_k(*names))
    ours = ik.ibu(instance.tally, stop=ik.Steps(30)).distribution
    assert np.abs(ours - naive.ibu(instance.matrix, instance.counts, 30)).max() <= ABSOLUTE


def routine(tally):
    return updates_of(tally.operator, tally.frequencies).func


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("dense with zeros", _em_kernels.dense),
        ("k-RR", _em_kernels.responses),
        ("two k-RR", _em_kernels.responses),
        ("truncated geometric", _em_kernels.lines),
        ("geometric", _em_kernels.lines),
        ("RAPPOR", _em_kernels.bits),
        ("OUE", _em_kernels.bits),
        ("k-RR, geometric, truncated, RAPPOR", em._stacked),
    ],
)
def test_every_structure_has_its_routine(name, kernel):
    assert routine(SOME[name].tally) is kernel


def test_neighbours_of_a_kind_share_a_loop():
    instance = pool(of_k("k-RR", "geometric", "truncated geometric", "RAPPOR"))
    (parts,) = updates_of(instance.tally.operator, instance.tally.frequencies).args
    assert [part.func for _, part in parts] == [
        _em_kernels.responses,
        _em_kernels.lines,
        _em_kernels.bits,
    ]
    sizes = [len(part.counts) for part in instance.tally.parts]
    assert [stretch.stop - stretch.start for stretch, _ in parts] == [
        sizes[0],
        sizes[1] + sizes[2],
        sizes[3],
    ]


def test_large_dense_channels_are_not_copied_into_one(monkeypatch, rng):
    tally = pool([dense(rng, 6, 3), dense(rng, 6, 8)]).tally
    assert routine(tally) is _em_kernels.dense
    monkeypatch.setattr(em, "MAX_ENTRIES_JOINED", 20)
    assert routine(tally) is em._stacked


def test_columns_that_lie_report_by_report_are_not_copied(rng):
    columns = np.asfortranarray(rng.random((5, 8)))
    (kept, _) = updates_of(DenseChannel(columns), np.full(8, 1 / 8)).args
    assert np.shares_memory(kept, columns)
    assert columns.flags.writeable, "only the view is read-only"


def test_the_rows_of_one_encoding_are_not_copied(rng):
    channel = BitChannel(13, rng.integers(0, 256, (9, 2), dtype=np.uint8), 1.7, 0.4, rng.random(9))
    rows, *_, scale, _ = updates_of(channel, np.full(9, 1 / 9)).args
    assert np.shares_memory(rows, channel.packed)
    assert np.shares_memory(scale, channel.scale)


def test_what_a_subclass_or_a_stranger_means_by_forward_and_adjoint_counts(rng):
    matrix = rng.random((4, 4))
    q = np.full(4, 1 / 4)
    for channel in (TransposedAdjoint(matrix), Bent(DenseChannel(matrix), forward=lambda p: 2 * p)):
        updates = updates_of(channel, q)
        assert updates.func is em.on_any_channel
        theta = rng.dirichlet(np.ones(4))
        p, g = evaluate(updates, theta, 4)
        assert np.array_equal(p, channel.forward(theta))
        assert np.array_equal(g, channel.adjoint(q / p))
    stack = StackedChannel((TransposedAdjoint(matrix), DenseChannel(matrix)), 4, (4,))
    p, g = evaluate(updates_of(stack, np.full(8, 1 / 8)), theta, 8)
    np.testing.assert_allclose(g, stack.adjoint(1 / 8 / stack.forward(theta)), rtol=1e-14)


def source(kernel):
    """The Python function behind a kernel; the kernel itself where compilation is switched off."""
    return getattr(kernel, "py_func", kernel)


def channels(rng):
    k = 13
    positions = np.array(
        [0, 0, 3, 4, 4, 12, 12]
    )  # several reports beyond an end share its position
    bits = rng.integers(0, 2, (9, k), dtype=np.uint8)
    return [
        DenseChannel(rng.random((k, 7))),
        DenseChannel(rng.random((k, 8))),
        ResponseChannel(k, np.array([1, 2, 5, 12]), 0.6, 0.08),
        LineChannel(k, 0.7, positions, rng.random(7)),
        BitChannel(k, np.packbits(bits, axis=1), 1.7, 0.4, rng.random(9)),
    ]


@pytest.mark.parametrize("which", range(5))
def test_kernels_are_their_source_and_forward_and_adjoint(which, rng):
    channel = channels(rng)[which]
    s = len(channel.forward(np.full(13, 1 / 13)))
    q, start = rng.dirichlet(np.ones(s)), rng.dirichlet(np.ones(13))
    updates = updates_of(channel, q)
    assert updates.func is not em.on_any_channel
    for steps in (1, 4):
        ends = []
        by_source = (source(updates.func), updates.args)
        for kernel, data in (
            (updates.func, updates.args),
            by_source,
            (em.on_any_channel, (channel, q)),
        ):
            theta, p, g = start.copy(), np.empty(s), np.ones(13)
            assert kernel(*data, theta, p, g, steps, 0.0) == steps
            ends.append((theta, p, g))
        for one, two in itertools.combinations(ends, 2):
            for a, b in zip(one, two, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13)


def scattered(rng):
    """Channels of every kind, none beside another of its kind, with unequal numbers of reports."""
    k = 13

    def unary(s):
        bits = rng.integers(0, 2, (s, k), dtype=np.uint8)
        one, zero = rng.uniform(1, 3), rng.uniform(0.1, 1)
        return BitChannel(k, np.packbits(bits, axis=1), one, zero, rng.random(s))

    def response(reports):
        return ResponseChannel(k, np.array(reports), rng.uniform(0.3, 0.9), rng.uniform(0.01, 0.1))

    def noise(positions):
        return LineChannel(
            k, rng.uniform(0.1, 0.9), np.array(positions), rng.random(len(positions))
        )

    return [
        *(unary(9), response([1, 2, 12]), noise([0, 0, 4]), DenseChannel(rng.random((k, 6)))),
        *(
            unary(1),
            response([0, 5]),
            Bent(DenseChannel(rng.random((k, 3)))),
            noise([12, 12, 1, 3, 3]),
        ),
        *(
            DenseChannel(rng.random((k, 1))),
            unary(4),
            response([7]),
            noise([6]),
            DenseChannel(rng.random((k, 5))),
        ),
    ]


@pytest.mark.parametrize("order", ["as made", "backwards", "shuffled", "sorted"])
def test_channels_of_a_kind_share_a_loop_wherever_they_are(order, rng):
    channels = scattered(rng)
    if order == "sorted":
        channels.sort(key=lambda channel: type(channel).__name__)
    elif order != "as made":
        places = (
            np.arange(len(channels))[::-1]
            if order == "backwards"
            else rng.permutation(len(channels))
        )
        channels = [channels[i] for i in places]
    sizes = [len(channel.forward(np.ones(13))) for channel in channels]
    s = sum(sizes)
    stack = StackedChannel(tuple(channels), 13, tuple(np.cumsum(sizes)[:-1].tolist()))
    q, start = rng.dirichlet(np.ones(s)), rng.dirichlet(np.ones(13))
    updates = updates_of(stack, q)
    (parts,) = updates.args
    kernels = [_em_kernels.bits, _em_kernels.responses, _em_kernels.lines, _em_kernels.dense]
    assert {id(part.func) for _, part in parts} == {id(f) for f in (*kernels, em.on_any_channel)}
    assert len(parts) == 5
    where = np.concatenate([np.arange(s)[places] for places, _ in parts])
    assert np.array_equal(np.sort(where), np.arange(s)), "every report once"
    for steps in (1, 5):
        ends = []
        for routine in (updates, lambda *point: em.on_any_channel(stack, q, *point)):
            theta, p, g = start.copy(), np.full(s, np.nan), np.ones(13)
            assert routine(theta, p, g, steps, 0.0) == steps
            ends.append((theta, p, g))
        for a, b in zip(*ends, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_stack_that_stops_early_leaves_every_probability_in_its_place(rng):
    channels = scattered(rng)
    sizes = [len(channel.forward(np.ones(13))) for channel in channels]
    s = sum(sizes)
    stack = StackedChannel(tuple(channels), 13, tuple(np.cumsum(sizes)[:-1].tolist()))
    theta, p, g = np.full(13, 1 / 13), np.full(s, np.nan), np.ones(13)
    assert updates_of(stack, rng.dirichlet(np.ones(s)))(theta, p, g, 1000, np.inf) == 1
    np.testing.assert_allclose(p, stack.forward(theta), rtol=1e-13)


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_a_block_stops_at_the_first_step_whose_ratios_suffice(instance):
    updates = updates_of(instance.tally.operator, instance.tally.frequencies)
    theta = np.full(instance.tally.k, 1 / instance.tally.k)
    p, g = evaluate(updates, theta, len(instance.tally.counts))
    largest = [g.max()]
    walk, at = BatchedSteps(updates), (theta, p, g)
    for _ in range(40):
        *at, taken = walk.move(*at, 99)
        assert taken == 1, "watched: one at a time"
        largest.append(at[2].max())
    for enough in (largest[7], largest[30]):
        first = next(step for step in range(1, 41) if largest[step] <= enough)
        block = theta.copy(), p.copy(), g.copy()
        assert updates(*block, 1000, enough) == first
        assert block[2].max() == largest[first]
    assert updates(theta.copy(), p.copy(), g.copy(), 5, 0.0) == 5


@pytest.mark.parametrize(
    "name", ["truncated geometric", "k-RR, geometric, truncated, RAPPOR", "planar geometric"]
)
@pytest.mark.parametrize("stop", [ik.Gap(1e-4), ik.Gap(1e-13), ik.Steps(777)], ids=str)
def test_the_length_of_blocks_changes_nothing(name, stop, monkeypatch):
    ends = []
    for seconds in (0.0, 1e-4, 10.0):
        monkeypatch.setattr(em, "SECONDS_PER_BATCH", seconds)
        ends.append(ik.ibu(SOME[name].tally, stop=stop, max_iter=5000))
    assert len({(end.n_iter, end.gap, end.status) for end in ends}) == 1
    assert all(np.array_equal(end.distribution, ends[0].distribution) for end in ends)


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_converged_means_that_the_reported_gap_is_within_the_tolerance(instance):
    for tol in (*np.geomspace(1e-1, 1e-7, 13).tolist(), 800.0):
        estimate = ik.ibu(instance.tally, stop=ik.Gap(tol), max_iter=20_000)
        assert (estimate.gap <= tol) is (estimate.status is ik.Status.CONVERGED)
        # exactly there, where the last digits decide
        again = ik.ibu(
            instance.tally, stop=ik.Gap(max(estimate.gap, 1e-300)), max_iter=estimate.n_iter
        )
        assert again.n_iter == estimate.n_iter
        assert again.status is ik.Status.CONVERGED


def test_mass_too_small_for_all_its_digits_is_none_unless_it_grows():
    tally = ik.RandomizedResponse(2, 3.0).tally_counts([90, 10])
    start = np.array([1e-310, 1.0])
    assert 0 < ik.ibu(tally, start=start, stop=ik.Steps(1)).distribution[0] < 1e-300
    exact = (0.9 - 1 / (1 + np.exp(3))) / np.tanh(1.5)
    assert ik.ibu(tally, start=start, strict=True).distribution[0] == pytest.approx(exact, abs=1e-3)
    falls = ik.ibu(tally, start=start[::-1], stop=ik.Steps(40)).distribution
    assert falls[1] > 1e-310, "10 of 100 reports cannot all be lies"
    matrix, counts, theta, steps = naive.k_rr(2, 1.0), np.array([99, 1]), np.array([0.5, 0.5]), 0
    while theta[1] > 1e-309:
        theta, steps = naive.ibu_step(matrix, counts, theta), steps + 1
    assert theta[1] > 0
    lies = ik.ibu(
        ik.RandomizedResponse(2, 1.0).tally_counts(counts), stop=ik.Steps(steps)
    ).distribution
    assert lies[1] == 0
    assert lies[0] == pytest.approx(1, abs=1e-12)


def test_interrupts_are_heard_between_blocks(monkeypatch):
    class Impatient:
        def __init__(self, **_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def update(self, _):
            raise KeyboardInterrupt

    monkeypatch.setattr("ibukit.estimators.iterative_update.tqdm", Impatient)
    with pytest.raises(KeyboardInterrupt):
        ik.ibu(SOME["k-RR"].tally, stop=ik.Steps(10**9), max_iter=10**9)
