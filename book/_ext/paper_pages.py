"""A page for each paper: its rows in the order of its sections, then its errata.

    ```{paper} A
    ```

The sections and their titles are in data/sections.csv.
"""

from pathlib import Path

import verdict_html as html
import verdict_pages
import verdict_rows as data
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ibukit_claims._sections import rows_by_section, sections


class rows_of_paper(nodes.General, nodes.Element):  # noqa: N801 (docutils writes nodes so)
    """A placeholder for a paper's rows, until all pages are read and what names a row is known."""


def heading(row: dict[str, str]) -> str:
    """The heading of a section, numbered as in the paper."""
    number, title = row["section"], row["title"]
    if number == "+" or title == "Appendix":
        return title
    return f"Appendix {number} {title}" if number.isalpha() else f"{number} {title}"


class Paper(SphinxDirective):
    """The rows of one paper, by its sections, and its errata."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the sections now, for the contents; their rows come when all pages are read."""
        letter, root = self.arguments[0], Path(self.env.srcdir)
        if letter not in data.PAPERS:
            raise self.error(f"paper wants one of {', '.join(data.PAPERS)}, got {letter!r}")
        verdict_pages.note(
            self.env,
            "_toc.yml",
            *(
                f"data/{name}.csv"
                for name in ("chapters", "ledger", "errata", "replies", "sections")
            ),
            f"data/published/{data.PAPERS[letter][0]}.csv",
        )
        files = (*data.files_with_marks(root), *data.chapters(root))
        verdict_pages.note(self.env, *(str(path.relative_to(root)) for path in files))
        bar = html.bar(data.counts(root), letter, "claims.html")
        found: list[nodes.Node] = [nodes.raw("", bar, format="html")]
        codes = rows_by_section(letter, root / "data")
        for row in sections(letter, root / "data"):
            name = f"section-{row['section'].replace('.', '-').replace('+', 'beyond')}".lower()
            section = nodes.section(ids=[name], names=[])
            section += nodes.title(text=heading(row))
            if row["left_out"]:
                section += nodes.paragraph(text=row["left_out"])
            if codes[row["section"]]:
                section += rows_of_paper(kind="claim", codes=codes[row["section"]])
            found.append(section)
        errata = nodes.section(ids=["errata"], names=[])
        errata += nodes.title(text="Errata")
        of_paper = [r["id"] for r in data.table(root, "errata.csv") if r["id"][0] == letter]
        errata += rows_of_paper(kind="erratum", codes=of_paper)
        return [*found, errata]


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the rows in their places."""
    places = list(doctree.findall(rows_of_paper))
    if not places:
        return
    # the formulas are in the rows, which are raw HTML
    app.env.get_domain("math").data["has_equations"][docname] = True
    root = Path(app.srcdir)
    page = html.Page(data.in_the_books_order(root), data.known(root))
    kinds = tuple(data.TABLES)
    entries = {e.id: e for e in data.entries(root, kinds, verdict_pages.mentions(app.env))}
    for place in places:
        shown = html.rows([entries[code] for code in place["codes"]], page)
        place.replace_self(nodes.raw("", shown, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(rows_of_paper)
    app.add_directive("paper", Paper)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
