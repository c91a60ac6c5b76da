"""Laplace noise as people release it:
real numbers and points, with the density of the noise as likelihood.
"""

import math
import pickle

import geopandas
import numpy as np
import pytest
from scipy import integrate, stats

import ibukit as ik
from ibukit.channels.points import LaplaceChannel
from ibukit.mechanisms.points import LinearLaplacePoints, PlanarLaplacePoints, merging_loss
from ibukit.mechanisms.points.merging import Merged, merge
from ibukit.testing import check_channel, check_tally

GRID = ik.Grid(3, 4, cell_size=(0.5, 0.7))
PLACED = ik.Grid.from_bounds(40.0, 40.3, -74.0, -73.6, 3, 4)
LINE = ik.Line(3, 9)
# x, y of the centres, one by one
CENTRES = [((col + 0.5) * 0.7, (row + 0.5) * 0.5) for row in range(3) for col in range(4)]


def planar_logs(points, eps):
    """Logarithms of the densities, by the definition."""
    return np.array(
        [
            [2 * math.log(eps) - math.log(2 * math.pi) - eps * math.dist(c, z) for z in points]
            for c in CENTRES
        ]
    )


@pytest.mark.parametrize("eps", [0.2, 1.0, 30.0])
def test_the_likelihood_of_a_point_is_the_density_of_the_noise(eps, rng):
    points = rng.uniform([-3, -2], [5, 4], (200, 2))
    tally = ik.PlanarLaplace(GRID, eps).tally_points(points, outside="keep")
    at = tally.parts[0].reports
    np.testing.assert_allclose(
        np.log(tally.matrix()) + tally.log_scale, planar_logs(at[:, :2], eps), rtol=1e-12
    )
    assert (at[:, 2] == 0).all()
    assert merging_loss(tally) == 0
    check_tally(tally, rng=rng)
    check_channel(ik.PlanarLaplace(GRID, 1.0).tally_points(points[:40], "keep").operator)


def test_far_points_do_not_underflow():
    tally = ik.PlanarLaplace(GRID, 1.0).tally_points([[1e6, 0.3], [0.2, -1e6]], outside="keep")
    np.testing.assert_allclose(tally.matrix().max(axis=0), 1, rtol=1e-12)
    assert tally.log_scale[0] == pytest.approx(-1e6, rel=1e-5)
    assert ik.mle(tally).gap < 1e-9


def test_points_say_more_than_the_cells_that_hold_them(rng):
    grid, eps = ik.Grid(4, 4, cell_size=1.0), 3.0
    mechanism, theta = ik.PlanarLaplace(grid, eps), np.arange(1, 17) / 136
    points = mechanism.of_points.draw(rng.choice(16, 20_000, p=theta), rng)
    cells = np.clip(np.floor(points), 0, 3).astype(int)
    by_points = ik.mle(mechanism.tally_points(points, "keep"))
    by_cells = ik.mle(mechanism.tally(cells[:, 1] * 4 + cells[:, 0], codes=True))
    errors = [ik.squared_l2(each.distribution, theta) for each in (by_points, by_cells)]
    assert errors[0] < errors[1] < 1e-3
    # the density, integrated over a cell and all that lies beyond it, is the mass that the matrix
    # holds
    one = mechanism.of_points.tally([[1.5, 1.5]])
    mass, _ = integrate.dblquad(
        lambda y, x: eps**2 / (2 * math.pi) * math.exp(-eps * math.hypot(x - 0.5, y - 0.5)),
        1,
        2,
        1,
        2,
    )
    assert one.n == 1
    assert mass == pytest.approx(mechanism.matrix()[0, 5], rel=1e-6)


