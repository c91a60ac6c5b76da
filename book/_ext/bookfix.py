"""Repair what the readers and writers of pages get wrong."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

# docutils marks the references up as a list whose items are no list items: a screen reader
# announces an empty list.
REPAIRS = [
    ('<div role="list" class="citation-list">', '<div class="citation-list">'),
    (' role="doc-biblioentry"', ""),
]


class AbsoluteValues(SphinxTransform):
    """Keep ``|x - y|`` in a docstring as it is written; reStructuredText would take it for a substitution."""

    default_priority = (
        215  # after Sphinx has filled in |version| and the like, before docutils complains
    )

    def apply(self, **kwargs: Any) -> None:
        """Turn every reference to a substitution that nobody defined back into its text."""
        for node in list(self.document.findall(nodes.substitution_reference)):
            if node["refname"] not in self.document.substitution_defs:
                node.replace_self(nodes.Text(node.rawsource))


def repair(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Apply the repairs to the body of one page."""
    for wrong, right in REPAIRS:
        if context.get("body"):
            context["body"] = context["body"].replace(wrong, right)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_transform(AbsoluteValues)
    app.connect("html-page-context", repair)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
