"""Print built pages to PDF through headless Chromium: to check them, or to make one file of all.

    python scripts/print_book.py --check [--html _build/html] [--jobs N]
    python scripts/print_book.py --self-test
    python scripts/print_book.py --out _build/ibukit.pdf [--html _build/html]

A page of the book folds its evidence, its proofs and its solutions; on paper nothing can be opened,
so all of it must be printed. The check prints every page of the book and counts what the PDF
draws: a sheet with hardly anything on it, or a text of which a good part is not drawn, is a
finding. With --out the pages are printed in the order of the contents and joined by `pdfunite`, of
poppler. A link to another page leads to the published book, if the environment's BOOK_URL says
where that is; otherwise it is printed as words, because the server of the pages is gone.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from headless_browser import chromium, serve
from page_checks import WAIT_UNTIL_DRAWN

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
MIN_GLYPHS = 25  # a sheet with fewer, and without a picture, is blank to a reader
MIN_STROKES = 200  # operators that draw lines and areas: a sheet with as many shows a picture
MIN_SHARE = 0.9  # glyphs drawn for each character; formulas add glyphs that are no characters
PATIENCE = 300_000  # milliseconds, for the longest page on a busy machine
# The characters that a page ought to print, including those in folds.
EXPECTED = r"""() => {
  const article = document.querySelector('.bd-article') ?? document.querySelector('main');
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const gone = new Map();
  const hidden = e => {
    if (e === article.parentElement) return false;
    if (!gone.has(e)) gone.set(e, getComputedStyle(e).display === 'none'
      || e.matches('script, style, mjx-assistive-mml, svg, figure.moving form')
      || hidden(e.parentElement));
    return gone.get(e);
  };
  let characters = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (!hidden(node.parentElement)) characters += node.data.replace(/\s+/g, '').length;
  return characters;
}"""


# A link to another page of the server leads to the book's address, or nowhere.
LEAD_AWAY = """book => {
  for (const link of document.querySelectorAll('a[href]')) {
    const to = new URL(link.href);
    if (to.origin !== location.origin || (to.pathname === location.pathname && to.hash)) continue;
    if (book) link.href = book.replace(/\\/$/, '') + to.pathname + to.hash;
    else link.removeAttribute('href');
  }
}"""


def sheets(pdf: bytes) -> list[tuple[int, int]]:
    """Glyphs and strokes on each sheet of a PDF that Chromium wrote."""
    objects = {
        int(found[1]): found[2]
        for found in re.finditer(rb"(?s)(?:^|\n)(\d+) 0 obj(.*?)\nendobj", pdf)
    }

    def drawn(number: int, seen: frozenset[int] = frozenset()) -> tuple[int, int]:
        """The glyphs and strokes of an object, with those of the forms that it shows."""
        head, _, rest = objects[number].partition(b"stream")
        if not rest or b"/Subtype /Image" in head:
            return 0, MIN_STROKES
        text = rest.lstrip(b"\r\n")
        if b"/FlateDecode" in head:  # a short stream is not compressed
            text = zlib.decompressobj().decompress(text)
        glyphs = sum(len(found) // 4 for found in re.findall(rb"<([0-9A-Fa-f]+)> Tj", text))
        strokes = len(re.findall(rb"\s[lc]\n", text))
        for form in re.findall(rb"/X(\d+) Do", text):
            if (n := int(form)) in objects and n not in seen:
                more = drawn(n, seen | {number})
                glyphs, strokes = glyphs + more[0], strokes + more[1]
        return glyphs, strokes

    pages = [body for body in objects.values() if re.search(rb"/Type\s*/Page\b", body)]
    contents = [re.search(rb"/Contents (\d+) 0 R", body) for body in pages]
    return [drawn(int(found[1])) if found else (0, 0) for found in contents]


def printed(browser: Browser, address: str, book: str | None = None) -> tuple[bytes, int]:
    """A page as a PDF, and the number of characters that it ought to show.

    With the address of the book, or an empty one, no link leads to the server of the page.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    tab.goto(address, wait_until="load")
    tab.evaluate(WAIT_UNTIL_DRAWN)
    if book is not None:
        tab.evaluate(LEAD_AWAY, book)
    pdf = tab.pdf(print_background=True, format="A4")
    tab.emulate_media(media="print")
    tab.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    expected = int(tab.evaluate(EXPECTED))
    context.close()
    return pdf, expected


def faults(pdf: bytes, expected: int) -> list[str]:
    """The faults of a printed page."""
    found = sheets(pdf)
    blank = [
        i + 1
        for i, (glyphs, strokes) in enumerate(found)
        if glyphs < MIN_GLYPHS and strokes < MIN_STROKES and i + 1 < len(found)
    ]
    drawn = sum(glyphs for glyphs, _ in found)
    lost = [f"only {drawn:,} of {expected:,} characters are printed"]
    return [f"sheet {i} of {len(found)} is blank" for i in blank] + lost * (
        drawn < MIN_SHARE * expected
    )


