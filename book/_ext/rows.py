"""The cells of the chapters that show a row of the ledger or of the errata: which they are, and an anchor for each."""

import re
from pathlib import Path

from docutils import nodes
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

TAGS = ("ledger", "erratum")


def label(tag: str) -> str:
    """The name under which a cell with this tag is referred to."""
    return re.sub(r"[^a-z0-9]+", "-", tag.lower())


def shown(cell: dict) -> list[str]:
    """The tags of a cell that name a row, if a reader sees the cell."""
    tags = cell["metadata"].get("tags", [])
    return [] if "remove-cell" in tags else [tag for tag in tags if tag.partition(":")[0] in TAGS]


def visible(env: BuildEnvironment) -> None:
    """Build a page anew when a cell of a chapter changes."""
    for path in sorted((Path(env.srcdir) / "book" / "chapters").glob("*.ipynb")):
        env.note_dependency(str(path))


class Anchors(SphinxTransform):
    """Give the first visible cell of each tag an anchor, so that the page of verdicts can link to it."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        """Name the cells of one page."""
        if Path(self.env.doc2path(self.env.docname)).parent.name != "chapters":
            return
        given: set[str] = set()
        for node in list(self.document.findall(nodes.container)):
            if node.get("nb_element") == "cell_code":
                names = [label(tag) for tag in shown({"metadata": node["cell_metadata"]})]
                node["ids"] += [name for name in dict.fromkeys(names) if name not in given]
                given.update(names)


def setup(app):
    app.add_transform(Anchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
