"""The form of a chapter's page: a question, a picture, an answer; the story;
the evidence; the exercises.

What a reader meets is counted: words and lines of code that are not folded, above the heading
*Evidence*.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

CHAPTERS = {
    path.stem: path
    for path in sorted(Path(__file__).resolve().parents[2].glob("book/chapters/*.ipynb"))
}

WORDS, LINES = 2000, 100  # of the story
ANSWER = 60  # words, formulas counted as one: about three lines of a page
FIRST_SCREEN = 110  # words above the first picture
FOLDED = {"check", "hide-input", "hide-cell", "remove-input", "remove-cell"}
MARKS = ("easy, by hand", "easy", "medium", "hard")

FOLDS = re.compile(r"^(:{3,})\{dropdown\}[^\n]*\n.*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^(`{3,}).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
MATH = re.compile(r"\$\$.*?\$\$(?:[ \t]*\([\w-]+\))?|\$[^$]*\$", re.DOTALL)
OPTION = re.compile(r"^:[\w-]+:.*$", re.MULTILINE)
ROLE = re.compile(r"\{[\w:]+\}`(?:([^`<]*?) *<[^`>]*>|([^`]*))`")
HEADING = re.compile(r"^##? (.*)$", re.MULTILINE)
EXERCISE = re.compile(r"^:{3,}\{exercise\} *(.*)$", re.MULTILINE)


def tags(cell: Any) -> set[str]:
    return set(cell["metadata"].get("tags", []))


def text(cell: Any) -> str:
    return "".join(cell["source"])


def words(markdown: str) -> int:
    """How many words a reader meets:
    without folds, formulas, code and the options of directives.
    """
    seen = FOLDS.sub(" ", markdown)
    # a caption is read, its directive and the text for those who do not see the picture is not
    seen = re.sub(
        r"^```\{schematic\}[^\n]*\n(.*?)^```$", r"\1", seen, flags=re.DOTALL | re.MULTILINE
    )
    seen = MATH.sub(" x ", FENCED.sub(" ", seen))
    seen = ROLE.sub(lambda found: found[1] or found[2], OPTION.sub("", seen))
    return len(re.findall(r"[^\W_](?:[\w'’.,-]*\w)?", seen))


def sections(cells: list[Any]) -> list[tuple[str, Any]]:
    """(heading of order one or two above it, cell), with a cell of text cut at its headings."""
    found, heading = [], ""
    for cell in cells:
        if cell["cell_type"] != "markdown":
            found.append((heading, cell))
            continue
        at = 0
        source = FENCED.sub(lambda fence: fence[0].replace("\n#", "\n "), text(cell))
        for line in HEADING.finditer(source):
            found.append((heading, {**cell, "source": source[at : line.start()]}))
            heading, at = line[1].strip(), line.start()
        found.append((heading, {**cell, "source": source[at:]}))
    return [(name, cell) for name, cell in found if text(cell).strip()]


def shown_lines(cell: Any) -> int:
    """Lines of code that are not folded."""
    if cell["cell_type"] != "code" or tags(cell) & FOLDED:
        return 0
    return len(text(cell).splitlines())


def first_cell(cells: list[Any]) -> Any:
    """The first cell of code, which every page shows: imports, setting and seed.

    Its lines are not counted as those of the story.
    """
    return next((cell for cell in cells if cell["cell_type"] == "code"), None)


def is_picture(cell: Any) -> bool:
    if cell["cell_type"] == "markdown":
        return "```{schematic}" in text(cell)
    return any(
        "<Figure" in "".join(out.get("data", {}).get("text/plain", "")) for out in cell["outputs"]
    )


def shows_something(cell: Any) -> bool:
    return cell["cell_type"] == "code" and "remove-cell" not in tags(cell) and bool(cell["outputs"])


def faults_of_opening(story: list[Any], opening: str) -> list[str]:
    """What is wrong above the first heading of order two."""
    found = []
    if not re.search(r"^\*\*Question\.\*\* [^\n]*\?$", opening, re.MULTILINE):
        found.append("no line '**Question.** ...?' above the first section")
    answer = re.search(r"^\*\*Answer\.\*\* (.*?)(?=\n\n|\Z)", opening, re.DOTALL | re.MULTILINE)
    if not answer:
        found.append("no paragraph '**Answer.** ...' above the first section")
    elif not re.search(r"^\*\*Question\.\*\* [^\n]*\n\n\*\*Answer\.", opening, re.MULTILINE):
        found.append("the answer does not follow the question")
    elif words(answer[1]) > ANSWER:
        found.append(f"the answer has {words(answer[1])} words, more than {ANSWER}")
    needs = re.search(r"^\*\*You need\*\* (.*?)(?=\n\n|\Z)", opening, re.DOTALL | re.MULTILINE)
    if not needs or not re.search(r"\*\*Time:\*\* \d+ minutes", needs[1]):
        found.append("no paragraph '**You need** ... **Time:** 20 minutes' above the first section")
    above = lines = folds = 0
    first = first_cell(story)
    for cell in story:
        if is_picture(cell):
            above += (
                words(text(cell).partition("```{schematic}")[0])
                if cell["cell_type"] == "markdown"
                else 0
            )
            break
        above += words(text(cell)) if cell["cell_type"] == "markdown" else 0
        lines += 0 if cell is first else shown_lines(cell)
        folds += cell["cell_type"] == "code" and "remove-cell" not in tags(cell)
    else:
        return [*found, "no picture in the story"]
    if above > FIRST_SCREEN or lines:
        found.append(f"{above} words and {lines} lines of code stand above the first picture")
    elif folds > 1:
        found.append(
            f"{folds} folded cells stand above the first picture; one, with the imports, is enough"
        )
    return found


def faults_of_exercises(cells: list[Any]) -> list[str]:
    """What is wrong with the exercises."""
    found, source = [], "\n".join(text(cell) for cell in cells if cell["cell_type"] == "markdown")
    titles = [title.strip() for title in EXERCISE.findall(source)]
    marks = [(re.search(r"\(([^()]*)\)$", title) or ["", ""])[1] for title in titles]
    found += [
        f"exercise {t!r} does not end in one of {MARKS}"
        for t, m in zip(titles, marks, strict=True)
        if m not in MARKS
    ]
    if marks[:2] != ["easy, by hand"] * 2:
        found.append("the first two exercises are not marked (easy, by hand)")
    turns = re.findall(r":{3,}\{solution-(start|end)\}", source)
    if turns != ["start", "end"] * (len(turns) // 2):
        found.append(f"solutions start and end in the order {' '.join(turns)}")
    at = ends = None  # of a solution: whether it has ended in something that can be compared
    for cell in cells:
        for part in re.split(
            r"(?=^:{3,}\{solution-(?:start|end)\})", text(cell), flags=re.MULTILINE
        ):
            begins = re.match(r":{3,}\{solution-(start|end)\} *(\S*)", part)
            if begins and begins[1] == "end":
                if not ends:
                    found.append(f"the solution of {at} ends in no number and no plot")
                at = None
            elif begins:
                at, ends = begins[2], bool(re.search(r"\d", part.partition("dropdown")[2]))
            elif at and part.strip() and (cell["cell_type"] == "markdown" or shows_something(cell)):
                ends = shows_something(cell) or bool(re.search(r"\d", part))
    return found


def faults(notebook: Any) -> list[str]:
    """What keeps a chapter from having the form."""
    parts = sections(notebook["cells"])
    names = list(dict.fromkeys(name for name, _ in parts))
    if "Evidence" not in names or names[-2:] != ["Evidence", "Exercises"]:
        return [f"must end in the sections Evidence and Exercises, ends in {names[-2:]}"]
    story = [cell for name, cell in parts if name not in ("Evidence", "Exercises")]
    opening = "\n\n".join(
        text(c) for name, c in parts if name in names[:1] and c["cell_type"] == "markdown"
    )
    found = faults_of_opening(story, opening)
    read = sum(words(text(cell)) for cell in story if cell["cell_type"] == "markdown")
    first = first_cell(story)
    code = sum(shown_lines(cell) for cell in story if cell is not first)
    if read > WORDS:
        found.append(f"the story has {read} words, more than {WORDS}")
    if code > LINES:
        found.append(f"the story shows {code} lines of code, more than {LINES}")
    return found + faults_of_exercises([cell for name, cell in parts if name == "Exercises"])


@pytest.fixture(scope="module")
def wrong() -> dict[str, list[str]]:
    return {stem: faults(json.loads(path.read_text("utf8"))) for stem, path in CHAPTERS.items()}


@pytest.mark.parametrize("stem", sorted(CHAPTERS))
def test_a_page_has_the_form(stem, wrong):
    assert wrong[stem] == []


# Negative controls


def markdown(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def code(source: str, *tags: str, shows: str = "") -> dict[str, Any]:
    outputs = [{"data": {"text/plain": shows}}] if shows else []
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {"tags": list(tags)},
        "outputs": outputs,
    }


HEAD = (
    "# Page\n\n**Question.** Does it?\n\n**Answer.** Yes.\n\n```{schematic} x\n:name: x\n:alt: x"
    "\n\nA sketch.\n```\n\n"
)
NEEDS = "**You need** averages. **Time:** 10 minutes."
TWO = (
    ":::{exercise} One (easy, by hand)\n:label: a\n:::\n\n:::{solution-start} a\n:class:"
    " dropdown\n:::\n\nIt is 2.\n\n:::{solution-end}\n:::\n\n:::{exercise} Two (easy, by"
    " hand)\n:label: b\n:::\n\n"
)


def page(
    head: str = HEAD + NEEDS, story: str = "Words.", lines: int = 3, exercises: str = TWO
) -> dict[str, Any]:
    cells = [
        markdown(head),
        code("import x\n" * 12),
        markdown(f"## Story\n\n{story}"),
        code("x\n" * lines),
    ]
    cells += [
        markdown("## Evidence\n\n" + "word " * 3000),
        code("x\n" * 300),
        markdown(f"## Exercises\n\n{exercises}"),
    ]
    return {"cells": cells}


def test_a_page_with_the_form_passes():
    assert faults(page()) == []
    folded = f":::{{dropdown}} Proof\n{'word ' * 3000}\n:::\n\n$$\n{'x ' * 3000}\n$$"
    assert faults(page(story=folded)) == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"head": HEAD.replace("Does it?", "It does.") + NEEDS}, "Question"),
        ({"head": HEAD.replace("Yes.", "word " * 61) + NEEDS}, "the answer has 61 words"),
        ({"head": HEAD.replace("**Answer.**", "Answer.") + NEEDS}, "no paragraph '**Answer.**"),
        ({"head": HEAD}, "You need"),
        ({"head": HEAD + NEEDS.replace("10", "ten")}, "Time"),
        (
            {"head": HEAD.replace("Does it?", "Does it?\n\nAside.") + NEEDS},
            "the answer does not follow the question",
        ),
        (
            {"head": HEAD.replace("Yes.", "Yes.\n\n" + "word " * 110) + NEEDS},
            "stand above the first picture",
        ),
        ({"head": HEAD.replace("```{schematic}", "```{note}") + NEEDS}, "no picture"),
        ({"story": "word " * 2000}, "words, more than 2000"),
        ({"lines": 101}, "shows 101 lines of code"),
        ({"story": "x\n\n## Exercises\n\ny\n\n## More"}, "must end in"),
        ({"exercises": TWO.replace("Two (easy, by hand)", "Two (medium)")}, "first two exercises"),
        ({"exercises": TWO + ":::{exercise} Three\n:::"}, "'Three' does not end in"),
        (
            {"exercises": TWO.replace("It is 2.", "It is so.")},
            "the solution of a ends in no number",
        ),
        (
            {
                "exercises": TWO.replace(
                    "It is 2.", "It is 2.:::{solution-start} a\n:::\n\nIt is 2."
                )
            },
            "start start end",
        ),
    ],
)
def test_a_page_without_the_form_is_found(changed, says):
    found = faults(page(**changed))
    assert [says in fault for fault in found] == [True], found


def test_a_picture_below_code_is_found():
    folded = page(head=HEAD.split("```")[0])
    opening = [
        code("import x", "hide-input"),
        code("plot", "hide-input", shows="<Figure size 10x10 with 1 Axes>"),
    ]
    folded["cells"][1:2] = [*opening, markdown(NEEDS)]
    assert faults(folded) == []
    folded["cells"][1] = code("import x")  # the first cell may be shown
    assert faults(folded) == []
    folded["cells"][1] = opening[0]
    folded["cells"].insert(1, code("y = 1", "check"))
    [fault] = faults(folded)
    assert "2 folded cells" in fault
    late = page(head=HEAD.split("```")[0] + NEEDS)
    late["cells"].insert(4, code("plot", shows="<Figure size 10x10 with 1 Axes>"))
    [fault] = faults(late)
    assert "3 lines of code stand above the first picture" in fault
