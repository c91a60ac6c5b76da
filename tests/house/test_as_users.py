"""What people with data of their own have typed: it works, or the error says what to do.

The sections are those who tried: a privacy engineer, a mobility researcher, a scientist with bits,
a statistician, a researcher with a mechanism of their own.
"""

import json
import pickle

import geopandas
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from shapely.geometry import Point, Polygon

import ibukit as ik

CLASSES = ["Federal-gov", "Private", "Self-emp", "Without-pay"]
SHARES = np.array([0.03, 0.70, 0.25, 0.02])


@pytest.fixture(scope="module")
def work():
    """Ten thousand answers through k-RR, as a column of a table."""
    rng = np.random.default_rng(1)
    mechanism = ik.RandomizedResponse(CLASSES, 2.0)
    return mechanism, pd.Series(
        mechanism.randomize(rng.choice(CLASSES, 10_000, p=SHARES), rng), name="report"
    )


@pytest.fixture(scope="module")
def town():
    """Two hundred places in Manhattan and a grid of cells of a kilometre that covers them."""
    rng = np.random.default_rng(2)
    points = geopandas.GeoSeries(
        geopandas.points_from_xy(*rng.normal([-73.97, 40.77], 0.01, (200, 2)).T), crs=4326
    )
    return ik.Grid.covering(points, cell_size=1000), points


# A privacy engineer


def test_counts_of_a_column(work):
    mechanism, column = work
    for counts in (
        column.value_counts(),
        column.value_counts().sort_index(),
        column.value_counts().to_dict(),
    ):
        estimate = ik.mle(mechanism.tally_counts(counts))
        assert estimate["Private"] == pytest.approx(0.70, abs=0.03)
        assert estimate["Federal-gov"] == pytest.approx(0.03, abs=0.03)


def test_a_column_and_a_table_are_the_same_tally(work):
    mechanism, column = work
    from_column, from_table = (
        mechanism.tally(column),
        ik.Tally.from_table(column.to_frame(), mechanism),
    )
    assert from_column.counts.tolist() == from_table.counts.tolist()


def test_what_is_not_there_is_named(work):
    mechanism, column = work
    dirty = pd.concat([column, pd.Series(["?", None, "?"])], ignore_index=True)
    with pytest.raises(ValueError, match="reports has a missing value at index 10001"):
        mechanism.tally(dirty)
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"reports contains '\?'"):
        mechanism.tally(dirty.dropna())
    tally = ik.Tally.from_table(dirty.to_frame("report"), mechanism, unknown="drop", missing="drop")
    assert tally.n == 10_000
    assert dict(tally.dropped) == {"unknown": 2, "missing": 1}


def test_each_row_has_its_epsilon():
    rng = np.random.default_rng(3)
    levels = np.repeat([1.0, 2.0, 4.0], 3000)
    secrets = rng.choice(CLASSES, levels.size, p=SHARES)
    reports = np.concatenate(
        [
            ik.RandomizedResponse(CLASSES, eps).randomize(secrets[levels == eps], rng)
            for eps in (1.0, 2.0, 4.0)
        ]
    )
    table = pd.DataFrame({"answer": reports, "eps": levels})
    tally = ik.Tally.from_table(
        table, lambda eps: ik.RandomizedResponse(CLASSES, eps), report="answer", epsilon="eps"
    )
    assert len(tally.parts) == 3
    assert ik.mle(tally)["Private"] == pytest.approx(0.70, abs=0.03)


def test_an_estimate_leaves_as_a_table(work):
    mechanism, column = work
    estimate = ik.mle(mechanism.tally(column))
    assert estimate.to_series().index.tolist() == CLASSES
    frame = estimate.to_frame(level=0.95)
    assert frame.columns.tolist() == ["probability", "lower", "upper", "identified"]
    assert (frame["lower"] <= frame["probability"]).all()
    assert json.loads(estimate.to_json())["gap"] == estimate.gap
    assert "Private" in estimate._repr_html_()
    assert estimate == pickle.loads(pickle.dumps(estimate))
    assert estimate.plot(level=0.95).get_ylabel() or estimate.plot().get_xlabel()


# A mobility researcher


def test_points_become_a_map(town):
    grid, points = town
    mechanism = ik.PlanarLaplace(grid, 4.0)
    estimate = ik.mle(mechanism.tally(mechanism.randomize(points, np.random.default_rng(4))))
    frame = estimate.to_geodataframe()
    assert frame.crs.to_epsg() == 4326
    assert len(frame) == len(grid)


def test_points_beyond_the_border_go_where_the_mechanism_sends_them(town):
    grid, _ = town
    far = np.array([[41.5, -73.97]])
    with pytest.raises(ik.errors.AlphabetMismatch, match='outside="nearest"'):
        grid.locate(far)
    assert len(grid.locate(far, outside="nearest")) == 1
    assert len(grid.locate(far, outside="drop")) == 0


def test_edges_in_the_order_of_total_bounds_are_refused(town):
    _, points = town
    with pytest.raises(ValueError, match="total_bounds"):
        ik.Grid.from_bounds(*points.total_bounds, 10, 10)


def test_what_is_no_point_or_has_no_place(town):
    grid, points = town
    with pytest.raises((ValueError, TypeError), match=r"[Pp]oint"):
        grid.locate(geopandas.GeoSeries([Polygon([(0, 0), (1, 0), (1, 1)])], crs=4326))
    with pytest.raises(ValueError, match=r"crs|CRS"):
        grid.locate(geopandas.GeoSeries([Point(-73.97, 40.77)]))
    assert (grid.locate(points.to_crs(32618)) == grid.locate(points)).all()


