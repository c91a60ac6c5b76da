"""Drawings of estimates, read back: bars for labels, steps on a line, a map;
and what cannot be drawn.
"""

from itertools import pairwise

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import ibukit as ik
from ibukit import plotting
from test_estimate_labels import GRID, LINE, OVER, WORDS, estimate_over

pytestmark = pytest.mark.usefixtures("closed_figures")


def written(axes):
    """The tick labels of the vertical axis and where they were drawn, in pixels."""
    canvas = axes.figure.canvas
    canvas.draw()
    texts = axes.get_yticklabels()
    return [(text.get_text(), text.get_window_extent()) for text in texts]


def test_labels_have_bars_whose_names_can_be_read():
    estimate = OVER["labels"]
    axes = estimate.plot(level=0.9)
    names = written(axes)
    assert [" ".join(name.split()) for name, _ in names] == WORDS.values.tolist()
    boxes = [box for _, box in names]
    assert all(above.y0 > below.y1 for above, below in pairwise(boxes)), "they must not overlap"
    assert all(box.x0 >= 0 for box in boxes), "they must not be cut off"
    assert [bar.get_width() for bar in axes.patches] == estimate.distribution.tolist()
    middles = [bar.get_y() + bar.get_height() / 2 for bar in axes.patches]
    assert middles == pytest.approx([0, 1, 2, 3])
    low, high = sorted(axes.get_ylim())
    assert all(
        low <= bar.get_y() <= bar.get_y() + bar.get_height() <= high for bar in axes.patches
    ), "no half bars"
    (whiskers,) = axes.collections
    ends = np.array([segment[:, 0] for segment in whiskers.get_segments()]).T
    np.testing.assert_allclose(ends, estimate.interval(0.9), rtol=1e-12)
    plt.close("all")
    assert len(estimate.plot().collections) == 0


def test_labels_that_overlap_are_seen():
    _, axes = plt.subplots(figsize=(6, 1))
    axes.set_yticks(range(20), ["x"] * 20)
    boxes = [box for _, box in written(axes)]
    assert not all(above.y0 > below.y1 for above, below in pairwise(boxes[::-1]))


def test_a_dollar_is_a_currency_and_a_long_label_ends_somewhere():
    alphabet = ik.Alphabet(["$5-$10", "word " * 100])
    names = [name for name, _ in written(estimate_over(alphabet).plot())]
    assert names[0] == "$5-$10"
    assert len(names[1]) < 70
    assert names[1].endswith("…")


def test_each_of_many_bars_has_its_own_interval(rng):
    k = 60
    many = estimate_over(ik.Alphabet([f"{i}" for i in range(k)]), rng.permutation(k) + 1)
    axes = many.plot(level=0.9, method="wald")
    (whiskers,) = axes.collections
    ends = np.array([segment[:, 0] for segment in whiskers.get_segments()])
    widths = [bar.get_width() for bar in axes.patches]
    codes = [int(name) for name, _ in written(axes)]
    assert many.distribution[codes].tolist() == widths
    np.testing.assert_allclose(ends.T, np.array(many.interval(0.9, method="wald"))[:, codes])


def test_of_many_labels_the_most_probable_are_drawn():
    k = 100
    many = estimate_over(ik.Alphabet([f"label {i}" for i in range(k)]), np.arange(k) + 1)
    axes = many.plot()
    assert [name for name, _ in written(axes)][:2] == ["label 99", "label 98"]
    assert len(axes.patches) == 40
    rest = np.sort(many.distribution)[:60].sum()
    assert axes.get_xlabel() == f"probability; 60 other labels have {rest:.3g}"


def test_a_line_has_steps_and_a_band():
    estimate = OVER["line"]
    axes = estimate.plot(level=0.9)
    (steps,), (band,) = axes.lines, axes.collections
    assert steps.get_xdata().tolist() == [16.5, 17.5, 17.5, 18.5, 18.5, 19.5, 19.5, 20.5]
    assert steps.get_ydata().tolist() == np.repeat(estimate.distribution, 2).tolist()
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    lower, upper = estimate.interval(0.9)
    assert corners >= {
        (x, end[i]) for end in (lower, upper) for i in range(4) for x in (16.5 + i, 17.5 + i)
    }
    assert axes.get_xlim() == (16.5, 20.5), "the first and the last bar are as wide as the others"
    assert axes.get_xlabel() == "years"
    _, given = plt.subplots()
    assert estimate.plot(ax=given) is given
    assert len(given.lines) == 1
    assert len(given.collections) == 0


