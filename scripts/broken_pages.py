"""Pages that are broken on purpose for the self-test of `check_book`, and their faults."""

from __future__ import annotations

from page_checks import HEAVIEST

PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
ICON = f'<link rel="icon" href="{PIXEL}">'
SPANS = "<p>" + " ".join(f"<span>word {i}</span>" for i in range(80)) + "</p>"
LONG = "x = " + "1 + " * 400 + "1"
SWITCH = (
    '<button class="evidence-switch" aria-pressed="false"'
    " onclick=\"this.ariaPressed = 'true'\">Show the evidence</button>"
)
TABLE = "<table><thead><tr>{}</tr></thead><tbody><tr><td>x</td></tr></tbody></table>"
SLOW = (
    "<!doctype html><title>slow</title><script>for (const end = performance.now() + 700;"
    " performance.now() < end;);</script><p>word</p>"
)
# Pages whose names begin with "phone" are looked at on a phone.
BROKEN: dict[str, tuple[str, str | None]] = {
    "good": ("", None),
    "alt": (f'<img src="{PIXEL}">', "image without alternative text"),
    "alt-is-a-path": (
        f'<img src="{PIXEL}" alt="_images/abc.png">',
        "image without alternative text",
    ),
    "image": ('<img src="gone.png" alt="A picture that is not there">', "image not loaded"),
    "request": ('<link rel="stylesheet" href="gone.css">', "failed request"),
    "console": ("<script>console.error('no')</script>", "console"),
    "script": ("<script>nothing.here()</script>", "script error"),
    "host": (
        '<img src="http://example.invalid/a.png" alt="A picture from elsewhere">',
        "other host",
    ),
    "wide": ('<div style="width: 3000px">wide</div>', "scrolls sideways"),
    "math": (r'<span class="math">\(x^2\)</span>', "formula not typeset"),
    "axe": ('<input type="text">', "axe label"),
    "contrast": ('<p style="color: #bbb; background: #fff">pale</p>', "axe color-contrast"),
    "search": ('<ul id="search-results"></ul>', "search"),
    "code": (
        f'<pre tabindex="0" style="overflow: auto">{LONG}</pre>',
        "code wider than its column",
    ),
    "wrapped code": (
        f'<div class="highlight-python"><pre tabindex="0" style="line-height: 20px;'
        f' white-space: pre-wrap">{LONG}</pre></div>',
        "code wider than its column",
    ),
    "table": (
        (
            '<div style="overflow: hidden"><table><tr><td><div style="width:'
            ' 3000px">cut</div></td></tr></table></div>'
        ),
        "table cut off",
    ),
    "name": (
        (
            '<table style="width: 20px"><tr><td><code style="overflow-wrap:'
            ' anywhere">a_long_name</code></td></tr></table>'
        ),
        "name broken in a table",
    ),
    "card": (
        '<div class="chapter-card" style="padding: 2px">A chapter</div>',
        "card without padding",
    ),
    "sidebar": (
        (
            '<div class="bd-sidebar-primary" style="height: 90px; overflow: auto" tabindex="0">'
            '<div style="height: 2000px"></div><ul><li class="current">'
            '<a class="current" href="#x">Here</a></li></ul></div>'
        ),
        "open page not seen in the sidebar",
    ),
    "schematic": (
        (
            '<figure class="schematic"><svg role="img" aria-label="A drawing" viewBox="0 0 600 90"'
            ' width="300"><text y="20" font-size="16">small</text></svg></figure>'
        ),
        "schematic too small to read",
    ),
    "half-schematic": (
        (
            '<figure class="schematic" style="overflow: auto" tabindex="0"><svg role="img"'
            ' aria-label="A drawing" viewBox="0 0 600 90" width="1400"><text y="20"'
            ' font-size="16">wide</text></svg></figure>'
        ),
        "schematic not seen whole",
    ),
    "no-switch": ('<div class="evidence">A check</div>', "evidence"),
    "evidence-early": (SWITCH + '<div class="evidence">A check</div>', "evidence"),
    "evidence-lost": (
        SWITCH + '<div class="evidence" style="display: none">A check</div>',
        "evidence",
    ),
    "answer": (
        '<div style="height: 900px"></div><p><strong>Answer.</strong> Yes.</p>',
        "answer not on the first screen",
    ),
    "phone-answer": (
        '<div style="height: 840px"></div><p><strong>Answer.</strong> Yes.</p>',
        "answer not on the first screen",
    ),
    "phone-verdict": (
        TABLE.format("<th>what</th><th>ours</th><th>Verdict</th>"),
        "verdict not in front on a phone",
    ),
    "phone-table": (
        '<section style="overflow: auto" tabindex="0">'
        + TABLE.format(f"<th>what</th><th>{'a_long_name' * 9}</th>")
        + "</section>",
        "table of text wider than a phone",
    ),
    "mathjax-for-nothing": (
        '<link rel="stylesheet" href="_static/mathjax/tex-chtml.js">',
        "MathJax without a formula",
    ),
    "two-bundles": (
        '<link rel="stylesheet" href="_static/mathjax/tex-chtml.js">'
        '<link rel="stylesheet" href="_static/mathjax/tex-svg.js">',
        "second bundle of MathJax",
    ),
    "heavy": (f"<!-- {'x' * HEAVIEST} -->", "heavy page"),
    "no-favicon": ("", "no favicon"),
    "favicon-gone": ('<link rel="icon" href="gone.svg">', "no favicon"),
    "one-of-many": (
        SPANS.replace("word 40", "<i style='color: #bbb'>word 40</i>"),
        "axe color-contrast",
    ),
    "one-ground": (
        SPANS.replace("word 40", "<b style='background: #555'>word 40</b>"),
        "axe color-contrast",
    ),
    "link": (
        (
            '<p>Some words <a href="#x" style="color: #222; text-decoration: none">a link</a> and'
            " words.</p>"
        ),
        "axe link-in-text-block",
    ),
    "stays-light": (
        "<script>document.documentElement.dataset.theme = 'light'</script>",
        "not dark",
    ),
    "dark": (
        (
            "<style>@media (prefers-color-scheme: dark) { body { background: #111; color: #333 }"
            " }</style><p>dim</p>"
        ),
        "axe color-contrast",
    ),
}
# good pages, on which no fault may be found: their code and tables scroll or wrap
FITTING = {
    "table-scrolls": BROKEN["table"][0].replace(
        'style="overflow: hidden"', 'style="overflow: auto" tabindex="0"'
    ),
    "evidence-asked": (
        "<style>html:not([data-evidence=on]) .evidence { display: none }</style>"
        + SWITCH.replace(
            'onclick="', "onclick=\"document.documentElement.dataset.evidence = 'on'; "
        )
        + '<div class="evidence">A check</div>'
    ),
    "text-wraps": f'<pre style="white-space: pre-wrap">{LONG}</pre>',
}
