"""The reference page shows every public name, and needs no upkeep for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rooms

import ibukit

ROOT = Path(__file__).resolve().parents[1]
ROOMS = re.findall(r"^\.\. room:: (\S+)$", (ROOT / "book" / "api.md").read_text("utf8"), re.MULTILINE)


def test_every_public_name_is_in_a_room_of_the_page():
    shown = {name for room in ROOMS for name, _ in rooms.names_in(room)}
    assert set(rooms.public_names()) - shown == set()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_shows_what_a_reader_can_write(room):
    names = rooms.names_in(room)
    assert names
    for name, thing in names:
        found = ibukit
        for part in name.split("."):
            found = getattr(found, part)
        assert found is thing
        assert thing.__doc__


def test_a_name_of_another_package_is_not_public():
    assert "version" not in rooms.public_names()
    assert "ibu" in rooms.public_names()


def test_what_an_estimate_inherits_is_shown_with_it():
    until = [base.__name__ for base in ibukit.Estimate.__mro__].index(rooms.WITH_INHERITED["Estimate"])
    shown = {name for base in ibukit.Estimate.__mro__[:until] for name in vars(base)}
    assert {name for name in dir(ibukit.Estimate) if not name.startswith("_")} <= shown
    assert "to_frame" not in vars(ibukit.Estimate), "else there is nothing to be shown"
