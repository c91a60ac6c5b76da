"""Pieces shared among threads: their order, the caller's settings, and the bits of an answer."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import fft

import ibukit as ik
from ibukit._ground.threads import in_order


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_come_in_the_order_of_the_pieces(threads):
    second = threading.Event()

    def late(piece):
        if piece == 0 and threads > 1:
            assert second.wait(60), "the next one is under way meanwhile"
        if piece == 1:
            second.set()
        return piece

    with fft.set_workers(threads):
        assert list(in_order(late, range(20))) == list(range(20))


def test_few_results_are_kept_at_a_time():
    begun = []
    with fft.set_workers(2):
        results = in_order(begun.append, range(100))
        next(results)
    assert len(begun) <= 4
    results.close()


def test_who_leaves_early_leaves_no_piece_at_work():
    begun, ended = [], []

    def work(piece):
        begun.append(piece)
        time.sleep(0.01)
        ended.append(piece)

    with fft.set_workers(2):
        results = in_order(work, range(100))
        next(results)
        results.close()
    assert len(begun) == len(ended) < 10


def test_what_is_not_worth_it_stays_in_this_thread():
    with fft.set_workers(2):
        here = set(in_order(lambda _: threading.get_ident(), range(20), False))
    assert here == {threading.get_ident()}


def test_a_failure_is_the_callers_and_the_threads_go_on():
    with fft.set_workers(2):
        with pytest.raises(ZeroDivisionError):
            list(in_order(lambda x: 1 / x, [2, 1, 0, 1, 2]))
        assert list(in_order(lambda x: 1 / x, [2, 1])) == [0.5, 1.0]


def test_who_is_interrupted_waits_for_nothing():
    """Ctrl-C reaches the calling thread, which may be at work on a piece itself."""
    taken = threading.Event()

    def work(_):
        if threading.current_thread() is threading.main_thread():
            taken.set()
            raise KeyboardInterrupt
        assert taken.wait(60)

    for _ in range(5):
        taken.clear()
        with fft.set_workers(2), pytest.raises(KeyboardInterrupt):
            list(in_order(work, range(20)))
    with fft.set_workers(2):
        assert list(in_order(abs, [-1, -2])) == [1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_child_has_threads_of_its_own():
    """Those of its parent are not there, and to wait for them would be without end."""
    with fft.set_workers(2):
        assert list(in_order(abs, [-1])) == [1]
    code = "import os, sys\nfrom scipy import fft\nfrom ibukit._ground.threads import in_order\n"
    code += "with fft.set_workers(2):\n    a = list(in_order(abs, [-1]))\n    child = os.fork()\n"
    code += "    a = list(in_order(abs, [-2]))\n    if child == 0:\n        os._exit(a == [2])\n"
    code += "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100
    )
    assert found.stdout == "1\n"


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
    [ik.Rappor(100, 0.5), ik.OptimizedUnaryEncoding(20, 6.0), ik.Exponential(ik.Grid(24, 24), 0.4)],
    ids=["bits", "few bits set", "plane"],
)
def test_the_same_bits_for_any_number_of_threads(mechanism, threads, rng):
    n = (
        300_000 if mechanism.k == 100 else 57_600
    )  # several stretches of the rows, and several chunks of a Hessian
    tally = mechanism.simulate(rng.multinomial(n, rng.dirichlet(np.ones(mechanism.k))), rng)
    one = ik.mle(tally, tol=1e-8)
    with fft.set_workers(threads):
        shared = ik.mle(tally, tol=1e-8)
    assert np.array_equal(one.distribution, shared.distribution)
    assert (one.gap, one.log_likelihood, one.n_iter) == (
        shared.gap,
        shared.log_likelihood,
        shared.n_iter,
    )
