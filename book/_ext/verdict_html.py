"""The HTML of the page of verdicts: bars, badges, filters and rows that open one by one."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from table_layout import MINUS
from verdict_rows import CLASSES, PAPERS, RESULTS, Entry, Number, anchor, codes, spelled_out

from ibukit_claims._counts import OURS, Counts, distinct

# the columns with links; a link inside the line that opens a row could not be reached
LINKED = ("expected", "right")
TYPESET = ("claim", "expected", "wrong", "right")  # not the quotations
GREEK = {"eps": "ε", "theta": "θ", "alpha": "α", "beta": "β", "lambda": "λ", "delta": "δ"}
FORMULA = re.compile(r"\$([^$]+)\$")
CLAIMS = (*RESULTS, "setting", OURS)
WORDS = (*CLAIMS, *CLASSES)


def badge(word: str) -> str:
    """A verdict in its colour; the sign before it comes from the style sheet."""
    return f'<span class="verdict" data-verdict="{escape(word)}">{escape(word)}</span>'


def chosen(page: str, **filters: str) -> str:
    """The address of the page of verdicts with filters set."""
    return f"{page}?" + "&amp;".join(
        f"{name}={value.replace(' ', '+')}" for name, value in filters.items()
    )


def bars(counts: Counts, page: str) -> str:
    """The results of each paper as a stacked bar, with their sum as the key to its colours."""
    everything = counts.verdicts
    most = max(found.total() for found in counts.results.values())
    key = "".join(
        f'<li><a href="{chosen(page, verdict=word)}">{everything[word]} {badge(word)}</a></li>'
        for word in RESULTS
    )
    lines = "".join(_bar(letter, found, most, page) for letter, found in counts.results.items())
    return (
        f'<div class="verdict-bars"><p><strong>{counts.n_results} results of five papers'
        f"</strong>, checked one by one. Another {counts.n_settings} rows are settings, inputs "
        f"that we took from the papers; they do not count as results. {counts.ours} rows are "
        "results of ours; no count includes them.</p>"
        f'<ul class="verdict-key">{key}</ul><ul class="verdict-papers">{lines}</ul></div>'
    )


def strip(counts: Counts, page: str) -> str:
    """The results of all papers together as one stacked bar, for the first screen of the book."""
    found = counts.verdicts
    key = " ".join(
        f'<li><a href="{chosen(page, verdict=word)}">{found[word]} {badge(word)}</a></li>'
        for word in RESULTS
        if found[word]
    )
    return (
        f'<div class="verdict-bars verdict-strip"><p><a href="{page}"><strong>{counts.n_results} '
        "results of five papers</strong></a>, checked one by one:</p>"
        f'<div class="verdict-bar" role="img" aria-label="{_said(found)}">{_parts(found)}</div>'
        f'<ul class="verdict-key">{key}</ul></div>'
    )


def bar(counts: Counts, letter: str, page: str) -> str:
    """The results of one paper as a stacked bar, with its settings in words."""
    found = counts.results[letter]
    said = ", ".join(f"{found[word]} {badge(word)}" for word in RESULTS if found[word])
    return (
        f'<div class="verdict-bars"><p><strong>{found.total()} results</strong>: {said}. Another '
        f"{counts.rows[letter]['setting']} rows are settings, inputs taken from the paper.</p>"
        f'<ul class="verdict-papers">{_bar(letter, found, found.total(), page)}</ul></div>'
    )


def _bar(letter: str, found: Counter[str], most: int, page: str) -> str:
    name = f"Paper {letter}, {PAPERS[letter][1]}: {found.total()} results: {_said(found)}"
    return (
        f'<li><a href="{chosen(page, paper=letter)}"><b>{letter}</b> {PAPERS[letter][1]}</a>'
        f'<div class="verdict-bar" role="img" aria-label="{escape(name)}" '
        f'style="width: {100 * found.total() / most:.1f}%">{_parts(found)}</div></li>'
    )


def _said(found: Counter[str]) -> str:
    return ", ".join(f"{found[word]} {word}" for word in RESULTS if found[word])


def _parts(found: Counter[str]) -> str:
    return "".join(
        f'<span data-verdict="{word}" style="flex-grow: {found[word]}">{found[word]}</span>'
        for word in RESULTS
        if found[word]
    )


def controls(kinds: tuple[str, ...], titles: dict[str, str]) -> str:
    """The filters; hidden until the script is there to answer them."""

    def select(name: str, said: str, options: Iterable[tuple[str, str]], every: str = "all") -> str:
        inside = "".join(
            f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in options
        )
        first = f'<option value="">{every}</option>' if every else ""
        return f'<label>{said} <select name="{name}">{first}{inside}</select></label>'

    both = len(kinds) > 1
    words = (WORDS if both else CLASSES) if "erratum" in kinds else CLAIMS
    orders = [("book", "the book"), ("code", "code"), ("verdict", "verdict")]
    orders.append(("chapter", "chapter, by name"))
    settings = ""
    if "claim" in kinds:
        # readers look for verdicts, so that order comes first; settings are hidden
        orders = [orders.pop(2), *orders, ("error", "largest error")]
        settings = select("settings", "Settings", [("shown", "shown")], every="hidden")
    return (
        '<form class="verdict-filters" role="search" aria-label="Rows" hidden>'
        + '<label class="wide">Text <input type="search" name="q" '
        + 'placeholder="a word, a code, a figure"></label>'
        + select("paper", "Paper", [(key, f"{key} · {paper[1]}") for key, paper in PAPERS.items()])
        + select("chapter", "Chapter", titles.items())
        + (select("kind", "Rows", [("claim", "claims"), ("erratum", "errata")]) if both else "")
        + select(
            "verdict", "Verdict" if "claim" in kinds else "Kind", [(word, word) for word in words]
        )
        + settings
        + select("sort", "Order", orders, every="")
        + '<button type="reset">Reset</button><output aria-live="polite"></output></form>'
    )


def typeset(text: str, rows: set[str] | None = None) -> str:
    """A text with its formulas as mathematics, and links to the rows that it names."""
    pieces = FORMULA.split(text)
    pieces[::2] = [escape(plain) if rows is None else linked(plain, rows) for plain in pieces[::2]]
    pieces[1::2] = [
        f'<span class="math notranslate nohighlight">\\({escape(tex)}\\)</span>'
        for tex in pieces[1::2]
    ]
    return "".join(pieces)


def in_greek(text: str) -> str:
    """A quantity or a setting of a paper's table, with Greek letters in place of their names."""
    return re.sub(r"\b[a-z]+(?=\b|_)", lambda word: GREEK.get(word[0], word[0]), text)


