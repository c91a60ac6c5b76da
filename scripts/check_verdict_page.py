"""Judge the built page of verdicts: its rows, its links, its totals and its filters.

    python scripts/check_verdict_page.py [--self-test] [--html _build/html]

Every row of data/ledger.csv and data/errata.csv must have its anchor. Each link from a row, and
each link from a chapter to a row, must lead to an anchor that is there. The totals must be those of
the data, and the filters must leave exactly the rows that the data say. `look` checks all but the
filters in the built files; `operate` checks the filters on a page that Playwright has opened. With
--self-test both are shown pages that are broken on purpose.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import sys
import tempfile
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from headless_browser import chromium, serve

ROOT = Path(__file__).resolve().parents[1]
PAGE, ERRATA = "book/claims.html", "book/errata.html"
MIN_LINKS = 200  # from the chapters to the rows; fewer would mean that links have been lost
HEAVIEST = 1_500_000  # bytes of the page, without the files that all pages share
SHOWN = (
    "() => [...document.querySelectorAll('.verdict-row')].filter(row =>"
    " row.checkVisibility()).map(row => row.id)"
)


def rows(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Anchor -> row, claims and errata; `word` is the verdict or the class."""
    found = {}
    for name, word, kind in (
        ("ledger.csv", "verdict", "claim"),
        ("errata.csv", "class", "erratum"),
    ):
        with (root / "data" / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                found[row["id"].replace(".", "-")] = {**row, "word": row[word], "kind": kind}
    return found


@cache
def _anchors(path: Path) -> frozenset[str]:
    return (
        frozenset(re.findall(r'\bid="([^"]+)"', path.read_text("utf8")))
        if path.is_file()
        else frozenset()
    )


def _dead(path: Path, html: str) -> list[str]:
    """The links of some HTML, on the page at a path, that lead nowhere."""
    dead = []
    for href in dict.fromkeys(re.findall(r'href="([^"]+)"', html)):
        page, _, place = href.partition("#")
        target = (
            path if not page.partition("?")[0] else (path.parent / page.partition("?")[0]).resolve()
        )
        if "://" not in href and (
            not target.is_file() or (place and place not in _anchors(target))
        ):
            dead.append(href)
    return dead


def look(html: Path, root: Path = ROOT) -> list[str]:
    """The faults of the built files."""
    path, complaints, known = (html / PAGE).resolve(), [], rows(root)
    if not path.is_file():
        return [f"{PAGE} is not there"]
    text = path.read_text("utf8")
    if len(text.encode()) > HEAVIEST:
        complaints.append(f"{PAGE} has {len(text.encode()):,} bytes, more than {HEAVIEST:,}")
    found = re.findall(r'<li class="verdict-row" id="([^"]+)"', text)
    complaints += [f"{PAGE}: no row #{name}" for name in known if name not in found]
    complaints += [
        f"{PAGE}: row #{name} twice, or in no table"
        for name in found
        if found.count(name) > 1 or name not in known
    ]
    errata = (html / ERRATA).read_text("utf8") if (html / ERRATA).is_file() else ""
    absent = [
        name
        for name, row in known.items()
        if row["kind"] == "erratum" and f'id="{name}"' not in errata
    ]
    complaints += [f"{ERRATA}: no row #{name}" for name in absent]
    for row in re.findall(
        r'<li class="verdict-row".*?</li>(?=<li class="verdict-row"|</ul>\s*</section>)',
        text,
        re.DOTALL,
    ):
        name = re.search(r'id="([^"]+)"', row)
        complaints += [
            f"{PAGE}: row #{name and name[1]} leads to {href}, which is not there"
            for href in _dead(path, row)
        ]
    n_links = 0
    for chapter in sorted((html / "book" / "chapters").glob("*.html")):
        to_rows = re.findall(r'href="(\.\./claims\.html#[^"]+)"', chapter.read_text("utf8"))
        n_links += len(to_rows)
        dead = [href for href in dict.fromkeys(to_rows) if href.partition("#")[2] not in found]
        complaints += [f"{chapter.name}: {href} is not there" for href in dead]
    if n_links < MIN_LINKS:
        complaints.append(f"only {n_links} links from the chapters to rows, fewer than {MIN_LINKS}")
    return complaints + totals(text, known)


def totals(text: str, known: dict[str, dict[str, str]]) -> list[str]:
    """The differences of the bars and their key from the data."""
    complaints = []
    results = [
        row
        for row in known.values()
        if row["kind"] == "claim" and row["word"] not in ("setting", "ours")
    ]
    said = re.search(r"<strong>(\d+) results of five papers</strong>", text)
    if said is None or int(said[1]) != len(results):
        complaints.append(
            f"{PAGE}: the page says {said and said[1]} results, the data {len(results)}"
        )
    key = dict(re.findall(r'href="[^"]*\?verdict=([\w+]+)">(\d+) ', text))
    if {word.replace("+", " "): int(n) for word, n in key.items()} != Counter(
        row["word"] for row in results
    ):
        complaints.append(f"{PAGE}: the key of the bars says {key}")
    for letter in "ABCDE":
        of_paper = Counter(row["word"] for row in results if row["id"].startswith(letter))
        bar = re.search(
            rf'aria-label="Paper {letter}, [^"]*: {of_paper.total()} results: ([^"]*)"(.*?)</div>',
            text,
            re.DOTALL,
        )
        worded = bar and {word: int(n) for n, word in re.findall(r"(\d+) ([a-z ]+)", bar[1])}
        drawn = bar and {
            word: int(n) for word, n in re.findall(r'data-verdict="([^"]+)"[^>]*>(\d+)<', bar[2])
        }
        if worded != of_paper or drawn != of_paper:
            complaints.append(f"{PAGE}: the bar of paper {letter} is not {dict(of_paper)}")
    return complaints


# what is set in the form, and a test of the rows that must then be left
TRIALS: list[tuple[dict[str, str], Any]] = [
    ({"verdict": "deviates"}, lambda row: row["word"] == "deviates"),
    (
        {"paper": "E", "kind": "erratum"},
        lambda row: row["id"][0] == "E" and row["kind"] == "erratum",
    ),
    ({"chapter": "stopping"}, lambda row: row["chapter"] == "stopping"),
    (
        {"paper": "A", "verdict": "holds with a condition"},
        lambda row: row["id"][0] + row["word"] == "Aholds with a condition",
    ),
]


def operate(tab: Any, url: str, root: Path = ROOT) -> list[str]:
    """The faults that show when somebody uses the page: filters, order, addresses, keyboard.

    `tab` is a page of Playwright, `url` the address of the page of verdicts.
    """
    known, complaints = rows(root), []

    def expect(what: str, wanted: Any, got: Any) -> None:
        if wanted != got:
            complaints.append(f"{what}: expected {str(wanted)[:90]}, got {str(got)[:90]}")

    tab.goto(url, wait_until="load")
    form = tab.locator(".verdict-filters")
    if not form.count() or not form.is_visible():
        return ["no filters are shown"]
    unasked = {name for name, row in known.items() if row["word"] == "setting"}
    first = tab.evaluate(SHOWN)
    expect("rows at first, without the settings", set(known) - unasked, set(first))
    words = [known[name]["word"] for name in first]
    expect("the verdict of the first row", "deviates", words[0])
    expect(
        "verdicts in one run each", len(set(words)), sum(a != b for a, b in pairwise([0, *words]))
    )
    for chosen, fits in TRIALS:
        form.locator("button[type=reset]").click()
        tab.wait_for_timeout(50)
        for name, value in chosen.items():
            form.locator(f"[name={name}]").select_option(value)
        wanted = {name for name, row in known.items() if fits(row)}
        wanted -= set() if chosen.get("verdict") == "setting" else unasked
        expect(f"rows with {chosen}", wanted, set(tab.evaluate(SHOWN)))
        expect(
            f"the count with {chosen}",
            f"{len(wanted)} of {len(known)} rows",
            form.locator("output").inner_text(),
        )
        if not url.startswith("file:"):
            tab.reload(wait_until="load")
            expect(f"rows with {chosen} after loading again", wanted, set(tab.evaluate(SHOWN)))
    form.locator("button[type=reset]").click()
    tab.wait_for_timeout(50)
    form.locator("[name=sort]").select_option("code")
    form.locator("[name=settings]").select_option("shown")
    shown = tab.evaluate(SHOWN)
    expect("rows in order of code", set(known), set(shown))
    expect(
        "papers in order of code", sorted(name[0] for name in shown), [name[0] for name in shown]
    )
    name = next(name for name, row in known.items() if row["word"] == "deviates")
    form.locator("[name=q]").fill(known[name]["id"])
    if name not in tab.evaluate(SHOWN) or len(tab.evaluate(SHOWN)) > 20:
        complaints.append(f"the text {known[name]['id']!r} leaves {len(tab.evaluate(SHOWN))} rows")
    form.locator("[name=q]").fill("")
    row = tab.locator(f"[id='{name}']")
    row.locator("summary").focus()
    tab.keyboard.press("Enter")
    expect(
        f"row {name} opened by the keyboard", True, row.locator("details").evaluate("d => d.open")
    )
    # an address that names a row shows it, whatever was chosen
    tab.goto("about:blank")
    tab.goto(f"{url}?verdict=reproduced#{name}", wait_until="load")
    expect(
        f"row {name} opened by its address", True, row.locator("details").evaluate("d => d.open")
    )
    expect(f"row {name} shown by its address", True, row.is_visible())
    if unasked:
        name = min(unasked)
        tab.goto("about:blank")
        tab.goto(f"{url}#{name}", wait_until="load")
        tab.wait_for_timeout(50)
        expect(
            f"setting {name} shown by its address", True, tab.locator(f"[id='{name}']").is_visible()
        )
    return complaints


BROKEN = {
    "a row is gone": (
        lambda t: re.sub(
            r'<li class="verdict-row" id="A-F8".*?</details></li>', "", t, flags=re.DOTALL
        ),
        "no row #A-F8",
    ),
    "a link is dead": (
        lambda t: t.replace("chapters/comparison.html#", "chapters/comparison.html#no-"),
        "is not there",
    ),
    "a total is wrong": (
        lambda t: re.sub(r"<strong>\d+ results", "<strong>1 results", t),
        "says 1 results",
    ),
    "a bar is wrong": (
        lambda t: re.sub(r'(aria-label="Paper B, [^"]*: )\d+', r"\g<1>1", t),
        "bar of paper B",
    ),
    "a page is heavy": (lambda t: t + "<!--" + "x" * HEAVIEST + "-->", "bytes"),
    "a verdict is not the row's": (
        lambda t: t.replace('data-verdict="deviates"', 'data-verdict="fitted"'),
        "rows with",
    ),
    "a filter is gone": (lambda t: t.replace('name="chapter"', 'name="chapters"'), "not used"),
    "the script is gone": (lambda t: t.replace("verdicts.js", "gone.js"), "no filters are shown"),
}


def self_test(html: Path) -> list[str]:
    """The faults that are not found; each is made in a copy of the good page."""
    missed, good = [], (html / PAGE).read_text("utf8")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        copy = Path(folder) / "html"
        for name in ("book", "tests", "_static"):
            shutil.copytree(
                html / name, copy / name, ignore=shutil.ignore_patterns("*.woff2", "mathjax")
            )
        for name, (change, says) in {"nothing": (lambda t: t, None), **BROKEN}.items():
            (copy / PAGE).write_text(change(good), "utf8")
            _anchors.cache_clear()
            found = look(copy)
            if says is None or not any(says in text for text in found):
                found += use(browser, (copy / PAGE).as_uri(), 300_000 if says is None else 30_000)
            if bool(found) != (says is not None) or (
                says and not any(says in text for text in found)
            ):
                missed.append(f"{name}: expected {says!r}, found {found[:3]}")
    print(
        f"check_verdict_page --self-test: {len(BROKEN) + 1 - len(missed)} of {len(BROKEN) + 1}"
        " pages judged as they deserve"
    )
    return missed


def use(browser: Any, url: str, patience: int = 300_000) -> list[str]:
    """Use the page in a tab of its own; what cannot be used within the milliseconds is a fault."""
    tab = browser.new_page()
    tab.set_default_timeout(patience)
    try:
        return operate(tab, url)
    except Exception as error:  # whatever stops a reader
        return [f"not used: {' '.join(str(error).split())[:200]}"]
    finally:
        tab.close()


def main() -> int:
    """Carry out the command line; 1 where something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--self-test", action="store_true", help="judge pages that are broken on purpose"
    )
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    arguments = parser.parse_args()
    if arguments.self_test:
        found = self_test(arguments.html)
    else:
        found = look(arguments.html)
        with chromium() as browser, serve(arguments.html) as home:
            found += use(browser, home + PAGE)
        print(f"check_verdict_page: {len(rows())} rows, {len(found)} findings")
    for text in found:
        print(text, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
