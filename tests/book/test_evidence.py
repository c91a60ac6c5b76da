"""The evidence of a page is gathered: removed checks are kept, neighbours share a line."""

import evidence
import pytest
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode


def cell(prompt=None, output=None, name="", shown=False):
    node = nodes.container(nb_element="cell_code", ids=[name] if name else [])
    source = nodes.container(nb_element="cell_code_source")
    if prompt:
        fold = HideCodeCellNode(prompt_show=prompt, prompt_hide=prompt)
        fold.append(source)
        node.append(fold)
    if shown:
        node.append(source)
    if output:
        node.append(nodes.container("", nodes.paragraph("", output), nb_element="cell_code_output"))
    return node


def links(*rows):
    line = nodes.paragraph("", "Checks ", classes=["row-links"])
    for row in rows:
        line += [nodes.reference("", row), nodes.Text(" ")]
    return line


def gathered(*children):
    page = nodes.section("", *children)
    evidence.gather(page)
    return page.children


def test_neighbouring_cells_share_a_line_and_name_each_row_once():
    figure, group = gathered(
        cell("How this figure is drawn", output="a picture", name="row-a"),
        links("A1"),
        cell("2 checks passed", name="row-b"),
        links("A1", "A2"),
    )
    assert figure["ids"] == ["row-a"]
    assert [part["nb_element"] for part in figure.children] == ["cell_code_output"]
    fold, line = group.children
    assert fold["prompt_show"] == "How this figure is drawn · 2 checks passed"
    assert [part["ids"] for part in fold.children] == [[], ["row-b"]]
    assert line.astext().split() == ["Checks", "A1", "A2"]


def test_a_word_between_two_cells_parts_them():
    first, between, second = gathered(
        cell("1 check passed"), nodes.paragraph("", "Text."), cell("1 check passed")
    )
    assert between.astext() == "Text."
    assert "evidence" in first["classes"]
    assert "evidence" in second["classes"]


def test_visible_code_stays_and_is_no_evidence():
    (only,) = gathered(cell(shown=True))
    assert "evidence" not in only["classes"]


@pytest.mark.parametrize(
    ("prompts", "says"),
    [
        (["Show the code"], "Show the code"),
        (["Show the code", "Show the code"], "Code of 2 cells"),
        (["1 check passed", "1 check passed"], "2 checks passed"),
        (["Show the code", "1 check passed"], "Code · 1 check passed"),
        (
            ["How this table is made"] * 2 + ["3 checks passed"],
            "How this table is made · 3 checks passed",
        ),
    ],
)
def test_a_group_says_what_it_holds(prompts, says):
    assert evidence.title(prompts) == says


def removed(source):
    return {"cell_type": "code", "metadata": {"tags": ["remove-cell"]}, "source": [source]}


def test_a_removed_cell_that_asserts_is_folded_and_no_other():
    notebook = {"cells": [removed("assert x"), removed("x = 1")]}
    folded = evidence.fold_removed_checks(notebook)
    assert [one["metadata"]["tags"] for one in folded["cells"]] == [["hide-cell"], ["remove-cell"]]
    before = [one["metadata"]["tags"] for one in notebook["cells"]]
    assert before == [["remove-cell"]] * 2, "the cache of results knows a notebook by its tags"
