"""The pages that are made from the chapters say what the chapters say now."""

import re

import pytest

import answers_page
import cheat_sheet
import class_sheet
import exercises_page
import ibukit as ik
import news_page
from chapter_openings import contents, glued, notebook, opening

PAGES = [answers_page, news_page, cheat_sheet, class_sheet, exercises_page]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_a_page_is_what_its_script_makes_of_the_chapters(page):
    made = f"python scripts/{page.__name__}.py"
    assert page.FILE.read_text("utf8") == page.text(), f"make it anew: {made}"


def test_every_chapter_has_its_answer_with_its_numbers_written_out():
    text = answers_page.text()
    slugs = [slug for _, each in contents() for slug in each]
    assert len(slugs) == text.count("\n### ") == 32
    for slug in slugs:
        start = opening(slug)
        assert start.question in text
        assert start.answer in text
    assert "glue" not in text


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,.]*\d|\d", text))


@pytest.mark.parametrize("row", news_page.findings(), ids=lambda row: row["chapter"])
def test_a_number_in_the_news_stands_in_its_chapter(row):
    for chapter, name in news_page.NUMBER.findall(row["finding"]):
        assert chapter == row["chapter"]
        assert name in glued(chapter)
    written = numbers(news_page.NUMBER.sub("", row["finding"]))
    texts = ["".join(c["source"]) for c in notebook(row["chapter"])["cells"]]
    assert written <= numbers(" ".join(texts)), "a number that the chapter does not know"


def test_a_number_that_no_chapter_has_is_found():
    start = opening("ages")
    assert not numbers("48,843 people") <= numbers(start.question + start.answer)


def test_the_calls_of_the_cheat_sheet_exist():
    names = re.findall(r"ik\.((?:\w+\.)*\w+)\(", " ".join(cheat_sheet.CALLS.values()))
    assert len(names) > 7
    for name in names:
        found = ik
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found)


def test_the_news_are_at_most_ten():
    assert 5 < len(news_page.findings()) <= 10
