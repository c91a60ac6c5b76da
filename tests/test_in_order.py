"""Pieces shared among threads: their order, the caller's settings, and the bits of an answer."""

import threading

import numpy as np
import pytest
from scipy import fft

import ibukit as ik
from ibukit._threads import in_order


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_come_in_the_order_of_the_pieces(threads):
    second = threading.Event()

    def late(piece):
        if piece == 0 and threads > 1:
            assert second.wait(60), "the next four are under way meanwhile"
        if piece == 4:
            second.set()
        return piece

    with fft.set_workers(threads):
        assert list(in_order(late, range(20))) == list(range(20))


def test_few_results_are_kept_at_a_time():
    begun = []
    with fft.set_workers(2):
        results = in_order(begun.append, range(100))
        next(results)
    assert len(begun) <= 16
    results.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_numpy_does_about_a_division_by_0_is_the_callers_decision(threads):
    with fft.set_workers(threads):
        with np.errstate(divide="ignore"):
            assert list(in_order(lambda x: np.ones(1) / x, [np.zeros(1)])) == [np.inf]
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            list(in_order(lambda x: np.ones(1) / x, [np.zeros(1)]))


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize(
    "mechanism",
    [ik.Rappor(20, 1.0), ik.OptimizedUnaryEncoding(20, 6.0), ik.Exponential(ik.Grid(24, 24), 0.4)],
    ids=["bits", "few bits set", "plane"],
)
def test_the_same_bits_for_any_number_of_threads(mechanism, threads, rng):
    n = 100 * mechanism.k
    tally = mechanism.simulate(rng.multinomial(max(n, 20_000), rng.dirichlet(np.ones(mechanism.k))), rng)
    one = ik.mle(tally, tol=1e-8)
    with fft.set_workers(threads):
        shared = ik.mle(tally, tol=1e-8)
    assert np.array_equal(one.distribution, shared.distribution)
    assert (one.gap, one.log_likelihood, one.n_iter) == (shared.gap, shared.log_likelihood, shared.n_iter)
