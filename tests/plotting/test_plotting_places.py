"""Maps with the outlines of places:
where they are drawn, what is land, what is refused; panels of one size.
"""

import matplotlib

matplotlib.use("Agg")

import geopandas
import matplotlib.pyplot as plt
import numpy as np
import pytest
import shapely
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, SymLogNorm

import ibukit as ik
from ibukit import plotting
from test_plotting import pixel

GRID = ik.Grid(2, 3, cell_size=(2.0, 1.0), bounds=(10.0, 11.0, 20.0, 23.0))
# the west half of the map and what lies beyond it
WEST = geopandas.GeoDataFrame({"kind": ["land"]}, geometry=[shapely.box(15, 5, 21.5, 15)], crs=4326)
CITIES = [
    "manhattan",
    "manhattan_exact_km",
    "san_francisco",
    "san_francisco_24x17",
    "privic_san_francisco",
]


pytestmark = pytest.mark.usefixtures("closed_figures")


def lines(axes):
    return [
        path.vertices
        for each in axes.collections
        if isinstance(each, LineCollection)
        for path in each.get_paths()
    ]


def test_a_shore_is_drawn_where_it_is_and_the_edge_of_the_map_is_none():
    axes = plotting.heatmap(GRID, ik.uniform(6), places=WEST)
    (shore,) = lines(axes)
    # in the map's own km: half of its width of 3, all of its height of 4
    assert sorted(map(tuple, shore.tolist())) == [(1.5, 0.0), (1.5, 4.0)]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 3), (0, 4))
    # the same in metres, and as a GeoSeries
    for same in (WEST.to_crs(3857), WEST.geometry):
        (again,) = lines(plotting.heatmap(GRID, ik.uniform(6), places=same))
        np.testing.assert_allclose(np.sort(again, axis=0), np.sort(shore, axis=0), atol=1e-6)


def test_a_shore_is_seen_on_dark_cells_and_on_empty_ones():
    for values in (np.zeros(6), np.ones(6)):
        axes = plotting.heatmap(GRID, values, vmax=1.0, places=WEST)
        x = axes.transData.inverted().transform(
            axes.transData.transform((1.5, 1)) + np.arange(-3, 4)[:, None] * [1, 0]
        )
        seen = [pixel(axes, *at) for at in x]
        assert np.ptp([colour.sum() for colour in seen]) > 1


def test_kinds_of_places_differ():
    kinds = ["land", "park", "street", "canal", "lake"]
    frame = geopandas.GeoDataFrame(
        {"kind": kinds}, geometry=[shapely.box(20.5, 10.2, 21, 10.8)] * 5, crs=4326
    )
    axes = plotting.heatmap(GRID, ik.uniform(6), places=frame)
    colors = [tuple(each.get_colors()[0]) for each in axes.collections]
    assert len(colors) == 5
    assert len(set(colors)) == 4, "what has no style of its own is drawn as a shore is"
    points = geopandas.GeoSeries([shapely.Point(21, 10.5)], crs=4326)
    assert lines(plotting.heatmap(GRID, ik.uniform(6), places=points)) == []


@pytest.mark.parametrize("city", CITIES)
def test_nearly_nobody_is_in_the_water(city):
    town, places = ik.datasets.load_gowalla(city), ik.datasets.load_places(city)
    grid = town.alphabet
    wet = plotting.land_shares(grid, places) < 0.05
    assert 10 < wet.sum() < 40
    as_loaded = 0.0075 if "manhattan" in city else 0.00002
    assert 0 < town.distribution[wet].sum() < as_loaded
    # turned by a mistake, there would be ten times as many
    picture = town.distribution.reshape(grid.n_rows, grid.n_cols)
    for turned in (picture[::-1], picture[:, ::-1], picture[::-1, ::-1]):
        assert turned.ravel()[wet].sum() > 10 * town.distribution[wet].sum()


@pytest.mark.parametrize("city", ["paris", "privic_paris"])
def test_in_paris_the_water_is_given(city):
    town, places = ik.datasets.load_gowalla(city), ik.datasets.load_places(city)
    land = plotting.land_shares(town.alphabet, places)
    assert 0.2 < land.min() < 0.9
    assert (land == 1).mean() > 0.7
    (river,) = places[places.kind == "water"].geometry
    lat, lon = town.alphabet.edges()
    cells = shapely.box(lon[None, :-1], lat[:-1, None], lon[None, 1:], lat[1:, None]).ravel()
    assert ((land < 1) == shapely.intersects(cells, river)).all()


def test_land_by_hand():
    assert plotting.land_shares(GRID, WEST) == pytest.approx([1, 0.5, 0] * 2)
    assert plotting.land_shares(GRID, WEST.drop(columns="kind")) == pytest.approx([1, 0.5, 0] * 2)
    assert plotting.land_shares(GRID, WEST.assign(kind="water")) == pytest.approx([0, 0.5, 1] * 2)


