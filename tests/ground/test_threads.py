"""One thread for linear algebra:
in several threads at once, and what the user had set is restored.
"""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (its BLAS is another one than numpy's, and must be loaded to be seen)
from threadpoolctl import ThreadpoolController, threadpool_limits

import ibukit as ik
from ibukit._ground.threads import OneThread, one_thread

BLAS = ThreadpoolController().select(user_api="blas")
SHARED = [
    library
    for library in BLAS.lib_controllers
    if getattr(library, "threading_layer", "") != "openmp"
]


def as_it_was():
    """What `one_thread` was before: each thread restores what it has found."""
    return ThreadpoolController().limit(limits=1, user_api="blas")


def numbers():
    return {library.num_threads for library in SHARED}


def set_numbers(values):
    """Each thread may set the libraries afterwards, as if this were long ago."""
    for library, value in zip(SHARED, values, strict=True):
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(value)
        release(force=True)


@contextmanager
def user_sets(number):
    before = [library.num_threads for library in SHARED]
    set_numbers([number] * len(SHARED))
    try:
        yield
    finally:
        set_numbers(before)


def first_in_first_out(limit):
    """Two threads, the second comes later and stays longer:
    what it sees alone, and what is left behind.
    """
    second_in, first_out = threading.Event(), threading.Event()

    def stays_longer():
        with limit():
            second_in.set()
            assert first_out.wait(60)
            return numbers()

    with user_sets(3), ThreadPoolExecutor(1) as other:
        with limit():
            seen = other.submit(stays_longer)
            assert second_in.wait(60)
        first_out.set()
        return seen.result(), numbers()


def test_the_last_to_leave_restores_what_the_first_has_found():
    assert first_in_first_out(one_thread) == ({1}, {3})


def test_threads_that_restore_what_they_have_found_are_seen():
    assert first_in_first_out(as_it_was) == ({3}, {1})


def test_the_limit_nests():
    with user_sets(3):
        with one_thread():
            with one_thread():
                assert numbers() == {1}
            assert numbers() == {1}
        assert numbers() == {3}


def test_the_limit_is_lifted_by_an_error():
    with user_sets(3):
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert numbers() == {3}


def test_the_limit_holds_where_another_thread_has_set_a_number():
    with ThreadPoolExecutor(1) as other, threadpool_limits(3, "blas"):
        with one_thread():
            assert numbers() == {1}
        assert numbers() == {3}

        def elsewhere():
            with one_thread():
                return numbers()

        assert other.submit(elsewhere).result() == {1}
        assert numbers() == {3}


def test_estimates_from_many_threads_have_the_digits_of_one(rng):
    mechanism = ik.Exponential(ik.Line(0, 79), 0.15)
    tallies = [mechanism.simulate(rng.multinomial(20_000, ik.uniform(80)), rng) for _ in range(8)]
    with user_sets(3):
        alone = [ik.mle(tally).distribution for tally in tallies]
        with ThreadPoolExecutor(4) as pool:
            for _ in range(3):
                together = list(pool.map(ik.mle, tallies))
                assert numbers() == {3}
                assert all(
                    np.array_equal(a, b.distribution) for a, b in zip(alone, together, strict=True)
                )


class OwnNumber:
    """As MKL: each thread has a number of its own."""

    def __init__(self, number):
        self.first, self.here = number, threading.local()

    @property
    def num_threads(self):
        return getattr(self.here, "number", self.first)

    def set_num_threads(self, number):
        self.here.number = number


def test_a_library_with_a_number_for_each_thread():
    mkl = OwnNumber(4)
    limit = OneThread([mkl])
    second_in, first_out = threading.Event(), threading.Event()

    def other():
        mkl.set_num_threads(2)
        with limit:
            seen = [mkl.num_threads]
            second_in.set()
            assert first_out.wait(60)
            seen.append(mkl.num_threads)
        return [*seen, mkl.num_threads]

    with ThreadPoolExecutor(1) as pool:
        with limit:
            assert mkl.num_threads == 1
            later = pool.submit(other)
            assert second_in.wait(60)
        assert mkl.num_threads == 4
        first_out.set()
        assert later.result() == [1, 1, 2]


class Interrupted(OwnNumber):
    """Ctrl-C, the first time that a number is set."""

    pressed = False

    def set_num_threads(self, number):
        super().set_num_threads(number)
        if not self.pressed:
            self.pressed = True
            raise KeyboardInterrupt


def test_nothing_is_left_behind_where_the_limit_could_not_be_set():
    library = Interrupted(4)
    limit = OneThread([OwnNumber(1), library])
    with pytest.raises(KeyboardInterrupt), limit:
        raise AssertionError("it was not entered")
    assert library.num_threads == 4
    with limit:
        assert library.num_threads == 1
    assert library.num_threads == 4


FORK = """
import os, threading
from test_threads import SHARED, numbers, one_thread, user_sets
with user_sets(3):
    inside, done = threading.Event(), threading.Event()
    def work():
        with one_thread():
            inside.set()
            done.wait(60)
    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(60)
    child = os.fork()
    if not child:
        with one_thread():
            held = numbers()
        os._exit(0 if (held, numbers()) == ({1}, {3}) else 9)
    code, held = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), numbers()
    done.set()
    thread.join()
    assert (code, held, numbers()) == (0, {1}, {3})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_is_not_left_with_the_limit_of_threads_that_it_has_not():
    run = [sys.executable, "-W", "ignore", "-c", FORK]
    subprocess.run(run, check=True, timeout=300, cwd=__file__.rpartition("/")[0])
