"""Open every built page in headless Chromium, wide and narrow, and report what a reader would trip over.

    python scripts/check_book.py [--self-test] [--html _build/html] [--shots FOLDER] [--jobs N]

A page must log no error, request nothing from another host, load everything it asks for, typeset
its mathematics, show its images with alternative text, not scroll sideways, not cut off code or
tables, pass axe-core, in the dark too, have a favicon and stay below a weight; the search must find
some words, and the page of verdicts must filter. A few pages are opened from the disk (file://) as
well. With --shots each page is also photographed, which takes a third longer. With --self-test the
checks are shown pages that are broken on purpose.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from playwright.sync_api import Browser, Page, Response, Route, sync_playwright
from tqdm import tqdm

import check_verdicts
import page_axe
from page_facts import FACTS, HEAVIEST, SHARED, WAIT_UNTIL_DRAWN, heads, judge

ROOT = Path(__file__).resolve().parents[1]


class View(NamedTuple):
    """How a page is opened, and in which themes its colours are measured, which takes the longest."""

    width: int
    scheme: Literal["light", "dark"] = "light"
    colours: tuple[str, ...] = ()


# colours are the same at every width, and places the same in light and dark
LISTED = View(1280, colours=("light",))
VIEWS = (View(1280, colours=("light", "dark")), View(768, "dark"), View(390))
# word -> what the first hits must hold
SEARCHES = {
    "privacy": "",
    "install": "book/install.html",
    "errata": "book/errata.html",
    "EMD": "book/glossary.html",
}
# pages that show a file of the repository and nothing else, and those that stand for them
LISTINGS = ("_modules/", "tests/")
LISTINGS_SEEN = ("_modules/ibukit/domain/grid.html", "tests/test_ibu.html")
# milliseconds: ten times what the longest page takes on a machine with nothing else to do
PATIENCE = 300_000
FROM_DISK = (
    "index.html",
    "book/chapters/mechanisms.html",
    "book/chapters/ages.html",
    "book/api.html",
    "book/reference/estimators.html",
    "search.html",
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
# The theme follows what the reader prefers, and colours may take a moment to change.
TURN_DARK = """async () => {
  const html = document.documentElement;
  for (let i = 0; i < 200 && html.dataset.theme === 'light'; i++) await new Promise(next => setTimeout(next, 50));
  for (const change of document.getAnimations()) try { change.finish(); } catch { /* it never ends */ }
  return html.dataset.theme !== 'light';
}"""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with one page."""

    kind: str
    page: str
    detail: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.page}: {self.kind}: {self.detail}"


