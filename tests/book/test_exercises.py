"""The page of all exercises beside the chapters: none is missing, none is answered."""

import json
import re

import pytest

import chapter_exercises
import exercises_page
from chapter_exercises import LEVELS, MINUTES, exercises
from chapter_openings import ROOT

FOUND = exercises()
PAGE = exercises_page.FILE.read_text("utf8")
SOURCES = {
    path.stem: "\n".join(
        "".join(cell["source"])
        for cell in json.loads(path.read_text("utf8"))["cells"]
        if cell["cell_type"] == "markdown"
    )
    for path in (ROOT / "book" / "chapters").glob("*.ipynb")
}
SOLUTION = re.compile(r"^:+\{solution-start\}.*?^:+\n+([^:\n].*?)$", re.MULTILINE | re.DOTALL)


def test_every_exercise_of_the_chapters_is_on_the_page():
    labels = [
        label
        for source in SOURCES.values()
        for label in re.findall(r"\{exercise\}.*\n:label: *(\S+)", source)
    ]
    assert len(labels) > 100
    assert sorted(labels) == sorted(each.label for each in FOUND)
    assert all(PAGE.count(f"]({label})**") == 1 for label in labels)
    assert f"all {len(labels)} exercises" in PAGE
    assert all(each.text in PAGE for each in FOUND)


def test_no_solution_is_on_the_page():
    answers = [found for source in SOURCES.values() for found in SOLUTION.findall(source)]
    assert len(answers) > 100
    assert "solution-start" not in PAGE
    assert [answer for answer in answers if len(answer) > 30 and answer in PAGE] == []


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_takes_the_time_that_the_page_says(level):
    least, most = MINUTES[level]
    these = [each for each in FOUND if each.level == level]
    assert len(these) > 10
    assert [each.label for each in these if not least <= each.minutes <= most] == []
    start = PAGE.index(f"## {level}\n")
    end = PAGE.find("\n## ", start + 1) % (len(PAGE) + 1)
    listed = re.findall(r"^\*\*\[.*\]\((\S+)\)\*\* ", PAGE[start:end], re.MULTILINE)
    assert listed == [each.label for each in these]


def test_what_is_done_by_hand_is_easy():
    assert {each.level for each in FOUND if each.is_by_hand} == {"Easy"}
    assert {each.level for each in FOUND} == set(LEVELS)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda times: times.pop("ex-start-die"), "no row for ex-start-die"),
        (lambda times: times.update({"ex-gone": 5}), "no chapter has: .'ex-gone'"),
    ],
)
def test_a_row_without_its_exercise_or_the_other_way_round_is_refused(change, word, monkeypatch):
    minutes = chapter_exercises.times()
    change(minutes)
    monkeypatch.setattr(chapter_exercises, "times", lambda: minutes)
    with pytest.raises(ValueError, match=word):
        exercises()


def test_a_link_to_a_chapter_leads_there_from_the_page():
    # a chapter links to another by its name, the page by its folder
    links = re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]*)>?`", PAGE)
    assert len(links) > len(FOUND)
    assert [link for link in links if link.removeprefix("chapters/") not in SOURCES] == []
    assert all(link.startswith("chapters/") for link in links)