def test_noise_on_points_has_its_law(rng):
    mechanism = PlanarLaplacePoints(GRID, 2.0)
    for secret in (0, 11):
        off = mechanism.draw(np.full(20_000, secret), rng) - CENTRES[secret]
        radius, angle = np.hypot(*off.T), np.arctan2(off[:, 1], off[:, 0])
        assert stats.kstest(radius, stats.gamma(2, scale=0.5).cdf).pvalue > 1e-6
        assert stats.kstest(angle, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-6
        assert stats.kstest(radius * 1.05, stats.gamma(2, scale=0.5).cdf).pvalue < 1e-6
    drawn = mechanism.simulate(np.full(12, 10), rng)
    assert (drawn.n, drawn.parts[0].mechanism) == (120, mechanism)
    assert mechanism.tally(mechanism.randomize(GRID.values, rng)).n == 12


def test_what_happens_to_points_outside_is_said_by_the_caller():
    mechanism, points = ik.PlanarLaplace(GRID, 1.0), [[0.1, 0.1], [2.9, 0.1], [2.8, 1.5]]
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"1 of 3 points are outside the grid, the first is x=2\.9"
    ):
        mechanism.tally_points(points)
    assert mechanism.tally_points(points, "keep").n == 3
    dropped = mechanism.tally_points(points, outside="drop")
    assert dropped.parts[0].reports[:, :2].tolist() == [[0.1, 0.1], [2.8, 1.5]]
    with pytest.raises(
        ValueError, match='outside must be "raise", "keep" or "drop", got \'nearest\'; reports that'
    ):
        mechanism.tally_points(points, outside="nearest")


@pytest.mark.parametrize(
    ("points", "error", "words"),
    [
        (
            [[0.1, np.nan]],
            ik.errors.AlphabetMismatch,
            "points must be finite numbers, got .* at index 0",
        ),
        (
            [[0.1, 0.2], [np.inf, 0]],
            ik.errors.AlphabetMismatch,
            "at index 1: remove missing ones before",
        ),
        (
            [0.1, 0.2],
            ValueError,
            r"points must have shape \(n, 2\): x and y of each point, got \(2,\)",
        ),
        ([["a", "b"]], ValueError, "points must be numbers"),
        ([], ValueError, "the tally is empty"),
        (geopandas.GeoSeries.from_xy([0.1], [0.1], crs=4326), ValueError, "the grid has no bounds"),
    ],
    ids=["nan", "inf", "shape", "text", "none", "places"],
)
@pytest.mark.parametrize("bins", [None, 2])
def test_what_is_no_point_is_refused(points, error, words, bins):
    with pytest.raises(error, match=words):
        ik.PlanarLaplace(GRID, 1.0).tally_points(points, bins=bins)


def test_bins_are_whole():
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        ik.PlanarLaplace(GRID, 1.0).tally_points([[0.1, 0.2]], bins=0)


def test_places_on_the_globe_are_put_on_the_grid():
    mechanism = ik.PlanarLaplace(PLACED, 1.0)
    lat, lon = np.array([40.05, 40.25, 40.1]), np.array([-73.95, -73.61, -74.0])
    places = geopandas.GeoSeries.from_xy(lon, lat, crs=4326)
    height, width = PLACED.cell_shape
    expected = np.stack([(lon + 74) / 0.1 * width, (lat - 40) / 0.1 * height], axis=1)
    for given in (places, places.to_frame("geometry"), places.to_crs(32618)):
        rows = mechanism.tally_points(given, "keep").parts[0].reports[:, :2]
        np.testing.assert_allclose(rows, expected[np.lexsort(expected.T[::-1])], atol=1e-6)
    # the cells are those in which the grid itself finds them
    cells = np.floor(expected / [width, height] + 1e-9).astype(int)
    assert PLACED.locate(places).tolist() == (cells[:, 1] * 4 + cells[:, 0]).tolist()
    with pytest.raises(ik.errors.AlphabetMismatch, match="must all have a place"):
        mechanism.tally_points(geopandas.GeoSeries([None, *places], crs=4326))
    with pytest.raises(ValueError, match="points must be points, got LineString"):
        mechanism.tally_points(
            geopandas.GeoSeries.from_wkt(["LINESTRING (-74 40, -73.9 40.1)"], crs=4326)
        )


def test_a_place_is_on_the_side_of_the_grid_that_is_the_nearer_way_round_the_globe():
    fiji = ik.Grid(1, 3, bounds=(-18.0, -17.0, 177.0, 180.0))
    places = geopandas.GeoSeries.from_xy([-179.7, 176.7, 178.5], [-17.5] * 3, crs=4326)
    x = (
        ik.PlanarLaplace(fiji, 1.0).tally_points(places, "keep").parts[0].reports[:, 0]
        / fiji.cell_shape[1]
    )
    np.testing.assert_allclose(np.sort(x), [-0.3, 1.5, 3.3], atol=1e-9)


