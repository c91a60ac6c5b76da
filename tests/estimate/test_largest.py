"""The largest shares: whose they are, and that their intervals hold after the look."""

import numpy as np
import pytest

import ibukit as ik

LABELS = ["a", "b", "c", "d", "e"]
TALLY = ik.RandomizedResponse(LABELS, 2.0).tally_counts([300, 120, 400, 120, 60])


@pytest.mark.parametrize("method", ["profile", "wald", "guaranteed", "credible"])
def test_they_are_the_rows_of_the_band_that_are_largest(method):
    estimate = ik.mle(TALLY)
    table = estimate.largest(4, 0.9, method)
    assert table.index.tolist() == ["c", "a", "b", "d"]
    assert table.index.name == "label"
    lower, upper = estimate.band(0.9, method)
    rows = [LABELS.index(label) for label in table.index]
    np.testing.assert_allclose(table["lower"], lower[rows], atol=1e-9)
    np.testing.assert_allclose(table["upper"], upper[rows], atol=1e-9)
    assert table["probability"].tolist() == [estimate[label] for label in table.index]


def test_options_reach_the_method_and_cells_have_rows_and_columns():
    grid = ik.Grid(1, 3)
    estimate = ik.mle(ik.RandomizedResponse(grid, 1.0).tally_counts([20, 50, 30]))
    table = estimate.largest(1, method="guaranteed", by="betting", seed=3)
    assert table.index.tolist() == [(0, 1)]
    lower, upper = estimate.interval(
        1 - 0.05 / 3, of=[[0, 1, 0]], method="guaranteed", by="betting", seed=3
    )
    assert table[["lower", "upper"]].to_numpy().tolist() == [[lower[0], upper[0]]]


def test_more_labels_than_there_are_is_refused():
    for wrong in (0, 6, 1.5, "two"):
        with pytest.raises(ValueError, match="m must"):
            ik.mle(TALLY).largest(wrong)
    with pytest.raises(ValueError, match="level"):
        ik.mle(TALLY).largest(1, level=1)


@pytest.mark.slow
def test_the_interval_of_the_largest_share_covers_only_in_a_band():
    """4,000 tallies of a uniform truth: the profile interval of the largest share covers in about
    91 % of them (90.9 ± 0.3 over 12,000 of three seeds); `largest`, on the first 100, in at least
    95 % but for three errors.
    """
    mechanism, rng = ik.RandomizedResponse(100, 1.0), np.random.default_rng(7)
    alone, together = [], []
    for draw in range(4000):
        estimate = ik.mle(mechanism.simulate(rng.multinomial(2000, np.full(100, 0.01)), rng))
        of = np.eye(100)[int(estimate.distribution.argmax())]
        lower, upper = estimate.interval(0.95, of=of, method="profile")
        alone.append(lower <= 0.01 <= upper)
        if draw < 100:  # a second each
            row = estimate.largest(1).iloc[0]
            together.append(row["lower"] <= 0.01 <= row["upper"])
    error = np.sqrt(0.909 * 0.091 / 4000 + 0.003**2)
    assert abs(np.mean(alone) - 0.909) < 3 * error, np.mean(alone)
    assert np.mean(together) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 100), np.mean(together)
