"""The pages of the reference show every public name, and need no upkeep for it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import package_reference as rooms
import pytest

import ibukit

ROOT = Path(__file__).resolve().parents[2]
ROOMS = rooms.rooms_shown(ROOT)


def test_every_public_name_is_in_a_room_of_the_pages():
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


def test_what_a_set_of_maximisers_inherits_is_shown_with_it():
    kind = ibukit.theory.MleSet
    until = [base.__name__ for base in kind.__mro__].index(rooms.WITH_INHERITED["theory.MleSet"])
    shown = {name for base in kind.__mro__[:until] for name in vars(base)}
    assert {name for name in dir(kind) if not name.startswith("_")} <= shown | {"estimate"}
    assert "bounds" not in vars(kind), "else there is nothing to be shown"


def test_an_estimate_is_one_class():
    shown = {name for name in dir(ibukit.Estimate) if not name.startswith("_")}
    assert shown <= set(vars(ibukit.Estimate)) | set(ibukit.Estimate.__annotations__)


def test_no_room_is_shown_twice():
    assert len(ROOMS) == len(set(ROOMS))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("x = ik.mle(t)\nik.Tally.from_table(p)", {"mle", "Tally"}),
        ("ik.datasets.load_gowalla('paris')", {"datasets.load_gowalla"}),
        ("from ibukit import theory\ntheory.inv_bound_krr(3, 1.0)", {"theory.inv_bound_krr"}),
        ("ik.theory.identifiable(m)", {"theory.identifiable"}),
        ("ik.nothing(mle)", set()),
    ],
)
def test_what_a_chapter_calls_is_found(source, names):
    assert rooms.called(source, rooms.entries(ROOT)) == names


def unexplained(names, used, texts):
    """Names that no chapter uses and that no page names as ibukit.NAME."""
    return [
        name
        for name in names
        if name not in used and not re.search(rf"ibukit\.{name}\b(?!\.\w)", texts)
    ]


def test_every_public_name_is_used_in_a_chapter_or_named_for_a_task():
    tasks = (ROOT / "book" / "api.md").read_text("utf8").partition("## All pages")[0]
    names = [name for name in ibukit.__all__ if name not in rooms.rooms_shown(ROOT)]
    assert unexplained(names, rooms.used_in(ROOT), tasks) == []
    assert unexplained(["mle", "nothing"], {"mle": ["ages"]}, "ibukit.nothing.more") == ["nothing"]


def test_relations_go_both_ways_and_never_to_oneself():
    found = rooms.related(ROOT)
    assert "mle" in found["ibu"]
    assert "StoppingRule" in found["ibu"]  # which mentions it, and is not mentioned by it
    assert all(
        name not in others and len(others) <= rooms.MAX_RELATED for name, others in found.items()
    )


def test_every_chapter_uses_something_and_the_contents_decide_the_order():
    users = rooms.used_in(ROOT)
    slugs = [file.rpartition("/")[2] for file in rooms.chapters(ROOT)]
    assert set(slugs) == {slug for name in users for slug in users[name]}
    assert users["mle"] == [slug for slug in slugs if slug in users["mle"]]


ROLE = re.compile(r"(.)?:math:`([^`]*)`(.)?", re.DOTALL)


def broken_roles(text):
    """The formulas of a docstring that reStructuredText or TeX would not read."""
    return [
        formula
        for before, formula, behind in ROLE.findall(f" {text} ")
        if re.match(r"[\w*`|]", behind)
        or re.match(r"[\w*`|]", before)
        or formula != formula.strip()
        or (plain := re.sub(r"\\[{}]", "", formula)).count("{") != plain.count("}")
    ]


def test_formulas_of_docstrings_can_be_read():
    for path in sorted((ROOT / "ibukit").rglob("*.py")):
        assert broken_roles(path.read_text("utf8")) == [], path


@pytest.mark.parametrize("wrong", ["`x`*", "` x`", "`x_{y`", "`x`y"])
def test_a_formula_that_is_not_read_is_found(wrong):
    assert broken_roles(f"So :math:{wrong} is") != []
    assert broken_roles(r"So (:math:`x_{y}`), :math:`\{x`; is") == []


API = (ROOT / "book" / "api.md").read_text("utf8")


def test_the_twelve_names_run_as_they_stand(capsys):
    section = API.partition("(twelve-names)=")[2].partition("## Arguments")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    rows = re.findall(r"^\| \{\w+\}`(?:[^`<]*<)?ibukit\.([\w.]+)>?` \|", section, re.MULTILINE)
    assert len(rows) == 12
    for name in rows:
        assert re.search(rf"\b{name.replace('Estimate', 'estimate').replace('.', '[.]')}\(", block)
    assert max(map(len, block.splitlines())) <= 79
    found = {}
    exec(block, found)
    for lower, upper, share in zip(found["lower"], found["upper"], [0.5, 0.3, 0.2], strict=True):
        assert share - 0.04 < lower < upper < share + 0.04
    assert found["needed"].n > 20_000  # more than the people there are
    off = [float(line) for line in capsys.readouterr().out.splitlines()]
    assert len(off) == 2
    assert max(off) < 1


def unreachable(text):
    """The mechanisms that no row of the page names."""
    kinds = {name: getattr(ibukit, name) for name in ibukit.__all__}
    return [
        name
        for name, kind in kinds.items()
        if inspect.isclass(kind)
        and issubclass(kind, ibukit.Mechanism)
        and not re.search(rf"ibukit\.{name}\b(?!\.\w)", text)
    ]


def test_every_mechanism_is_reachable_from_its_task():
    tasks = API.partition("## From a task")[2].partition("## All pages")[0]
    assert unreachable(tasks) == []
    assert unreachable(tasks.replace("ibukit.Duchi`", "")) == ["Duchi"]


def test_the_estimators_begin_with_the_mle_and_end_with_the_rules():
    names = [name for name, _ in rooms.names_in("estimators")]
    assert names[:5] == list(rooms.FIRST)
    public = [name for name in names if "." not in name]
    assert public[-5:] == list(rooms.LAST)
    assert rooms.names_in("mechanisms.base")[0][0] == "Mechanism"