def test_a_map_too_large_for_a_matrix_says_so():
    large = ik.PlanarLaplace(ik.Grid(256, 256, cell_size=0.1), 4.0)
    estimate = ik.Estimate(
        ik.uniform(65_536),
        0.0,
        1.0,
        ik.Status.STOPPED,
        0,
        "by hand",
        large.alphabet,
        large.tally([(3, 4)]),
    )
    with pytest.raises(ik.errors.TooLarge):
        estimate.interval()


# A scientist with bits


def test_rows_of_bits_in_the_forms_that_hold_them():
    rappor = ik.Rappor(CLASSES, 2.0)
    rows = rappor.randomize(["Private"] * 500, np.random.default_rng(5))
    tally = rappor.tally(rows)
    for other in (rows.astype(bool), rows.tolist(), pd.DataFrame(rows)):
        assert rappor.tally(other).counts.tolist() == tally.counts.tolist()
    assert ik.mle(tally)["Private"] > 0.9


def test_a_million_answers_have_standard_errors():
    mechanism = ik.RandomizedResponse(10**6, 12.0)
    counts = np.full(10**6, 2)
    assert np.isfinite(ik.mle(mechanism.tally_counts(counts)).standard_errors()).all()


# A statistician


RESPONSE = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
TRUTH = np.array([0.1, 0.3, 0.6])


@pytest.mark.parametrize(
    "matrix",
    [RESPONSE, RESPONSE.tolist(), pd.DataFrame(RESPONSE), scipy.sparse.csr_array(RESPONSE)],
)
def test_counts_through_a_response_matrix(matrix):
    estimate = ik.mle(ik.MatrixMechanism(matrix).tally_counts((1e6 * TRUTH @ RESPONSE).astype(int)))
    np.testing.assert_allclose(estimate.distribution, TRUTH, atol=1e-5)


def test_a_response_matrix_that_loses_reports():
    lossy = RESPONSE * np.array([[0.9], [0.5], [0.7]])
    with pytest.raises(ik.errors.InvalidDistribution, match="efficiency"):
        ik.MatrixMechanism(lossy)
    counts = np.rint(1e8 * TRUTH @ lossy).astype(int)
    estimate = ik.mle(ik.MatrixMechanism(lossy, efficiency=True).tally_counts(counts))
    np.testing.assert_allclose(estimate.distribution, TRUTH, atol=1e-6)
    np.testing.assert_allclose(ik.unfold(counts, lossy).distribution, TRUTH, atol=1e-6)


def test_a_transposed_matrix_is_recognised():
    with pytest.raises(ik.errors.InvalidDistribution, match="transpose"):
        ik.MatrixMechanism(RESPONSE.T)


def test_a_matrix_of_eight_decimals_or_of_single_precision():
    for rounded in (RESPONSE.astype(np.float32), np.round(np.array([[1, 2], [2, 1]]) / 3, 8)):
        if abs(rounded.sum(axis=1, dtype=float) - 1).max() > 1e-9:
            with pytest.raises(ik.errors.InvalidDistribution, match="normalize=True"):
                ik.MatrixMechanism(rounded)
        assert ik.MatrixMechanism(rounded, normalize=True).matrix().sum(axis=1) == pytest.approx(
            1, abs=1e-12
        )


def test_counts_are_no_tally():
    with pytest.raises(TypeError, match="tally must be a Tally"):
        ik.mle([3, 4, 5], RESPONSE)


def test_covariances_and_weights():
    tally = ik.MatrixMechanism(RESPONSE).tally_counts([300, 300, 400])
    covariance = ik.mle(tally).covariance()
    np.testing.assert_allclose(
        np.sqrt(np.diag(covariance)), ik.mle(tally).standard_errors(), rtol=1e-9
    )


# A researcher with something of their own


def test_a_loss_of_ones_own():
    population = ik.datasets.load_adult_ages()
    results = ik.replicate(
        population,
        [ik.RandomizedResponse(population.alphabet, 2.0)],
        {"MLE": ik.mle},
        3,
        1,
        losses={"worst": lambda estimate, truth, alphabet: float(abs(truth - estimate).max())},
    )
    assert len(results) == 3


def test_estimates_stand_where_distributions_do(work):
    mechanism, column = work
    estimate = ik.mle(mechanism.tally(column))
    assert ik.emd(estimate, SHARES, mechanism.alphabet) == ik.emd(
        estimate.distribution, SHARES, mechanism.alphabet
    )
    assert 0 <= ik.total_variation(estimate, SHARES) < 0.05


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ik.Line(0, 10**12), ik.errors.TooLarge, "last must lie closer to first"),
        (lambda: ik.Alphabet({"a", "b"}), ValueError, "got set"),
        (
            lambda: ik.Alphabet(["a", "b"], distances=lambda x, y: 1),
            ValueError,
            "distances must be an array",
        ),
        (
            lambda: ik.Alphabet(["a", 1, None]).codes([1, "b"]),
            ik.errors.AlphabetMismatch,
            "contains 'b'",
        ),
        (lambda: ik.MatrixMechanism(RESPONSE + 1j), ik.errors.InvalidDistribution, "complex"),
        (lambda: ik.RandomizedResponse(3, 1.0).tally({0, 1}), ValueError, "got a set"),
        (
            lambda: ik.RandomizedResponse(3, 1.0).tally(x for x in [1]),
            ValueError,
            "got a generator",
        ),
        (lambda: ik.RandomizedResponse(3, 1.0).tally(None), ValueError, "got None"),
    ],
    ids=range(8),
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