def test_a_grid_is_a_map_with_what_may_be_nothing_crossed_out():
    estimate = estimate_over(GRID, [900, 300, 50, 20, 10, 5])
    axes = estimate.plot(level=0.95)
    assert np.array_equal(axes.images[0].get_array().ravel(), estimate.distribution)
    nothing = np.flatnonzero(estimate.interval(0.95)[0] <= 0)
    assert 0 < len(nothing) < 6
    (crossed,) = axes.collections
    corners = sorted(tuple(path.get_extents().min.tolist()) for path in crossed.get_paths())
    assert corners == sorted((col * 0.5, row * 0.5) for row, col in GRID.values[nothing].tolist())
    assert len(axes.figure.axes) == 2, "a bar says what the colours mean"
    assert len(estimate.plot().collections) == 0


def test_two_maps_have_the_ends_and_cross_out_what_is_wide():
    estimate = estimate_over(GRID, [900, 300, 50, 20, 10, 5])
    for together, intervals in ((False, estimate.interval(0.9)), (True, estimate.band(0.9))):
        lower, upper = intervals
        wide = float(np.mean(upper - lower))
        wider = int((upper - lower > wide).sum())
        assert 0 < wider < 6
        maps = plotting.interval_maps(estimate, 0.9, together=together, wide=wide)
        for axes, ends in zip(maps, intervals, strict=True):
            np.testing.assert_array_equal(axes.images[0].get_array().ravel(), ends)
            assert axes.images[0].norm.vmax == upper.max(), "the same colours on both"
            assert len(axes.collections[-1].get_paths()) == wider
    plain = plotting.interval_maps(estimate, method="wald")
    assert all(len(axes.collections) == 0 for axes in plain)
    with pytest.raises(ik.errors.AlphabetMismatch, match="alphabet must be a Grid"):
        plotting.interval_maps(ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2])))


@pytest.mark.parametrize(
    ("curves", "names"),
    [
        (OVER["line"], [OVER["line"].method]),
        ([OVER["line"], [0.1, 0.2, 0.3, 0.4]], [OVER["line"].method, "distribution 2"]),
        ([0.1, 0.2, 0.3, 0.4], ["distribution 1"]),
        (np.full((2, 4), 0.25), ["distribution 1", "distribution 2"]),
        ({"truth": OVER["line"]}, ["truth"]),
    ],
    ids=["an estimate", "a list", "numbers", "rows", "a mapping"],
)
def test_distributions_come_with_or_without_names(curves, names):
    for alphabet in (LINE, ik.Line(0, 3)):
        axes = plotting.distributions(alphabet, curves)
        legend = axes.get_legend()
        assert [text.get_text() for text in legend.get_texts()] == names


def test_a_series_is_drawn_over_its_own_labels_only():
    series = OVER["labels"].to_series()
    plain = plotting.distributions(WORDS, series)
    shuffled = plotting.distributions(WORDS, series.iloc[::-1])
    assert [bar.get_width() for bar in plain.patches] == [
        bar.get_width() for bar in shuffled.patches
    ]
    with pytest.raises(ik.errors.AlphabetMismatch, match="what has labels is aligned by them"):
        plotting.distributions(LINE, series)


def test_several_distributions_over_labels():
    curves = {"truth": [0.4, 0.3, 0.2, 0.1], "MLE": OVER["labels"], "uniform": ik.uniform(4)}
    axes = plotting.distributions(WORDS, curves)
    assert [bar.get_width() for bar in axes.patches] == curves["truth"]
    assert [line.get_xdata().tolist() for line in axes.lines] == [
        OVER["labels"].distribution.tolist(),
        [0.25] * 4,
    ]
    assert len({line.get_marker() for line in axes.lines}) == 2
    assert len({tuple(line.get_ydata()) for line in axes.lines}) == 2, (
        "equal ones must not hide each other"
    )


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: plotting.distributions(GRID, OVER["grid"]), ik.errors.AlphabetMismatch, "heatmap"),
        (lambda: plotting.distributions(LINE, []), ValueError, "at least one distribution"),
        (lambda: plotting.distributions(LINE, 3.0), ik.errors.AlphabetMismatch, r"shape \(4,\)"),
        (
            lambda: plotting.distributions(LINE, [0.5, 0.5]),
            ik.errors.AlphabetMismatch,
            r"shape \(4,\), got \(2,\)",
        ),
        (lambda: plotting.heatmap(LINE, OVER["line"]), TypeError, "grid must be a Grid, got Line"),
        (
            lambda: plotting.panels(WORDS, ik.uniform(4), {}),
            ik.errors.AlphabetMismatch,
            "must be a Line",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(call, error, said):
    with pytest.raises(error, match=said):
        call()
    assert plt.get_fignums() == []
