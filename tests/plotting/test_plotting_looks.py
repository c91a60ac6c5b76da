"""One colour for each estimator in the figures of all helpers, light enough, dark enough,
and the same bytes again.
"""

import base64
import io
import re
import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from inline_figures import row
from matplotlib.colors import same_color, to_rgb
from matplotlib.container import BarContainer
from matplotlib_inline.config import InlineBackend

import ibukit as ik
from ibukit import plotting
from ibukit.plotting._looks import estimator_of

ROOT = Path(__file__).resolve().parents[2]
TALLY = ik.RandomizedResponse(3, 1.0).tally_counts([60, 30, 10])
WORDS = ik.Alphabet(["a", "b", "c"])
NAMES = ["INV-N", "IBU, 300 steps", "MLE", "k-RR", "[INV]_M-P"]


pytestmark = pytest.mark.usefixtures("closed_figures")


def drawn(figure):
    """Name and colour of each labelled series of a figure,
    and of each panel that has a series' name for a title.
    """
    found = []
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            part = handle[0] if isinstance(handle, BarContainer) else handle
            color = part.get_color() if hasattr(part, "get_color") else part.get_facecolor()
            found.append((label, color))
        title = axes.get_title().split("\n")[0]
        if axes.lines and estimator_of(title):
            found.append((title, axes.lines[0].get_color()))
    return found


def strangers(figure):
    """The series whose colour is not that of their name."""
    wrong = []
    for label, color in drawn(figure):
        name = estimator_of(label)
        if name == "truth" or label == "first":
            continue
        right = [plotting.ESTIMATORS[name].color] if name else plotting.PALETTE
        if not any(same_color(np.array(to_rgb(color)), np.array(to_rgb(each))) for each in right):
            wrong.append((label, color))
    return wrong


def figures():
    """A figure of every helper that draws estimators."""
    curves = {"first": [0.2, 0.2, 0.6]} | {name: ik.uniform(3) for name in NAMES}
    yield plotting.distributions(3, curves).figure
    yield plotting.distributions(WORDS, curves).figure
    yield plotting.panels(3, [0.2, 0.2, 0.6], dict.fromkeys(NAMES, ik.mle(TALLY)))
    yield plotting.boxes({name: {1: [1.0, 2.0]} for name in NAMES}).figure
    known = [name for name in NAMES if estimator_of(name)]
    yield plotting.triangle(TALLY, {name: [ik.uniform(3)] for name in known}).figure


def test_the_name_decides_the_colour_in_every_figure():
    seen = [len(drawn(figure)) for figure in figures()]
    assert min(seen) >= 4
    assert [strangers(figure) for figure in figures()] == [[]] * 5


def test_a_colour_of_another_is_found():
    figure, axes = plt.subplots()
    axes.plot([0, 1], color=plotting.ESTIMATORS["IBU"].color, label="MLE, certified")
    axes.plot([0, 1], color=plotting.ESTIMATORS["MLE"].color, label="k-RR")
    axes.plot([0, 1], color=plotting.ESTIMATORS["INV"].color, label="debiased")
    assert [label for label, _ in strangers(figure)] == ["MLE, certified", "k-RR"]


def test_an_estimate_alone_has_the_colour_of_its_method():
    line = ik.Line(0, 2)
    tally = ik.RandomizedResponse(line, 1.0).tally_counts([60, 30, 10])
    for estimate, name in (
        (ik.mle(tally), "MLE"),
        (ik.ibu(tally), "IBU"),
        (ik.inv(tally), "INV-P"),
    ):
        assert estimate.plot().lines[0].get_color() == plotting.ESTIMATORS[name].color


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("IBU, 1,000 steps", "IBU"),
        ("ibu, Gap(tol=1e-06)", "IBU"),
        ("ik.mle", "MLE"),
        ("mle, closed form by water-filling: k-RR, k = 3", "MLE"),
        ("posterior mean of the distribution, exact", "posterior mean"),
        ("Norm-Sub", "INV-P"),
        ("INV_M-N", "[INV]_M-N"),
        ("RAP_R-P", "[INV]_R-P"),
        ("[INV]$_R$, $n_A/n$", "[INV]_R"),
        ("[INV-P]_R, weights: n_A / n", "[INV]_R-P"),
        (r"$[\mathrm{IBU}]_M$", "[IBU]_M"),
        ("noisy reports", "reports"),
        ("smoothly", None),
        ("IBUS", None),
        ("k-RR", None),
        ("", None),
    ],
)
def test_under_which_name_a_label_falls(label, name):
    assert estimator_of(label) == name


