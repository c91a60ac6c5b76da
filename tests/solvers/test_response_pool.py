"""Pooled k-RR, secret by secret: certified at every size and level, beside other solvers."""

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import ResponseChannel, StackedChannel
from ibukit.solvers.problem import Problem
from ibukit.solvers.responses import response_pool


def pooled(k, levels, n, rng, concentration=1.0):
    law = rng.dirichlet(np.full(k, concentration))
    mechanisms = [ik.RandomizedResponse(k, level) for level in levels]
    return sum(m.simulate(rng.multinomial(n, law), rng) for m in mechanisms)


@pytest.mark.parametrize("seed", range(40))
def test_every_pool_is_certified(seed):
    rng = np.random.default_rng(seed)
    k, n = int(10 ** rng.uniform(0.4, 3)), int(10 ** rng.uniform(0, 5))
    levels = 10 ** rng.uniform(-4, 1.3, rng.integers(2, 8))
    tally = pooled(k, levels, n, rng, 10 ** rng.uniform(-2, 1))
    estimate = ik.mle(tally)
    assert estimate.method.startswith("mle, Newton steps secret by secret")
    assert estimate.gap <= 1e-12


@pytest.mark.parametrize(("k", "levels"), [(2, (0.1, 3.0)), (40, (0.5, 1.0, 6.0))])
def test_the_maximum_is_that_of_the_matrix(k, levels, rng):
    tally = pooled(k, levels, 500, rng)
    found, dense = ik.mle(tally), ik.mle(tally, 1e-12, method="dense")
    np.testing.assert_allclose(found.distribution, dense.distribution, atol=1e-9)
    assert (found.distribution == 0).any() == (dense.distribution == 0).any()


def test_a_report_that_tells_nothing_or_names_another_is_left_to_other_solvers():
    seen = np.arange(3)
    for diagonal, off in [(0.4, 0.3), (1 / 3, 1 / 3), (0.2, 0.4), (1.0, 0.0)]:
        channels = [ResponseChannel(3, seen, 0.5, 0.25), ResponseChannel(3, seen, diagonal, off)]
        assert response_pool.applies(channels) == (diagonal > off > 0)
    assert not response_pool.applies(channels[:1])
    tally = ik.RandomizedResponse(3, np.inf).tally_counts([5, 0, 2])
    tally += ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2])
    assert ik.mle(tally).gap <= 1e-9


def test_a_rough_tolerance_takes_fewer_steps_and_keeps_it(rng):
    tally = pooled(60, np.geomspace(0.1, 5, 5), 300, rng)
    rough, fine = ik.mle(tally, tol=1e-2), ik.mle(tally)
    assert rough.gap <= 1e-2
    assert rough.n_iter < fine.n_iter


def test_weighted_reports_have_their_weights(rng):
    tally = pooled(9, (0.5, 2.0), 200, rng)
    channels, counts = zip(*Problem(tally.operator, tally.counts).parts, strict=True)
    q = np.concatenate(counts) * rng.uniform(0.2, 3, len(tally.counts))
    theta, _ = response_pool.maximise(channels, q / q.sum(), 1e-9)
    assert Problem(tally.operator, q).gap(theta) <= 1e-9


def test_with_very_weak_noise_a_step_may_take_all_mass_from_a_secret():
    """A report's probability falls to 1e-17 of what it was, which rounds to a change of -1."""
    blunt = ResponseChannel(5, np.arange(3), 0.5, 0.1)
    sharp = ResponseChannel(5, np.array([0, 3]), 1.0, 1e-17)
    q = np.array([0.2375, 0.5125, 0.2499, 1e-4, 0.0])
    q[4] = 1 - q.sum()
    theta, _ = response_pool.maximise([blunt, sharp], q, 1e-9)
    assert Problem(StackedChannel((blunt, sharp), 5, (3,)), q).gap(theta) <= 1e-9


def test_a_ratio_whose_square_is_no_double_is_left_to_other_solvers():
    rounded = [ResponseChannel(2, np.arange(2), 1.0, off) for off in (1e-300, 1e-200)]
    assert not response_pool.applies(rounded)
    assert response_pool.applies([ResponseChannel(2, np.arange(2), 1.0, 1e-90)] * 2)
