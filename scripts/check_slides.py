"""Open every deck of slides in headless Chromium, as a lecturer does, and report what fails.

    python scripts/check_slides.py [--self-test] [--html _build/html]

On a screen of 1280 by 720, light and dark, each slide must hold everything that is on it in legible
letters, keys and buttons must turn the slides, and axe-core must find no fault. On a phone the
slides must follow one below the other and not scroll sideways. In print each slide must be one
page. A deck is opened from the disk; it must log no error and ask for no other file. With
--self-test a deck is broken on purpose first.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import accessibility
from headless_browser import chromium
from print_book import sheets

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[1]
SCREEN, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
SMALLEST = 12.0  # px, of the words on a slide of 1280 by 720; the foot of a slide may be smaller
MIN_GLYPHS = 10  # on each printed page
DRAWN = "() => document.images.length === 0 || [...document.images].every(i => i.complete)"
FACTS = """() => [...document.querySelectorAll('.slide')].map(slide => {
  const content = slide.querySelector('.content'), box = content.getBoundingClientRect();
  const parts = [...content.querySelectorAll('*')].filter(e => !e.closest('svg, math, img'));
  const reaches = [...parts, ...content.querySelectorAll('svg, img, math')]
    .map(e => e.getBoundingClientRect()).filter(r => r.width && r.height);
  const spoken = e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  return {
    over: Math.max(0, ...reaches.flatMap(r => [r.bottom - box.bottom, box.top - r.top,
                                               r.right - box.right])),
    cut: parts.filter(e => e.tagName === 'PRE' && e.scrollWidth > e.clientWidth + 1).length,
    small: Math.min(99, ...parts.filter(spoken).map(e => parseFloat(getComputedStyle(e).fontSize))),
    empty: !content.textContent.trim() && !content.querySelector('svg, img'),
    flat: [...content.querySelectorAll('svg, img')].filter(e => e.clientHeight < 150).length,
  };
})"""
SHOWN = """() => [...document.querySelectorAll('.slide.shown')].map(s => s.id)
  .concat(document.querySelectorAll('.shown .told').length)"""


def on_a_screen(tab: Page) -> list[str]:
    """The slides that do not hold what is on them."""
    found = []
    for i, facts in enumerate(tab.evaluate(FACTS), 1):
        faults = {
            f"reaches {facts['over']:.0f} px over the edge": facts["over"] > 1,
            "cuts off code": facts["cut"],
            f"has words of {facts['small']:.1f} px": facts["small"] < SMALLEST,
            "is empty": facts["empty"],
            "has a picture that is nearly flat": facts["flat"],
        }
        found += [f"slide {i} {fault}" for fault, is_so in faults.items() if is_so]
    return found


def by_keys(tab: Page) -> list[str]:
    """The faults of keys and buttons."""
    number = tab.evaluate("document.querySelectorAll('.slide').length")
    later = tab.evaluate("document.querySelectorAll('.later').length")
    if tab.evaluate(SHOWN) != ["1", 0]:
        return ["does not begin with the first slide alone"]
    for key in ["ArrowRight", " ", "PageDown", "ArrowDown"] * number:
        if tab.evaluate(SHOWN)[0] == str(number):
            break
        tab.keyboard.press(key)
    told = tab.evaluate("document.querySelectorAll('.told').length")
    found = [] if told == later else [f"keys told {told} of {later} answers"]
    if tab.evaluate(SHOWN)[0] != str(number) or not tab.url.endswith(f"#{number}"):
        return [*found, "keys do not lead to the last slide"]
    tab.keyboard.press("ArrowLeft")
    tab.click("[data-go=back]")
    if tab.evaluate(SHOWN)[0] != str(number - 2):
        found.append("the way back does not lead back")
    tab.keyboard.press("Home")
    tab.click("[data-go=forth]")
    if tab.evaluate(SHOWN)[0] != "2":
        found.append("a button does not turn the slide")
    theme = "document.documentElement.dataset.theme"
    before = tab.evaluate(theme)
    tab.keyboard.press("d")
    if tab.evaluate(theme) == before:
        found.append("the key D does not change the colours")
    tab.keyboard.press("d")
    return found


def opened(browser: Browser, deck: Path, scheme: str, size: dict[str, int]) -> tuple[Page, list]:
    """A tab with a deck, and a list to which every error in the tab is added."""
    context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    tab, wrong = context.new_page(), []
    address = deck.resolve().as_uri()
    tab.on("console", lambda said: wrong.append(f"says {said.text}"))
    tab.on("pageerror", lambda error: wrong.append(f"fails: {error}"))
    tab.on(
        "request",
        lambda asked: (
            asked.url.startswith((address, "data:")) or wrong.append(f"asks for {asked.url}")
        ),
    )
    tab.goto(address, wait_until="load")
    tab.wait_for_function(DRAWN)
    tab.wait_for_function("() => document.fonts.status === 'loaded'")
    return tab, wrong


def faults(browser: Browser, deck: Path) -> list[str]:
    """The faults of one deck."""
    found: list[str] = []
    for scheme in ("light", "dark"):
        tab, wrong = opened(browser, deck, scheme, SCREEN)
        if tab.evaluate("document.documentElement.dataset.theme") != scheme:
            wrong.append(f"is not {scheme} where that is preferred")
        turns = tab.evaluate("document.documentElement.classList.contains('paged')")
        wrong += by_keys(tab) if turns else ["cannot be turned"]
        # all slides at once, so that each is measured
        tab.add_style_tag(content=".slide, .later { visibility: visible !important }")
        wrong += on_a_screen(tab)
        wrong += [
            f"axe: {rule}: {text}" for rule, text in accessibility.violations(tab, colours=True)
        ]
        if scheme == "light":
            number = tab.evaluate("document.querySelectorAll('.slide').length")
            pages = sheets(tab.pdf(prefer_css_page_size=True, print_background=True))
            bare = [i for i, (glyphs, _) in enumerate(pages, 1) if glyphs < MIN_GLYPHS]
            if len(pages) != number:
                wrong.append(f"prints {number} slides on {len(pages)} pages")
            wrong += [f"prints page {i} nearly empty" for i in bare]
        found += [f"{scheme}: {text}" for text in wrong]
        tab.context.close()
    tab, wrong = opened(browser, deck, "light", PHONE)
    width = tab.evaluate("document.documentElement.scrollWidth")
    if width > PHONE["width"]:
        wrong.append(f"is {width} px wide")
    if tab.evaluate("[...document.querySelectorAll('.slide')].some(s => !s.checkVisibility())"):
        wrong.append("hides slides")
    tab.context.close()
    return found + [f"phone: {text}" for text in wrong]


def check(html: Path) -> list[str]:
    """The faults of all decks beside a built book."""
    decks = sorted((html / "slides").glob("*.html"))
    if not decks:
        return [f"{html}: no slides there: run `make slides`"]
    with chromium() as browser:
        found = [f"{deck.name}: {fault}" for deck in decks for fault in faults(browser, deck)]
    print(f"check_slides: {len(decks)} decks, {len(found)} findings")
    return found


def broken(good: str) -> dict[str, str]:
    """Decks with one fault each."""
    first = good.index('<div class="content">') + len('<div class="content">')

    def more(html: str) -> str:
        return good[:first] + html + good[first:]

    return {
        "too-much": more("<p>Many words stand on this slide, more than fit.</p>" * 40),
        "wide-code": more(f"<pre>{'x' * 300}</pre>"),
        "asks": more('<img src="http://127.0.0.1:9/a.png" alt="a">'),
        "no-script": re.sub(r"(?s)<script>.*</script>", "", good),
        "stuck": good.replace("show(at + 1)", "show(at)"),
        "keeps": good.replace("hidden.classList.add", "show(at + 1); hidden.classList.remove"),
        "nameless": more("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw=' height=200>"),
        "two-pages": good.replace("break-inside: avoid;", "height: 900px;"),
        "wide-phone": more("<div style='width: 600px'>wide</div>"),
        "logs": good.replace("show(at);\n", "show(at);\nconsole.error('no');\n"),
    }


def self_test(html: Path) -> list[str]:
    """The broken decks that are not found."""
    decks = (html / "slides").glob("*.html")
    good = min((deck.read_text("utf8") for deck in decks), key=len)
    wrong = []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        trials = broken(good)
        for name, text in trials.items():
            deck = Path(folder) / f"{name}.html"
            deck.write_text(text, "utf8")
            if text == good or not faults(browser, deck):
                wrong.append(f"{name}: nothing is found")
    print(f"check_slides --self-test: {len(trials) - len(wrong)} of {len(trials)} decks are found")
    return wrong


def main() -> int:
    """Carry out the command line; 1 where something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--self-test", action="store_true", help="look at decks that are broken")
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    arguments = parser.parse_args()
    found = (self_test if arguments.self_test else check)(arguments.html)
    for finding in found:
        print(finding, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