def between(mechanism, points, bins, thetas):
    """Mean log-likelihood of points less that of their merged tally,
    at some distributions, and the bound.
    """
    exact, merged = (
        mechanism.tally_points(points, "keep"),
        mechanism.tally_points(points, "keep", bins),
    )
    assert merged.n == exact.n

    def mean(tally, theta):
        return (tally.counts @ np.log(tally.forward(theta)) + tally.log_offset) / tally.n

    return [mean(exact, theta) - mean(merged, theta) for theta in thetas], merging_loss(merged)


@pytest.mark.parametrize("bins", [1, 2, 4, 16])
@pytest.mark.parametrize("eps", [0.3, 1.0, 5.0])
def test_merging_points_loses_no_more_than_is_said(eps, bins, rng):
    mechanism = ik.PlanarLaplace(GRID, eps)
    points = mechanism.of_points.draw(rng.integers(0, 12, 3000), rng)
    thetas = [*rng.dirichlet(np.full(12, 0.1), 20), *np.eye(12)]
    differences, bound = between(mechanism, points, bins, thetas)
    # what one maximiser may lose against the other is the width of this range
    assert 0 <= np.ptp(differences) <= bound
    exact, merged = (
        mechanism.tally_points(points, "keep"),
        mechanism.tally_points(points, "keep", bins),
    )
    best, other = ik.mle(exact), ik.mle(merged)
    loss = (
        best.log_likelihood
        - exact.log_offset
        - exact.counts @ np.log(exact.forward(other.distribution))
    ) / 3000
    assert -1e-9 <= loss <= bound


def test_a_bound_of_a_tenth_would_be_too_little(rng):
    """Points around one centre, which is where the density has its tip."""
    points = np.array(CENTRES[5]) + 0.12 * rng.uniform(-1, 1, (500, 2))
    differences, bound = between(ik.PlanarLaplace(GRID, 1.0), points, 1, np.eye(12))
    assert bound / 10 < np.ptp(differences) <= bound


