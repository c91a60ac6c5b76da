"""Plots: read back from the drawing itself, down to the pixels of a map."""

import matplotlib

matplotlib.use("Agg")

import geopandas
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, to_rgb

import ibukit as ik
from ibukit import plotting

TALLY = ik.RandomizedResponse(3, 1.0).tally_counts([60, 30, 10])


pytestmark = pytest.mark.usefixtures("closed_figures")


def pixel(axes, x, y):
    """The colour drawn at a point in data coordinates."""
    canvas = axes.figure.canvas
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())
    column, row = axes.transData.transform((x, y))
    return picture[picture.shape[0] - 1 - round(row), round(column), :3] / 255


def test_the_style_is_set_once_and_for_all_plots():
    plotting.use_style()
    assert plt.rcParams["image.cmap"] == "white to blue"
    assert plt.rcParams["axes.spines.top"] is False


def test_the_palette_can_be_told_apart_without_colours():
    # relative luminance, as a greyscale print shows it; and a dash pattern for each
    grey = [to_rgb(color) @ np.array([0.2126, 0.7152, 0.0722]) for color in plotting.PALETTE]
    assert (
        len(plotting.DASHES)
        == len(plotting.PALETTE)
        == len(set(plotting.DASHES))
        == len(set(plotting.PALETTE))
    )
    assert max(grey) < 0.75, "a pale line on white cannot be seen"


def test_distributions():
    line = ik.Line(17, 20, unit="year")
    curves = {"truth": [0.1, 0.2, 0.3, 0.4], "IBU": ik.uniform(4), "INV": [0.5, -0.1, 0.3, 0.3]}
    axes = plotting.distributions(line, curves)
    assert isinstance(axes, Axes)
    assert len(plt.get_fignums()) == 1
    for drawn, name in zip(axes.lines, ["IBU", "INV"], strict=True):
        assert drawn.get_label() == name
        assert drawn.get_xdata().tolist() == [17, 18, 19, 20]
        assert drawn.get_ydata().tolist() == list(curves[name])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["truth", "IBU", "INV"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("years", "probability")
    # negative entries of raw inversion are not cut off
    assert axes.get_ylim()[0] <= -0.1


def test_steps_are_as_wide_at_the_ends_as_between():
    """The lines of a curve cover each value's step, half of the first and the last one as well."""
    line, p = ik.Line(3, 6), np.array([0.4, 0.1, 0.3, 0.2])
    axes = plotting.distributions(line, {"truth": ik.uniform(4), "IBU": p})
    halves = [
        segment.tolist()
        for each in axes.collections
        if isinstance(each, LineCollection)
        for segment in each.get_segments()
    ]
    assert halves == [[[2.5, 0.4], [3.0, 0.4]], [[6.0, 0.2], [6.5, 0.2]]]


def test_seven_curves_differ_in_colour_and_in_dashes():
    axes = plotting.distributions(3, {str(i): ik.uniform(3) for i in range(7)})
    looks = [(line.get_color(), line._unscaled_dash_pattern) for line in axes.lines]
    assert len({color for color, _ in looks}) == 6
    assert len({str(dashes) for _, dashes in looks}) == 6
    assert axes.get_ylim()[0] == 0


def test_plots_take_estimates_and_the_axes_they_are_given():
    figure, axes = plt.subplots()
    estimate = ik.ibu(TALLY)
    assert plotting.distributions(3, {"truth": ik.uniform(3), "IBU": estimate}, ax=axes) is axes
    assert np.array_equal(axes.lines[0].get_ydata(), estimate.distribution)
    grid = ik.Grid(1, 3)
    again = plotting.heatmap(grid, estimate, ax=figure.add_subplot(label="map"))
    assert np.array_equal(again.images[0].get_array(), estimate.distribution[None])
    assert len(plt.get_fignums()) == 1, "no figure is made where axes are given"


@pytest.mark.parametrize(
    "values",
    [[0.5, 0.5], [[0.2, 0.3, 0.5]], 1.0],
    ids=["too few", "too many dimensions", "a number"],
)
def test_values_of_another_shape(values):
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"values must have shape \(3,\), got"):
        plotting.distributions(3, {"truth": values})


