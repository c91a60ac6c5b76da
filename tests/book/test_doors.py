"""The page *From your file to a tally* is written from the table that the code reads.

To write it anew: `python -m pytest tests/book/test_doors.py` shows the lines that are missing.
"""

import inspect
from functools import reduce
from pathlib import Path

import pytest

import ibukit as ik
from ibukit._ground.doors import DOORS
from ibukit.cli.arguments import parser

PAGE = Path(__file__).resolve().parents[2] / "book" / "reference" / "from-your-file.md"


def section(name, door):
    """What the page says of a door."""
    command = " " in name
    role = f"`{name}` on the command line" if command else f"`ik.{name}`"
    lines = [f"## {role}", "", f"Reads {door.reads}.", ""]
    lines += [f"- Unknown values: {door.unknown}.", f"- Missing values: {door.missing}."]
    for argument, words in door.words.items():
        shown = ", ".join(f'`"{word}"`' for word in words)
        lines.append(f"- `{argument}` takes {shown}; the first is the default.")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", DOORS)
def test_the_page_says_of_each_door_what_the_table_says(name):
    assert section(name, DOORS[name]) in PAGE.read_text(encoding="utf-8")


def test_the_page_says_nothing_of_other_doors():
    headings = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("## ")]
    assert headings == [section(*item).splitlines()[0] for item in DOORS.items()]


def test_no_door_is_forgotten():
    known = {name.rsplit(".", 1)[-1] for name in DOORS}
    classes = [getattr(ik, name) for name in ik.__all__ if inspect.isclass(getattr(ik, name))]
    doors = {
        name
        for each in classes
        for name in dir(each)
        if issubclass(each, (ik.Mechanism, ik.Tally)) and name.startswith(("tally", "from_"))
    }
    assert doors <= known


@pytest.mark.parametrize("name", [name for name in DOORS if " " not in name])
def test_doors_take_the_words_and_no_other(name):
    door = reduce(getattr, name.split("."), ik)
    parameters = inspect.signature(door).parameters
    for argument, words in DOORS[name].words.items():
        assert parameters[argument].default == words[0]
    assert set(parameters) & {"unknown", "missing", "outside"} == set(DOORS[name].words)


def test_the_command_line_takes_the_words_and_no_other():
    command = next(a for a in parser()._actions if a.dest == "command").choices["estimate"]
    found = {
        action.option_strings[0]: tuple(action.choices)
        for action in command._actions
        if action.option_strings and action.option_strings[0] in ("--unknown", "--missing")
    }
    assert found == dict(DOORS["ibukit estimate"].words)


def test_a_word_that_is_none_is_refused_with_those_that_are():
    grid = ik.Grid(2, 2)
    with pytest.raises(ValueError, match=r'outside must be "raise", "keep" or "drop", got .frog'):
        ik.PlanarLaplace(grid, 1.0).tally_points([[0.5, 0.5]], outside="frog")
    words = 'outside must be "raise", "nearest" or "drop", got .keep'
    with pytest.raises(ValueError, match=words):
        ik.Grid.from_bounds(0.0, 1.0, 0.0, 1.0, 2, 2).locate([(0.5, 0.5)], outside="keep")
    for argument, words in (
        ("unknown", '"raise", "nearest", "keep" or "drop"'),
        ("missing", '"raise" or "drop"'),
    ):
        with pytest.raises(ValueError, match=f"{argument} must be {words}, got 'frog"):
            ik.Tally.from_table("x.csv", ik.RandomizedResponse(2, 1.0), **{argument: "frog"})
