"""EM with smoothing: each step by hand, where it stops, and whom it takes."""

import numpy as np
import pytest

import ibukit as ik
from ibukit.estimators.em_smoothing import moving_average

TALLY = ik.TruncatedGeometric(6, 1.0).tally_counts([50, 20, 10, 5, 10, 30])


def by_hand(steps):
    """Algorithm 1 of the source, from its matrix of smoothing."""
    k, columns, q = 6, TALLY.matrix(), TALLY.frequencies
    smoothing = np.zeros((k, k))
    for x in range(k):
        for y, weight in ((x - 1, 1), (x, 2), (x + 1, 1)):
            if 0 <= y < k:
                smoothing[x, y] = weight
    smoothing /= smoothing.sum(axis=1, keepdims=True)
    theta = np.full(k, 1 / k)
    for _ in range(steps):
        theta = theta * (columns @ (q / (theta @ columns)))
        theta = smoothing @ theta
        theta /= theta.sum()
    return theta


@pytest.mark.parametrize("steps", [0, 1, 2, 30])
def test_each_step_is_the_algorithm_s(steps):
    found = ik.ems(TALLY, ik.Steps(steps))
    np.testing.assert_allclose(found.distribution, by_hand(steps), rtol=1e-12)
    assert (found.n_iter, found.status) == (steps, ik.Status.STOPPED)
    if steps:  # the control: without the average it is another
        assert (
            np.abs(ik.ibu(TALLY, stop=ik.Steps(steps)).distribution - by_hand(steps)).max() > 1e-3
        )


def test_it_stops_where_the_likelihood_changes_little():
    found = ik.ems(TALLY)
    last, before = (ik.ems(TALLY, ik.Steps(found.n_iter - back)).log_likelihood for back in (0, 1))
    assert abs(last - before) < 1e-3
    two = ik.ems(TALLY, ik.Steps(found.n_iter - 2)).log_likelihood
    assert abs(before - two) >= 1e-3
    assert found.gap == pytest.approx(ik.gap(TALLY, found.distribution))
    assert found.gap > 1e-4  # it is no maximum
    assert ik.ems(TALLY, max_iter=2).status is ik.Status.MAX_ITER


def test_averages():
    np.testing.assert_allclose(moving_average(np.array([1.0, 0.0])), [2 / 3, 1 / 3])
    np.testing.assert_allclose(
        moving_average(np.array([0.0, 1.0, 0.0])), np.array([1 / 3, 1 / 2, 1 / 3]) / (7 / 6)
    )
    np.testing.assert_allclose(moving_average(np.full(5, 0.2)), np.full(5, 0.2))
    assert moving_average(np.ones(1)).tolist() == [1.0]


def test_bad_input_is_named():
    with pytest.raises(TypeError, match=r"tally must be of secrets on a Line, .*, got Grid"):
        ik.ems(ik.TruncatedPlanarGeometric(ik.Grid(2, 2), 1.0).tally_counts([1, 2, 3, 4]))
    with pytest.raises(ValueError, match="max_iter must be at least 0, got -1"):
        ik.ems(TALLY, max_iter=-1)
    with pytest.raises(TypeError, match="tally"):
        ik.ems([1, 2])
    with pytest.raises(ValueError, match="a moving average needs the ends of the line"):
        ik.ems(ik.LinearGeometric(ik.Line(None, None), 1.0).tally([0, 3]))