def test_a_map_has_north_up_and_east_right():
    grid = ik.Grid(3, 4, cell_size=(0.5, 2.0))
    values = np.arange(12) / 11
    axes = plotting.heatmap(grid, values)
    image = axes.images[0]
    for code, (row, col) in enumerate(grid.values):
        # row 0 is the south row, and south is where y is small; the centre of its cell in km
        seen = pixel(axes, (col + 0.5) * 2.0, (row + 0.5) * 0.5)
        assert seen == pytest.approx(image.cmap(image.norm(values[code]))[:3], abs=0.01)
    low, high = axes.get_ylim()
    assert low < high, "y grows upwards"
    assert axes.transData.transform((0, 1))[1] > axes.transData.transform((0, 0))[1]


def test_a_part_of_a_map_is_drawn_where_it_lies():
    grid = ik.Grid(2, 3, cell_size=(0.5, 2.0), first=(7, -1))
    (image,) = plotting.heatmap(grid, ik.uniform(6)).images
    assert image.get_extent() == pytest.approx([-2.0, 4.0, 3.5, 4.5])


@pytest.mark.parametrize(
    ("grid", "length"),
    [
        (ik.Grid(20, 14, cell_size=0.5, unit="km"), 2.0),
        (ik.Grid(4, 4, cell_size=1.0), 1.0),
        (ik.Grid(10, 30, cell_size=(1.0, 2.0), unit="mile"), 20.0),
        (ik.Grid(3, 3, cell_size=0.05), 0.05),
    ],
)
def test_the_scale_bar_is_as_long_as_it_says(grid, length):
    axes = plotting.heatmap(grid, ik.uniform(len(grid)))
    (bar,) = axes.lines
    start, end = bar.get_xdata()
    label, north = (text.get_text() for text in axes.texts)
    assert north == "N"
    assert end - start == pytest.approx(length)
    assert label == f"{length:g} {'miles' if grid.unit == 'mile' else grid.unit}".rstrip()
    # a length of the picture's own scale: the picture is n_cols cells wide
    width = grid.n_cols * grid.cell_shape[1]
    assert axes.get_xlim() == (0, width)
    assert length <= width / 3 + 1e-12
    bare = plotting.heatmap(grid, ik.uniform(len(grid)), scale=False)
    assert [*bare.lines, *bare.texts, *bare.patches] == []


def test_the_arrow_points_to_the_north_below_the_map():
    grid = ik.Grid(20, 14, cell_size=0.5, unit="km")
    axes = plotting.heatmap(grid, np.zeros(280))
    (arrow,) = axes.patches
    axes.figure.canvas.draw()
    tail, tip = arrow.get_transform().transform(arrow.get_path().vertices[[0, 2]])
    assert tip[0] == pytest.approx(tail[0])
    assert tip[1] > tail[1] + 5
    # dark in its head, and beside the picture
    x, y = axes.transData.inverted().transform(0.25 * tail + 0.75 * tip)
    assert pixel(axes, x, y).max() < 0.3
    assert 0 < x < 7
    assert y < 0


def test_names_stand_where_the_places_are():
    grid = ik.Grid(2, 3, cell_size=(2.0, 1.0), bounds=(10.0, 11.0, 20.0, 23.0))
    names = {"south-west": (10.0, 20.0), "middle": (10.5, 21.5), "east": (10.75, 23.0)}
    expected = {"south-west": (0, 0), "middle": (1.5, 2), "east": (3, 3)}
    axes = plotting.heatmap(grid, ik.uniform(6), names=names)
    drawn = {text.get_text(): text.xy for text in axes.texts if text.get_text() in names}
    assert drawn == {name: pytest.approx(at) for name, at in expected.items()}
    points = [line.get_xydata()[0] for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points, list(expected.values()))
    # the text begins at the point or ends there, whichever side has more room
    assert [text.get_ha() for text in axes.texts[2:]] == ["left", "left", "right"]
    # the cell that is drawn there holds the place
    assert grid.locate([names["east"]]).tolist() == grid.codes([(1, 2)]).tolist() == [5]
    assert axes.get_xlim() == (0, 3), "the frame of the map stays"
    series = geopandas.GeoSeries(gpd_points(names), index=list(names), crs=4326).to_crs(3857)
    again = plotting.heatmap(grid, ik.uniform(6), names=series)
    assert [text.get_text() for text in again.texts] == [text.get_text() for text in axes.texts]