def order(html: Path, contents: Path = ROOT / "_toc.yml") -> list[str]:
    """The pages of the book in the order of its contents."""
    names = re.findall(r"(?:file|root): *(\S+)", contents.read_text("utf8"))
    return [f"{name}.html" for name in names if (html / f"{name}.html").exists()]


def check_some(html: Path, names: list[str]) -> list[str]:
    """The faults of these pages, printed by a browser of their own."""
    with chromium() as browser, serve(html) as home:
        return [
            f"{name}: print: {fault}"
            for name in names
            for fault in faults(*printed(browser, home + name))
        ]


def check(html: Path, jobs: int) -> list[str]:
    """The faults of all pages of the book."""
    names = order(html)
    if not names:
        return [f"{html}: no page there: run `make book`"]
    slices = [names[i::jobs] for i in range(min(jobs, len(names)))]
    with ProcessPoolExecutor(len(slices)) as pool:
        found = [f for part in pool.map(functools.partial(check_some, html), slices) for f in part]
    print(f"print_book: {len(names)} pages, {len(found)} findings")
    return found


LINES = "<br>".join(f"Line {i} of a text that fills a sheet or two." for i in range(90))
FADES = "details > p { animation: f 9s } @keyframes f { from { opacity: 0 } to { opacity: 0 } }"
OPENS = "onbeforeprint = () => document.querySelector('details').open = true"
# a link that is made while the page is printed, as nothing in the book does
LATE_LINK = "onbeforeprint = () => document.body.innerHTML += '<a href=good.html>x</a>'"
TRIALS = {
    "good": (f"<p>{LINES}</p>", False),
    "linked": (f"<p id='a'><a href='good.html'>x</a> <a href='#a'>y</a>{LINES}</p>", False),
    "late-link": (f"<p>{LINES}</p><script>{LATE_LINK}</script>", True),
    "folded": (f"<details><summary>A proof</summary><p>{LINES}</p></details>", True),
    "opened": (
        f"<details><summary>A proof</summary><p>{LINES}</p></details><script>{OPENS}</script>",
        False,
    ),
    "fades": (
        f"<style>{FADES}</style><details><summary>A proof</summary><p>{LINES}</p></details>"
        f"<script>{OPENS}</script>",
        True,
    ),
    "hole": (f"<p>{LINES}</p><div style='height: 250vh'></div><p>{LINES}</p>", True),
}


def self_test() -> list[str]:
    """The trials that are judged wrongly."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name, (body, _) in TRIALS.items():
            page = f"<!doctype html><title>{name}</title><main>{body}</main>"
            (Path(folder) / f"{name}.html").write_text(page, "utf8")
        with serve(Path(folder)) as home:
            for name, (_, is_wrong) in TRIALS.items():
                found = faults(*printed(browser, f"{home}{name}.html"))
                if home.encode() in printed(browser, f"{home}{name}.html", "")[0]:
                    found.append("a link leads to the server")
                if bool(found) != is_wrong:
                    wrong.append(f"{name}.html: expected {is_wrong}, found {found}")
    right = len(TRIALS) - len(wrong)
    print(f"print_book --self-test: {right} of {len(TRIALS)} pages judged as they deserve")
    return wrong


def join(html: Path, out: Path) -> list[str]:
    """Print all pages and join them; return what prevents this, if anything."""
    unite = shutil.which("pdfunite")
    if unite is None:
        return ["no pdfunite found: run `apt-get install -y poppler-utils`"]
    names = order(html)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser, serve(html) as home:
        files = []
        for i, name in enumerate(names):
            files.append(Path(folder) / f"{i:03}.pdf")
            page = printed(browser, home + name, os.environ.get("BOOK_URL", ""))[0]
            if home.encode() in page:
                return [f"{name}: a link leads to {home}, which is gone when somebody reads it"]
            files[-1].write_bytes(page)
        subprocess.run([unite, *map(str, files), str(out)], check=True)
    print(f"print_book: {len(names)} pages in {out}, {out.stat().st_size / 1e6:.1f} MB")
    return []


def main() -> int:
    """Carry out the command line; 1 where something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="print each page and judge it")
    parser.add_argument("--self-test", action="store_true", help="judge pages broken on purpose")
    parser.add_argument("--out", type=Path, help="the file that all pages are printed to")
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--jobs", type=int, default=1, help="browsers that print at once")
    arguments = parser.parse_args()
    found = self_test() if arguments.self_test else []
    if arguments.check:
        found += check(arguments.html, arguments.jobs)
    if arguments.out:
        found += join(arguments.html, arguments.out)
    for finding in found:
        print(finding, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
