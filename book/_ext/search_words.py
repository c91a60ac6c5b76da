"""The words that people type into the search lead to the pages that answer them.

``search_words.tsv`` lists the words. Each is a main entry of the index of its page: the search
gives such an entry up to 100 points, a title 15, and a name of the package at most 11.
"""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

WORDS = Path(__file__).with_name("search_words.tsv")


def pages() -> list[tuple[str, str]]:
    """Words and the page that answers them, in the order of the file."""
    lines = WORDS.read_text("utf8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [(words, f"book/{page}") for words, page in rows]


class SearchWords(SphinxTransform):
    """Give a page its entries of the index, which lead to its title."""

    default_priority = 420

    def apply(self, **kwargs: Any) -> None:
        """Go through one page."""
        words = [words for words, page in pages() if page == self.env.docname]
        section = next(iter(self.document.findall(nodes.section)), None)
        if not words or section is None:
            return
        self.env.note_dependency(str(WORDS))
        target = section["ids"][0]
        entries = [("single", text, target, "main", None) for text in words]
        section.insert(1, addnodes.index(entries=entries))


def complete(app: Sphinx) -> tuple[()]:
    """Give the search the entries of the pages that a build does not write: Sphinx drops them."""
    indexer = getattr(app.builder, "indexer", None)
    for words, page in pages() if indexer is not None else ():
        if page in app.env.found_docs:
            known = indexer._index_entries.setdefault(page, [])
            if all(words != entry[0] for entry in known):
                known.append((words, "", "main"))
    return ()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_transform(SearchWords)
    app.connect("html-collect-pages", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
