"""A directive that writes its content once for each row of a table in data/, grouped by one of its columns.

    ```{rows} data/errata.csv
    :group: chapter

    **{id}**, {where}
    : {wrong}
    ```

A wide table cannot be read on a phone; a list of entries can.
"""

import csv
import re
from itertools import groupby
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

# of these, what stands in the tables is text
SPECIAL = re.compile(r"([\\`*_{}\[\]<>$|~])")


class Rows(SphinxDirective):
    """Format the content with each row's columns and parse the result as part of the page."""

    required_arguments = 1
    option_spec = {"group": directives.unchanged_required}  # noqa: RUF012 (docutils' name for it)
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the entries, each group under a rubric."""
        path = Path(self.env.srcdir) / self.arguments[0]
        rows = self.read(path)
        titles = {row["slug"]: row["title"] for row in self.read(path.with_name("chapters.csv"))}
        template, group = "\n".join(self.content), self.options["group"]
        found: list[nodes.Node] = []
        # the order of the table within a group, the order of first appearance among groups
        order = {name: i for i, name in enumerate(dict.fromkeys(row[group] for row in rows))}
        for name, members in groupby(sorted(rows, key=lambda row: order[row[group]]), lambda row: row[group]):
            entries = [
                template.format(**{key: SPECIAL.sub(r"\\\1", text) for key, text in row.items()}) for row in members
            ]
            container = nodes.container()
            lines = "\n\n".join(entries).splitlines()
            self.state.nested_parse(StringList(lines, source=str(path)), self.content_offset, container)
            found += [nodes.rubric(text=titles.get(name, name)), *container.children]
        return found

    def read(self, path: Path) -> list[dict[str, str]]:
        """Rows of a table; the page is built anew when it changes."""
        self.env.note_dependency(str(path))
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


def setup(app):
    app.add_directive("rows", Rows)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
