"""Let a page of a built book show its words soon: one style sheet, and scripts that wait.

    python scripts/page_loading.py [--html _build/html]

A browser shows nothing before it has every style sheet and script that stands before the words. The
theme and its tools bring fourteen sheets, one of which asks for another, and ten scripts. This
script joins the sheets that all pages share into one file, which takes the place of the first of
them; the other sheets of a page follow in their order. Scripts wait until the page is read and then
run in their order, except the scripts that decide how the page looks, those that the page itself
calls on the way, and those of the search. `make book` calls this after `light_book`; it changes
nothing if it is called again.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import light_book

SHARED = "styles/shared.css"
# The page sets an option of the first script before its words. The second script hides the
# evidence, which would otherwise be seen for a moment.
AT_ONCE = ("documentation_options.js", "book.js")
# Where scripts run one by one the marks of the last search do not know that this page is the next.
SEARCH = "/searchtools.js"

SHEET = re.compile(r'<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"?]*)[^"]*"[^>]*>\s*')
SCRIPT = re.compile(r'<script\b(?![^>]*\b(?:defer|async)\b)([^>]*\bsrc="([^"?]*)[^>]*)>')
IMPORT = re.compile(r"""@import\s*(?:url\()?["']?([^"')]+)["']?\)?\s*;""")
ADDRESS = re.compile(r"""url\((["']?)(?!data:|#)([^"')]+)\1\)""")


def sheets(page: Path, static: Path) -> list[str]:
    """The style sheets of a page in their order, as paths from the folder `static`."""
    paths = [page.parent / name for name in SHEET.findall(page.read_text("utf8"))]
    return [Path(os.path.relpath(path, static)).as_posix() for path in paths]


def as_one(names: list[str], static: Path) -> str:
    """The text of these sheets and of those that they import, with addresses from the new file."""

    def whole(path: Path) -> str:
        def address(found: re.Match[str]) -> str:
            to = os.path.relpath(path.parent / found[2], (static / SHARED).parent)
            return f"url({Path(to).as_posix()})"

        css = ADDRESS.sub(address, path.read_text("utf8"))
        return IMPORT.sub(lambda found: whole(path.parent / found[1]), css)

    return "\n".join([f"/*! {' '.join(names)} */", *(whole(static / name) for name in names)])


def shared_sheets(pages: list[list[str]], before: list[str]) -> list[str]:
    """The sheets that all these pages have; those of the earlier call if all pages have them."""
    if all(set(before) <= set(page) for page in pages) and (before or not pages):
        return before
    return [name for name in pages[0] if all(name in page for page in pages)]


def with_shared(text: str, names: list[str], shared: list[str], link: str) -> str:
    """The page with one link for all shared sheets, in the place where the first of them stood."""
    each = iter(names)

    def joined(found: re.Match[str]) -> str:
        name = next(each)
        if name in (SHARED, shared[0]):
            return link
        return "" if name in shared else found[0]

    return SHEET.sub(joined, text)


def with_waiting_scripts(text: str) -> str:
    """The page with scripts in its head that wait until it is read."""

    def wait(found: re.Match[str]) -> str:
        if found[2].rpartition("/")[2] in AT_ONCE:
            return found[0]
        return f'<script defer="defer"{found[1]}>'

    head, end, rest = text.partition("</head>")
    return text if SEARCH in head else SCRIPT.sub(wait, head) + end + rest


def finish(html: Path) -> None:
    """Let all pages of the book in this folder show their words soon."""
    static = html / "_static"
    linked = {page: sheets(page, static) for page in light_book.pages(html)}
    # Pages that Sphinx did not write again have the shared sheet of the build before.
    new = [names for names in linked.values() if names and SHARED not in names]
    target = static / SHARED
    before = target.read_text("utf8").split("*/")[0].split()[1:] if target.exists() else []
    shared, version = shared_sheets(new, before), ""
    if shared:
        css = as_one(shared, static)
        target.parent.mkdir(exist_ok=True)
        target.write_text(css, "utf8")
        # a browser that has kept the sheet of an earlier book must see that this is another
        version = hashlib.sha256(css.encode()).hexdigest()[:8]
    for page, names in linked.items():
        text = with_waiting_scripts(page.read_text("utf8"))
        if shared and names:
            to = Path(os.path.relpath(target, page.parent)).as_posix()
            link = f'<link rel="stylesheet" href="{to}?v={version}" />\n'
            text = with_shared(text, names, shared, link)
        page.write_text(text, "utf8")


def main() -> int:
    """Carry out the command line."""
    finish(light_book.asked_for(__doc__))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