def gpd_points(names):
    return geopandas.points_from_xy(*np.array(list(names.values())).T[::-1])


def test_names_that_cannot_be_drawn():
    grid = ik.Grid(2, 2, bounds=(10.0, 11.0, 20.0, 23.0))
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="names has 'Rome', which is outside the map"
    ):
        plotting.heatmap(grid, ik.uniform(4), names={"Rome": (41.9, 12.5)})
    with pytest.raises(ValueError, match="names need a grid with bounds"):
        plotting.heatmap(ik.Grid(2, 2), ik.uniform(4), names={"here": (10.5, 21.0)})
    with pytest.raises(ik.errors.AlphabetMismatch, match="NaN"):
        plotting.heatmap(grid, ik.uniform(4), names={"nowhere": (np.nan, 21.0)})
    with pytest.raises(TypeError, match=r"grid must be a Grid, got Line\(0, 3\)"):
        plotting.heatmap(ik.Line(0, 3), ik.uniform(4))
    assert plt.get_fignums() == []


def test_maps_can_be_compared():
    grid = ik.Grid(1, 2)
    one, two = (plotting.heatmap(grid, values, vmax=1.0) for values in ([0.2, 0.8], [0.4, 0.6]))
    assert one.images[0].get_clim() == two.images[0].get_clim() == (0.0, 1.0)
    assert plotting.heatmap(grid, [1.2, -0.2]).images[0].get_clim() == (-0.2, 1.2)
    logarithmic = plotting.heatmap(grid, [0.2, 0.8], norm=LogNorm(1e-3, 1))
    assert isinstance(logarithmic.images[0].norm, LogNorm)


def test_a_channel_has_the_first_secret_on_top():
    matrix = ik.RandomizedResponse(3, 2.0).matrix() * np.array([1.0, 0.5, 0.25])
    axes = plotting.channel(matrix, first_secret=17, first_report=17)
    for x in range(3):
        for z in range(3):
            image = axes.images[0]
            seen = pixel(axes, 17 + z, 17 + x)
            assert seen == pytest.approx(image.cmap(image.norm(matrix[x, z]))[:3], abs=0.01)
    assert axes.transData.transform((17, 17))[1] > axes.transData.transform((17, 19))[1]
    with pytest.raises(ValueError, match=r"matrix must have two dimensions, got shape \(3,\)"):
        plotting.channel([1, 2, 3])


def test_panels_say_steps_and_gap():
    estimates = {
        "INV-P": ik.inv(TALLY),
        "IBU": ik.ibu(TALLY, stop=ik.Steps(5)),
        "MLE": ik.mle(TALLY),
    }
    figure = plotting.panels(3, [0.2, 0.2, 0.6], estimates)
    for axes, (name, estimate) in zip(figure.axes, estimates.items(), strict=False):
        title = axes.get_title()
        assert title.startswith(name)
        digits = f"{estimate.gap:.2g}" if name != "MLE" else "below $10^{-9}$"
        assert f"gap {digits}" in title
        assert ("closed form" in title) is (estimate.n_iter == 0)
        assert np.array_equal(axes.lines[0].get_ydata(), estimate.distribution)
    assert [axes.get_visible() for axes in figure.axes] == [True, True, True, False]


def test_panels_say_what_they_cut_off():
    sharp = ik.inv(ik.RandomizedResponse(4, 1.0).tally_counts([97, 1, 1, 1]))
    figure = plotting.panels(4, ik.uniform(4), {"INV-P": sharp})
    assert figure.axes[0].get_ylim() == (0, 0.75)
    assert [text.get_text() for text in figure.axes[0].texts] == [
        f"up to {sharp.distribution.max():.2f}"
    ]


