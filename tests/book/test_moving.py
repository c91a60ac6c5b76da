"""The figures that move:
their numbers are those of the package, and the still picture is drawn from them.
"""

import json
import re
import xml.etree.ElementTree as ET
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import check_moving_figures
import ibukit as ik
import moving_drawing
import moving_marks as shapes
from test_schematics import DARK, LIGHT, PAGES, markdown

ROOT = Path(__file__).resolve().parents[2]
FILES = {path.stem: path for path in sorted((ROOT / "book" / "moving").glob("*.json"))}
SPECS = {name: json.loads(path.read_text("utf8")) for name, path in FILES.items()}
MAX_BYTES = 70_000  # bytes
CSS = (ROOT / "book" / "_static" / "moving.css").read_text("utf8")
LABELLED = re.compile(r"^```\{moving\} \S+\n:name: (\S+)$", re.MULTILINE)
NAMED = re.compile(r"^```\{moving\} (\S+)$", re.MULTILINE)
AGES = ik.datasets.load_adult_ages()


def tables(node):
    """Every table of a figure."""
    if isinstance(node, dict) and "by" in node:
        yield node
    elif isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from tables(child)


def lengths(entry, depth):
    """How long the lists are that are nested in one another."""
    if depth == 0:
        return []
    inner = {tuple(lengths(child, depth - 1)) for child in entry}
    assert len(inner) == 1, "a table with rows of different lengths"
    return [len(entry), *inner.pop()]


def choose(spec, **shown):
    """The choice at which the controls show these words."""
    values = {control["name"]: control["values"] for control in spec["controls"]}
    return shapes.first_choice(spec) | {
        name: values[name].index(word) for name, word in shown.items()
    }


def entry(spec, panel, mark, choice):
    """The numbers of a mark."""
    found = spec["panels"][panel]["marks"][mark]
    return np.asarray(shapes.at(found["y"], choice)) * found["unit"]


def assert_printed(printed, value, unit):
    """The printed numbers are the computed ones, rounded to the unit."""
    assert np.abs(np.asarray(printed) - value).max() <= unit * (0.5 + 1e-6)


@pytest.mark.parametrize("name", SPECS)
def test_each_table_has_an_entry_for_each_choice(name):
    spec = SPECS[name]
    many = {control["name"]: len(control["values"]) for control in spec["controls"]}
    assert all(0 <= control["start"] < many[control["name"]] for control in spec["controls"])
    assert all(
        len(control.get("at", control["values"])) == many[control["name"]]
        for control in spec["controls"]
    )
    found = list(tables(spec))
    assert found or "computed" in spec
    for table in found:
        assert lengths(table["values"], len(table["by"])) == [many[by] for by in table["by"]]
    words = re.findall(r"\{(\w+)\}", spec["said"]["text"])
    assert set(spec["said"]["values"]) <= set(words) <= {*spec["said"]["values"], *many}


def test_a_table_that_does_not_fit_is_found():
    with pytest.raises(AssertionError, match="different lengths"):
        lengths([[1, 2], [1]], 2)
    assert lengths([[1, 2], [3, 4], [5, 6]], 2) == [3, 2]
    assert lengths([[1, 2], [3]], 1) == [2]


def test_figures_are_small_and_have_titles_of_their_own():
    assert len(SPECS) >= 2
    assert len({spec["title"] for spec in SPECS.values()}) == len(SPECS)
    assert {
        name: path.stat().st_size for name, path in FILES.items() if path.stat().st_size > MAX_BYTES
    } == {}


def test_every_figure_is_on_a_page_and_every_page_finds_its_figure():
    shown = {name for path in PAGES for name in NAMED.findall(markdown(path)[1])}
    assert shown == set(SPECS)


@pytest.mark.parametrize("name", SPECS)
def test_the_still_picture_is_there_without_a_script(name):
    spec = SPECS[name]
    shown = FILES[name].with_suffix(".html").read_text("utf8")
    assert shown.count("{data}") == 1
    assert [panel["plot"] for panel in spec["panels"]] == [
        list(shapes.plot_size(panel)) for panel in spec["panels"]
    ]
    assert '<form class="moving-controls" hidden="">' in shown
    root = ET.fromstring(re.sub(r"<script.*</script>", "", shown, flags=re.DOTALL))
    drawings = [svg for svg in root.iter("svg") if svg.get("role") == "img"]
    assert len(drawings) == len(spec["panels"])
    assert all(len(svg.get("aria-label")) > 40 for svg in drawings)
    for node in root.iter():
        for paint in ("fill", "stroke"):
            assert (
                re.fullmatch(r"var\((--ik-[a-z-]+)\)", node.get(paint, "var(--ik-ibu)"))[1]
                in LIGHT.keys() & DARK.keys()
            )
    for label in root.iter("label"):
        assert label.find("span").text
    for name_of_word, word in shapes.said(
        spec, shapes.complete(spec, shapes.first_choice(spec))
    ).items():
        assert f"{{{name_of_word}}}" not in spec["said"]["text"] or word in "".join(
            root.find("p").itertext()
        )


