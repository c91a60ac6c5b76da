"""Every verdict of the book on one page, and links between its rows, the chapters and the tests.

    ```{verdicts} claim erratum     the rows of both tables, by chapter, with filters
    ```
    ```{verdict-bar}                the results of each paper as a stacked bar; for any page
    :short:                         (all papers in one bar)
    ```

In a chapter the codes of rows become links: the code of a claim anywhere (``A-F8``), the code of an
erratum in brackets, ``(E27)``, or in a paragraph that links the list of errata; the role ``{row}``
makes a link of a code anywhere. Below each cell that carries the tag of a row stands a link to that
row. Each file of tests that carry a row has a page of its source.
"""

import posixpath
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import verdict_html as html
import verdict_rows as data
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole
from table_layout import TABLE

PAGE = "book/claims"
LEFT_ALONE = (
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.title,
    nodes.reference,
    nodes.raw,
)


class rows_of_chapter(nodes.General, nodes.Element):  # noqa: N801 (docutils writes nodes so)
    """A placeholder for a chapter's rows until all pages are read and what names a row is known."""


def note(env: BuildEnvironment, *names: str) -> None:
    """Build the page again when a table changes."""
    for name in names:
        env.note_dependency(str(Path(env.srcdir) / name))


class Bar(SphinxDirective):
    """The results of each paper as a stacked bar, or of all in one."""

    option_spec = {"short": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Count them."""
        note(self.env, "data/ledger.csv")
        root = Path(self.env.srcdir)
        page = posixpath.relpath(f"{PAGE}.html", posixpath.dirname(self.env.docname))
        if self.env.docname == PAGE:
            page = ""
        draw = html.strip if "short" in self.options else html.bars
        return [nodes.raw("", draw(data.counts(root), page), format="html")]


class Verdicts(SphinxDirective):
    """The rows of one table or of both, a section for each chapter."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"open": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Make the sections now, for the contents; their rows come when all pages are read."""
        kinds = tuple(self.arguments[0].split())
        if not kinds or not set(kinds) <= set(data.TABLES):
            raise self.error(
                f"verdicts wants some of {', '.join(data.TABLES)}, got {self.arguments[0]!r}"
            )
        root = Path(self.env.srcdir)
        published = [f"data/published/{paper[0]}.csv" for paper in data.PAPERS.values()]
        note(
            self.env,
            "_toc.yml",
            "data/chapters.csv",
            "data/replies.csv",
            *(f"data/{data.TABLES[kind][0]}" for kind in kinds),
            *published,
        )
        files = (*data.files_with_marks(root), *data.chapters(root))
        note(self.env, *(str(path.relative_to(root)) for path in files))
        named = {row["chapter"] for kind in kinds for row in data.table(root, data.TABLES[kind][0])}
        titles = {
            slug: title for slug, title in data.in_the_books_order(root).items() if slug in named
        }
        found: list[nodes.Node] = [nodes.raw("", html.controls(kinds, titles), format="html")]
        for slug, title in titles.items():
            section = nodes.section(ids=[f"rows-of-{slug}"], classes=["verdict-chapter"])
            section += [
                nodes.title(text=title),
                rows_of_chapter(kinds=kinds, slug=slug, open="open" in self.options),
            ]
            found.append(section)
        return found


class Row(SphinxRole):
    """``{row}`A-F8` `` is a link to the row."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Name a row that there is."""
        if self.text not in data.known(Path(self.env.srcdir)):
            message = self.inliner.reporter.error(
                f"row {self.text!r} is in no table", line=self.lineno
            )
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        return [link(self.env.docname, self.text)], []


def link(docname: str, name: str) -> nodes.reference:
    """A link to a row from a page."""
    page = posixpath.relpath(f"{PAGE}.html", posixpath.dirname(docname))
    return nodes.reference(
        "", name, refuri=f"{page}#{data.anchor(name)}", internal=True, classes=["to-row"]
    )


class Codes(SphinxTransform):
    """Make links of the codes that a chapter's text names, and remember who names a row."""

    default_priority = 410

    def apply(self, **kwargs: Any) -> None:
        """Go through one page."""
        mentions = self.env.verdict_mentions = getattr(self.env, "verdict_mentions", {})
        mentions.pop(self.env.docname, None)
        if not self.env.docname.startswith("book/chapters/"):
            return
        rows, named = data.known(Path(self.env.srcdir)), []
        for text in list(self.document.findall(nodes.Text)):
            above = list(_above(text))
            if any(isinstance(node, LEFT_ALONE) or node.get("nb_element") for node in above):
                continue
            paragraph = next((node for node in above if isinstance(node, nodes.TextElement)), None)
            every = any(
                str(node.get("reftarget", "")).endswith(("errata", "claims"))
                for node in (paragraph or text.parent).findall()
                if isinstance(node, nodes.Element)
            )
            parts, at, words = [], 0, data.spelled_out(text.astext(), rows, every)
            for start, end in data.codes(words, rows, every):
                reference = link(self.env.docname, words[start:end])
                if words[start:end] not in named:
                    reference["ids"].append(f"see-{data.anchor(words[start:end])}")
                    named.append(words[start:end])
                parts += [nodes.Text(words[at:start]), reference]
                at = end
            if parts:
                text.parent.replace(text, [*parts, nodes.Text(words[at:])])
        mentions[self.env.docname] = named


def link_tables(body: str, rows: set[str], page: str) -> str:
    """Make links of the codes in the tables that cells show, which are no part of the text."""

    def linked(table: re.Match[str]) -> str:
        parts = re.split(r"(<[^>]*>)", table.group())  # tags at the odd places
        for i in range(0, len(parts), 2):
            parts[i] = data.spelled_out(parts[i], rows, every=False)
            for start, end in reversed(data.codes(parts[i], rows, every=False)):
                name = parts[i][start:end]
                to = f'class="to-row reference internal" href="{page}#{data.anchor(name)}"'
                parts[i] = f"{parts[i][:start]}<a {to}>{name}</a>{parts[i][end:]}"
        return "".join(parts)

    return TABLE.sub(linked, body)


def with_codes(body: str, chapter: str, statements: list[dict[str, str]]) -> str:
    """Give each sentence that a chapter sets beside our findings the links to its rows."""
    for row in statements:
        if row["chapter"] == chapter and row["rows"]:
            said = f"<tr><td>{escape(row['sentence'])}"
            links = " ".join(
                f'<a class="to-row reference internal" href="../claims.html#{data.anchor(code)}">'
                f"{code}</a>"
                for code in row["rows"].split()
            )
            body = body.replace(f"{said}</td>", f"{said} {links}</td>")
    return body


def on_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Link what the tables of a chapter name."""
    if pagename.startswith("book/chapters/") and context.get("body"):
        root = Path(app.srcdir)
        body = link_tables(context["body"], data.known(root), "../claims.html")
        chapter = posixpath.basename(pagename)
        context["body"] = with_codes(body, chapter, data.table(root, "statements.csv"))


def _above(node: nodes.Node) -> Iterator[nodes.Element]:
    while (node := node.parent) is not None:
        yield node


class CellLinks(SphinxTransform):
    """Link the cells of a chapter that carry a row's tag with the row.

    The first visible cell of a tag gets an anchor, and below each cell stands a link to its rows.
    """

    default_priority = 405

    def apply(self, **kwargs: Any) -> None:
        """Go through one page."""
        if not self.env.docname.startswith("book/chapters/"):
            return
        rows, given = data.known(Path(self.env.srcdir)), set()
        for node in list(self.document.findall(nodes.container)):
            if node.get("nb_element") != "cell_code":
                continue
            cell = {"metadata": node["cell_metadata"]}
            anchors = dict.fromkeys(data.label(tag) for tag in data.shown(cell))
            node["ids"] += [name for name in anchors if name not in given]
            given.update(anchors)
            tags = [tag.partition(":")[2] for tag in node["cell_metadata"].get("tags", [])]
            if names := [name for name in dict.fromkeys(tags) if name in rows]:
                chips = nodes.paragraph("", "Checks ", classes=["row-links"])
                for name in names:
                    chips += [link(self.env.docname, name), nodes.Text(" ")]
                node.parent.insert(node.parent.index(node) + 1, chips)


def mentions(env: BuildEnvironment) -> dict[str, list[str]]:
    """Code of a row -> the chapters that name it."""
    found: dict[str, list[str]] = {}
    for name, ids in getattr(env, "verdict_mentions", {}).items():
        for row in ids:
            found.setdefault(row, []).append(posixpath.basename(name))
    return found


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the rows in their places."""
    places = list(doctree.findall(rows_of_chapter))
    if not places:
        return
    app.env.get_domain("math").data["has_equations"][docname] = (
        True  # the formulas are in the rows, which are raw HTML
    )
    root = Path(app.srcdir)
    titles = data.in_the_books_order(root)
    entries = data.entries(root, places[0]["kinds"], mentions(app.env))
    for place in places:
        of_chapter = [entry for entry in entries if entry.chapter == place["slug"]]
        shown = html.rows(of_chapter, html.Page(titles, data.known(root), place["open"]))
        place.replace_self(nodes.raw("", shown, format="html"))


def sources(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file of tests that carries a row, with an anchor for each of its tests."""
    if app.builder.format != "html" or PAGE not in app.env.found_docs:
        return
    for path in data.files_with_marks(Path(app.srcdir)):
        named = {name for places in data.marked_tests(path).values() for _, name in places}
        shown = app.builder.highlighter.highlight_block(path.read_text("utf8"), "python")
        place = path.relative_to(app.srcdir).as_posix()
        context = {"title": place, "body": _page(place, shown, named)}
        yield f"tests/{path.stem}", context, "page.html"


def _page(place: str, shown: str, named: set[str]) -> str:
    """The highlighted source of a file, with anchors where its tests begin."""
    lines, inside = shown.splitlines(), ""
    for i, line in enumerate(lines):
        found = re.match(r"( *)(class|def) (\w+)", re.sub(r"<[^>]*>", "", line))
        if found:
            indent, kind, word = found.groups()
            inside = f"{word}." if kind == "class" else inside if indent else ""
            if kind == "def" and f"{inside}{word}" in named:
                lines[i] = (
                    f'<span id="{data.anchor(inside + word)}" class="marked-test"></span>{line}'
                )
    link = "<a href='../book/claims.html'>list of verdicts</a>"
    text = f"<p>The tests on this page carry codes of the {link}.</p>"
    return f"<h1>{place}</h1>{text}" + "\n".join(lines)


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Drop what was noted of a page."""
    getattr(env, "verdict_mentions", {}).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Take over what another process noted."""
    env.verdict_mentions = getattr(env, "verdict_mentions", {}) | getattr(
        other, "verdict_mentions", {}
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(rows_of_chapter)
    app.add_directive("verdict-bar", Bar)
    app.add_directive("verdicts", Verdicts)
    app.add_role("row", Row())
    app.add_transform(CellLinks)
    app.add_transform(Codes)
    app.add_css_file("verdicts.css")
    app.add_js_file("verdicts.js", loading_method="defer")
    app.connect("doctree-resolved", fill)
    app.connect("html-page-context", on_page)
    app.connect("html-collect-pages", sources)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
