"""Ask axe-core what is wrong with a page.

Measuring colours takes the longest: a chapter has ten thousand pieces of highlighted code. So words
that look alike are measured once. Words look alike if they have the same tags and classes all the
way up, and the same colours on the same grounds. Of all words with one look, the first, the middle
and the last are measured.
"""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# The rules that the theme itself breaks on every page, whatever the book writes.
ALLOWED = {"region": "the theme puts its logo outside every landmark"}
SOURCE = Axe().axe_script

OTHER_RULES = """async () => {
  const rules = {'color-contrast': {enabled: false}, 'link-in-text-block': {enabled: false}};
  return await axe.run(document, {preload: false, resultTypes: ['violations'], rules});
}"""  # `preload` would look up style sheets by a wrong path
COLOURS = """async measured => {
  const known = new Set(measured);
  const looks = new Map(), above = new Map();
  // formulas for a screen reader are heard, not seen, and a sixth of all elements
  for (const e of document.querySelectorAll('mjx-assistive-mml')) e.remove();
  const CLEAR = 'rgba(0, 0, 0, 0)';
  const NUMBERED = /\\b(shown|needs)-\\d+ ?/g;  // what a cell is to be copied with
  const ground = e => {  // what stands behind the words of an element
    if (e === null) return '';
    if (!above.has(e)) {
      const s = getComputedStyle(e);
      const named = (e.className.baseVal ?? e.className).replace(NUMBERED, '');
      const style = e.id && e.getAttribute('style');
      const own = [e.tagName, named, style, s.opacity, s.filter];
      const painted = s.backgroundColor !== CLEAR || s.backgroundImage !== 'none';
      if (painted) own.push(s.backgroundColor, s.backgroundImage);
      if (s.position !== 'static') own.push(s.position);
      above.set(e, ground(e.parentElement) + '>' + own.join(' '));
    }
    return above.get(e);
  };
  const speaks = e => /^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName)
    || [...e.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim());
  for (const e of document.body.querySelectorAll('*')) {
    if (!speaks(e)) continue;
    const s = getComputedStyle(e);
    const font = [s.color, s.fontSize, s.fontWeight, s.textShadow];
    const look = [ground(e), ...font, e.checkVisibility()].join('|');
    if (known.has(look)) continue;
    if (!looks.has(look)) looks.set(look, []);
    looks.get(look).push(e);
  }
  const some = all => [...new Set([all[0], all[all.length >> 1], all[all.length - 1]])];
  const include = [...looks.values()].flatMap(some);
  if (!include.length) return {violations: [], looks: []};
  const runOnly = {type: 'rule', values: ['color-contrast', 'link-in-text-block']};
  const {violations} = await axe.run({include},
    {preload: false, resultTypes: ['violations'], runOnly});
  return {violations, looks: [...looks.keys()]};
}"""


def violations(
    tab: Page, *, colours: bool, others: bool = True, measured: set[str] | None = None
) -> list[tuple[str, str]]:
    """The rules of axe-core that the page breaks, each with its severity and its places.

    Looks that are in `measured` are not measured again; the looks of this page are added to it.
    """
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(SOURCE)
    found = []
    results: list[dict[str, Any]] = [tab.evaluate(OTHER_RULES)] if others else []
    if colours:
        measured = set() if measured is None else measured
        results.append(tab.evaluate(COLOURS, list(measured)))
        measured.update(results[-1]["looks"])
    for result in results:
        for rule in result["violations"]:
            if rule["id"] not in ALLOWED:
                where = "; ".join(str(node["target"]) for node in rule["nodes"][:3])
                found.append((rule["id"], f"{rule['impact']}, {len(rule['nodes'])} times: {where}"))
    return found
