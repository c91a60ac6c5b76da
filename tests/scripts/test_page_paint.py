"""When a page counts as late, and when the machine was too busy to say so."""

from __future__ import annotations

import pytest

import page_paint


@pytest.mark.parametrize(
    ("paints", "is_late"),
    [
        ([(40, 300)], False),
        ([(40, 900), (40, 450)], False),
        ([(40, 900), (60, 800)], True),
        ([(400, 900), (600, 800)], False),  # a page of one word took long, too
        ([(400, 900), (40, 800)], True),
        ([(400, 450)], False),
        ([(70, 600), (80, 700)], False),  # a slow machine, on which all is late
    ],
)
def test_a_page_is_late_if_an_idle_machine_shows_it_late(paints, is_late):
    assert (page_paint.fault(paints) is not None) is is_late


def test_the_fault_names_the_best_of_the_loads_that_count():
    assert "800 ms in 2 loads" in page_paint.fault([(40, 900), (60, 800), (400, 700)])


def test_a_page_that_a_busy_machine_showed_late_is_loaded_again_after_the_others():
    loads = []

    def paint(name):
        loads.append(name)
        return 900 if name == "slow" or (name == "unlucky" and len(loads) < 9) else 300

    pages = ["slow", "unlucky", *"abcdefg"]
    assert [name for name, _ in page_paint.late(paint, lambda: 40, pages)] == ["slow"]
    assert loads[:9] == pages
    assert loads[9:] == ["slow", "unlucky"] + ["slow"] * (page_paint.TRIES - 2)


@pytest.mark.parametrize(("idle", "found"), [(40, 50), (400, 0)])
def test_a_machine_that_shows_all_pages_late_is_soon_done(idle, found):
    loads = []

    def paint(name):
        loads.append(name)
        return 900

    pages = [str(i) for i in range(50)]
    assert len(page_paint.late(paint, lambda: idle, pages)) == found
    assert len(loads) == page_paint.LOADS * len(pages)


def test_a_page_that_sends_on_is_not_asked(tmp_path):
    root, page = tmp_path / "index.html", tmp_path / "page.html"
    root.write_text('<meta http-equiv="Refresh" content="0; url=page.html">', "utf8")
    page.write_text("<p>word</p>", "utf8")
    assert page_paint.sends_on(root)
    assert not page_paint.sends_on(page)
