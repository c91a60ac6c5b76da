"""CONTRIBUTING.md beside the code: each room has a row, and the order of imports is real."""

import re
from itertools import pairwise

from source_rules import LAYERS, PACKAGE, ROOMS_WITH_A_VIEW, ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf8")
MAX_LINES = 150
ROOMS = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
ORDER = [*LAYERS, *ROOMS_WITH_A_VIEW]


def rows(page):
    """The rooms in the first column of the table."""
    return re.findall(r"^\| `ibukit/(\w+)/`", page, re.MULTILINE)


def order(page):
    """The names in the sentence on imports, in order."""
    found = re.search(r"^Imports point one way: ([\w\s,`]+)", page, re.MULTILINE)
    return [name.strip("` \n") for name in found[1].split(",")] if found else []


def order_faults(names):
    """The rooms that the sentence leaves out, the names that are no rooms, and wrong neighbours."""
    missing = sorted(ROOMS - {*names})
    strange = [name for name in names if name not in ORDER]
    places = [ORDER.index(name) for name in names if name in ORDER]
    return (
        missing + strange + [f"{ORDER[i]} before {ORDER[j]}" for i, j in pairwise(places) if i >= j]
    )


def test_each_room_has_one_row():
    assert sorted(rows(PAGE)) == sorted(ROOMS)
    assert len(ROOMS) > 20


def test_the_sentence_on_imports_has_the_rooms_in_their_order():
    assert order_faults(order(PAGE)) == []


def test_a_room_without_a_row_or_out_of_order_is_found():
    table = "| `ibukit/exact/` | draws |\n| `ibukit/files/` | reads |\n\n"
    page = f"{table}Imports point one way: exact,\n"
    assert rows(page) == ["exact", "files"]
    assert order(f"{page}files, `channels`.\n") == ["exact", "files", "channels"]
    assert order_faults(ORDER) == []
    assert order_faults([name for name in ORDER if name != "files"]) == ["files"]
    assert order_faults([*ORDER, "nothing"]) == ["nothing"]
    swapped = [{"exact": "domain", "domain": "exact"}.get(name, name) for name in ORDER]
    assert order_faults(swapped) != []
    assert order_faults(order("Imports point upstream.")) != []


def test_the_page_is_short():
    assert len(PAGE.splitlines()) <= MAX_LINES
