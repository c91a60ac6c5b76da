"""Many rows of bits: a first maximum of some of them, pairs of few set bits one by one,
and how often all are read.
"""

import tracemalloc

import numpy as np
import pytest

import ibukit as ik
from ibukit.solvers import _em_kernels, bits
from ibukit.solvers.bits import BitReports, Reports
from ibukit.solvers.pooled import PooledModel


def drawn(k, epsilon, n, rng, mechanism=ik.LocalHashing):
    theta = 1 / np.arange(1, k + 1)
    return mechanism(k, epsilon).simulate(rng.multinomial(n, theta / theta.sum()), rng)


@pytest.mark.parametrize("thinned", [1, 3])
def test_pairs_of_few_bits_give_the_hessian_of_all(thinned, monkeypatch, rng):
    tally = drawn(203, 4.0, 3000, rng)
    rows = BitReports(tally.operator, tally.counts, 3000)
    assert rows._has_few_ones
    theta = rng.dirichlet(np.ones(203))
    found = rows.hessian(theta, thinned)
    monkeypatch.setattr(BitReports, "_has_few_ones", False)
    np.testing.assert_allclose(found, rows.hessian(theta, thinned), rtol=1e-5)  # single precision
    assert not np.array_equal(found, rows.hessian(theta, thinned))


def test_where_many_bits_are_set_they_are_multiplied(rng):
    assert not BitReports(drawn(200, 1.0, 3000, rng).operator, np.ones(3000))._has_few_ones
    assert (
        BitReports(drawn(200, 4.0, 3000, rng).operator, np.ones(3000)).hessian_cost()
        < 3000 * 200**2 / 2
    )


@pytest.mark.parametrize("kind", [BitReports, Reports])
def test_a_part_of_the_reports_has_the_weight_of_all(kind, rng):
    tally = drawn(20, 1.0, 5000, rng)
    counts = rng.integers(1, 5, len(tally.counts))
    all_rows = kind(tally.operator, counts, 2.0 * counts.sum())
    some, theta = all_rows.subsample(10), rng.dirichlet(np.ones(20))
    assert len(some.counts) == 500
    assert theta @ some.gradient(theta) == pytest.approx(0.5)
    np.testing.assert_allclose(some.gradient(theta), all_rows.gradient(theta), atol=0.1)


@pytest.mark.parametrize("kind", [BitReports, Reports])
def test_a_first_maximum_changes_the_way_and_not_the_end(kind, monkeypatch, rng):
    k, n = 100, 60_000
    tally = drawn(k, 4.0, n, rng)

    def solved():
        return bits.maximise(
            [kind(tally.operator, tally.counts, n)], PooledModel((), k), np.empty(0), 1e-10
        )

    without, _ = solved()
    monkeypatch.setattr(bits, "MIN_K_FOR_WARM_START", k)
    climbs, climb = [], bits._quasi_newton
    monkeypatch.setattr(bits, "_quasi_newton", lambda *args: climbs.append(args) or climb(*args))
    found, _ = solved()
    assert [len(args[0].bits[0].counts) for args in climbs] == [6000, 60_000]
    assert np.abs(found - without).max() < 1e-5
    assert ik.gap(tally, found) < 1e-10


def test_a_first_maximum_that_is_wrong_costs_passes_and_no_accuracy(monkeypatch, rng):
    k, n = 20, 100_000
    tally = drawn(k, 1.0, n, rng)
    monkeypatch.setattr(bits, "MIN_K_FOR_WARM_START", k)
    monkeypatch.setattr(
        BitReports,
        "subsample",
        lambda rows, stride: BitReports(rows.channel.take(slice(200)), rows.counts[:200], 200),
    )
    found, _ = bits.maximise(
        [BitReports(tally.operator, tally.counts, n)], PooledModel((), k), np.empty(0), 1e-9
    )
    assert ik.gap(tally, found) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_a_million_reports_of_a_thousand_secrets_take_less_than_ten_passes(
    epsilon, monkeypatch, rng
):
    tally = drawn(1000, epsilon, 10**6, rng)
    packed, read = tally.operator.packed.nbytes, []
    one_pass = _em_kernels.bits
    monkeypatch.setattr(
        _em_kernels, "bits", lambda rows, *others: read.append(len(rows)) or one_pass(rows, *others)
    )
    tracemalloc.start()
    best = ik.mle(tally, tol=1e-8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert best.gap <= 1e-8
    assert best.n_iter < 10
    assert (
        sum(read) / 10**6 <= best.n_iter
    )  # the steps of the first maximum are among them, a tenth each
    assert peak < 3 * packed


def test_a_first_maximum_needs_rows_in_proportion_to_the_secrets(monkeypatch, rng):
    k = 20
    monkeypatch.setattr(bits, "MIN_K_FOR_WARM_START", k)
    enough = bits.WARM_START_STRIDE * bits.MIN_ROWS_PER_SECRET * k
    tally = drawn(k, 1.0, 2 * enough, rng)

    def first(n):
        rows = BitReports(tally.operator.take(slice(n)), tally.counts[:n], n)
        return bits._Problem([rows], PooledModel((), k), np.empty(0)).warm_start()

    assert len(tally.counts) > enough
    assert first(enough) is not None
    assert first(enough - 1) is None


def test_a_step_beside_other_reports_ends_where_its_equations_are_solved(monkeypatch, rng):
    """Of at most fifty points on the way it takes some fifteen."""
    k, n = 30, 20_000
    tally = drawn(k, 2.0, n, rng)
    response = ik.RandomizedResponse(k, 1.0).simulate(rng.multinomial(n, np.full(k, 1 / k)), rng)
    points, path = [], bits.central_path
    monkeypatch.setattr(
        bits, "central_path", lambda *args: (points.append(point) or point for point in path(*args))
    )
    problem = bits._Problem(
        [BitReports(tally.operator, tally.counts, 2 * n)],
        PooledModel((response.operator,), k),
        response.counts / (2 * n),
    )
    theta = np.full(k, 1 / k)
    g = problem.gradient(theta)
    problem.step(theta, g, problem.hessian(theta, 1), float(g.max() - 1))
    assert 5 < len(points) < 40
    assert (points[-1].theta * points[-1].s).max() <= 1e-18
