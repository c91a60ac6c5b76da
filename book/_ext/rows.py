"""A directive that writes its content once for each row of a table in data/, grouped by one of its columns.

    ```{rows} data/errata.csv
    :group: chapter
    :only: class error

    **{id}**, {where}: {wrong} {link}
    ```

``{link}`` leads to the cell that shows the row: the first visible one with its tag, or to the chapter where there is
none. A wide table cannot be read on a phone; a list of entries can. A second directive counts the verdicts:

    ```{verdicts} data/ledger.csv
    ```
"""

import csv
import json
import re
from collections import Counter
from functools import cache
from itertools import groupby
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

# of these, what stands in the tables is text
SPECIAL = re.compile(r"([\\`*_{}\[\]<>$|~])")
TAGS = {"ledger.csv": "ledger", "errata.csv": "erratum"}


def label(tag: str) -> str:
    """The name under which a cell with this tag is referred to."""
    return re.sub(r"[^a-z0-9]+", "-", tag.lower())


def shown(cell: dict) -> list[str]:
    """The tags of a cell that name a row, if a reader sees the cell."""
    tags = cell["metadata"].get("tags", [])
    return [] if "remove-cell" in tags else [tag for tag in tags if tag.partition(":")[0] in TAGS.values()]


def visible(env: BuildEnvironment) -> dict[str, str]:
    """Tag -> chapter, for every tag on a cell that a reader sees."""
    paths = sorted((Path(env.srcdir) / "book" / "chapters").glob("*.ipynb"))
    for path in paths:
        env.note_dependency(str(path))
    found: dict[str, str] = {}
    for path in paths:
        for tag in _shown_in(path, path.stat().st_mtime_ns):
            found.setdefault(tag, path.stem)
    return found


@cache
def _shown_in(path: Path, changed: int) -> tuple[str, ...]:
    """The tags of one chapter that a reader sees; every page asks, and the file is read once."""
    return tuple(tag for cell in json.loads(path.read_text("utf8"))["cells"] for tag in shown(cell))


class Rows(SphinxDirective):
    """Format the content with each row's columns and parse the result as part of the page."""

    required_arguments = 1
    option_spec = {"group": directives.unchanged_required, "only": directives.unchanged_required}  # noqa: RUF012
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the entries, each group under a rubric."""
        path = Path(self.env.srcdir) / self.arguments[0]
        rows = self.read(path)
        order = {name: i for i, name in enumerate(dict.fromkeys(row[self.options["group"]] for row in rows))}
        if column := self.options.get("only"):
            column, _, value = column.partition(" ")
            rows = [row for row in rows if row[column] == value]
        titles = {row["slug"]: row["title"] for row in self.read(path.with_name("chapters.csv"))}
        template, group = "\n".join(self.content), self.options["group"]
        tagged = visible(self.env)
        found: list[nodes.Node] = []
        # the order of the table within a group, the order of first appearance among groups
        for name, members in groupby(sorted(rows, key=lambda row: order[row[group]]), lambda row: row[group]):
            entries = []
            for row in members:
                texts = {key: SPECIAL.sub(r"\\\1", text) for key, text in row.items()}
                texts["link"] = self.link(f"{TAGS[path.name]}:{row['id']}", row["chapter"], tagged, titles)
                entries.append(template.format(**texts))
            container = nodes.container()
            lines = "\n\n".join(entries).splitlines()
            self.state.nested_parse(StringList(lines, source=str(path)), self.content_offset, container)
            found += [nodes.rubric(text=titles.get(name, name)), *container.children]
        return found

    def link(self, tag: str, slug: str, tagged: dict[str, str], titles: dict[str, str]) -> str:
        """Markup that leads to the cell of a tag, or to its chapter."""
        if tag in tagged:
            return f"{{ref}}`{titles[tagged[tag]]} <{label(tag)}>`"
        return f"{{doc}}`chapters/{slug}`"

    def read(self, path: Path) -> list[dict[str, str]]:
        """Rows of a table; the page is built anew when it changes."""
        self.env.note_dependency(str(path))
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


class Verdicts(SphinxDirective):
    """Say how many results there are of each verdict; settings are inputs and are not counted."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return one sentence."""
        path = Path(self.env.srcdir) / self.arguments[0]
        self.env.note_dependency(str(path))
        with path.open(encoding="utf-8", newline="") as file:
            found = Counter(row["verdict"] for row in csv.DictReader(file))
        settings = found.pop("setting", 0)
        counts = ", ".join(f"{n} {word}" for word, n in found.most_common())
        text = f"{found.total()} results: {counts}. Another {settings} rows are settings, and are not counted."
        return [nodes.paragraph("", "", nodes.strong(text=text))]


class Anchors(SphinxTransform):
    """Give the first visible cell of each tag a name, so that the pages of claims and errata can link to it."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        """Name the cells of one page; a tag that another chapter shows first is left to it."""
        source = Path(self.env.doc2path(self.env.docname))
        if source.parent.name != "chapters":
            return
        first = visible(self.env)
        for node in list(self.document.findall(nodes.container)):
            if node.get("nb_element") != "cell_code":
                continue
            tags = [tag for tag in shown({"metadata": node["cell_metadata"]}) if first.get(tag) == source.stem]
            if names := [name for name in map(label, tags) if name not in self.document.nameids]:
                node["names"] += names
                self.document.note_explicit_target(node)


def setup(app):
    app.add_directive("rows", Rows)
    app.add_directive("verdicts", Verdicts)
    app.add_transform(Anchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