@pytest.mark.parametrize("name", SPECS)
def test_the_still_picture_is_that_of_the_numbers(name):
    shown = FILES[name].with_suffix(".html").read_text("utf8").strip()
    # another machine may compute a place with another last digit
    assert check_moving_figures.near(
        moving_drawing.page(SPECS[name]), shown, check_moving_figures.NEAR
    )


def test_a_place_on_an_axis():
    line, ladder = {"from": -1, "to": 3}, {"from": 1, "to": 100, "log": True}
    assert [shapes.along(line, x, 200) for x in (-1, 0, 3)] == [0, 50, 200]
    assert [shapes.along(ladder, x, 200) for x in (1, 10, 100, 0)] == pytest.approx(
        [0, 100, 200, 0]
    )


def test_the_marks_of_a_small_picture():
    panel = {"height": 162, "x": {"from": 0, "to": 2}, "y": {"from": 0, "to": 10}}
    assert shapes.plot_size(panel) == (308, 100)
    by = {"by": ["a"], "values": [[0, 5, 10], [10, 5, 0]]}
    mark = {"x": [0, 1, 2], "y": by}
    draw = {kind: shapes.shape(panel, mark | {"kind": kind}, {"a": 1}) for kind in ("line", "area")}
    assert draw["line"] == {"d": "M0.0 0.0L154.0 50.0L308.0 100.0"}
    assert draw["area"] == {"d": "M0.0 100.0L0.0 0.0L154.0 50.0L308.0 100.0L308.0 100.0Z"}
    assert shapes.shape(panel, {"kind": "level", "y": 2}, {}) == {"d": "M0.0 80.0L308.0 80.0"}
    assert shapes.shape(panel, {"kind": "upright", "x": 1}, {}) == {"d": "M154.0 100.0L154.0 0.0"}
    assert shapes.shape(panel, {"kind": "dot", "x": 1, "y": 4, "unit": 2}, {}) == {
        "cx": "154.0",
        "cy": "20.0",
    }


def reports(epsilon):
    """The reports of the landing page, at any level."""
    mechanism = ik.TruncatedGeometric(AGES.alphabet, epsilon=epsilon)
    return mechanism, mechanism.randomize(
        np.repeat(np.arange(100), AGES.counts), np.random.default_rng(1)
    )


def printed(x):
    """A number of a sentence, whether it is a multiple of a power of ten or not."""
    digits, _, power = x.replace(",", "").partition(" × 10")
    return float(digits) * 10.0 ** int(
        power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0
    )


def assert_near(text, value):
    """Two digits that are printed agree with a value."""
    assert abs(printed(text) / value - 1) < 0.051


def test_numbers_of_sentences_are_read():
    assert [printed(x) for x in ("0.0015", "1.1 × 10⁻⁶", "1,600")] == pytest.approx(
        [0.0015, 1.1e-6, 1600]
    )
    with pytest.raises(AssertionError):
        assert_near("0.0015", 0.0016)


@pytest.mark.parametrize("level", [0.05, 0.5])
def test_the_ages_of_the_landing_page_come_from_the_reports_alone(level):
    spec = SPECS["ages-reconstructed"]
    choice = choose(spec, epsilon=f"{level:g}")
    mechanism, z = reports(level)
    estimate = ik.smooth(mechanism.tally(z))
    assert_printed(entry(spec, 0, 0, choice), AGES.distribution, 1e-4)
    assert_printed(entry(spec, 0, 1, choice), np.bincount(z, minlength=100) / len(z), 1e-4)
    assert_printed(entry(spec, 0, 2, choice), estimate.distribution, 1e-4)
    words = shapes.said(spec, choice)
    assert_near(words["raw"], np.abs(z - np.repeat(np.arange(100), AGES.counts)).mean())
    off = ik.emd(estimate.distribution, AGES.distribution, AGES.alphabet)
    assert_printed(float(words["emd"]), off, 0.01)