def test_the_methods_of_the_package_have_a_look():
    line = ik.TruncatedGeometric(ik.Line(0, 4), 1.0).tally_counts([50, 20, 10, 10, 10])
    estimates = [
        ik.ibu(TALLY),
        ik.mle(TALLY),
        ik.posterior_mean(TALLY, 0.5),
        ik.gibu([TALLY, TALLY]),
    ]
    estimates += [ik.inv(TALLY, post=post) for post in ("none", "normalize", "project")]
    estimates += [
        ik.smooth(line),
        ik.ems(line),
        ik.combine_results(TALLY, ik.inv),
        ik.combine_mechanisms(TALLY, ik.inv),
    ]
    assert [
        estimate.method for estimate in estimates if estimator_of(estimate.method) is None
    ] == []


def test_no_two_estimators_look_the_same():
    shown = [(look.color, look.marker, look.dash) for look in plotting.ESTIMATORS.values()]
    assert len(set(shown)) == len(shown)
    assert not {color for color, *_ in shown} & set(plotting.PALETTE)
    # those that share a hue differ in both of the others
    for one, two in combinations(shown, 2):
        assert one[0] != two[0] or (one[1] != two[1] and one[2] != two[2])


def test_forms_of_one_estimator_are_told_apart():
    many = plotting.looks([f"IBU, {n} steps" for n in (10, 100, 1000)])
    assert len({look.color for look in many.values()}) == 1
    assert (
        len({look.marker for look in many.values()})
        == len({look.dash for look in many.values()})
        == 3
    )
    assert len({look.color for look in plotting.looks("abcdefg").values()}) == 7
    again = plotting.looks(["k-RR", "IBU", "MLE"])
    assert again["IBU"] == plotting.looks(["IBU"])["IBU"], "what stands before it changes nothing"


def contrast(one, two):
    lights = []
    for color in (one, two):
        channels = np.asarray(color)
        linear = np.where(
            channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        lights.append(float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)
    return max(lights) / min(lights)


def dark_filter():
    """The amounts of the filter that turns figures for the dark theme."""
    css = (ROOT / "book" / "_static" / "figures.css").read_text("utf8")
    steps = r"invert\(([\d.]+)\) hue-rotate\(180deg\) saturate\(([\d.]+)\) brightness\(([\d.]+)\)"
    ((amount, saturation, brightness),) = re.findall(rf"filter: {steps};", css)
    return float(amount), float(saturation), float(brightness)


def in_dark_theme(color, steps=None):
    """What the filter, or one of these amounts, makes of a colour, by the formulas of CSS."""
    amount, saturation, brightness = steps or dark_filter()
    channels = np.array(to_rgb(color))
    turned = channels * (1 - amount) + (1 - channels) * amount
    weights = np.array([0.213, 0.715, 0.072])
    turned = np.clip(2 * weights @ turned - turned, 0, 1)
    grey = weights @ turned
    return np.clip(np.clip(grey + saturation * (turned - grey), 0, 1) * brightness, 0, 1)


def lab(channels):
    """CIELAB coordinates, in which distances are about what the eye sees."""
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    f = np.cbrt(np.maximum(to_xyz @ linear / [0.9505, 1, 1.089], 0.009))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def closest_in_the_dark(steps=None):
    """The distance of the two colours of the palette that are most alike in the dark."""
    seen = [lab(in_dark_theme(color, steps)) for color in plotting.PALETTE]
    return min(np.linalg.norm(one - other) for one, other in combinations(seen, 2))


def test_no_two_colours_of_the_palette_are_alike_in_the_dark():
    assert closest_in_the_dark() > 25
    assert closest_in_the_dark((0.9412, 1, 1.2)) < 22, "two are nearly white without saturation"


def test_colours_can_be_seen_in_both_themes():
    ground = in_dark_theme("white")
    assert ground == pytest.approx(np.full(3, 0x12 / 255), abs=0.002), "the theme's own ground"
    colors = {look.color for name, look in plotting.ESTIMATORS.items() if name != "truth"} | set(
        plotting.PALETTE
    )
    assert min(contrast(in_dark_theme(color), ground) for color in colors) > 4.5
    # amber, sky blue and a green; lines in them have markers, dashes and a legend
    pale = {color for color in colors if contrast(to_rgb(color), (1, 1, 1)) < 3}
    assert pale == {"#E69F00", "#56B4E9", "#44AA99"}
    assert min(contrast(to_rgb(color), (1, 1, 1)) for color in pale) > 2.2
    assert contrast(in_dark_theme("#F0F0F0"), ground) < 2, "a pale line is found"


def test_schematics_have_the_colours_of_the_figures_in_the_dark():
    css = (ROOT / "book" / "_static" / "schematics.css").read_text("utf8")
    light, _, dark = css.partition('html[data-theme="dark"]')
    names = ("ibu", "mle", "inv-n", "inv-p", "posterior", "smooth", "truth", "first", "second")
    for name in (*names, "grey"):
        one, other = (re.search(rf"--ik-{name}: (#\w+);", part)[1] for part in (light, dark))
        assert to_rgb(other) == pytest.approx(in_dark_theme(one), abs=1.1 / 255), name


def drawing():
    with matplotlib.rc_context():
        plotting.use_style()
        figure = plotting.distributions(3, {"truth": ik.uniform(3), "IBU": ik.ibu(TALLY)}).figure
        file = io.StringIO()
        figure.savefig(
            file, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None}
        )
        plt.close(figure)
    return file.getvalue()


