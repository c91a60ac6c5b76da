"""The time that a reader waits until a page shows its first words."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser

from headless_browser import chromium, serve

LATEST = 500  # milliseconds until the first words of a page
# Milliseconds until a page of one word is shown: if it takes longer, the machine has other work to
# do, and the times say nothing about the book.
IDLE = 100
TIMES = 10  # times the time of the page of one word, which is 50 ms on two idle cores
TRIES = 15  # a machine shared with others may be busy for several loads in a row
LOADS = 4  # loads of each page, on average, so that the check ends on a slow or busy machine
ONE_WORD = "data:text/html,<p>word</p>"
PAINT = """async () => {
  const first = () => performance.getEntriesByName('first-contentful-paint')[0];
  for (let i = 0; i < 100 && !first(); i++) await new Promise(next => setTimeout(next, 50));
  return first()?.startTime ?? 1e6;
}"""


def sends_on(page: Path) -> bool:
    """True if a page has nothing to show: it sends the reader to another, as the root does."""
    return 'http-equiv="refresh"' in page.read_text("utf8").lower()


def first_paint(browser: Browser, url: str) -> float:
    """Milliseconds from the request of a page to its first words, with nothing cached."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.set_default_timeout(0)
    tab.goto(url, wait_until="commit")  # what loads after the first words need not be waited for
    paint = float(tab.evaluate(PAINT))
    context.close()
    return paint


def fault(paints: list[tuple[float, float]]) -> str | None:
    """The fault of a page, if any, given its first paints, each after that of a page of one word.

    The latter is infinite if that page was not loaded. A paint in time always counts. A late paint
    counts only if the machine was idle before it, and if it took more than `TIMES` times the time
    of the page of one word, because on a slow machine every page is late.
    """
    late = [paint for idle, paint in paints if idle <= IDLE and paint > TIMES * idle]
    if not late or min(paint for _, paint in paints) <= LATEST:
        return None
    return f"first words after {min(late):.0f} ms in {len(late)} loads, later than {LATEST} ms"


def late(
    paint: Callable[[str], float], one_word: Callable[[], float], names: list[str]
) -> list[tuple[str, str]]:
    """The pages that show their first words late, with how late.

    All pages are loaded once, then those that were late are loaded again, and so on, because what
    disturbed one load has passed at the next. `paint` loads a page, and `one_word` a page of one
    word, which is needed only before a load that may count as late; the first load never does.
    """
    paints: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    waiting, left = list(names), LOADS * len(names)
    for i in range(TRIES):
        waiting = waiting[:left]
        left -= len(waiting)
        for name in waiting:
            paints[name].append((one_word() if i else math.inf, paint(name)))
        waiting = [name for name in waiting if paints[name][-1][1] > LATEST]
    idle = [each for each in paints.values() if any(i <= IDLE or p <= LATEST for i, p in each)]
    print(
        f"page_paint: {len(idle)} of {len(names)} pages judged, the machine was busy for the others"
    )
    return [(name, text) for name, each in paints.items() if (text := fault(each))]


def late_pages(html: Path, names: list[str]) -> list[tuple[str, str]]:
    """The pages of a built book that show their first words late, with how late."""
    with chromium() as browser, serve(html) as home:
        return late(
            lambda name: first_paint(browser, home + name),
            lambda: first_paint(browser, ONE_WORD),
            names,
        )
