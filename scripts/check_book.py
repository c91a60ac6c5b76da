"""Open every built page in headless Chromium, wide and narrow, and report what hinders a reader.

    python scripts/check_book.py [--self-test] [--html _build/html] [--shots FOLDER] [--jobs N]

A page must log no error, request nothing from another host and load everything it asks for. It must
typeset its mathematics, show its images with alternative text, not scroll sideways, not cut off
code or tables, and break no name in a table. On a phone it must put verdicts first and show tables
of text as cards. It must have its answer on the first screen, legible schematics, padded cards, and
its own entry in sight in the sidebar. It must show its evidence if and only if the evidence is
asked for, and pass axe-core with the evidence shown, in the dark theme as well. It must have a
favicon, load MathJax only for formulas, stay below a weight, and show its first words in half a
second.

All files together must stay below a weight, the search must find some words, and the page of
verdicts must filter. A few pages are also opened from the disk (file://). With --shots each page is
also photographed, which takes a third longer. With --self-test the checks are shown pages that are
broken on purpose.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tqdm import tqdm

import check_search
import check_verdict_page
from broken_pages import BROKEN, FITTING, ICON, SLOW
from headless_browser import chromium, serve
from page_checks import HEAVIEST_SITE, heads, site_weight
from page_paint import LATEST, first_paint, late_pages, sends_on
from page_visit import LISTED, VIEWS, Finding, View, visit

ROOT = Path(__file__).resolve().parents[1]


# folders of pages that only show a file of the repository, and two pages that represent these
LISTINGS = ("_modules/", "tests/")
LISTINGS_SEEN = ("_modules/ibukit/domain/grid.html", "tests/test_ibu.html")
FROM_DISK = (
    "index.html",
    "book/chapters/mechanisms.html",
    "book/chapters/ages.html",
    "book/api.html",
    "book/reference/estimators.html",
    "search.html",
)


def pages(html: Path) -> list[str]:
    """Every page of the built book."""
    skipped = ("_static", "_sources", "reports", "slides")  # check_slides.py looks at the last
    names = (p.relative_to(html) for p in sorted(html.rglob("*.html")))
    return [n.as_posix() for n in names if n.parts[0] not in skipped]


def views_of(name: str) -> tuple[View, ...]:
    """The views of a page; of the listings, which share one template, only two get every view."""
    return (LISTED,) if name.startswith(LISTINGS) and name not in LISTINGS_SEEN else VIEWS


def visit_all(html: Path, shots: Path | None, names: list[str]) -> list[Finding]:
    """Everything that is wrong with these pages, in a browser of their own."""
    found: list[Finding] = []
    measured: set[str] = set()  # looks that pages share are measured on the first of them
    with chromium() as browser:
        with serve(html) as home:
            for name in tqdm(names, disable=None, unit="page"):
                for view in views_of(name):
                    found += visit(browser, home, name, view, shots, measured)
        for name in FROM_DISK:
            if name in names:
                found += visit(browser, f"{html.resolve().as_uri()}/", name, VIEWS[0])
    return found


def verdicts(html: Path) -> list[Finding]:
    """The faults of the rows of claims and errata: their anchors, their links, their filters."""
    with chromium() as browser, serve(html) as home:
        found = check_verdict_page.look(html) + check_verdict_page.use(
            browser, home + check_verdict_page.PAGE
        )
    return [Finding("verdicts", check_verdict_page.PAGE, text) for text in found]


def search(html: Path) -> list[Finding]:
    """The questions that the search of the book does not answer among its first results."""
    asked, page = check_search.questions(), (html / "search.html").resolve().as_uri()
    with chromium() as browser:
        answers = check_search.answers(browser.new_page(), page, asked)
    return [Finding("search", "search.html", text) for text in check_search.faults(asked, answers)]


def check(html: Path, shots: Path | None, jobs: int = 1) -> list[Finding]:
    """Everything that is wrong with a built book, looked at by `jobs` browsers at once."""
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
    found += [Finding(kind, page, detail) for page, kind, detail in heads(html, names)]
    found += verdicts(html) + search(html)
    found += [Finding(kind, str(html), detail) for kind, detail in site_weight(html)]
    seen = [name for name in names if views_of(name) == VIEWS and not sends_on(html / name)]
    found += [Finding("late", name, detail) for name, detail in late_pages(html, seen)]
    views = ", ".join(
        f"{view.width} px {' and '.join(view.colours) or view.scheme}" for view in VIEWS
    )
    print(f"check_book: {len(names)} pages at {views}, {len(found)} findings")
    return found


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
        (Path(folder) / "slow.html").write_text(SLOW, "utf8")
        with chromium() as browser, serve(Path(folder)) as home:
            if (paint := first_paint(browser, f"{home}slow.html")) <= LATEST:
                complaints.append(f"slow.html shows its first words after {paint:.0f} ms")
            for name, (_, expected) in cases.items():
                view = VIEWS[-1] if name.startswith("phone") else VIEWS[0]
                seen = visit(browser, home, f"{name}.html", view)
                kinds = {f.kind for f in seen}
                if (expected is None and kinds) or (expected is not None and expected not in kinds):
                    complaints.append(f"{name}.html: expected {expected!r}, found {sorted(kinds)}")
                if name == "dark" and not all(", dark" in f.page for f in seen):
                    complaints.append(
                        f"dark.html is good in the light, found {[str(f) for f in seen]}"
                    )
        with (Path(folder) / "large").open("wb") as file:
            file.truncate(HEAVIEST_SITE + 1)
        if not site_weight(Path(folder)):
            complaints.append("a heavy site is not found")
    print(
        f"check_book --self-test: {len(cases) - len(complaints)} of {len(cases)} pages judged as"
        " they deserve"
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
        found: list[Finding] | list[str] = [
            *self_test(),
            *check_verdict_page.self_test(arguments.html),
        ]
    else:
        found = check(arguments.html, arguments.shots, arguments.jobs)
    for finding in found:
        print(finding, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
