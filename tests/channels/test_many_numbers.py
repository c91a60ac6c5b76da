"""Packed levels, written numbers and large sketches against the matrix of what they say."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import DenseChannel, LookupChannel, RowMajorChannel
from ibukit.channels.lookup import pack_levels
from ibukit.solvers import Problem, bits, maximise
from ibukit.solvers.maximum import best_found
from ibukit.solvers.table import candidates
from ibukit.testing import check_channel

UE = ik.LongitudinalUnaryEncoding


def linked(rounds):
    return lambda k: ik.LinkedRounds.of(UE.osue(k, 1.0, 2.0), rounds)


PROTOCOLS = {
    "SHE": lambda k: ik.HistogramEncoding(k, 2.0),
    "SHE, strong noise": lambda k: ik.HistogramEncoding(k, 0.1),
    "2 linked rounds": linked(2),
    "5 linked rounds": linked(5),
    "300 linked rounds": linked(300),
    "Bloom RAPPOR": lambda k: ik.BloomRappor(k, 16, 2, 4, 0.5, 0.25, 0.75),
    "Bloom RAPPOR of 4 hashes": lambda k: ik.BloomRappor(k, 16, 4, 2, 0.25, 0.25, 0.75),
}


def people(k, n, rng):
    return rng.multinomial(n, ik.normalize(1 / np.arange(1, k + 1)))


@pytest.mark.parametrize("k", [7, 41])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_maximum_is_that_of_the_matrix(name, k, rng):
    """The certificate is taken from the matrix, in which nothing is packed."""
    tally = PROTOCOLS[name](k).simulate(people(k, 30 * k + 500, rng), rng)
    written = Problem(DenseChannel(tally.matrix()), tally.counts)
    found = maximise(tally.operator, tally.counts, 1e-10, method="bits")
    slow = best_found(written, 1e-12, "dense")
    assert found.method.startswith("parabola of many reports")
    assert written.gap(found.theta) <= 1.01e-10
    assert (
        written.channel.score(found.theta, tally.counts).log_likelihood
        >= slow.log_likelihood - 1.1e-10 * tally.n
    )
    np.testing.assert_allclose(
        found.theta, slow.theta, atol=2e-5 / np.sqrt(tally.parts[0].mechanism.epsilon)
    )


@pytest.mark.parametrize("name", ["SHE", "5 linked rounds", "Bloom RAPPOR"])
def test_a_wrong_entry_is_told_by_the_matrix(name, rng):
    tally = PROTOCOLS[name](10).simulate(people(10, 800, rng), rng)
    wrong = tally.operator
    if isinstance(wrong, RowMajorChannel):
        wrong = replace(wrong, numbers=wrong.numbers**0.9)
    else:
        wrong = replace(wrong, table=wrong.table**0.9)
    found = maximise(wrong, tally.counts, 1e-10)
    assert Problem(DenseChannel(tally.matrix()), tally.counts).gap(found.theta) > 1e-4


@pytest.mark.parametrize("shape", [(1, 2), (30, 3), (70, 11), (5000, 2)])
def test_written_numbers_are_the_matrix(shape, rng):
    numbers = rng.random(shape) + 0.1
    channel = RowMajorChannel(numbers)
    if channel.size < 100:
        check_channel(channel)
    theta, w = rng.random(channel.k), rng.integers(1, 9, channel.size)
    score, p = channel.score(theta, w), numbers @ theta
    np.testing.assert_allclose(score.g, (w / p) @ numbers, rtol=1e-12)
    assert score.log_likelihood == pytest.approx(w @ np.log(p), rel=1e-12)
    assert score.least == pytest.approx(p.min(), rel=1e-13)


def test_a_report_without_probability_certifies_nothing():
    channel = RowMajorChannel(np.array([[1.0, 0.0], [0.5, 0.5]]))
    score = channel.score(np.array([0.0, 1.0]), np.ones(2))
    assert (score.log_likelihood, score.least, score.gap(2)) == (-np.inf, 0.0, np.inf)


def drawn(kind, rng, table=(0.2, 0.5, 1.0), k=12, s=900):
    levels, scale, table = rng.integers(0, len(table), (s, k)), rng.random(s) + 0.5, np.array(table)
    if kind is LookupChannel:
        return LookupChannel(k, pack_levels(levels, len(table)), table, scale)
    return RowMajorChannel(table[levels] * scale[:, None])


@pytest.mark.parametrize("kind", [LookupChannel, RowMajorChannel])
@pytest.mark.parametrize("thinned", [1, 7])
def test_single_precision_is_enough_for_a_parabola(kind, thinned, rng):
    channel, counts, theta = drawn(kind, rng), rng.integers(1, 5, 900), rng.dirichlet(np.ones(12))
    quick, exact = (way(channel, counts, counts.sum()) for way in (bits.DenseReports, bits.Reports))
    found, right = quick.hessian(theta, thinned), exact.hessian(theta, thinned)
    np.testing.assert_allclose(found, right, rtol=1e-5)
    assert not np.array_equal(found, right)


@pytest.mark.parametrize("kind", [LookupChannel, RowMajorChannel])
def test_what_single_precision_does_not_reach_is_doubled(kind, rng):
    """A secret that is e^100 times as likely as those that have mass:
    its square is beyond single precision.
    """
    channel, theta = drawn(kind, rng, (1e-44, 2e-44, 1.0)), np.zeros(12)
    some = channel.take(np.flatnonzero(channel.rows(np.array([0]))[0] < 1e-40))
    theta[0], counts = 1.0, np.ones(some.size)
    found = bits.DenseReports(some, counts, some.size).hessian(theta, 1)
    np.testing.assert_array_equal(found, bits.Reports(some, counts, some.size).hessian(theta, 1))
    assert np.isfinite(found).all()
    assert found.max() > 1e80


@pytest.mark.parametrize(
    ("rounds", "bytes_"), [(1, 13), (2, 20), (5, 34), (15, 50), (16, 100), (255, 100)]
)
def test_counts_share_bytes(rounds, bytes_, rng):
    tally = linked(rounds)(100).simulate(people(100, 20, rng), rng)
    assert tally.operator.packed.shape == (len(tally.counts), bytes_)


@pytest.mark.parametrize(("name", "most"), [("5 linked rounds", 2.5), ("SHE", 0.1)])
def test_no_copy_of_the_matrix_is_made(name, most, rng):
    """Beside what the channel keeps, as a multiple of it:
    of SHE 8 bytes a number, of linked rounds a third of one.
    """
    mechanism = PROTOCOLS[name](100)
    secrets = np.repeat(np.arange(100), people(100, 20_000, rng))
    channel, counts = mechanism.channel(mechanism.draw(secrets, rng)), np.ones(20_000)
    kept = channel.numbers.nbytes if isinstance(channel, RowMajorChannel) else channel.packed.nbytes
    maximise(
        channel, counts, 1e-9
    )  # so that nothing is compiled, or made once, in what is measured
    tracemalloc.start()
    maximise(channel, counts, 1e-9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most * kept


def test_a_large_sketch_takes_its_own_normal_equations(rng):
    sketch = ik.HadamardCountMeanSketch(100, 2.0, 64, 128)
    tally = sketch.simulate(people(100, 20_000, rng), rng)
    problem = Problem(tally.operator, tally.counts)
    found, slow = best_found(problem, 1e-10), best_found(problem, 1e-10, "dense")
    assert (found.solver.name, slow.solver.name) == ("pooled", "dense")
    assert Problem(DenseChannel(tally.matrix()), tally.counts).gap(found.theta) <= 1e-10
    np.testing.assert_allclose(found.theta, slow.theta, atol=1e-7)
    few = sketch.simulate(people(100, 3_000, rng), rng)
    assert next(candidates(Problem(few.operator, few.counts))).name == "dense"