def test_a_drawing_has_the_same_bytes_again_and_no_ground():
    one, two = drawing(), drawing()
    assert one == two
    assert "dc:date" not in one
    assert "#ffffff" not in one.casefold(), "a white ground would be a slab in the dark theme"
    with matplotlib.rc_context({"savefig.facecolor": "white"}):
        assert "#ffffff" in drawing().casefold()


def test_a_notebook_is_asked_for_drawings(monkeypatch):
    plotting.use_style()  # without a notebook nothing is asked
    settings = SimpleNamespace()
    monkeypatch.setattr(InlineBackend, "instance", lambda **_: settings)
    monkeypatch.setattr(
        sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(kernel=object())
    )
    plotting.use_style()
    assert settings.figure_formats == {"svg"}
    assert settings.print_figure_kwargs["metadata"]["Date"] is None


def test_small_text_is_nine_pixels_high_on_a_phone():
    plotting.use_style()
    size, (width, _) = plt.rcParams["font.size"], plt.rcParams["figure.figsize"]
    small = size * matplotlib.font_manager.font_scalings["small"]
    # CSS pixels of a figure of that width and its margin, shrunk to the column of a phone of 390 px
    assert small * 96 / 72 * 342 / (96 * width + 14) >= 9
    for axes in (
        plotting.boxes({"IBU": {1: [1, 2]}}),
        plotting.channel(np.eye(3)),
        plotting.heatmap(ik.Grid(2, 2), [1] * 4),
    ):
        assert axes.figure.get_size_inches()[0] <= width


def test_the_key_shows_every_estimator():
    assert "```{looks}" in (ROOT / "book" / "notation.md").read_text("utf8")
    for name, look in plotting.ESTIMATORS.items():
        html = row(name, look)
        assert re.sub(r"</?sub>", "", html).count(name.replace("_", "")) >= 1
        assert look.meaning in html.replace("&#x27;", "'")
        (data,) = re.findall(r"base64,([^\"]+)", html)
        assert look.color.lower() in base64.b64decode(data).decode()


def test_the_likelihood_reaches_all_edges_of_the_triangle_alike():
    drawn = plotting.triangle(TALLY).collections[0]
    x, y = np.concatenate([path.vertices for path in drawn.get_paths()]).T
    top = y * 2 / np.sqrt(3)
    right = x - top / 2
    middle = abs(top - 0.5) < 0.1
    assert max(top.min(), right[middle].min(), (1 - top - right)[middle].min()) < 0.003


def test_maps_have_room_for_names_of_two_lines():
    heights = [
        plotting.maps(ik.Grid(1, 2), {name: [0.2, 0.8]}).get_figheight() for name in ("a", "a\nb")
    ]
    assert heights[1] - heights[0] > 0.2
