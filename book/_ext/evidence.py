"""Gather what a page rests on, so that one switch in its header shows or hides all of it.

The evidence of a page is the code of its figures and tables, its checks, and the links from its
cells to the rows of claims. It stands in groups, each of which is one line that opens: the evidence
of neighbouring cells, with no word of text between them, is one group. `book.js` makes the switch.

A cell that a chapter removes from its page may hold checks too. They are evidence like any other,
so such a cell is folded instead.
"""

from __future__ import annotations

import copy
from typing import Any

import cell_folding
import myst_nb.sphinx_
from docutils import nodes
from myst_nb.core.nb_to_tokens import notebook_to_tokens
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

REMOVED, FOLDED = "remove-cell", "hide-cell"


def fold_removed_checks(notebook: Any) -> Any:
    """A copy of a notebook in which the removed cells that assert something are folded."""
    copied = copy.deepcopy(notebook)
    for cell in copied["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] != "code" or REMOVED not in tags:
            continue
        if cell_folding.asserts("".join(cell["source"])):
            cell["metadata"]["tags"] = [FOLDED if tag == REMOVED else tag for tag in tags]
    return copied


def tokens(notebook: Any, *arguments: Any) -> Any:
    """The tokens that myst-nb makes of a notebook, including its removed checks.

    The notebook itself stays as it is: the cache of results knows it by its cells and their tags.
    """
    return notebook_to_tokens(fold_removed_checks(notebook), *arguments)


def is_cell(node: nodes.Node) -> bool:
    """True for the container of a cell of code."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def is_link_to_rows(node: nodes.Node) -> bool:
    """True for the line that links a cell with the rows of claims that it checks."""
    return isinstance(node, nodes.paragraph) and "row-links" in node["classes"]


def hides_code(node: nodes.Node) -> bool:
    """True for the fold of a cell's code."""
    return isinstance(node, HideCodeCellNode) and any(
        isinstance(child, nodes.Element) and child.get("nb_element") == "cell_code_source"
        for child in node.children
    )


def title(prompts: list[str]) -> str:
    """The line of a group whose folds have these titles."""
    if len(prompts) == 1:
        return prompts[0]
    passed = [int(text.partition(" ")[0]) for text in prompts if text.endswith("passed")]
    others = [text for text in prompts if not text.endswith("passed")]
    parts = list(dict.fromkeys(text for text in others if text != "Show the code"))
    if number := others.count("Show the code"):
        parts.append(f"Code of {number} cells" if number > 1 else "Code")
    if total := sum(passed):
        parts.append(f"{total} check{'' if total == 1 else 's'} passed")
    return " · ".join(parts)


def merged_links(lines: list[nodes.paragraph]) -> nodes.paragraph:
    """One line for several, which names each row once."""
    line = nodes.paragraph("", "Checks ", classes=["row-links"])
    given = set()
    for link in (child for old in lines for child in old.children):
        if isinstance(link, nodes.Element) and link.astext() not in given:
            given.add(link.astext())
            line += [link, nodes.Text(" ")]
    return line


class Group:
    """The evidence of neighbouring cells, as it is gathered."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.parts: list[nodes.container] = []
        self.links: list[nodes.paragraph] = []

    def add(self, fold: HideCodeCellNode, cell: nodes.container | None) -> None:
        """Take over a fold, and the anchors of its cell if nothing else of that cell is left."""
        self.prompts.append(fold["prompt_show"])
        part = nodes.container(classes=["evidence-part"], is_div=True)
        if cell is not None:
            part["ids"], cell["ids"] = cell["ids"], []
        part.extend(fold.children)
        self.parts.append(part)

    def node(self) -> nodes.container:
        """The group as a node of the page."""
        group = nodes.container(classes=["cell", "evidence"], is_div=True)
        if self.parts:
            says = title(self.prompts)
            fold = HideCodeCellNode(prompt_show=says, prompt_hide=says)
            fold["classes"].append("above-input")
            fold.extend(self.parts)
            group.append(fold)
        if self.links:
            group.append(merged_links(self.links))
        return group


def gather(parent: nodes.Element) -> None:
    """Gather the evidence among the children of a node; what a reader sees keeps its order."""
    kept: list[nodes.Node] = []
    group = Group()

    def close() -> None:
        nonlocal group
        if group.parts or group.links:
            kept.append(group.node())
        group = Group()

    for child in list(parent.children):
        if is_link_to_rows(child):
            group.links.append(child)
        elif is_cell(child):
            folds = [part for part in child.children if hides_code(part)]
            if visible := [part for part in child.children if not hides_code(part)]:
                close()
                child.children = visible
                kept.append(child)
            for fold in folds:
                group.add(fold, None if visible else child)
        else:
            if not isinstance(child, (nodes.comment, nodes.target)):
                close()
            kept.append(child)
    close()
    parent.children = []
    parent.extend(kept)


class Evidence(SphinxPostTransform):
    """Gather the evidence of one page."""

    default_priority = 202  # after myst-nb has folded
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Go through everything that holds cells."""
        cells = [node for node in self.document.findall(nodes.container) if is_cell(node)]
        parents = {id(cell.parent): cell.parent for cell in cells}
        for parent in parents.values():
            gather(parent)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    myst_nb.sphinx_.notebook_to_tokens = tokens  # myst-nb has no event between reading and layout
    app.add_post_transform(Evidence)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