def linked(text: str, rows: set[str]) -> str:
    """A text with links to the rows that it names."""
    parts, at, text = [], 0, spelled_out(text, rows, every=False)
    for start, end in codes(text, rows, every=False):
        parts += [
            escape(text[at:start]),
            f'<a href="claims.html#{anchor(text[start:end])}">{text[start:end]}</a>',
        ]
        at = end
    return "".join([*parts, escape(text[at:])])


@dataclass(frozen=True)
class Page:
    """The facts that the rows of a page share."""

    titles: dict[str, str]
    known: set[str]
    """the codes of all rows"""
    is_open: bool = False


def rows(entries: list[Entry], page: Page) -> str:
    """The rows of one chapter."""
    return f'<ul class="verdict-rows">{"".join(_row(entry, page) for entry in entries)}</ul>'


def _row(entry: Entry, page: Page) -> str:
    columns = {
        name: typeset(text, page.known if name in LINKED else None)
        if name in TYPESET
        else escape(text)
        for name, text in entry.columns.items()
    }
    errors = [n.error for n in entry.numbers if n.error is not None]
    facts = {name: getattr(entry, name) for name in ("kind", "paper", "chapter")}
    facts["verdict"] = entry.word
    facts["error"] = f"{max(errors):.6f}" if errors else ""
    # as a reader types them into the filter
    facts["words"] = " ".join(
        re.sub(r"\\(?:var|mathrm|frac|,)?|[{}]", "", tex)
        for name in TYPESET
        for tex in FORMULA.findall(entry.columns.get(name, ""))
    )
    data = "".join(f' data-{name}="{escape(value)}"' for name, value in facts.items() if value)
    say, more = (_claim if entry.kind == "claim" else _erratum)(columns)
    opened = " open" if page.is_open else ""
    return (
        f'<li class="verdict-row" id="{anchor(entry.id)}"{data}><details{opened}><summary>'
        f'<span class="code">{entry.id}</span> {badge(entry.word)} <span class="say">{say}</span> '
        f'{_short(entry.numbers)}</summary><div class="more">'
        f"{more}{_table(entry)}{_links(entry, page.titles)}</div></details></li>"
    )


