"""`make prose`: no page has more of a tiring habit than it may have, or than it had."""

from __future__ import annotations

import json
from collections import Counter

import pytest

import prose

TABLE, EXCEPTED = prose.habits()
HABITS = {habit.name: habit for habit in TABLE}

# each hard habit in a sentence of its own; a sentence without it stands in PLAIN
TIRING = {
    "some hundred": "The error is least after some hundred steps.",
    "missing to": "How much is missing to the maximum?",
    "of such people": "Theta is the distribution of such people.",
    "per cents": "You need averages and per cents.",
    "a person of twenty": "Take a person of twenty.",
    '40 times "yes"': 'Of the 40 times "yes", 25 came from the coin.',
    "say so too": "The theorem says so, too.",
    "is no error": "A remark, which is no error of the paper.",
    "one row a person": "The file has one row a person.",
    "stand beside": "The paper's numbers stand beside ours.",
    "by other means": "We check it by other means.",
    "hang on": "Published numbers hang on it.",
    "has not the": "An interval chosen late has not the level.",
    "so many": "The call stops after so many steps.",
    "is another one": "Its order is another one in the next process.",
    "thousand million": "It takes ten thousand million reports.",
    "copy at hand": "This is true of the copy at hand.",
    "it is so": "In their figures it is so: IBU wins.",
    "small print": "There is a small print.",
    "what comes of": "What comes of the repetitions is kept.",
    "comma splice": "k must be at most 3, it is 4.",
    "is none": "The report must be a label, and 7 is none.",
    "is there twice": "A label is there twice.",
    "in all": "There are 100 reports in all.",
    "has not": "The labels are texts that JSON has not.",
}
PLAIN = (
    "The error is smallest after a few hundred steps, some of the hundred people said.",
    "How far below the maximum are we? A key is missing.",
    'Of the 40 people who said "yes", 25 did so because of the coin, six times in 10.',
    "There is no error in it, and no one can stand there without a boat.",
    "The file has one row for each person, and one row a single number.",
    "If it is None, none of them occurs twice in all of the files, which it has not read.",
    "It takes 10 billion reports, after so many that nobody counts them.",
)


def instances(name, words, is_heading=False):
    return HABITS[name].places(prose.Text("page", "page:1", words, is_heading), EXCEPTED)


@pytest.fixture(scope="module")
def texts():
    """All pages, as reading them takes seconds."""
    return list(prose.texts())


def test_no_page_has_more_than_it_had(texts, monkeypatch):
    monkeypatch.setattr(prose, "texts", {prose.ROOT: texts}.get)
    assert prose.grown(prose.survey()) == [], "run `make prose` for the places"


def test_all_that_is_read_is_found(texts):
    words = Counter()
    for text in texts:
        words[text.page] += len(text.words.split())
    pages = {"README.md", "book/recipes.md", "book/reference/tools.md", "book/index.ipynb"}
    pages |= {"book/schematics", "book/moving", "ibukit/solvers", "ibukit", "data/ledger.csv"}
    assert pages <= {*words}
    assert sum(page.startswith("book/chapters/") for page in words) > 30
    assert sum(words.values()) > 200_000


def test_each_hard_habit_is_found_and_plain_english_is_not():
    hard = {name for name, habit in HABITS.items() if habit.kind == "hard"}
    assert {*TIRING} == hard
    for name, words in TIRING.items():
        assert instances(name, words), name
        assert HABITS[name].allowed(100_000) == 0
        assert not [said for said in PLAIN if instances(name, said)], name


@pytest.mark.parametrize(
    ("name", "words", "count"),
    [
        ("times as", "It is 3 times as far, and 4 times as dear, four times in all.", 2),
        ("what is", "What iterates takes a rule. What is it? Whatever. What it is, we say.", 2),
        ("too", "It is so for RAPPOR, too. That is too much, too, for us.", 2),
        ("anew", "The people are drawn anew.", 1),
        ("hardly", "It hardly moves.", 1),
        ("nobody", "Nobody knows what everybody's body needs.", 2),
        ("after-note", "It falls (60 repetitions). It does so (on the ages at 0.05 per year).", 1),
    ],
)
def test_a_soft_habit_is_counted(name, words, count):
    assert len(instances(name, words)) == count
    assert HABITS[name].kind == "soft"
    assert HABITS[name].allowed(10) == 1
    assert 1 < HABITS[name].allowed(10_000) <= 30


