"""Use the page *Try your own counts* of the built book, and compare what it computes with ibukit.

    python scripts/check_try.py [--self-test] [--html _build/html]

On 200 random inputs, estimate and gap must agree to 1e-9, ranges of all maximisers to 1e-8, and
intervals to 1e-6. Each hostile input must be answered by one sentence. The examples are used as a
reader uses them, by form, slider and link, at 1280 and 390 px, light and dark; the call that is
printed for each example is run. Once loaded, the page must ask for nothing. With --self-test the
page is broken on purpose first.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import accessibility
from headless_browser import run_check
from try_cases import (
    ANSWER,
    GOOD,
    HOSTILE,
    Case,
    Form,
    differences,
    edge_cases,
    random_cases,
    refused,
)

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "book" / "try.md"
STATIC = ROOT / "book" / "_static"

N_INPUTS, N_SELF_TEST, AT_ONCE = 200, 40, 20
VIEWS = ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark"))
EXAMPLES = ("ways", "ages", "open")
PATIENCE = 120_000  # ms; a busy machine takes its time
SHORT_PATIENCE = 10_000  # ms; for a page that is broken on purpose, and may never answer
LEGIBLE = 9.0  # px
ROUNDING = 6e-4  # error of a share that is written in per cent with one decimal
MARKUP = '<img src=x onerror="window.harmed = true">'
FACTS = """box => {
  const all = query => [...box.querySelectorAll(query)];
  const size = text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
  const page = document.documentElement;
  return {
    rows: all('[data-part=body] tr').map(row => Object.fromEntries(
      [...row.cells].map(cell => [cell.dataset.cell ?? 'label', cell.textContent]))),
    said: box.querySelector('[data-part=said]').textContent,
    bars: all('.try-picture .try-bar').length, dots: all('[data-part=picture] .try-mle').length,
    ibu: box.querySelector('[data-part=picture] .try-ibu')?.outerHTML ?? '',
    small: Math.min(...all('.try-picture svg text').filter(t => t.checkVisibility()).map(size)),
    sideways: page.scrollWidth - page.clientWidth,
    strangers: all('[data-part=answer] :is(img, script, iframe)').length,
  };
}"""


class Reader:
    """Somebody who uses the page."""

    def __init__(self, tab: Any, patience: int):
        self.tab = tab
        self.faults: list[str] = []
        self.asked: list[str] = []
        self.patience = patience
        tab.set_default_timeout(patience)
        tab.on("pageerror", lambda error: self.faults.append(f"script error: {error}"))
        tab.on("request", lambda request: self.asked.append(request.url))

    def open(self, url: str) -> None:
        """Load the page, which computes its first example."""
        self.tab.goto("about:blank")
        self.asked.clear()
        self.tab.goto(url, wait_until="load")
        self.wait("done")
        strange = [each for each in self.asked if not each.startswith(("file:", "data:", "blob:"))]
        self.faults += [f"requests {each}" for each in strange]
        self.asked.clear()

    def wait(self, state: str) -> None:
        """Wait until the page has computed, or refused."""
        self.tab.wait_for_selector(f".try[data-state={state}]", state="attached")

    def expect(self, what: str, true: bool) -> None:
        """Note a fault unless something is true."""
        if not true:
            self.faults.append(what)

    def facts(self) -> dict[str, Any]:
        """What the page shows."""
        found: dict[str, Any] = self.tab.locator(".try").evaluate(FACTS)
        return found

    def fill(self, form: Form, state: str) -> None:
        """Fill in a form by hand."""
        for name in ("mechanism", "kind", "level"):
            if name in form:
                self.tab.locator(f".try [name={name}]").select_option(form[name])
        for name in ("data", "epsilon", "labels", "first", "last", "matrix"):
            field = self.tab.locator(f".try [name={name}]")
            if name in form and field.is_visible():
                field.fill(form[name])
        self.wait(state)


Step = Callable[[Reader], None]


@cache
def inputs(n: int) -> list[Case]:
    """Random and extreme inputs, which keep the answers that ibukit gives to them."""
    return [*random_cases(n), *edge_cases()]


def numbers(reader: Reader, n: int) -> None:
    """Compare the answers to random forms, and the sentences for hostile ones."""
    cases = inputs(n)
    for i in range(0, len(cases), AT_ONCE):
        some = cases[i : i + AT_ONCE]
        answers = reader.tab.evaluate(ANSWER, [case.form for case in some])
        for j, (case, answer) in enumerate(zip(some, answers, strict=True)):
            kind = case.form["mechanism"]
            reader.faults += [f"input {i + j}, {kind}: {x}" for x in differences(case, answer)]
    answers = reader.tab.evaluate(ANSWER, [GOOD | hostile.change for hostile in HOSTILE.values()])
    for name, answer in zip(HOSTILE, answers, strict=True):
        reader.faults += refused(name, answer)


def run(code: str) -> dict[str, Any]:
    """Run a printed call, quietly."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)
    return names


