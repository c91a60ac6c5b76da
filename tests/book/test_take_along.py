"""The pages that are made from the chapters say what the chapters say now."""

import json
import re

import pytest

import answers_page
import cheat_sheet
import class_sheet
import exercises_page
import gallery_page
import ibukit as ik
import news_page
from chapter_openings import contents, glued, notebook, opening

PAGES = [answers_page, news_page, cheat_sheet, class_sheet, exercises_page, gallery_page]


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


def names_in_the_book() -> list[str]:
    """The names of all figures, as the pages that show them give them."""
    found = []
    for path in (gallery_page.ROOT / "book").rglob("*.ipynb"):
        for cell in json.loads(path.read_text("utf8"))["cells"]:
            if cell["cell_type"] == "markdown":
                found += re.findall(
                    r"```\{moving\} .*\n(?::alt: .*\n)?:name: (\S+)",
                    "".join(cell["source"]),
                )
            elif "figure" in cell["metadata"].get("mystnb", {}):
                found.append(cell["metadata"]["mystnb"]["figure"]["name"])
    return found


def test_the_gallery_has_every_figure_that_shows_numbers_once():
    shown = re.findall(r"^\{numref\}`([^`]+)`", gallery_page.text(), re.MULTILINE)
    assert len(shown) > 100
    assert sorted(shown) == sorted(names_in_the_book())


def test_a_figure_of_the_gallery_leads_to_its_place_and_a_computed_one_to_its_code():
    text = gallery_page.text()
    for some in gallery_page.everything().values():
        for figure in some:
            assert f'<a href="{figure.page}.html#{figure.name}">' in text
            coded = f'<a href="{figure.page}.html?evidence=1#{figure.name}">Code</a>' in text
            assert coded == (figure.kind == "computed")
            assert figure.kind == "moving" or len(figure.alt) > 20


def test_a_caption_is_cut_after_a_sentence_and_not_inside_one():
    cut = gallery_page.first_sentence
    assert cut("One tally of 3.5 km. Then\nanother.") == "One tally of 3.5 km."
    assert cut("Shares (of a. B and C). More.") == "Shares (of a. B and C). More."
    assert cut("All of it") == "All of it"


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