def test_finer_bins_lose_less_and_many_points_are_merged_by_default(rng, monkeypatch):
    mechanism = ik.PlanarLaplace(GRID, 1.0)
    points = mechanism.of_points.draw(rng.integers(0, 12, 5000), rng)
    losses = [
        merging_loss(mechanism.tally_points(points, "keep", bins)) for bins in (1, 2, 4, 8, 16)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 10
    monkeypatch.setattr(PlanarLaplacePoints, "most_entries", 12 * 2000)
    merged = mechanism.tally_points(points, "keep")
    assert len(merged.counts) <= 2000
    assert merged.n == 5000
    assert 0 < merging_loss(merged) < losses[0]
    assert merging_loss(merged + merged) == pytest.approx(merging_loss(merged))
    assert merging_loss(pickle.loads(pickle.dumps(merged))) == merging_loss(merged)
    monkeypatch.setattr(
        PlanarLaplacePoints, "most_entries", 12
    )  # not even whole squares are few enough
    assert len(mechanism.tally_points(points, "keep").counts) == len(
        mechanism.tally_points(points, "keep", 1).counts
    )


@pytest.mark.parametrize(
    "mechanism", [PlanarLaplacePoints(GRID, 1.0), LinearLaplacePoints(LINE, 1.0)], ids=repr
)
def test_points_come_back_as_they_were_given(mechanism, rng):
    points = (
        rng.normal(size=(5, 2))
        if isinstance(mechanism, PlanarLaplacePoints)
        else rng.normal(size=5)
    )
    assert np.array_equal(mechanism.restore_reports(mechanism.check_reports(points)), points)


def test_points_that_nobody_reported_are_left_out_of_what_is_merged(rng):
    mechanism, points = PlanarLaplacePoints(GRID, 1.0), rng.normal(size=(6, 2))
    often, kept = np.array([2, 0, 1, 0, 3, 1]), [0, 2, 4, 5]
    given = mechanism.check_reports(points)
    (some,), (all_,) = (
        mechanism.counted(given[i], often[i], bins=1000).parts for i in (kept, slice(None))
    )
    assert np.array_equal(some.reports, all_.reports)
    assert some.counts.tolist() == all_.counts.tolist()
    assert some.counts.sum() == 7


def test_merged_points_are_means_and_weights_count(rng):
    points, weights = rng.normal(1e6, 1, (300, 2)), rng.random(300)
    merged = merge(points, weights, 0.5)
    for group in range(len(merged.points)):
        here = merged.group == group
        mean = np.average(points[here] - 1e6, axis=0, weights=weights[here]) + 1e6
        np.testing.assert_allclose(merged.points[group], mean, rtol=1e-15)
        assert np.ptp(points[here], axis=0).max() <= 0.5
    assert merged.counts.sum() == pytest.approx(weights.sum())
    np.testing.assert_allclose(
        merged.apart, np.hypot(*(points - merged.points[merged.group]).T), atol=1e-9
    )


@pytest.mark.parametrize("eps", [0.01, 0.7, 20.0])
def test_the_likelihood_of_a_number_is_the_density_of_the_noise(eps, rng):
    values = np.r_[rng.uniform(-2, 14, 100), 3, 9, 6, 2.9999999, 9.0000001]
    tally = ik.LinearLaplace(LINE, eps).tally_points(values)
    exact = stats.laplace.logpdf(np.sort(values), LINE.values[:, None], 1 / eps)
    np.testing.assert_allclose(np.log(tally.matrix()) + tally.log_scale, exact, rtol=1e-11)
    check_tally(tally, rng=rng)
    check_channel(ik.LinearLaplace(LINE, 0.7).tally_points(values[::3]).operator)
    far = ik.LinearLaplace(LINE, 1.0).tally_points([-1e5, 1e5])
    np.testing.assert_allclose(far.matrix().max(axis=0), 1, rtol=1e-12)


def test_one_secret_and_reports_on_both_sides():
    channel = LaplaceChannel(
        1, 0.5, np.array([-1, 0, 0]), np.array([7.0, 0.3, 1.0]), np.array([0.2, 9.0, 0.0])
    )
    np.testing.assert_allclose(channel.forward(np.ones(1)), [0.2, 0.3, 1.0], rtol=1e-12)
    check_channel(channel)


def test_numbers_say_more_than_the_nearest_values(rng):
    mechanism, theta = ik.LinearLaplace(LINE, 2.0), np.array([1, 2, 3, 4, 3, 2, 1]) / 16
    values = mechanism.of_points.draw(rng.choice(7, 50_000, p=theta), rng)
    by_numbers = ik.mle(mechanism.tally_points(values))
    by_codes = ik.mle(mechanism.tally(np.clip(np.rint(values), 3, 9)))
    errors = [ik.squared_l2(each.distribution, theta) for each in (by_numbers, by_codes)]
    assert errors[0] < errors[1] < 1e-3
    assert by_numbers.gap < 1e-8


def test_noise_on_numbers_has_its_law(rng):
    mechanism = LinearLaplacePoints(LINE, 2.0)
    for secret in (0, 6):
        off = mechanism.draw(np.full(20_000, secret), rng) - LINE.values[secret]
        assert stats.kstest(off, stats.laplace(scale=0.5).cdf).pvalue > 1e-6
        assert stats.kstest(off + 0.05, stats.laplace(scale=0.5).cdf).pvalue < 1e-6
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="reports must be finite numbers, got nan at index 1"
    ):
        mechanism.tally([0.5, np.nan])


@pytest.mark.parametrize("bins", [1, 4])
@pytest.mark.parametrize("eps", [0.3, 3.0])
def test_merging_numbers_loses_next_to_nothing(eps, bins, rng):
    mechanism = ik.LinearLaplace(LINE, eps)
    values = mechanism.of_points.draw(rng.integers(0, 7, 3000), rng)
    exact, merged = mechanism.tally_points(values), mechanism.tally_points(values, bins)
    inside = (values > 3) & (values < 9)
    # beyond the ends nothing is lost, however wide the bins
    assert merging_loss(mechanism.tally_points(values[~inside], bins)) == 0
    bound = merging_loss(merged)
    assert 0 < bound <= (eps / bins) ** 2 / 8
    for theta in (ik.uniform(7), *np.eye(7), np.arange(7) / 21):
        means = [
            (t.counts @ np.log(t.forward(theta)) + t.log_offset) / t.n for t in (exact, merged)
        ]
        assert -1e-12 <= means[0] - means[1] <= bound
    check_channel(mechanism.tally_points(values[:50], bins).operator)


