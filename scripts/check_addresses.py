"""The setting of a moving figure in the address of its page, in the browser.

`faults` moves a figure, opens the address that the page then has, and compares the two pictures; it
also opens addresses that name no setting, and presses the button that copies the link. It is a part
of ``check_moving_figures.py``.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from playwright.sync_api import TimeoutError as TooLate

from moving_marks import Choice, Spec, first_choice

# the text of a moving figure's sentences and the places of its marks
SHOWN = """box => ({
  said: Object.fromEntries(
    [...box.querySelectorAll('[data-say]')].map(node => [node.dataset.say, node.textContent])),
  marks: [...box.querySelectorAll('.moving-plot')].map(plot => [...plot.children].map(mark =>
    Object.fromEntries([...mark.attributes].map(a => [a.name, a.value])))),
})"""
# the controls by what they show, which is what an address must name
STANDS = """box => Object.fromEntries([...box.querySelector('form').elements]
  .filter(field => field.name).map(field => [field.name, Number(field.value)]))"""
WRITTEN = """wanted => { const named = new URLSearchParams(location.search);
  return wanted.every(([key, word]) => named.get(key) === word); }"""
PATIENCE = 20_000  # milliseconds for an address to be written, on a busy machine


def other_end(tab: Any, box: Any, spec: Spec) -> Choice:
    """Move every control by keyboard to an end where it is not yet; return the new choice."""
    for control in spec["controls"]:
        box.locator(f"[name={control['name']}]").focus()
        tab.keyboard.press("Home" if control["start"] == len(control["values"]) - 1 else "End")
    return dict(box.evaluate(STANDS))


def settings(box: Any, spec: Spec, choice: Choice) -> list[tuple[str, str]]:
    """The pairs of a name and a word that stand for a figure's choice in an address."""
    figure = box.evaluate("box => box.closest('figure').id")
    prefix = figure.removeprefix("fig-").removeprefix("moving-")
    return [(f"{prefix}.{c['name']}", c["values"][choice[c["name"]]]) for c in spec["controls"]]


def with_word(url: str, word: str) -> str:
    """The address with its last setting replaced by another word."""
    parts = urlsplit(url)
    named = parse_qsl(parts.query)
    return urlunsplit(parts._replace(query=urlencode([*named[:-1], (named[-1][0], word)])))


def opened(tab: Any, url: str, title: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What a figure shows at an address: its picture, its controls, and the note below them."""
    page = tab.context.new_page()
    page.goto(url, wait_until="load")
    box = page.locator(f".moving[aria-label='{title}']")
    found = box.evaluate(SHOWN), box.evaluate(STANDS), box.locator(".moving-note").inner_text()
    page.close()
    return found


def faults(tab: Any, box: Any, spec: Spec) -> list[str]:
    """The faults of one figure's addresses; the figure must show its first choice before."""
    first = box.evaluate(SHOWN)
    tab.evaluate("location.hash = '#an-anchor-of-the-page'")
    choice = other_end(tab, box, spec)
    try:
        tab.wait_for_function(WRITTEN, arg=settings(box, spec, choice), timeout=PATIENCE)
    except TooLate:
        return ["the address does not follow the controls"]
    url, shown = tab.evaluate("location.href"), box.evaluate(SHOWN)
    found = [] if url.endswith("#an-anchor-of-the-page") else ["the anchor of the page is lost"]
    if choice == first_choice(spec):
        found.append("no control was moved")
    again, stands, note = opened(tab, url, spec["title"])
    if again != shown or stands != choice or note:
        found.append(f"the address gives {stands} back for {choice}, and says {note!r}")
    for word in ("no such word", ""):
        again, stands, note = opened(tab, with_word(url, word), spec["title"])
        if again != first or stands != first_choice(spec) or not note:
            found.append(f"an address that cannot be read gives {stands}, and says {note!r}")
    return found + link_faults(tab, box, spec, choice)


def link_faults(tab: Any, box: Any, spec: Spec, choice: Choice) -> list[str]:
    """The faults of the link that the button copies when it is pressed without a mouse."""
    button = box.locator("button[data-link]")
    if not button.is_visible():
        return ["there is no button for the link"]
    button.focus()
    tab.keyboard.press("Enter")
    note = box.locator(".moving-note")
    if tab.url.startswith("file:"):
        link = note.locator("input").input_value()
    else:
        note.filter(has_text="copied").wait_for(timeout=PATIENCE)
        link = tab.evaluate("navigator.clipboard.readText()")
    _, stands, said = opened(tab, link, spec["title"])
    figure = box.evaluate("box => box.closest('figure').id")
    if stands != choice or said or not link.endswith(f"#{figure}"):
        return [f"the link {link} gives {stands} back for {choice}"]
    return []
