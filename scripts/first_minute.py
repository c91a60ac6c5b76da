"""Measure where on a page a stranger reads what it is, for whom, why to believe it and what next.

    python scripts/first_minute.py [PAGE ...] [--answers FILE] [--html _build/html]

Each answer is a piece of the page's text, named in the file of answers: lines of page, question and
text, separated by tabs. The answers of the landing page need no file. PAGE is a file or an address;
without PAGE, the landing page and the pages in the file are measured. The script prints the
distance in pixels from the top of the page to the end of each answer, on a screen of 1280 x 800 and
on one of 390 x 844; "–" stands for an answer that the page does not show.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from playwright.sync_api import Browser

from headless_browser import chromium

ROOT = Path(__file__).resolve().parents[1]
SCREENS = ((1280, 800), (390, 844))
QUESTIONS = ("what", "for whom", "why believe", "what next")
OURS = {
    "what": "this book and its Python package reconstruct",
    "for whom": "for you",
    "why believe": "results of five papers",
    "what next": "a coin and a pencil",
}
# The end of the first visible text that holds the words, even if tags divide them.
FOOT = """words => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (node.parentElement.checkVisibility() && !node.parentElement.closest('script, style'))
      seen.push(node);
  const places = [];
  let all = '';
  for (const node of seen)
    for (let i = 0; i < node.data.length; i++) {
      const space = /\\s/.test(node.data[i]);
      if (space && (all === '' || all.endsWith(' '))) continue;
      all += space ? ' ' : node.data[i];
      places.push([node, i]);
    }
  const at = all.indexOf(words);
  if (at < 0) return null;
  const range = document.createRange();
  const [node, offset] = places[at + words.length - 1];
  range.setStart(node, offset);
  range.setEnd(node, offset + 1);
  return Math.round(range.getBoundingClientRect().bottom + scrollY);
}"""


def places(
    browser: Browser, address: str, answers: dict[str, str], screen: tuple[int, int]
) -> dict[str, int | None]:
    """Question -> the pixel at which its answer ends; None where it is not shown."""
    context = browser.new_context(viewport={"width": screen[0], "height": screen[1]})
    tab = context.new_page()
    tab.set_default_timeout(0)
    tab.goto(address, wait_until="load")
    found = {question: tab.evaluate(FOOT, words) for question, words in answers.items()}
    context.close()
    return found


def read(path: Path) -> dict[str, dict[str, str]]:
    """Page -> question -> the words that answer it."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for line in path.read_text("utf8").splitlines():
        if line and not line.startswith("#"):
            page, question, words = line.split("\t")
            found[page][question] = words
    return dict(found)


def address(page: str) -> str:
    """The address of a page, which may be a file."""
    return page if "://" in page else Path(page).resolve().as_uri()


def main() -> int:
    """Carry out the command line; 1 if the landing page's first screen lacks an answer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    arguments = parser.parse_args()
    ours = str(arguments.html / "book" / "index.html")
    answers = {ours: OURS} | (read(arguments.answers) if arguments.answers else {})
    missed = 0
    print("| page | screen | " + " | ".join(QUESTIONS) + " |")
    print("| --- " * (len(QUESTIONS) + 2) + "|")
    with chromium() as browser:
        for page in arguments.pages or answers:
            for screen in SCREENS:
                found = places(browser, address(page), answers.get(page, {}), screen)
                cells = [found.get(question) for question in QUESTIONS]
                shown = " | ".join("–" if y is None else str(y) for y in cells)
                print(f"| {page} | {screen[0]} x {screen[1]} | {shown} |")
                late = [y is None or y > screen[1] for y in cells]
                missed += page == ours and any(late)
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
