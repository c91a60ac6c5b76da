"""Describe a page to search engines, to messengers that show a link, and to the browser.

Full addresses are known only if the book is published. ``html.baseurl`` in ``_config.yml``, or
``BOOK_URL`` in the environment, says where: then each page names its own address and a picture.
With the address of the repository, ``book_repository`` or ``BOOK_REPOSITORY``, each page has
buttons to show and to edit its source. Both addresses are empty by default.

    ```{imprint}
    ```

is the line that names the authors, the version, the day of the build and the licence, as
``CITATION.cff`` has them. The page at the root of the site only sends the reader on to the book; it
has a title, a description and a picture, because its address is the one that people pass on.
"""

import os
import re
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from markupsafe import Markup
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinx.util.docutils import SphinxDirective
from sphinx.util.i18n import format_date

INDEX = "book/index"
PICTURE = "_static/cover.png"
TITLE = "Reconstructing distributions from private reports"
ABOUT = (
    "A book that runs and a Python package: estimate how a sensitive value is distributed from "
    "locally private reports, know how sure the estimate is, and see the numbers that five papers "
    "print beside ours."
)
SHORTEST, LONGEST = 60, 200
# docutils names the viewport a second time
VIEWPORT = re.compile(
    r'<meta (?:content="[^"]*" name="viewport"|name="viewport" content="[^"]*") ?/?>\n?'
)
# docutils marks the references up as a list without list items, so that a screen reader announces
# an empty list
REPAIRS = (
    (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
    (r' role="doc-biblioentry"', ""),
    # a title that has brackets itself needs none around it
    (r"(>Exercise [\d.]+) </span> \((.*)\)</p>", r"\1.</span> \2</p>"),
    (r"Solution to<a ([^>]*)> (Exercise [\d.]+) \((.*)\)</a>", r"Solution to <a \1>\2. \3</a>"),
)


def description(doctree: nodes.document | None) -> str:
    """The first paragraph of a page that is long enough to say something, cut off after a word."""
    for node in doctree.findall(nodes.paragraph) if doctree is not None else ():
        if isinstance(node.parent, nodes.section) and not any(
            True for _ in node.findall(nodes.math)
        ):
            text = " ".join(node.astext().split()).removeprefix("Claim. ")
            if len(text) > LONGEST:
                text = text[: LONGEST - 2].rpartition(" ")[0].rstrip(",;:.") + " …"
            if len(text) >= SHORTEST:
                return text
    return ABOUT


def addresses(app: Sphinx, config: Config) -> None:
    """Take over the addresses of the published book and of its repository, if there are any."""
    config.html_baseurl = os.environ.get("BOOK_URL") or config.html_baseurl or ""
    repository = os.environ.get("BOOK_REPOSITORY") or config.book_repository
    for name, url in (("html.baseurl", config.html_baseurl), ("book_repository", repository)):
        if url and not re.match(r"https?://[^/\s]+", url):
            raise ConfigError(f"{name} must begin with https:// and name a host, got {url!r}")
    if repository:
        buttons = dict.fromkeys(
            ("use_repository_button", "use_edit_page_button", "use_source_button"), True
        )
        config.html_theme_options = {
            **config.html_theme_options,
            "repository_url": repository,
            **buttons,
        }


def metadata(about: str, properties: dict[str, str]) -> str:
    """The description of a page and its other properties, as HTML."""
    tags = [f'<meta property="{name}" content="{escape(to)}" />' for name, to in properties.items()]
    return "\n".join([f'<meta name="description" content="{escape(about)}" />', *tags])


def introduce(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Fill in the head of one page."""
    if pagename == INDEX:
        context["title"] = (
            TITLE  # the page's own heading is the name of the book, which follows in every title
        )
        context["meta"] = {
            **(context.get("meta") or {}),
            "html_theme.sidebar_secondary.remove": "true",
        }
    about = ABOUT if pagename == INDEX else description(doctree)
    title = Markup(context.get("title") or TITLE).striptags()
    properties = {
        "og:title": title,
        "og:description": about,
        "og:type": "article",
        "og:site_name": app.config.html_title,
    }
    if pagename == INDEX:
        properties["og:type"] = "website"
    if app.config.html_baseurl:  # Sphinx writes the canonical address
        properties["og:image"] = f"{app.config.html_baseurl.rstrip('/')}/{PICTURE}"
        properties["og:url"] = f"{app.config.html_baseurl.rstrip('/')}/{pagename}.html"
    context["face_metadata"] = Markup(metadata(about, properties))
    for wrong, right in REPAIRS if context.get("body") else ():
        context["body"] = re.sub(wrong, right, context["body"])
    context["metatags"] = VIEWPORT.sub("", context.get("metatags", ""))


class Imprint(SphinxDirective):
    """Who wrote the book, which version it is, when it was built, and its licence."""

    def run(self) -> list[nodes.Node]:
        """Read the file that is cited; SOURCE_DATE_EPOCH, if it is set, is the day."""
        path = Path(self.env.srcdir) / "CITATION.cff"
        self.env.note_dependency(str(path))
        cited = yaml.safe_load(path.read_text("utf8"))
        authors = ", ".join(_name(author) for author in cited["authors"])
        day = format_date("%d %B %Y", language="en").lstrip("0")
        said = (
            f"{authors} · version {cited['version']} · built on {day} · {cited['license']} licence"
        )
        return [nodes.paragraph("", said, classes=["imprint"])]


def _name(author: dict[str, str]) -> str:
    """The name of an author, a person or a group."""
    return author.get("name") or f"{author['given-names']} {author['family-names']}"


def root_page(url: str) -> str:
    """The page at the root of the site: it describes the book and sends the reader on to it.

    Where the address of the book is not known, the picture's address is relative.
    """
    base = f"{url.rstrip('/')}/" if url else ""
    properties = {"og:title": TITLE, "og:description": ABOUT, "og:type": "website"}
    properties |= {"og:image": f"{base}{PICTURE}"} | ({"og:url": base} if base else {})
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Refresh" content="0; url={INDEX}.html">
<title>{TITLE}</title>
{metadata(ABOUT, properties)}
</head>
<body>
<h1><a href="{INDEX}.html">{TITLE}</a></h1>
<p>{escape(ABOUT)}</p>
<img src="{PICTURE}" alt="" width="600">
</body>
</html>
"""


def write_root(app: Sphinx, error: Exception | None) -> None:
    """Write the page at the root, unless the book's first page is there itself."""
    if error is None and app.builder.format == "html" and INDEX in app.env.found_docs:
        page = root_page(app.config.html_baseurl)
        (Path(app.outdir) / "index.html").write_text(page, "utf8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_config_value("book_repository", "", "html", [str])
    app.connect("config-inited", addresses)
    app.add_directive("imprint", Imprint)
    app.connect("html-page-context", introduce)
    # after jupyter-book, which writes a page of one tag
    app.connect("build-finished", write_root, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
