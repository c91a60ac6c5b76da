"""Threads that stay for several stages: order, errors, and whose settings hold."""

import threading

import numpy as np
import pytest
from scipy import fft

from ibukit._ground.threads import team


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_stages_follow_each_other(threads):
    seen = []

    def stage(number, piece):
        seen.append(number)
        return number, piece

    with fft.set_workers(threads), team(True) as share:
        for number in range(20):
            found = share(lambda piece, number=number: stage(number, piece), range(7))
            assert found == [(number, piece) for piece in range(7)]
    assert seen == sorted(seen)


def test_pieces_are_shared():
    """Each piece waits for the other: alone, one would wait for ever."""
    both = threading.Barrier(2)
    with fft.set_workers(2), team(True) as share:
        assert len(set(share(lambda _: both.wait(60), range(2)))) == 2


def test_what_is_not_worth_it_stays_in_this_thread():
    with fft.set_workers(2), team(False) as share:
        assert set(share(lambda _: threading.get_ident(), range(20))) == {threading.get_ident()}


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_error_is_the_callers(threads):
    def fail(piece):
        if piece in (3, 5):
            raise KeyError(piece)
        return piece

    with fft.set_workers(threads):
        with pytest.raises(KeyError, match="3"), team(True) as share:
            share(fail, range(8))
        with team(True) as share:  # and the threads go on
            assert share(abs, [-1, -2]) == [1, 2]


def test_nobody_is_left_behind():
    with fft.set_workers(3), team(True) as share:
        share(abs, [-1])
        assert fft.get_workers() == 1, "transforms in a piece have one thread"
    before = threading.active_count()
    with fft.set_workers(3):
        for _ in range(5):
            with team(True) as share:
                share(abs, [-1])
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_what_numpy_does_about_a_division_by_0_is_the_callers_decision(threads):
    with fft.set_workers(threads), team(True) as share:
        with np.errstate(divide="ignore"):
            assert share(lambda x: np.ones(1) / x, [np.zeros(1)] * 3) == [np.inf] * 3
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            share(lambda x: np.ones(1) / x, [np.zeros(1)] * 3)


def test_two_callers_do_not_wait_for_each_other():
    inside, done = threading.Event(), threading.Event()

    def other():
        with fft.set_workers(2), team(True) as share:
            share(abs, [-1])
            inside.set()
            assert done.wait(60)

    caller = threading.Thread(target=other)
    caller.start()
    assert inside.wait(60)
    with fft.set_workers(2), team(True) as share:  # the pool's only thread is with the other
        assert share(abs, [-1, -2]) == [1, 2]
    done.set()
    caller.join(60)
    assert not caller.is_alive()
