"""When the support of a maximiser is guessed and solved for on the way of an interior point."""

from itertools import pairwise

import numpy as np
import pytest

from ibukit.solvers._normal_equations import DenseModel
from ibukit.solvers.dense import least_squares_steps
from ibukit.solvers.dense.central_path import DensePath
from ibukit.solvers.interior_point import maximise


def blurred(rng):
    """A smooth kernel on 60 secrets, three of which have mass:
    far from the maximiser nearly all seem to.
    """
    x, width, n = np.arange(60), 6.0, 10**5
    matrix = np.exp(-((x[:, None] - np.arange(90) + 15) ** 2) / (2 * width**2)) + 1e-12
    matrix /= matrix.sum(axis=1, keepdims=True)
    counts = rng.multinomial(n, np.array([0.5, 0.3, 0.2]) @ matrix[[10, 30, 45]])
    columns = matrix[:, counts > 0]
    return columns / columns.max(axis=0), counts[counts > 0] / n


@pytest.fixture
def way(monkeypatch):
    """Of each point of a path: how many secrets seem to have mass, and max g - 1."""
    points, excess = [], DensePath.excess

    def looked_at(path):
        points.append((int((path.theta > path.s).sum()), excess(path)))
        return points[-1][1]

    monkeypatch.setattr(DensePath, "excess", looked_at)
    monkeypatch.setattr(
        least_squares_steps, "maximise", lambda *given: None
    )  # which needs no path here
    return points


@pytest.fixture
def guesses(monkeypatch, way):
    """The points whose support was solved for, by their place on the way."""
    places, guess = [], DenseModel.cross_over

    def solved_for(self, q, theta, s, tol):
        places.append(len(way) - 1)
        return guess(self, q, theta, s, tol)

    monkeypatch.setattr(DenseModel, "cross_over", solved_for)
    return places


def test_a_support_is_solved_for_when_the_guess_no_longer_shrinks(way, guesses, rng):
    """What is found has the maximiser's zeros all the same."""
    shrunk = 0
    for _ in range(10):
        matrix, q = blurred(rng)
        way.clear(), guesses.clear()
        theta, _ = maximise(matrix, q, 1e-9)
        assert DenseModel(matrix).excess(q, theta) <= 1e-9
        assert (theta > 0).sum() < 20
        for place in guesses:
            assert way[place][0] >= 0.9 * way[place - 1][0]
        shrunk += sum(
            now < 0.9 * before for (before, _), (now, excess) in pairwise(way) if excess < 1e-6
        )
    assert shrunk >= 5, "or there was nothing to wait for"


def test_after_a_guess_has_failed_the_next_is_smaller_or_of_a_better_point(way, monkeypatch, rng):
    places = []
    monkeypatch.setattr(
        DenseModel,
        "cross_over",
        lambda self, q, theta, s, tol: places.append(len(way) - 1) or (1.0, theta),
    )
    passed_over = 0
    for _ in range(20):
        matrix, q = blurred(rng)
        way.clear(), places.clear()
        theta, _ = maximise(matrix, q, 1e-12)
        assert DenseModel(matrix).excess(q, theta) <= 1e-12, "without zeros, but certified"
        for before, after in pairwise(places[:-1]):  # the last may be taken as it is
            smaller, better = (
                way[after][0] <= 0.95 * way[before][0],
                way[after][1] <= 0.1 * way[before][1],
            )
            assert smaller or better
            passed_over += after - before - 1
    assert passed_over >= 5


def test_a_guess_that_never_settles_is_tried_at_the_end(way, guesses, monkeypatch, rng):
    monkeypatch.setattr("ibukit.solvers.interior_point.SETTLED_RATIO", 2.0)
    matrix, q = blurred(rng)
    theta, _ = maximise(matrix, q, 1e-9)
    assert guesses == [len(way) - 1]
    assert (theta > 0).sum() < 20