def test_many_numbers_are_merged_by_default(rng, monkeypatch):
    monkeypatch.setattr(LinearLaplacePoints, "most_entries", 7 * 500)
    mechanism = ik.LinearLaplace(LINE, 1.0)
    tally = mechanism.tally_points(mechanism.of_points.draw(rng.integers(0, 7, 3000), rng))
    assert len(tally.counts) <= 500
    assert 0 < merging_loss(tally) < 1e-3


@pytest.mark.parametrize(
    ("kind", "alphabet"), [(PlanarLaplacePoints, GRID), (LinearLaplacePoints, LINE)]
)
def test_levels_and_alphabets_are_checked(kind, alphabet):
    for bad in (0, math.inf, math.nan, "1"):
        with pytest.raises(ValueError, match="epsilon must be a"):
            kind(alphabet, bad)
    with pytest.raises(TypeError, match="alphabet must be a"):
        kind(LINE if alphabet is GRID else GRID, 1.0)
    mechanism = kind(alphabet, 1)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism == kind(alphabet, 1.0)


@pytest.mark.parametrize(
    "mechanism", [PlanarLaplacePoints(GRID, 1.3), LinearLaplacePoints(LINE, 1.3)], ids=str
)
def test_the_level_of_points_is_tight(mechanism, rng):
    centre = np.array(CENTRES[0]) if mechanism.dimension == 2 else 3.0
    reports = np.concatenate([mechanism.draw(rng.integers(0, mechanism.k, 300), rng), [centre]])
    logs = np.log(mechanism.tally(reports).matrix())
    apart = mechanism.alphabet.distances()[:, :, None]
    ratios = np.abs(logs[:, None] - logs)
    assert (ratios <= 1.3 * apart * (1 + 1e-9)).all()
    assert ratios[0, -1].max() == pytest.approx(1.3 * apart[0, -1, 0], rel=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [
        PlanarLaplacePoints(GRID, 1.3),
        LinearLaplacePoints(LINE, 1.3),
        ik.DiscreteGaussian(LINE, 0.9),
        ik.LinearGaussian(LINE, 0.9),
        ik.PlanarGaussian(GRID, 0.3),
    ],
    ids=str,
)
def test_noise_on_points_identifies_the_distribution(mechanism):
    answer = ik.theory.identifiable(mechanism)
    assert (answer.rank, bool(answer)) == (mechanism.k, True)
    assert "strictly positive definite" in answer.reason
    kernel = mechanism.tally(
        mechanism.places() if hasattr(mechanism, "places") else LINE.values
    ).matrix()
    np.testing.assert_allclose(
        answer.singular_values, np.linalg.svd(kernel, compute_uv=False), rtol=1e-9
    )
    assert answer.singular_values[-1] > 1e-6


def test_what_merging_may_do_is_the_documented_bound():
    """eps min(2 t, t^2 / (2 (rho - t))) + (eps t)^2 / 2, for a mean inside,
    at rho <= t, and far away.
    """
    grid, eps, t = ik.Grid(2, 2), 0.7, 0.4
    means = np.array([[0.0, 0.1], [0.5, 0.2], [50.0, 0.0]])
    rho = np.linalg.norm(means[:, None] - PlanarLaplacePoints(grid, eps).places(), axis=2).min(
        axis=1
    )
    merged = Merged(means, np.ones(3, dtype=int), np.arange(3), np.full(3, t))
    curved = [t**2 / (2 * (r - t)) if r > t else np.inf for r in rho]
    expected = [eps * min(2 * t, r) + (eps * t) ** 2 / 2 for r in curved]
    np.testing.assert_allclose(
        PlanarLaplacePoints(grid, eps).merging_bound(means, merged), expected, rtol=1e-12
    )