def test_boxes():
    samples = {"INV-P": {0.1: [3, 4, 5], 1.0: [1, 2, 3]}, "IBU": {0.1: [1, 1, 2], 1.0: [0.5, 1, 1]}}
    axes = plotting.boxes(samples, log=True)
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.1", "1.0"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["INV-P", "IBU"]
    # beside each other around their tick, told apart by hatching too, in the order of the legend
    patches = axes.patches
    centres = [
        patch.get_path().get_extents().x0 + patch.get_path().get_extents().width / 2
        for patch in patches
    ]
    assert centres == pytest.approx([-0.2, 0.8, 0.2, 1.2])
    assert len({patch.get_hatch() for patch in patches}) == 2
    assert len({patch.get_facecolor() for patch in patches}) == 2
    levels = [set(line.get_ydata().tolist()) for line in axes.lines]
    assert all({median} in levels for median in (4, 2, 1))


def test_boxes_where_an_estimator_lacks_a_setting():
    axes = plotting.boxes({"INV": {1: [1, 2], 2: [1, 2]}, "IBU": {2: [3, 4]}})
    centres = [
        patch.get_path().get_extents().x0 + patch.get_path().get_extents().width / 2
        for patch in axes.patches
    ]
    assert centres == pytest.approx([-0.2, 0.8, 1.2])


def test_the_triangle_puts_each_secret_at_its_corner():
    corners = np.eye(3)
    axes = plotting.triangle(TALLY, {"corners": list(corners), "MLE": [ik.mle(TALLY)]})
    drawn = {line.get_label(): np.column_stack(line.get_data()) for line in axes.lines}
    assert drawn["corners"] == pytest.approx(np.array([[0, 0], [0.5, np.sqrt(3) / 2], [1, 0]]))
    best = ik.mle(TALLY).distribution
    assert drawn["MLE"] == pytest.approx(best[None] @ drawn["corners"])
    places = {text.get_text(): text.xy for text in axes.texts}
    assert [places[str(label)] for label in (0, 1, 2)] == [
        pytest.approx(corner) for corner in drawn["corners"]
    ]
    markers = [line.get_marker() for line in axes.lines]
    assert len(set(markers)) == 2, "marks differ in shape"


def test_the_names_of_the_corners_are_drawn_without_marks_there():
    axes = plotting.triangle(TALLY)
    canvas = axes.figure.canvas
    canvas.draw()
    assert all(text._check_xy(canvas.get_renderer()) for text in axes.texts)


def test_the_triangle_shows_where_the_likelihood_is_highest():
    axes = plotting.triangle(TALLY, levels=30)
    image = axes.collections[0]
    at = {
        corner: pixel(axes, *xy)
        for corner, xy in {"best": (0.12, 0.12), "worst": (0.9, 0.05)}.items()
    }
    top, bottom = (
        image.cmap(image.norm(image.levels[-1]))[:3],
        image.cmap(image.norm(image.levels[0]))[:3],
    )
    assert np.linalg.norm(at["best"] - top) < np.linalg.norm(at["best"] - bottom)
    assert np.linalg.norm(at["worst"] - bottom) < np.linalg.norm(at["worst"] - top)


@pytest.mark.parametrize("k", [2, 4])
def test_the_triangle_is_for_three_secrets(k):
    with pytest.raises(
        ValueError,
        match=f"tally must be over 3 secrets to be drawn on a triangle, but it is over {k}",
    ):
        plotting.triangle(ik.RandomizedResponse(k, 1.0).tally([0]))
    assert plt.get_fignums() == []


def test_the_colour_bar_of_a_triangle_is_as_high_as_the_triangle():
    axes = plotting.triangle(TALLY)
    axes.figure.draw_without_rendering()
    (bar,) = axes.child_axes
    box = bar.get_window_extent().transformed(axes.transData.inverted())
    assert (box.y0, box.y1) == pytest.approx((0, np.sqrt(3) / 2))
    assert box.x0 > 1
