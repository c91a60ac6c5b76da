"""The gap of counts over a background, in the case that the most likely signal is none."""

import numpy as np
import pytest

from ibukit.estimators.unfolding.poisson import gap, maximise_signal


@pytest.mark.parametrize("signal", [0.1, 1.0, 3.0])
def test_where_the_background_explains_more_than_was_seen_the_bound_is_that_of_no_signal(signal):
    """One secret, seen in two places alike:
    there the bound is the log-likelihood that a signal costs, no more.
    """
    m, n, b = np.array([[0.5, 0.5]]), np.array([5.0, 5.0]), np.array([10.0, 10.0])
    lost = signal - 10 * np.log1p(signal / 20)
    assert gap(np.array([signal]), m, n, b) == pytest.approx(lost / 10, rel=1e-9)


def test_a_place_where_nothing_was_seen_may_be_one_that_nothing_reaches():
    """It says nothing: the signal is that of the other places."""
    m, b = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0]]), np.array([2.0, 1.0, 0.0])
    without = maximise_signal(m[:, :2], np.array([30, 40]), b[:2])
    found = maximise_signal(m, np.array([30, 40, 0]), b)
    assert (found.seen.tolist(), found.gap) == (without.seen.tolist(), without.gap)