@pytest.mark.parametrize(("level", "n"), list(product([0.05, 0.5], [10, 300])))
def test_the_ages_after_some_steps(level, n):
    spec = SPECS["epsilon-and-steps"]
    choice = choose(spec, epsilon=f"{level:g}", steps=f"{n:,}")
    mechanism, z = reports(level)
    estimate = ik.ibu(mechanism.tally(z), stop=ik.Steps(n))
    q = np.bincount(z, minlength=100) / len(z)
    assert_printed(entry(spec, 0, 0, choice), AGES.distribution, 1e-4)
    assert_printed(entry(spec, 0, 1, choice), q, 1e-4)
    assert_printed(entry(spec, 0, 2, choice), estimate.distribution, 1e-4)
    words = shapes.said(spec, choice)
    assert words["steps"] == f"{n:,}"
    assert_printed(float(words["raw"]), ik.emd(q, AGES.distribution, AGES.alphabet), 0.01)
    assert_printed(
        float(words["emd"]), ik.emd(estimate.distribution, AGES.distribution, AGES.alphabet), 0.01
    )
    assert_near(words["gap"], estimate.gap)


def test_the_way_from_hump_to_comb():
    spec = SPECS["hump-to-comb"]
    mechanism, z = reports(0.05)
    tally = mechanism.tally(z)
    for n in (1, 300, 10_000):
        choice, estimate = choose(spec, steps=f"{n:,}"), ik.ibu(tally, stop=ik.Steps(n))
        off, words = (
            ik.emd(estimate.distribution, AGES.distribution, AGES.alphabet),
            shapes.said(spec, choice),
        )
        assert_printed(entry(spec, 0, 1, choice), estimate.distribution, 1e-4)
        assert_printed(entry(spec, 1, 2, choice), off, 1e-3)
        assert_printed(float(words["emd"]), off, 0.01)
        assert_near(words["gap"], estimate.gap)
    top = ik.mle(tally)
    assert_printed(
        float(words["mle"]), ik.emd(top.distribution, AGES.distribution, AGES.alphabet), 0.01
    )
    # the shape of the story: the error falls, turns, and ends near that of the MLE
    off = entry(spec, 1, 1, choice)
    assert 0 < off.argmin() < len(off) - 1
    assert off[0] > 5 * off.min() < off[-1] * 5
    assert abs(off[-1] / float(words["mle"]) - 1) < 0.05


def test_the_penalty_of_the_smoother():
    spec = SPECS["penalty"]
    mechanism, z = reports(0.05)
    tally, control = mechanism.tally(z), spec["controls"][0]
    for i in (10, control["start"], 30):
        estimate = ik.smooth(tally, penalty=float(control["at"][i]))
        off = ik.emd(estimate.distribution, AGES.distribution, AGES.alphabet)
        words = shapes.said(spec, {"penalty": i})
        assert_printed(entry(spec, 0, 1, {"penalty": i}), estimate.distribution, 1e-4)
        assert_printed(entry(spec, 1, 3, {"penalty": i}), off, 1e-3)
        assert_printed(float(words["emd"]), off, 0.01)
    assert_near(words["chosen"], ik.choose_penalty(tally))
    off = entry(spec, 1, 2, {})
    assert 0 < off.argmin() < len(off) - 1
    assert float(words["auto"]) < 1.3 * off.min()


@pytest.mark.parametrize(("loss", "criterion"), [("squared error", "mse"), ("EMD", "emd")])
def test_the_best_mechanism_for_some_values(loss, criterion):
    spec = SPECS["best-mechanism"]
    limit = {"mse": ik.theory.asymptotic_mse, "emd": ik.theory.asymptotic_emd}[criterion]
    colours = dict(
        zip(("optimal", "geometric", "questions", "k-RR"), spec["panels"][0]["marks"], strict=False)
    )
    for k, level in ((3, 0.1), (5, 0.5), (4, 2.0)):
        choice, theta = choose(spec, loss=loss, k=str(k), epsilon=f"{level:g}"), ik.uniform(k)
        words, least = (
            shapes.said(spec, choice),
            ik.optimal_private(theta, k, level, criterion).value,
        )
        errors = {
            "geometric": limit(ik.TruncatedGeometric(k, level), theta),
            "k-RR": limit(ik.RandomizedResponse(k, level), theta),
        }
        assert_near(words["geometric"], errors["geometric"])
        assert_near(words["krr"], errors["k-RR"])
        assert_near(words["least"], least)
        optimal = errors["geometric"] < least * (1 + 1e-6)
        # a cell has one colour, and it is that of the winner
        cell = [choice["k"], choice["epsilon"]]
        (colour,) = [
            name for name, mark in colours.items() if cell in shapes.at(mark["at"], choice)
        ]
        assert (colour == "optimal") == optimal == ("best of all private" in words["winner"])
        assert (
            optimal
            or printed(words["questions"]) <= printed(words["geometric"])
            or colour == "geometric"
        )


