"""A term of the glossary says what it means wherever it is used, by a note on its link.

The note is the first sentence of the definition. A term has none if that sentence needs a formula
or only refers to another term.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

GLOSSARY = "book/glossary"


def meanings(glossary: nodes.document) -> dict[str, str]:
    """The anchor of each term -> its note."""
    found = {}
    for item in glossary.findall(nodes.definition_list_item):
        paragraph = next(iter(item.findall(nodes.paragraph)))
        said = " ".join(paragraph.astext().split())
        said = re.split(r"(?<=[.])\s", said)[0].removesuffix(":")
        needs = any(node.astext() in said for node in paragraph.findall(nodes.math))
        if not needs and not said.startswith("See "):
            found |= dict.fromkeys([i for t in item.findall(nodes.term) for i in t["ids"]], said)
    return found


def annotate(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Note the meanings of the terms that a page uses."""
    links = [n for n in doctree.findall(nodes.reference) if "#term-" in n.get("refuri", "")]
    notes = meanings(app.env.get_doctree(GLOSSARY)) if links else {}
    for link in links:
        if said := notes.get(link["refuri"].partition("#")[2]):
            link["reftitle"] = said


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", annotate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
