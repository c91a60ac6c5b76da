"""Repair what the readers and writers of pages get wrong, and link what is named but not linked."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

# docutils marks the references up as a list whose items are no list items: a screen reader announces an empty list.
REPAIRS = [
    ('<div role="list" class="citation-list">', '<div class="citation-list">'),
    (' role="doc-biblioentry"', ""),
]


# numbers of errata, as in "(P27)" or "(A6, A8)"; code stays as it is
NUMBERS = re.compile(r"\(((?:[A-Z]\d+)(?:(?:, | and )[A-Z]\d+)*)\)")
CODE = re.compile(r"(<pre.*?</pre>)", re.DOTALL)


class AbsoluteValues(SphinxTransform):
    """Keep ``|x - y|`` in a docstring as it is written; reStructuredText would take it for a substitution."""

    default_priority = 215  # after Sphinx has filled in |version| and the like, before docutils complains

    def apply(self, **kwargs: Any) -> None:
        """Turn every reference to a substitution that nobody defined back into its text."""
        for node in list(self.document.findall(nodes.substitution_reference)):
            if node["refname"] not in self.document.substitution_defs:
                node.replace_self(nodes.Text(node.rawsource))


@cache
def errata(root: str) -> frozenset[str]:
    """The numbers that have a row on the page of errata."""
    with (Path(root) / "data" / "errata.csv").open(encoding="utf-8", newline="") as file:
        return frozenset(row["id"] for row in csv.DictReader(file))


def link_errata(body: str, known: frozenset[str], page: str) -> str:
    """Make a link of every number of an erratum in brackets, outside of code."""

    def linked(number: re.Match[str]) -> str:
        name = number.group()
        return f'<a class="reference internal" href="{page}#row-{name.lower()}">{name}</a>' if name in known else name

    def inside(found: re.Match[str]) -> str:
        return "(" + re.sub(r"[A-Z]\d+", linked, found.group(1)) + ")"

    parts = CODE.split(body)  # code at the odd places
    parts[::2] = [NUMBERS.sub(inside, part) for part in parts[::2]]
    return "".join(parts)


def repair(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Apply the repairs to the body of one page."""
    for wrong, right in REPAIRS:
        if context.get("body"):
            context["body"] = context["body"].replace(wrong, right)
    known = errata(str(app.srcdir))
    if pagename.startswith("book/chapters/"):
        context["body"] = link_errata(context["body"], known, "../errata.html")
    elif pagename == "book/errata":
        for name in known:
            context["body"] = context["body"].replace(
                f"<strong>{name}</strong>", f'<strong id="row-{name.lower()}">{name}</strong>', 1
            )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_transform(AbsoluteValues)
    app.connect("html-page-context", repair)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