def shares(text: str) -> list[float]:
    """The shares in a cell of the table."""
    return [float(x) / 100 for x in re.findall(r"[\d.]+", text)]


def example(reader: Reader, name: str) -> None:
    """Use one example as a reader does."""
    reader.tab.click(f"[data-example={name}]")
    reader.wait("done")
    seen = reader.facts()
    reader.expect(f"{name}: no picture", seen["bars"] > 1 and seen["dots"] == len(seen["rows"]))
    reader.expect(f"{name}: text of {seen['small']:.1f} px", seen["small"] >= LEGIBLE)
    reader.expect(f"{name}: scrolls sideways", seen["sideways"] <= 1)
    estimate = run(reader.tab.locator("[data-part=python]").inner_text())["estimate"]
    found = estimate.to_frame(level=0.95, method="profile")
    for row, (label, ours) in zip(seen["rows"], found.iterrows(), strict=True):
        cells = {"interval": [ours["lower"], ours["upper"]]}
        if name != "open":  # in that example the page and the call may show different maximisers
            cells["mle"] = [ours["probability"]]
        same = row["label"] == str(label) and all(
            np.allclose(shares(row[key]), wanted, atol=ROUNDING) for key, wanted in cells.items()
        )
        reader.expect(f"{name}: the row of {label} is {row}, its call gives {cells}", same)
    slider = reader.tab.locator(".try [name=step]")
    slider.focus()
    reader.tab.keyboard.press("Home")
    first = reader.facts()
    reader.tab.keyboard.press("ArrowRight")
    after = reader.facts()
    reader.expect(f"{name}: the slider moves nothing", first["ibu"] != after["ibu"])
    reader.expect(f"{name}: the slider says nothing", "After 1 step " in after["said"])
    button = reader.tab.locator("[data-part=play]")
    button.click()
    reader.tab.wait_for_function("Number(document.querySelector('.try [name=step]').value) > 2")
    button.click()
    reader.expect(f"{name}: Play does not stop", button.inner_text() == "Play")


def link(reader: Reader) -> None:
    """Send a setting to somebody else, with a label that looks like a page."""
    reader.fill({"mechanism": "krr", "data": f"{MARKUP}, 30\nb%20&c, 20", "epsilon": "0.5"}, "done")
    here = reader.facts()["rows"]
    reader.expect("HTML in a label is not shown as text", here[0]["label"] == MARKUP)
    reader.tab.click("[data-part=make-link]")
    address = reader.tab.locator("[data-part=link]").input_value()
    reader.open(address)
    there = reader.facts()
    reader.expect(f"the link gives {there['rows']}, not {here}", there["rows"] == here)
    harmed = there["strangers"] or reader.tab.evaluate("Boolean(window.harmed)")
    reader.expect("HTML in a label becomes a part of the page", not harmed)


