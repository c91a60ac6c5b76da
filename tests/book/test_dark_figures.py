"""The colours of figures in the dark, which a filter makes of those in the light."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from ibukit.plotting import PALETTE

STYLES = Path(__file__).resolve().parents[2] / "book" / "_static"
FILTER = r"filter: invert\(([\d.]+)\) hue-rotate\(180deg\) (saturate|brightness)\(([\d.]+)\)"
GREY = np.array([0.213, 0.715, 0.072])  # weights of the filters' definition


def style(name):
    return (STYLES / name).read_text("utf8")


def in_the_dark(colour, css):
    """What the filter of a style sheet makes of a colour."""
    amount, last, strength = re.search(FILTER, css).groups()
    amount, strength = float(amount), float(strength)
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    c = c * (1 - 2 * amount) + amount
    turned = np.clip(2 * GREY @ c - c, 0, 1)
    if last == "brightness":
        return np.clip(strength * turned, 0, 1)
    return np.clip(GREY @ turned + strength * (turned - GREY @ turned), 0, 1)


def variables(selector):
    block = re.search(re.escape(selector) + r" \{(.*?)\}", style("schematics.css"), re.DOTALL)
    return dict(re.findall(r"--ik-([a-z-]+): (#[0-9a-f]{6})", block.group(1)))


LIGHT, DARK = variables(":root"), variables('html[data-theme="dark"]')


@pytest.mark.parametrize("name", sorted(set(LIGHT) - {"panel", "shade"}))
def test_schematics_have_the_colours_that_figures_have_in_the_dark(name):
    expected = in_the_dark(LIGHT[name], style("figures.css"))
    drawn = [int(DARK[name][i : i + 2], 16) / 255 for i in (1, 3, 5)]
    assert drawn == pytest.approx(expected, abs=0.01)


def lab(colour):
    """CIELAB coordinates, in which distances are about what the eye sees."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    f = np.cbrt(np.maximum(to_xyz @ linear / [0.9505, 1, 1.089], 0.009))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def closest(css):
    """The distance of the two colours of the palette that are most alike in the dark."""
    seen = [lab(in_the_dark(colour, css)) for colour in PALETTE]
    return min(np.linalg.norm(one - other) for one, other in combinations(seen, 2))


def test_no_two_colours_of_the_palette_are_alike_in_the_dark():
    css = style("figures.css")
    assert closest(css) > 28
    # what the filter was before: the two darkest were nearly white, both
    assert closest(css.replace("saturate(1.6)", "brightness(1.2)")) < 22
