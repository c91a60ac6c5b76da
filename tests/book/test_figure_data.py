"""The drawings of chapters carry the numbers that they show, and say what they are."""

import base64
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import yaml
from matplotlib.figure import Figure
from PIL import Image

import figure_data
import figure_files
import light_book
import notebooks

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = (ROOT / "book" / "_static" / "figure-files.js").read_text("utf8")
CAPTION = "Fig. 1.1 A line. It is &lt; 2 \\(x\\)"


def svg_of(figure: Figure) -> str:
    """The drawing as a kernel of the book prints it."""

    def printed(figure, fmt="png", **_):
        file = io.BytesIO()
        figure.savefig(file, format=fmt)
        return file.getvalue().decode()

    return figure_data.carrying(printed)(figure, fmt="svg")


def only_series(axes) -> dict:
    """The one series of a figure."""
    axes.figure.canvas.draw()
    (panel,) = figure_data.data_of(axes.figure)["panels"]
    (series,) = panel["series"]
    plt.close(axes.figure)
    return series


def axes():
    """A new panel."""
    return plt.subplots()[1]


def test_a_line_carries_its_numbers_its_name_and_its_colour():
    panel = axes()
    panel.plot([1, 2, 3], [1 / 3, np.nan, 2e-7], color="#ff0000", label="IBU")
    assert only_series(panel) == {
        "kind": "line",
        "label": "IBU",
        "colour": "#ff0000",
        "x": [1, 2, 3],
        "y": [0.333333, None, 2e-7],
    }


def test_lines_across_a_panel_carry_their_one_number():
    panel = axes()
    panel.axhline(0.25, label="least")
    series = only_series(panel)
    assert (series["kind"], series["y"], series["label"]) == ("level", 0.25, "least")
    panel = axes()
    panel.axvline(4)
    assert {"kind": "upright", "x": 4}.items() <= only_series(panel).items()


def test_bars_points_steps_and_bands():
    panel = axes()
    panel.bar([0, 1], [0.5, 0.25], width=0.8, bottom=[0, 1], label="tally")
    series = only_series(panel)
    assert (series["kind"], series["label"]) == ("bars", "tally")
    assert series["x"] == [-0.4, 0.6]
    assert series["y"] == [0, 1]
    assert series["height"] == [0.5, 0.25]
    panel = axes()
    panel.scatter([1, 2], [3, 4], c=[5, 6])
    assert {"kind": "points", "x": [1, 2], "y": [3, 4], "value": [5, 6]}.items() <= (
        only_series(panel).items()
    )
    panel = axes()
    panel.stairs([2, 1], [0, 1, 3])
    assert {"kind": "steps", "x": [0, 1, 3], "y": [2, 1]}.items() <= only_series(panel).items()
    panel = axes()
    panel.fill_between([0, 1], [1, 1], [2, 3])
    band = only_series(panel)
    assert band["kind"] == "outline"
    assert {(0, 1), (0, 2), (1, 1), (1, 3)} <= set(zip(band["x"], band["y"], strict=True))


def test_a_picture_carries_its_values_and_a_masked_one_is_null():
    panel = axes()
    panel.imshow(np.ma.masked_less([[1, 2], [3, 0]], 1), extent=(0, 2, 0, 2), origin="lower")
    series = only_series(panel)
    assert series["value"] == [[1, 2], [3, None]]
    assert (series["x"], series["y"]) == ([0, 2], [0, 2])
    panel = axes()
    panel.pcolormesh([0, 1, 4], [0, 2], [[7, 8]])
    series = only_series(panel)
    assert (series["x"], series["y"], series["value"]) == ([0, 1, 4], [0, 2], [[7, 8]])


def test_contours_and_shores_stay_in_the_drawing():
    panel = axes()
    x = np.linspace(0, 1, 9)
    panel.contour(x, x, np.add.outer(x, x), levels=[0.5, 1])
    assert only_series(panel) == {"kind": "contours", "value": [0.5, 1]}
    panel = axes()
    panel.vlines([0], 0, 1, label="_shore")
    assert figure_data.data_of(panel.figure)["panels"] == []


def test_too_many_numbers_are_counted_and_left_out():
    panel = axes()
    panel.imshow(np.zeros((60, 60)))
    series = only_series(panel)
    assert series["omitted"]["value"] == 3600
    assert "value" not in series
    panel = axes()
    panel.imshow(np.zeros((50, 60)))
    assert len(only_series(panel)["value"]) == 50