def test_one_person():
    spec = SPECS["person"]
    for name, mechanism in (
        ("geometric, ε = 0.05 per year", ik.TruncatedGeometric(AGES.alphabet, epsilon=0.05)),
        ("k-RR, ε = 2", ik.RandomizedResponse(AGES.alphabet, epsilon=2.0)),
    ):
        choice, M = choose(spec, mechanism=name, age="21", report="60"), mechanism.matrix()
        posterior = AGES.distribution * M[:, 60] / (AGES.distribution @ M[:, 60])
        words, mean = shapes.said(spec, choice), posterior @ np.arange(100)
        assert_printed(entry(spec, 0, 1, choice), M[21], 1e-4)
        assert_printed(entry(spec, 1, 2, choice), posterior, 1e-4)
        assert_printed(float(words["near"]), 100 * M[21, 16:27].sum(), 1)
        assert_printed(float(words["mean"]), mean, 0.1)
        assert_printed(float(words["sd"]), np.sqrt(posterior @ (np.arange(100) - mean) ** 2), 0.1)


def test_the_liars_of_paris():
    spec = SPECS["liars"]
    grid = ik.datasets.load_gowalla("privic_paris").alphabet
    island, lonely = ik.normalize(ik.datasets.load_privic_island()), 71
    for beta, percent in ((0.6, 0), (0.6, 4), (0.4, 15)):
        choice = choose(spec, beta=f"{beta:g}", liars=f"{percent} %")
        people = ik.attack.poisoned_distribution(island, lonely, percent / 100)
        mechanism, words = ik.blahut_arimoto(people, grid, beta, 10), shapes.said(spec, choice)
        row, shades = 100 * mechanism.matrix()[lonely], spec["panels"][0]["marks"][:6]
        assert words["own"] == "less than 0.01" or printed(words["own"]) == pytest.approx(
            row[lonely], rel=0.051
        )
        exposure = 100 * ik.privacy.exposure(mechanism, island, lonely)
        assert_printed(float(words["exposure"]), exposure, 0.1)
        assert_printed(entry(spec, 1, 1, choice), exposure, 0.01)
        assert_printed(float(words["away"]), ik.privacy.mean_displacement(mechanism, lonely), 0.1)
        # each cell from 0.1 % on has one shade
        shaded = [tuple(place) for mark in shades for place in shapes.at(mark["at"], choice)]
        assert len(set(shaded)) == len(shaded) == (row >= 0.1).sum()
        darkest = {tuple(place) for place in shapes.at(shades[5]["at"], choice)}
        at = {(14 - col, r): z for z, (r, col) in enumerate(grid.values.tolist())}
        assert {at[place] for place in darkest} == set(np.flatnonzero(row >= 30))


def test_an_address_can_name_every_setting_of_every_figure():
    """The words of a control tell its settings apart, and no two figures share a name."""
    for spec in SPECS.values():
        names = [control["name"] for control in spec["controls"]]
        assert len(set(names)) == len(names)
        for control in spec["controls"]:
            assert len(set(control["values"])) == len(control["values"])
    named = [
        name.removeprefix("fig-").removeprefix("moving-")
        for path in PAGES
        for name in re.findall(
            r"^```\{moving\} \S+\n:name: (\S+)$", markdown(path)[1], re.MULTILINE
        )
    ]
    assert len(set(named)) == len(named) == len(SPECS)


def test_each_fault_of_the_browser_check_has_its_place():
    """A script that is rewritten must not leave `make browser` without its negative controls."""
    for name, (file, swap, _) in check_moving_figures.BROKEN.items():
        assert not file or swap[0] in (ROOT / "book" / "_static" / file).read_text("utf8"), name