def load(reader: Reader) -> None:
    """Load a table of reports that the chosen mechanism can hardly have made."""
    rows = ["person,how", *(f"{i},{'bus' if i % 10 else 'car'}" for i in range(1000))]
    reader.tab.locator(".try [name=mechanism]").select_option("krr")
    file = {"name": "a.csv", "mimeType": "text/csv", "buffer": "\n".join(rows).encode()}
    reader.tab.locator(".try [name=file]").set_input_files(file)
    reader.tab.wait_for_function("document.querySelector('.try [name=data]').value[0] === 'p'")
    reader.tab.locator(".try [name=epsilon]").fill("ln 3")
    reader.tab.wait_for_selector(".try:not([data-state=busy])", state="attached")
    found = {row["label"]: row["reports"] for row in reader.facts()["rows"]}
    wanted = {"bus": 0.9, "car": 0.1}
    same = found.keys() == wanted.keys() and all(
        shares(found[name]) == [share] for name, share in wanted.items()
    )
    reader.expect(f"the file gives {found}, not {wanted}", same)
    told = reader.tab.locator("[data-part=misfit]").is_visible()
    reader.expect("reports that do not fit are not told", told)


def refusal(reader: Reader) -> None:
    """Type a mistake, and mend it."""
    reader.fill({"kind": "counts", "mechanism": "krr", "data": "a, 5\nb, -3"}, "refused")
    problem = reader.tab.locator("[data-part=problem]")
    shown = problem.is_visible() and "negative" in problem.inner_text()
    reader.expect("a mistake is not answered on the page", shown)
    marked = reader.tab.locator(".try [name=data]").get_attribute("aria-invalid")
    reader.expect("the field with the mistake is not marked", marked == "true")
    reader.expect(
        "numbers stay beside a mistake", not reader.tab.locator(".try table").is_visible()
    )
    reader.fill({"data": "a, 5\nb, 3"}, "done")
    reader.expect("the sentence stays when it is mended", not problem.is_visible())


def look(reader: Reader, colours: bool) -> None:
    """Ask axe-core, with numbers and with a refusal on the page."""
    for state, data in (("done", "a, 5\nb, 3"), ("refused", "a, 5\nb, -3")):
        reader.fill({"data": data}, state)
        found = accessibility.violations(reader.tab, colours=colours)
        reader.faults += [f"axe {rule}: {detail}" for rule, detail in found]


def without_script(browser: Any, url: str) -> list[str]:
    """The faults of the page where JavaScript is off."""
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(url, wait_until="load")
    form, words = tab.locator(".try form"), tab.locator("[data-part=needs-script]")
    fair = not form.is_visible() and words.is_visible()
    context.close()
    return [] if fair else ["without a script: a form that does nothing, or no word about it"]


def use(
    browser: Any,
    url: str,
    view: tuple[int, str],
    steps: list[Step],
    patience: int = PATIENCE,
    until: str | None = None,
) -> list[str]:
    """The faults of one page in one view, up to the step that finds the expected fault, if any."""
    width, scheme = view
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    reader = Reader(context.new_page(), patience)
    try:
        reader.open(url)
        for step in steps:
            step(reader)
            if until and any(until in text for text in reader.faults):
                break
    except Exception as error:  # whatever stops a reader
        reader.faults.append(f"not used: {' '.join(str(error).split())[:300]}")
    reader.faults += [f"requests {each}" for each in reader.asked]
    context.close()
    return [f"{width} px, {scheme}: {text}" for text in reader.faults]


def examples() -> list[Step]:
    """Use each example, a link and a mistake."""
    return [
        *(lambda reader, name=name: example(reader, name) for name in EXAMPLES),
        link,
        load,
        refusal,
    ]


def check(browser: Any, html: Path) -> list[str]:
    """The faults of the page of the built book, opened from the disk."""
    page = (html / "book" / "try.html").resolve()
    if not page.is_file():
        return [f"{page} is not there: run `make book`"]
    found = without_script(browser, page.as_uri())
    found += use(browser, page.as_uri(), VIEWS[0], [lambda reader: numbers(reader, N_INPUTS)])
    for view in VIEWS:
        steps = [*examples(), lambda reader: look(reader, colours=True)]
        found += use(browser, page.as_uri(), view, steps)
    many = len(inputs(N_INPUTS))
    print(f"check_try: {many} inputs, {len(HOSTILE)} hostile ones, {len(found)} findings")
    return found