@pytest.mark.parametrize(
    ("grid", "places", "error", "said"),
    [
        (GRID, WEST.set_crs(None, allow_override=True), ValueError, "places must have a CRS"),
        (
            GRID,
            WEST.translate(40),
            ik.errors.AlphabetMismatch,
            "places must be on the map, west 20.0",
        ),
        (GRID, WEST.geometry[:0], ik.errors.AlphabetMismatch, "places must be on the map"),
        (GRID, [(10.5, 21.0)], TypeError, "places must be a GeoDataFrame or a GeoSeries, got list"),
        (ik.Grid(2, 3), WEST, ValueError, "places need a grid with bounds"),
        (
            GRID,
            geopandas.GeoSeries([None, shapely.Point(1, 1)], crs=4326),
            ik.errors.AlphabetMismatch,
            "missing",
        ),
    ],
)
def test_places_that_cannot_be_drawn(grid, places, error, said):
    with pytest.raises(error, match=said):
        plotting.heatmap(grid, ik.uniform(6), places=places)
    with pytest.raises(error, match=said):
        plotting.land_shares(grid, places)
    assert plt.get_fignums() == []


def test_lines_are_no_land():
    with pytest.raises(ValueError, match="places must hold areas"):
        plotting.land_shares(GRID, WEST.boundary)


def test_a_bar_takes_nothing_of_the_maps_size():
    figure, (one, two) = plt.subplots(1, 2, layout="constrained")
    plotting.heatmap(GRID, ik.uniform(6), one)
    plotting.heatmap(GRID, ik.uniform(6), two, scale=False)
    figure.canvas.draw()
    assert one.get_window_extent().size == pytest.approx(two.get_window_extent().size)
    assert (one.get_xlim(), one.get_ylim()) == (two.get_xlim(), two.get_ylim())
    # outside of the frame, on the page's ground, and inside of the figure
    (bar,) = one.lines
    below = bar.get_window_extent()
    assert below.y1 < one.get_window_extent().y0
    assert one.get_tightbbox().y0 >= 0


def test_maps_to_be_compared_have_one_size_and_the_same_colours():
    pictures = {
        "truth": ik.uniform(6),
        "MLE": [0.5, 0.5, 0, 0, 0, 0],
        "INV": [-0.1, 0.3, 0.2, 0.2, 0.2, 0.2],
    }
    figure = plotting.maps(GRID, pictures, columns=2, places=WEST)
    figure.canvas.draw()
    *drawn, hidden, bar = figure.axes
    assert [axes.get_title() for axes in drawn] == list(pictures)
    assert (hidden.get_visible(), bar.get_xlabel()) == (False, "probability of a cell")
    assert [axes.images[0].get_clim() for axes in drawn] == [(-0.1, 0.5)] * 3
    sizes = [axes.get_window_extent().size for axes in drawn]
    assert np.ptp(sizes, axis=0) == pytest.approx([0, 0], abs=1e-6)
    assert [len(axes.lines) for axes in drawn] == [1, 0, 0], "one bar says the scale of all"
    assert all(lines(axes) for axes in drawn)
    assert min(axes.get_tightbbox().x0 for axes in drawn) >= 0
    with pytest.raises(ValueError, match="at least one map"):
        plotting.maps(GRID, {})
    with pytest.raises(TypeError, match=r"grid must be a Grid, got Line\(0, 5\)"):
        plotting.maps(ik.Line(0, 5), pictures)


@pytest.mark.parametrize(
    ("grid", "label", "length"),
    [
        (ik.Grid(11, 15, unit="cell"), "5 cells", 5),
        (ik.Grid(3, 3, unit="cell"), "1 cell", 1),
        (ik.datasets.load_gowalla("privic_paris").alphabet, "2 km", 2 / 0.4844),
        (ik.datasets.load_gowalla("paris").alphabet, "2 km", 2),
    ],
)
def test_the_bar_is_in_a_unit_of_length_where_it_is_known(grid, label, length):
    axes = plotting.heatmap(grid, ik.uniform(len(grid)))
    assert axes.texts[0].get_text() == label
    assert np.ptp(axes.lines[0].get_xdata()) == pytest.approx(length, rel=1e-3)


def test_white_is_nothing_and_more_is_darker():
    for norm, values in [
        (None, np.linspace(0, 1, 6)),
        (LogNorm(1e-5, 1), np.geomspace(1e-5, 1, 6)),
        (None, np.linspace(0.0, -1, 6)),
        (SymLogNorm(0.1, vmin=-1, vmax=1), np.linspace(0, -1, 6)),
    ]:
        image = plotting.heatmap(GRID, values, norm=norm).images[0]
        light = image.to_rgba(values)[:, :3] @ [0.2126, 0.7152, 0.0722]
        assert light[0] == pytest.approx(1, abs=0.02)
        assert (np.diff(light) < 0).all()
        plt.close("all")
    both = plotting.heatmap(GRID, [-0.5, 0, 0.5, 1, 0, 0]).images[0]
    less, none, more = (both.to_rgba([x])[0, :3] for x in (-0.5, 0, 0.5))
    assert none == pytest.approx(1, abs=0.02)
    assert (less[0] > less[2], more[0] < more[2]) == (True, True), (
        "below nothing is brown, above it blue"
    )


def test_every_file_of_places_says_whose_it_is():
    for city in ("manhattan", "san_francisco", "paris"):
        frame = ik.datasets.load_places(city)
        assert frame.crs == 4326
        assert len(frame.attrs["attribution"]) > 30
        assert set(frame.kind) <= {"land", "water", "park", "canal", "street", "landmark"}
        assert frame.approximate[frame.kind == "street"].all()
    with pytest.raises(ValueError, match=r"city must be one of manhattan.*'rome'"):
        ik.datasets.load_places("rome")
