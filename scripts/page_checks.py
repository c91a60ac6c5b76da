"""The facts about a built page, by a script in the browser and from the file, and their faults."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

SMALLEST = 10.5  # px, of words in a schematic
HEAVIEST = 1_000_000  # bytes of a page with all that it loads, uncompressed, without MathJax
HEAVIEST_SITE = 30_000_000  # bytes of all files
MATHJAX = re.compile(r"/_static/mathjax/([^?]+)")
# Pages whose code may be wider than its column: listings of the package's source, whose lines have
# 100 columns, and the examples in docstrings.
CODE_MAY_BE_WIDE = ("_modules/", "book/reference/", "tests/")
# what the head of every page must have exactly once
ONCE = ('name="viewport"', 'name="description"', 'property="og:title"')

WAIT_UNTIL_DRAWN = """async () => {
  for (const image of document.images) image.loading = 'eager';
  await Promise.all([...document.images].map(image => image.decode().catch(() => {})));
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  await document.fonts.ready;
}"""
FACTS = """async () => {
  const decoration = i => i.getAttribute('role') === 'presentation'
    || i.closest('[aria-hidden=true], .navbar-brand');
  const shown = [...document.images].filter(i => !decoration(i));
  const name = i => i.getAttribute('src').split('/').pop();
  const formulas = [...document.querySelectorAll('.math')];
  const width = document.documentElement.clientWidth;
  const flow = e => getComputedStyle(e).overflowX;
  const above = (e, kinds) => { for (; e && e !== document.body; e = e.parentElement)
    if (kinds.includes(flow(e))) return true; return false; };
  const scrolls = e => above(e, ['auto', 'scroll', 'hidden']);
  const wide = [...document.body.querySelectorAll('*')]
    .filter(e => e.getBoundingClientRect().left + e.scrollWidth > width + 1 && !scrolls(e));
  const cut = [...document.querySelectorAll('main table')].filter(e => e.checkVisibility()
    && e.getBoundingClientRect().left + e.scrollWidth > width + 1 && !above(e, ['auto', 'scroll']));
  const rows = e => (e.clientHeight - parseFloat(getComputedStyle(e).paddingTop)
    - parseFloat(getComputedStyle(e).paddingBottom)) / parseFloat(getComputedStyle(e).lineHeight);
  const wraps = e => e.closest('[class*=python]')  // listings of text may
    && Math.round(rows(e)) > e.textContent.trimEnd().split('\\n').length;
  const code = [...document.querySelectorAll('main pre')].filter(e => e.checkVisibility())
    .filter(e => e.scrollWidth > e.clientWidth + 1 || wraps(e))
    .filter(e => !e.closest('.cell_output'));
  const breaks = e => new Set([...e.getClientRects()].map(r => Math.round(r.top))).size > 1;
  const broken = [...document.querySelectorAll('main table :is(td, th) code')]
    .flatMap(e => e.querySelector('.pre') ? [...e.querySelectorAll('.pre')] : [e])
    .filter(e => !/\\s/.test(e.textContent.trim()) && e.checkVisibility() && breaks(e));
  const sides = e => parseFloat(getComputedStyle(e).paddingLeft);
  const tight = [...document.querySelectorAll('.chapter-card')].filter(e => sides(e) < 8);
  const bar = document.querySelector('.bd-sidebar-primary');
  const here = bar?.checkVisibility() ? bar.querySelector('li.current > a.current') : null;
  const seen = e => { const r = e.getBoundingClientRect(), f = bar.getBoundingClientRect();
    return r.top >= f.top && r.bottom <= Math.min(f.bottom, innerHeight); };
  const narrow = innerWidth <= 600;  // where a table of text stands as cards
  const heads = e => [...(e.tHead?.rows[0]?.cells ?? [])].map(c => c.textContent.trim());
  const tables = narrow ? [...document.querySelectorAll('main table')]
    .filter(e => e.checkVisibility() && getComputedStyle(e).display === 'table') : [];
  const late = tables.filter(e => heads(e).findIndex(h => h.toLowerCase() === 'verdict') > 1);
  const text = e => !e.closest('.cell_output, .table-scroll')
    && heads(e).length > 1 && heads(e).length <= 4 && heads(e).every(h => h);
  const spread = tables.filter(e => text(e)
    && e.scrollWidth > e.parentElement.closest('section, div, main').clientWidth + 1);
  const answer = [...document.querySelectorAll('main p > strong:first-child')]
    .find(e => e.textContent.trim() === 'Answer.')?.parentElement;
  const foot = answer ? Math.ceil(answer.getBoundingClientRect().bottom + scrollY) : null;
  const screen = {1280: 800, 390: 844}[innerWidth] ?? Infinity;
  const lettered = e => [...e.querySelectorAll('text')].filter(t => t.textContent.trim());
  const height = t => parseFloat(getComputedStyle(t).fontSize) * (t.getScreenCTM()?.a ?? 1);
  const words = [...document.querySelectorAll('figure.schematic svg')]
    .filter(e => e.checkVisibility()).map(e => [e, Math.min(...lettered(e).map(height))])
    .filter(([, size]) => size < SMALLEST);
  const hidden = [...document.querySelectorAll('figure.schematic')].filter(e => e.checkVisibility()
    && (e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth + 1));
  const icon = document.querySelector('link[rel~=icon]');
  const loads = async url => { try { return (await fetch(url)).ok; } catch { return false; } };
  return {
    unloaded: [...document.images].filter(i => !i.complete || i.naturalWidth === 0).map(name),
    unnamed: shown.filter(i => !i.alt.trim() || /\\.(png|jpe?g|svg)$/i.test(i.alt)).map(name),
    raw: formulas.filter(f => !f.querySelector('mjx-container'))
      .map(f => f.textContent.slice(0, 60)),
    wrong: [...document.querySelectorAll('mjx-merror')].map(e => e.textContent.slice(0, 60)),
    sideways: document.documentElement.scrollWidth - width,
    widest: wide.slice(0, 3).map(e => e.tagName.toLowerCase() + '.' + e.className),
    broken: broken.map(e => e.textContent.trim().slice(0, 40)),
    tight: tight.map(e => e.textContent.trim().slice(0, 40)),
    away: here && !seen(here) ? [here.textContent.trim().slice(0, 40)] : [],
    late: late.map(e => heads(e).join(', ').slice(0, 60)),
    spread: spread.map(e => heads(e).join(', ').slice(0, 60)),
    answered: foot !== null,
    below: foot > screen ? [`it ends at ${foot} px of ${screen}`] : [],
    formulas: formulas.length,
    words: words.map(([e, size]) => `${size.toFixed(1)} px in ${e.ariaLabel?.slice(0, 40)}`),
    hidden: hidden.map(e => e.querySelector('svg')?.ariaLabel?.slice(0, 40) ?? 'without a name'),
    cut: cut.map(e => e.textContent.trim().slice(0, 40)),
    code: code.map(e => e.textContent.trim().slice(0, 40)),
    icon: icon !== null && (location.protocol === 'file:' || await loads(icon.href)),
  };
}""".replace("SMALLEST", str(SMALLEST))
# The evidence must be hidden with the switch off and shown with it on; afterwards it stays on.
EVIDENCE = """async () => {
  const all = [...document.querySelectorAll('main .evidence')];
  if (!all.length) return [];
  const folds = '.toggle-hidden, details:not([open])';  // a reader can open these
  const reachable = e => e.checkVisibility() || e.parentElement.closest(folds);
  const button = document.querySelector('button.evidence-switch');
  if (!button) return ['there is no switch for it'];
  const found = [];
  if (document.documentElement.dataset.evidence !== 'on') {
    if (button.getAttribute('aria-pressed') !== 'false') found.push('the switch is not named off');
    const early = all.filter(e => e.checkVisibility()).length;
    if (early) found.push(`${early} pieces are seen before anybody asks`);
    button.click();
  }
  if (button.getAttribute('aria-pressed') !== 'true') found.push('the switch is not named on');
  const lost = all.filter(e => !reachable(e)).length;
  if (lost) found.push(`${lost} pieces stay hidden`);
  return found;
}"""
LISTS = {
    "unloaded": "image not loaded",
    "unnamed": "image without alternative text",
    "raw": "formula not typeset",
    "wrong": "formula with an error",
    "cut": "table cut off",
    "broken": "name broken in a table",
    "tight": "card without padding",
    "away": "open page not seen in the sidebar",
    "words": "schematic too small to read",
    "hidden": "schematic not seen whole",
    "late": "verdict not in front on a phone",
    "spread": "table of text wider than a phone",
    "below": "answer not on the first screen",
}


def judge(facts: dict[str, Any], page: str, widest: bool) -> list[tuple[str, str]]:
    """The faults of a page, by kind and detail; its code is judged at the largest width only."""
    found = [(kind, detail) for key, kind in LISTS.items() for detail in facts[key]]
    if facts["sideways"] > 1:
        found.append(("scrolls sideways", f"{facts['sideways']} px: {', '.join(facts['widest'])}"))
    if widest and facts["code"] and not page.startswith(CODE_MAY_BE_WIDE):
        found.append(
            (
                "code wider than its column",
                f"{len(facts['code'])} times: {'; '.join(facts['code'][:3])}",
            )
        )
    if page.startswith("book/chapters/") and not facts["answered"]:
        found.append(("answer not on the first screen", "no paragraph begins with Answer."))
    if not facts["icon"]:
        found.append(("no favicon", "no link of the kind icon, or it leads nowhere"))
    return found


def burdens(loaded: dict[str, int], formulas: int) -> list[tuple[str, str]]:
    """The faults of what a page loads, address -> bytes."""
    typesetters = [found[1] for url in loaded if (found := MATHJAX.search(url))]
    weight = sum(size for url, size in loaded.items() if not MATHJAX.search(url))
    found = []
    if weight > HEAVIEST:
        found.append(("heavy page", f"{weight:,} bytes beside MathJax, more than {HEAVIEST:,}"))
    if typesetters and not formulas:
        found.append(("MathJax without a formula", typesetters[0]))
    bundles = [name for name in typesetters if "/" not in name]
    if len(set(bundles)) > 1:
        found.append(("second bundle of MathJax", ", ".join(bundles)))
    return found


def site_weight(html: Path) -> list[tuple[str, str]]:
    """The fault of all files together, if any."""
    weight = sum(path.stat().st_size for path in html.rglob("*") if path.is_file())
    too_much = f"{weight:,} bytes, more than {HEAVIEST_SITE:,}"
    return [("heavy site", too_much)] if weight > HEAVIEST_SITE else []


def heads(html: Path, names: list[str]) -> list[tuple[str, str, str]]:
    """The faults of the heads of pages: page, kind and detail."""
    found, titles = [], defaultdict(list)
    for name in names:
        head = (html / name).read_text("utf8").partition("</head>")[0]
        if re.search(r"http-equiv=.?refresh", head, re.IGNORECASE):
            continue  # it only sends the reader on
        title = re.search(r"<title>(.*?)</title>", head, re.DOTALL)
        titles[" ".join(title[1].split()) if title else ""].append(name)
        counts = {tag: head.count(tag) for tag in ONCE}
        found += [(name, "head", f"{tag} {n} times") for tag, n in counts.items() if n != 1]
        words = title[1].split("—") if title else []
        if len(words) > 1 and len({" ".join(word.split()) for word in words}) < len(words):
            found.append(
                (name, "head", f"the title says the same twice: {title and title[1].strip()}")
            )
    found += [
        (same[1], "head", f"title {title!r} as {same[0]}")
        for title, same in titles.items()
        if len(same) > 1
    ]
    return found
