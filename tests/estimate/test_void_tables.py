"""No table says [0, 1] of what another method determines, or its column says why."""

import numpy as np
import pytest

import ibukit as ik


def city(rows, columns, n):
    """Return the estimate of a town in which most cells are empty."""
    grid = ik.Grid(rows, columns, cell_size=0.5, unit="km")
    r, c = np.divmod(np.arange(rows * columns), columns)
    p = np.exp(-((r - 12) ** 2 / 10 + (c - 9) ** 2 / 6))
    rng = np.random.default_rng(1)
    people = rng.multinomial(n, p / p.sum())
    return ik.mle(ik.PlanarLaplace(grid, epsilon=4.0).simulate(people, rng))


# A few more cells than have profile intervals without being void.
TOWN = city(18, 18, 50_000)


def test_void_rows_have_the_profile_intervals():
    frame = TOWN.to_geodataframe(level=0.95)
    right = TOWN.interval(0.95, method="profile")
    assert ((frame["upper"] - frame["lower"]) < 0.1).all()
    assert np.allclose(frame["lower"], right[0], atol=1e-9)
    assert np.allclose(frame["upper"], right[1], atol=1e-9)


def test_rows_that_would_take_minutes_say_that_they_are_void():
    estimate = city(40, 30, 2_000)
    frame = estimate.to_frame()
    void = (frame["lower"] == 0) & (frame["upper"] == 1)
    assert void.any()
    assert (frame.loc[void, "method"] == 'wald, void: see method="profile"').all()
    assert (frame.loc[~void, "method"] == "wald").all()
    axes = estimate.plot(level=0.95)
    assert f'{void.sum():,} cells without an interval: see method="profile"' in axes.get_title()


def test_tables_of_one_method_have_no_column_of_methods():
    krr = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([50, 30, 40]))
    assert list(krr.to_frame()) == ["probability", "lower", "upper", "identified"]
    many = ik.mle(ik.RandomizedResponse(400, 6.0).tally_counts(np.full(400, 500)))
    assert list(many.to_frame()) == ["probability", "lower", "upper", "identified"]


def test_districts_of_many_cells_have_profiles_by_default():
    west = (np.arange(324) % 18 < 9).astype(float)
    table = TOWN.summary(of=np.array([west, 1 - west])).table
    assert ((table["upper"] - table["lower"]) < 0.1).all()


@pytest.mark.parametrize("method", ["wald"])
def test_a_method_that_is_asked_for_is_taken(method):
    frame = TOWN.to_frame(method=method)
    assert (frame["upper"] == 1).all()
    assert "method" not in frame