# the fault: the file, the text to replace, its replacement, and words of what must be found
BROKEN: dict[str, tuple[str, str, str, str]] = {
    "the gap is wrong": ("maximum", "Math.log1p(best.off)", "1e-8", "gap off"),
    "the maximum stops early": ("maximum", "MAX_STEPS = 200", "MAX_STEPS = 2", "gap off"),
    "a matrix is wrong": ("mechanism", "exp(-epsilon * (Math", "exp(-2 * (Math", "estimate off"),
    "a step is wrong": ("step", "share * g[x])", "share * g[x] ** 0.9)", "IBU off"),
    "intervals are narrow": ("interval", "2 / 2 / n", "2 / 3 / n", "interval off"),
    "one range is wrong": ("maximisers", "i, -1);", "i, 1);", "range off"),
    "all is unique": ("maximisers", "length === some.length", "length", "unique: True"),
    "a negative count passes": ("read", "value < 0", "value < -1e9", "negative: not refused"),
    "a column is misread": ("read", "mark)[column]", "mark)[0]", "cut: "),
    "a sentence is lost": ("page", "textContent = sentence", "lang = sentence", "not answered on"),
    "HTML is taken": ("page", "made.textContent = words", "made.innerHTML = words", "HTML in a"),
    "a call is wrong": ("python", "values, epsilon=${", "values, epsilon=${2 * ", "its call gives"),
    "nothing is drawn": ("picture", "box.replaceChildren(svg)", "", "no picture"),
    "the slider is deaf": ("page", 'step.addEventListener("input"', 'step.addEventListener("x"',
                           "moves nothing"),
    "the link forgets": ("page", "#${query}`", "`", "the link gives"),
    "something is sent": ("page", "now = null;\n", "now = null; new Image().src = 'http://a.test/'\n",
                          "requests"),
    "a file is not read": ("page", "...kit.read.guess(text)", "", "the file gives"),
    "a misfit is not told": ("page", 'part("misfit").hidden =', "void", "do not fit"),
    "a script fails": ("page", '"use strict";', '"use strict"; gone();', "script error"),
}  # fmt: skip


def trial(folder: Path, change: tuple[str, str, str, str] | None) -> str:
    """The address of a page with only the form, one of whose files is changed."""
    (folder / "book").mkdir(exist_ok=True)
    (folder / "_static").mkdir(exist_ok=True)
    for file in [*STATIC.glob("try*"), STATIC / "moving.css", STATIC / "schematics.css"]:
        text = file.read_text("utf8")
        if change and file.name == f"try-{change[0]}.js":
            if change[1] not in text:
                raise ValueError(f"{change[1]!r} is not in {file.name}")
            text = text.replace(change[1], change[2])
        (folder / "_static" / file.name).write_text(text, "utf8")
    body = re.search(r"```\{raw\} html\n(.*?)```", PAGE.read_text("utf8"), re.DOTALL)
    head = '<meta charset="utf-8"><title>Try</title>'
    page = (
        f'<!doctype html><html lang="en"><head>{head}</head><body>{body and body[1]}</body></html>'
    )
    (folder / "book" / "try.html").write_text(page, "utf8")
    return (folder / "book" / "try.html").as_uri()


def self_test(browser: Any) -> list[str]:
    """The faults that are not found."""
    missed, steps = [], [lambda reader: numbers(reader, N_SELF_TEST), *examples()]
    with tempfile.TemporaryDirectory() as folder:
        for name, change in {"nothing": None, **BROKEN}.items():
            word = change[3] if change else None
            patience = PATIENCE if change is None else SHORT_PATIENCE
            found = use(browser, trial(Path(folder), change), VIEWS[0], steps, patience, word)
            if found if word is None else not any(word in text for text in found):
                missed.append(f"{name}: expected {word!r}, found {found[:3]}")
    total = len(BROKEN) + 1
    print(f"check_try --self-test: {total - len(missed)} of {total} pages judged as they deserve")
    return missed


def main() -> int:
    """Carry out the command line; 1 where something was found."""
    return run_check(__doc__, self_test, check)


if __name__ == "__main__":
    sys.exit(main())