def test_an_axis_names_what_it_shows():
    panel = axes()
    panel.set(xlabel="steps", xscale="log", ylabel="gap")
    panel.set_yticks([1, 2], ["IBU", "$10^2$"])
    panel.plot([1, 10], [1, 2])
    panel.figure.canvas.draw()
    (found,) = figure_data.data_of(panel.figure)["panels"]
    assert found["x"] == {"label": "steps", "scale": "log"}
    assert found["y"] == {"label": "gap", "scale": "linear", "words": [(1, "IBU")]}


def page_with(tmp_path, svg: str) -> Path:
    """A small built book with one figure."""
    (tmp_path / "_images").mkdir()
    (tmp_path / "book").mkdir()
    (tmp_path / "_images" / "a.svg").write_text(svg, "utf8")
    text = '<figure class="x" id="fig-a">\n<img alt="A &amp; B" src="../_images/a.svg" />\n'
    text += f'<figcaption><p><span>{CAPTION}</span><a class="headerlink" href="#">#</a></p>'
    (tmp_path / "book" / "a.html").write_text(text + "</figcaption></figure>", "utf8")
    return tmp_path / "_images" / "a.svg"


def drawn() -> str:
    """A drawing with data."""
    panel = axes()
    panel.plot([1, 2], [3, 4], label="a < b & c")
    return svg_of(panel.figure)


def test_a_finished_drawing_says_what_it_is(tmp_path):
    path = page_with(tmp_path, drawn())
    path.write_text(light_book.light_drawing(path.read_text("utf8")), "utf8")
    assert figure_files.finish(tmp_path) == []
    once = path.read_text("utf8")
    root = ET.fromstring(once)
    assert root[0].tag.endswith("title")
    assert root[0].text == "Fig. 1.1 A line. It is < 2 \\(x\\)"
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    about = figure_data.read(once)
    assert about["licence"] == cited["license"]
    assert about["source"] == "book/a.html#fig-a"
    assert "panels" not in about
    table = (tmp_path / "_static" / "figures" / "fig-a.js").read_text("utf8")
    data = json.loads(table.removeprefix("ibukitFigure(").removesuffix(");\n"))
    assert data["panels"][0]["series"][0]["label"] == "a < b & c"
    assert data["panels"][0]["series"][0]["y"] == [3, 4]
    with Image.open(tmp_path / "_static" / "gallery" / "fig-a.png") as small:
        assert max(small.size) > 200
    # again, as in a build that changed nothing
    path.write_text(light_book.light_drawing(once), "utf8")
    assert figure_files.finish(tmp_path) == []
    assert path.read_text("utf8") == once


def test_a_drawing_without_data_is_reported(tmp_path):
    page_with(tmp_path, '<svg xmlns="http://www.w3.org/2000/svg"></svg>')
    assert figure_files.finish(tmp_path) == ["book/a.html: fig-a carries no data"]


def test_a_small_picture_is_small():
    panel = axes()
    panel.plot(np.sin(np.arange(100)))
    encoded = figure_data.thumbnail(panel.figure)
    plt.close(panel.figure)
    assert len(figure_files.small_picture(encoded)) < 0.6 * len(base64.b64decode(encoded))


def test_the_kernels_of_the_book_load_the_module():
    """The lines leave no name behind, and what they replace prints a drawing with its data."""
    program = "\n".join(
        [
            notebooks.FIGURE_DATA,
            "import json, matplotlib.pyplot as plt",
            "from IPython.core.pylabtools import print_figure",
            "plt.plot([1, 2], [3, 4])",
            "print('<metadata>{' in print_figure(plt.gcf(), fmt='svg'))",
            "print({'importlib', 'spec', 'module'} & set(globals()))",
        ]
    )
    environment = {"MPLBACKEND": "agg", "PATH": "", "HOME": str(ROOT / "_build")}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.split("\n")[:2] == ["True", "set()"]


def test_the_script_of_the_page_names_the_licence_and_the_authors():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    assert f'LICENCE = "{cited["license"]}"' in SCRIPT
    assert f'AUTHORS = "{cited["authors"][0]["name"]}"' in SCRIPT
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    assert f'BOOK = "{config["title"]}"' in SCRIPT


@pytest.mark.parametrize("kind", ["computed", "disk", "schematic", "moving"])
def test_the_page_says_what_the_data_of_each_kind_are(kind):
    about = json.loads(
        "{"
        + ",".join(
            f'"{key}": "{text}"' for key, text in re.findall(r'^    (\w+): "(.*)",$', SCRIPT, re.M)
        )
        + "}"
    )
    assert len(about[kind]) > 20
