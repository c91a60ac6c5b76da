"""One page in one view: what the browser reports while it loads, and what is wrong on it then."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from playwright.sync_api import Browser, Page, Response, Route

import accessibility
from page_checks import EVIDENCE, FACTS, WAIT_UNTIL_DRAWN, burdens, judge


class View(NamedTuple):
    """A width and a theme for a page, and the themes in which its colours are measured.

    `rules` says whether axe-core is asked about everything except colours.
    """

    width: int
    scheme: Literal["light", "dark"] = "light"
    colours: tuple[str, ...] = ()
    rules: bool = True


# Colours are the same at every width, and places are the same in light and dark. Between a phone
# and a wide screen a page has the elements of one or the other, and axe-core has seen both.
LISTED = View(1280, colours=("light",))
VIEWS = (View(1280, colours=("light", "dark")), View(768, "dark", rules=False), View(390))
# word -> the end of an address that one of the hits must have, "" for any hit
SEARCHES = {
    "privacy": "",
    "install": "book/install.html",
    "errata": "book/errata.html",
    "EMD": "book/glossary.html",
}
# milliseconds: ten times what the longest page takes on a machine with nothing else to do
PATIENCE = 300_000
# The theme follows what the reader prefers, and colours may take a moment to change.
TURN_DARK = """async () => {
  const html = document.documentElement;
  for (let i = 0; i < 200 && html.dataset.theme === 'light'; i++)
    await new Promise(next => setTimeout(next, 50));
  for (const change of document.getAnimations())
    try { change.finish(); } catch { /* it never ends */ }
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
        facts = self.tab.evaluate(FACTS)
        # the page of the search reads the pages that it finds
        own = [r for r in self.responses if r.request.resource_type not in ("fetch", "xhr")]
        loaded = {r.url: int(r.headers.get("content-length", 0)) for r in own}
        for kind, detail in judge(facts, page, widest) + burdens(loaded, facts["formulas"]):
            self.add(kind, detail)
        for detail in self.tab.evaluate(EVIDENCE):
            self.add("evidence", detail)

    def axe(self, colours: bool, others: bool = True, measured: set[str] | None = None) -> None:
        """Ask axe-core; looks in `measured` are not measured again."""
        for rule, detail in accessibility.violations(
            self.tab, colours=colours, others=others, measured=measured
        ):
            self.add(f"axe {rule}", detail)

    def turn_dark(self) -> None:
        """Let the reader prefer dark pages."""
        self.label = self.label.replace(" px)", " px, dark)")
        self.tab.emulate_media(color_scheme="dark")
        if not self.tab.evaluate(TURN_DARK):
            self.add("not dark", "the page stays light when the reader prefers dark")

    def search(self, word: str, wanted: str) -> bool:
        """Check that the search, opened with a word, lists the wanted page; "" means any page.

        False if it lists nothing.
        """
        results = self.tab.locator("#search-results li a")
        with contextlib.suppress(Exception):
            results.first.wait_for(timeout=30_000)  # the self-test waits all this time in vain
            # the hits come one by one; at the end the summary counts them
            self.tab.wait_for_function(
                "() => /finished|did not match/"
                ".test(document.querySelector('.search-summary')?.textContent)",
                timeout=30_000,
            )
        hits = [link.get_attribute("href") or "" for link in results.all()]
        if not any(hit.partition("?")[0].partition("#")[0].endswith(wanted) for hit in hits):
            self.add(
                "search",
                f"nothing found for {word!r}" if not hits else f"{word!r} does not find {wanted}",
            )
        return bool(hits)


def photograph(tab: Page, shots: Path | None, name: str, width: int, scheme: str) -> None:
    """Keep a picture of the page, if there is a folder for it."""
    if shots is not None:
        mark = (
            f"{name.removesuffix('.html').replace('/', '-')}-{width}{'-dark' * (scheme == 'dark')}"
        )
        tab.screenshot(path=shots / f"{mark}.png", full_page=True)


def visit(
    browser: Browser,
    home: str,
    name: str,
    view: View,
    shots: Path | None = None,
    measured: set[str] | None = None,
) -> list[Finding]:
    """All faults of one page in one view; `measured` holds the looks measured on other pages."""
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
            if is_search and not seen.search(word, wanted):
                break  # it has waited long enough for nothing
        photograph(seen.tab, shots, name, view.width, view.scheme)
        seen.look(name, view.width == VIEWS[0].width)  # which leaves the evidence on for axe
        if view.rules and not from_disk:
            seen.axe(colours="light" in view.colours, measured=measured)
        if "dark" in view.colours and not from_disk:
            seen.turn_dark()
            photograph(seen.tab, shots, name, view.width, "dark")
            seen.axe(colours=True, others=False, measured=measured)
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
    ):  # the next search began before all pages for the excerpts of the last one had come
        return [f for f in seen.findings if "ERR_ABORTED" not in f.detail]
    return seen.findings
