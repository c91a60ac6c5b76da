"""Check that the book's own search puts the right page among its first three results.

    python scripts/check_search.py [--html _build/html]

The questions are the words of book/_ext/search_words.tsv, each as it is written there and also
without its last s. Chromium puts them to the search's own script. The exit code is 1 if a question
leads elsewhere.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from headless_browser import chromium

ROOT = Path(__file__).resolve().parents[1]
FIRST = 3  # results that a reader looks at
# the last result of the list is shown first
ASK = """query => Search._performSearch(...Search._parseQuery(query))
    .slice(-3).reverse().map(result => result[0])"""


def questions(root: Path = ROOT) -> dict[str, set[str]]:
    """What is typed -> the pages that answer it."""
    sys.path.insert(0, str(root / "book" / "_ext"))
    import search_words

    found: dict[str, set[str]] = {}
    for words, page in search_words.pages():
        for query in {words, words.removesuffix("s")}:
            found.setdefault(query.lower(), set()).add(page)
    return found


def faults(asked: dict[str, set[str]], answers: dict[str, list[str]]) -> list[str]:
    """The questions whose first answers are all wrong."""
    return [
        f"{query!r} leads to {answers[query][:FIRST]} and not to {sorted(pages)}"
        for query, pages in asked.items()
        if not pages & set(answers[query][:FIRST])
    ]


def answers(tab: Any, url: str, asked: dict[str, set[str]]) -> dict[str, list[str]]:
    """The first pages that the search shows; `tab` is a page of Playwright."""
    tab.goto(f"{url}?q=ages", wait_until="load")
    tab.wait_for_function("typeof Search !== 'undefined' && Search.hasIndex()")
    return {query: tab.evaluate(ASK, query) for query in asked}


def main() -> int:
    """Ask, and print what leads elsewhere."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    page = (parser.parse_args().html / "search.html").resolve().as_uri()
    asked = questions()
    with chromium() as browser:
        found = faults(asked, answers(browser.new_page(), page, asked))
    print(*found, sep="\n")
    print(f"check_search: {len(asked)} questions, {len(found)} lead elsewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