def test_a_heading_is_judged_as_a_heading():
    assert instances("heading", "What can be said", is_heading=True) == ["What"]
    assert instances("heading", "What can be said") == []
    assert instances("heading", "The answer and how to read it", is_heading=True) == []


def test_a_run_of_bare_sentences_is_found_and_a_hinge_ends_it():
    bare = ["The coin falls.", "Ann sees it.", "She answers.", "We count."]
    assert instances("run", " ".join(bare)) == [bare[0]]
    assert instances("run", " ".join(bare[:3])) == []
    for i, hinged in enumerate(["So it falls.", "She answers because it fell.", "We ask why:"]):
        joined = [*bare]
        joined[i + 1] = hinged
        assert instances("run", " ".join(joined)) == [], hinged


def test_markdown_is_read_as_somebody_would_read_it():
    source = """---
title: some hundred
---
(label)=
# What `x` **is**

A [link](some-hundred.html), a {term}`word <some hundred>`, {cite}`a`, $some$ and
“some hundred” in a quotation.
$$some hundred$$ (eq)

- first
- second

| a cell | another |
| --- | --- |

```python
some = hundred
```

:::{admonition} A title
Inside.

```{schematic} name
:alt: A picture.
:name: some-hundred
The caption.
```
:::
"""
    read = list(prose.of_markdown("p.md", source))
    assert [text.words for text in read] == [
        "What x is",
        "A link, a word, x, x and x in a quotation. x (eq)",
        "first",
        "second",
        "a cell",
        "another",
        "A title",
        "Inside.",
        "A picture.",
        "The caption.",
    ]
    assert [text.is_heading for text in read] == [True] + [False] * 9
    assert read[1].place == "p.md:6"


def test_docstrings_comments_and_messages_are_read():
    source = '''def f():
    """First line.

    >>> some = "hundred"

    References
    ----------
    .. [a] Some Hundred.
    """
    # a comment
    # of two lines
    raise ValueError(f"{x} must be one of some hundred things")
'''
    said = [text.words for text in prose.of_python("p", "p.py", source)]
    assert sorted(said) == [
        "First line.",
        "a comment of two lines",
        "x must be one of some hundred things",
    ]


@pytest.fixture
def book(tmp_path):
    """A tree with one page and one chapter, and a way to write the page."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "book").mkdir()
    cell = {"cell_type": "markdown", "id": "a-00", "source": ["It takes some hundred steps."]}
    (tmp_path / "book" / "a.ipynb").write_text(json.dumps({"cells": [cell]}), "utf8")
    page = tmp_path / "README.md"
    page.write_text("After some hundred steps it takes some thousand.", "utf8")
    return tmp_path, page


def test_a_count_may_shrink_and_not_grow(book, capsys):
    root, page = book
    record = root / prose.COUNTS
    assert prose.main([], root) == 0  # without a record, today's counts become it
    assert prose.recorded(record) == {
        ("README.md", "some hundred"): 2,
        ("book/a.ipynb", "some hundred"): 1,
    }
    page.write_text("After some hundred steps.", "utf8")
    assert prose.main([], root) == 0
    assert prose.recorded(record)["README.md", "some hundred"] == 1
    capsys.readouterr()
    page.write_text("After some hundred steps it takes some thousand.", "utf8")
    assert prose.grown(prose.survey(root), root) == [("README.md", "some hundred")]
    assert prose.main([], root) == 1
    shown = capsys.readouterr().out
    assert "README.md:1: some thousand" in shown
    assert "a few hundred" in shown
    assert "a-00" not in shown
    assert prose.recorded(record)["README.md", "some hundred"] == 1
    assert prose.main(["book/a.ipynb"], root) == 0
    assert "a-00:1: some hundred" in capsys.readouterr().out