@dataclass
class Visit:
    """One page at one width: the events that the browser reports, and what is found on the page."""

    tab: Page
    home: str
    label: str
    findings: list[Finding] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Listen before anything is loaded."""
        self.tab.route("**/*", self._guard)
        self.tab.on(
            "console",
            lambda message: self.add("console", message.text) if message.type == "error" else None,
        )
        self.tab.on("pageerror", lambda error: self.add("script error", str(error)))
        self.tab.on("response", lambda response: self.responses.append(response))
        self.tab.on(
            "response",
            lambda r: (
                self.add("failed request", f"{r.status} {r.url}") if r.status >= 400 else None
            ),
        )
        self.tab.on("requestfailed", self._failed)

    def add(self, kind: str, detail: str) -> None:
        """Record a finding."""
        self.findings.append(Finding(kind, self.label, " ".join(detail.split())[:240]))

    def _is_ours(self, url: str) -> bool:
        return url.startswith((self.home, "data:", "blob:", "about:"))

    def _guard(self, route: Route) -> None:
        if self._is_ours(route.request.url):
            route.continue_()
        else:
            self.add("other host", route.request.url)
            route.abort()

    def _failed(self, request: Any) -> None:
        if self._is_ours(request.url):
            self.add("failed request", f"{request.failure} {request.url}")

    def open(self, url: str) -> None:
        """Load the page and wait until it has drawn itself."""
        self.tab.goto(url, wait_until="load")
        if url == f"{self.home}index.html":  # which sends the reader on to the book
            self.tab.wait_for_url(f"{self.home}book/index.html", wait_until="load")
        self.tab.evaluate(WAIT_UNTIL_DRAWN)

    def look(self, page: str, widest: bool) -> None:
        """Read off the page what a reader would see."""
        for kind, detail in judge(self.tab.evaluate(FACTS), page, widest):
            self.add(kind, detail)
        own = [r for r in self.responses if not SHARED.search(r.url)]
        weight = sum(int(response.headers.get("content-length", 0)) for response in own)
        if weight > HEAVIEST and not page.endswith(
            "search.html"
        ):  # it reads the pages that it finds
            self.add(
                "heavy page", f"{weight:,} bytes without what pages share, more than {HEAVIEST:,}"
            )

    def axe(self, colours: bool, others: bool = True) -> None:
        """Ask axe-core."""
        for rule, detail in page_axe.violations(self.tab, colours=colours, others=others):
            self.add(f"axe {rule}", detail)

    def turn_dark(self) -> None:
        """Let the reader prefer dark pages."""
        self.label = self.label.replace(" px)", " px, dark)")
        self.tab.emulate_media(color_scheme="dark")
        if not self.tab.evaluate(TURN_DARK):
            self.add("not dark", "the page stays light when the reader prefers dark")

    def search(self, word: str, wanted: str) -> None:
        """The search page, opened with a word, must list a page: the one that is wanted, if one is."""
        results = self.tab.locator("#search-results li a")
        with contextlib.suppress(Exception):
            results.first.wait_for(timeout=30_000)  # the self-test waits so long for nothing
            self.tab.wait_for_function(
                "() => !document.querySelector('.search-summary')?.textContent.endsWith('...')"
            )
        hits = [link.get_attribute("href") or "" for link in results.all()]
        if not any(hit.partition("?")[0].partition("#")[0].endswith(wanted) for hit in hits):
            self.add(
                "search",
                f"nothing found for {word!r}" if not hits else f"{word!r} does not find {wanted}",
            )


def find_chromium() -> str:
    """Where Chromium is; a clear sentence and exit code 2 where it is not."""
    for candidate in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if candidate and (found := shutil.which(candidate)):
            return found
    print(
        "check_book: no Chromium found: run `apt-get install -y chromium`, or set CHROMIUM to its path.",
        file=sys.stderr,
    )
    raise SystemExit(2)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the base class's)
        """Say nothing: what fails is reported by the browser."""


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = (
        128  # a browser on a busy machine opens many connections at once; five would be dropped
    )


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine only, on a free port."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium with an empty profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), headless=True, args=FLAGS
        )
        yield browser
        browser.close()


def photograph(tab: Page, shots: Path | None, name: str, width: int, scheme: str) -> None:
    """Keep a picture of the page, if there is a folder for it."""
    if shots is not None:
        mark = (
            f"{name.removesuffix('.html').replace('/', '-')}-{width}{'-dark' * (scheme == 'dark')}"
        )
        tab.screenshot(path=shots / f"{mark}.png", full_page=True)


def visit(
    browser: Browser, home: str, name: str, view: View, shots: Path | None = None
) -> list[Finding]:
    """Everything that is wrong with one page in one view."""
    from_disk = home.startswith("file:")
    context = browser.new_context(
        viewport={"width": view.width, "height": 900}, color_scheme=view.scheme
    )
    context.set_default_timeout(PATIENCE)
    dark = ", dark" if view.scheme == "dark" else ""
    seen = Visit(
        context.new_page(),
        home,
        f"{name} ({'from disk' if from_disk else f'{view.width} px{dark}'})",
    )
    is_search = Path(name).name == "search.html"
    # all words are looked for once
    words = (
        dict(list(SEARCHES.items())[: None if view == VIEWS[0] and not from_disk else 1])
        if is_search
        else {"": ""}
    )
    try:
        for word, wanted in reversed(words.items()):
            seen.open(home + name + (f"?q={word}" if is_search else ""))
            if is_search:
                seen.search(word, wanted)
        seen.look(name, view.width == VIEWS[0].width)
        photograph(seen.tab, shots, name, view.width, view.scheme)
        if not from_disk:
            seen.axe(colours="light" in view.colours)
        if "dark" in view.colours and not from_disk:
            seen.turn_dark()
            photograph(seen.tab, shots, name, view.width, "dark")
            seen.axe(colours=True, others=False)
    except Exception as error:
        seen.add("not opened", str(error))
    context.close()
    if from_disk and is_search:
        # On file:// a browser refuses to read the pages for the excerpts under the hits; the hits
        # themselves are there.
        return [
            f
            for f in seen.findings
            if "fetch" not in f.detail.lower() and "ERR_FAILED" not in f.detail
        ]
    if (
        is_search
    ):  # the next word was looked for before all pages of the last one's excerpts were there
        return [f for f in seen.findings if "ERR_ABORTED" not in f.detail]
    return seen.findings


def pages(html: Path) -> list[str]:
    """Every page of the built book."""
    skipped = ("_static", "_sources", "reports")
    names = (p.relative_to(html) for p in sorted(html.rglob("*.html")))
    return [n.as_posix() for n in names if n.parts[0] not in skipped]


def views_of(name: str) -> tuple[View, ...]:
    """How a page is looked at: listings come of one template, of which two are looked at in every way."""
    return (LISTED,) if name.startswith(LISTINGS) and name not in LISTINGS_SEEN else VIEWS


def visit_all(html: Path, shots: Path | None, names: list[str]) -> list[Finding]:
    """Everything that is wrong with these pages, in a browser of their own."""
    found: list[Finding] = []
    with chromium() as browser:
        with serve(html) as home:
            for name in tqdm(names, disable=None, unit="page"):
                for view in views_of(name):
                    found += visit(browser, home, name, view, shots)
        for name in FROM_DISK:
            if name in names:
                found += visit(browser, f"{html.resolve().as_uri()}/", name, VIEWS[0])
    return found


def verdicts(html: Path) -> list[Finding]:
    """What is wrong with the rows of claims and errata: their anchors, their links, their filters."""
    with chromium() as browser, serve(html) as home:
        found = check_verdicts.look(html) + check_verdicts.use(browser, home + check_verdicts.PAGE)
    return [Finding("verdicts", check_verdicts.PAGE, text) for text in found]


def check(html: Path, shots: Path | None, jobs: int = 1) -> list[Finding]:
    """Everything that is wrong with a built book, looked at by so many browsers at once."""
    names = pages(html)
    if "search.html" not in names:
        return [Finding("not built", str(html), "no search.html there: run `make book`")]
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
    slices = [names[i::jobs] for i in range(min(jobs, len(names)))]
    with ProcessPoolExecutor(len(slices)) as pool:
        found = [
            f for part in pool.map(functools.partial(visit_all, html, shots), slices) for f in part
        ]
    found += [
        Finding("not built", name, "it stands for all listings")
        for name in LISTINGS_SEEN
        if name not in names
    ]
    found += [Finding(kind, page, detail) for page, kind, detail in heads(html, names)] + verdicts(
        html
    )
    views = ", ".join(
        f"{view.width} px {' and '.join(view.colours) or view.scheme}" for view in VIEWS
    )
    print(f"check_book: {len(names)} pages at {views}, {len(found)} findings")
    return found


PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
ICON = f'<link rel="icon" href="{PIXEL}">'
SPANS = "<p>" + " ".join(f"<span>word {i}</span>" for i in range(80)) + "</p>"
LONG = "x = " + "1 + " * 400 + "1"
BROKEN: dict[str, tuple[str, str | None]] = {
    "good": ("", None),
    "alt": (f'<img src="{PIXEL}">', "image without alternative text"),
    "alt-is-a-path": (
        f'<img src="{PIXEL}" alt="_images/abc.png">',
        "image without alternative text",
    ),
    "image": ('<img src="gone.png" alt="A picture that is not there">', "image not loaded"),
    "request": ('<link rel="stylesheet" href="gone.css">', "failed request"),
    "console": ("<script>console.error('no')</script>", "console"),
    "script": ("<script>nothing.here()</script>", "script error"),
    "host": (
        '<img src="http://example.invalid/a.png" alt="A picture from elsewhere">',
        "other host",
    ),
    "wide": ('<div style="width: 3000px">wide</div>', "scrolls sideways"),
    "math": (r'<span class="math">\(x^2\)</span>', "formula not typeset"),
    "axe": ('<input type="text">', "axe label"),
    "contrast": ('<p style="color: #bbb; background: #fff">pale</p>', "axe color-contrast"),
    "search": ('<ul id="search-results"></ul>', "search"),
    "code": (
        f'<pre tabindex="0" style="overflow: auto">{LONG}</pre>',
        "code wider than its column",
    ),
    "table": (
        '<div style="overflow: hidden"><table><tr><td><div style="width: 3000px">cut</div></td></tr></table></div>',
        "table cut off",
    ),
    "heavy": (f"<!-- {'x' * HEAVIEST} -->", "heavy page"),
    "no-favicon": ("", "no favicon"),
    "favicon-gone": ('<link rel="icon" href="gone.svg">', "no favicon"),
    "one-of-many": (
        SPANS.replace("word 40", "<i style='color: #bbb'>word 40</i>"),
        "axe color-contrast",
    ),
    "one-ground": (
        SPANS.replace("word 40", "<b style='background: #555'>word 40</b>"),
        "axe color-contrast",
    ),
    "link": (
        '<p>Some words <a href="#x" style="color: #222; text-decoration: none">a link</a> and words.</p>',
        "axe link-in-text-block",
    ),
    "stays-light": (
        "<script>document.documentElement.dataset.theme = 'light'</script>",
        "not dark",
    ),
    "dark": (
        "<style>@media (prefers-color-scheme: dark) { body { background: #111; color: #333 } }</style><p>dim</p>",
        "axe color-contrast",
    ),
}
# what must not be found: code and tables that scroll or wrap
FITTING = {
    "table-scrolls": BROKEN["table"][0].replace(
        'style="overflow: hidden"', 'style="overflow: auto" tabindex="0"'
    ),
    "code-wraps": f'<pre style="white-space: pre-wrap">{LONG}</pre>',
}


def self_test() -> list[str]:
    """The checks that miss a page broken on purpose, or that find fault with a good one."""
    complaints = []
    cases = BROKEN | {name: (body, None) for name, body in FITTING.items()}
    with tempfile.TemporaryDirectory() as folder:
        for name, (body, _) in cases.items():
            icon = "" if "favicon" in name else ICON
            page = f'<!doctype html><html lang="en"><head><title>{name}</title>{icon}</head>'
            page += f"<body><main><h1>{name}</h1>{body}</main></body></html>"
            (Path(folder) / f"{name}.html").write_text(page, "utf8")
        with chromium() as browser, serve(Path(folder)) as home:
            for name, (_, expected) in cases.items():
                seen = visit(browser, home, f"{name}.html", VIEWS[0])
                kinds = {f.kind for f in seen}
                if (expected is None and kinds) or (expected is not None and expected not in kinds):
                    complaints.append(f"{name}.html: expected {expected!r}, found {sorted(kinds)}")
                if name == "dark" and not all(", dark" in f.page for f in seen):
                    complaints.append(
                        f"dark.html is good in the light, found {[str(f) for f in seen]}"
                    )
    print(
        f"check_book --self-test: {len(cases) - len(complaints)} of {len(cases)} pages judged as they deserve"
    )
    return complaints


def main() -> int:
    """Carry out the command line; 1 where something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--self-test", action="store_true", help="judge pages that are broken on purpose"
    )
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--shots", type=Path, help="a folder for a picture of each page")
    parser.add_argument("--jobs", type=int, default=1, help="browsers that look at once")
    arguments = parser.parse_args()
    if arguments.self_test:
        found: list[Finding] | list[str] = [*self_test(), *check_verdicts.self_test(arguments.html)]
    else:
        found = check(arguments.html, arguments.shots, arguments.jobs)
    for finding in found:
        print(finding, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