def _claim(columns: dict[str, str]) -> tuple[str, str]:
    return columns["claim"], f"<p>{columns['where']}. <b>Tested:</b> {columns['expected']}.</p>"


def _erratum(columns: dict[str, str]) -> tuple[str, str]:
    finding = {"missing condition": "Condition", "irreproducible": "We find", "remark": "Remark"}
    where, quote = columns["where"], columns["quote"]
    quote = f"<p>{where}: “{quote}”</p>" if quote else f"<p>{where}.</p>"
    found = f"<b>{finding.get(columns['class'], 'Instead')}:</b> {columns['right']}"
    reply = f"<p><b>Reply of the authors:</b> {columns['reply']}</p>" if columns["reply"] else ""
    return columns["wrong"], f"{quote}<p>{found} <i>({columns['status']})</i></p>{reply}"


def _short(numbers: tuple[Number, ...]) -> str:
    """The summary of a row's numbers, which is shown while the row is closed."""
    if not numbers:
        return ""
    if len(numbers) == 1 and numbers[0].error is not None:
        (number,) = numbers
        text = f"paper {number.printed}, ours {number.ours} ({error(number)})"
    else:
        found = distinct((n.quantity, n.printed, n.verdict) for n in numbers)
        text = f"{found.total()} printed numbers: {_said(found)}"
        text = text.replace("1 printed numbers", "1 printed number")
    return f'<span class="numbers">{text}</span>'


def error(number: Number) -> str:
    """The error of a number in per cent of the printed number."""
    if number.error is None:
        return "–"
    percent = 100 * number.error
    return f"{percent:.0f} %" if percent >= 10 else "0 %" if percent == 0 else f"{percent:.2g} %"


def _table(entry: Entry) -> str:
    if not entry.numbers:
        return ""
    worst = ("deviates", RESULTS[0], *RESULTS[:0:-1])
    worst_first = sorted(entry.numbers, key=lambda number: worst.index(number.verdict))
    body = "".join(
        f'<tr><th scope="row">{escape(in_greek(n.what))}</th>'
        f'<td class="number">{_digits(n.printed)}</td>'
        f'<td class="number">{_digits(n.ours)}</td><td class="number">{error(n)}</td>'
        f"<td>{badge(n.verdict)}</td></tr>"
        for n in worst_first
    )
    heads = "".join(
        f'<th scope="col"{"" if name in ("what", "verdict") else " class=number"}>{name}</th>'
        for name in ("what", "paper", "ours", "error", "verdict")
    )
    inside = f'<table class="numbers"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="table-scroll">{inside}</div>'


def _digits(text: str) -> str:
    whole, point, part = text.partition(".")
    is_plain = f"{whole}{part}".isdigit() and whole
    return f"{int(whole):,}{point}{part}" if is_plain else MINUS.sub("−", escape(text))


def _links(entry: Entry, titles: dict[str, str]) -> str:
    """The links to where the row is shown, tested and spoken of."""
    shown = [
        f'<a href="chapters/{slug}.html#{cell}">{escape(titles[slug])}</a>'
        for slug, cell in entry.cells
    ]
    if not shown:
        slug = entry.chapter
        shown = [f'<a href="chapters/{slug}.html">{escape(titles[slug])}</a>']
    tests = [
        f'<a href="../tests/{file}.html#{anchor(name)}"><code>{file}::{name}</code></a>'
        for file, name in entry.tests
    ]
    named = [
        f'<a href="chapters/{slug}.html#see-{anchor(entry.id)}">{escape(titles[slug])}</a>'
        for slug in entry.mentions
    ]
    here = [f'<a href="claims.html#{anchor(entry.id)}">#{anchor(entry.id)}</a>']
    lines = {"Shown in the cell of" if entry.cells else "Chapter": shown, "Tested by": tests}
    lines |= {"Named in": named, "This row": here}
    items = "".join(f"<li>{said} {', '.join(to)}</li>" for said, to in lines.items() if to)
    return f'<ul class="links">{items}</ul>'
