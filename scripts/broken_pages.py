"""Pages that are broken on purpose for the self-test of `check_book`, and their faults."""

from __future__ import annotations

from page_checks import HEAVIEST

PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
ICON = f'<link rel="icon" href="{PIXEL}">'
SPANS = "<p>" + " ".join(f"<span>word {i}</span>" for i in range(80)) + "</p>"
LONG = "x = " + "1 + " * 400 + "1"
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
    "table": (
        (
            '<div style="overflow: hidden"><table><tr><td><div style="width:'
            ' 3000px">cut</div></td></tr></table></div>'
        ),
        "table cut off",
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
# what must not be found: code and tables that scroll or wrap
FITTING = {
    "table-scrolls": BROKEN["table"][0].replace(
        'style="overflow: hidden"', 'style="overflow: auto" tabindex="0"'
    ),
    "code-wraps": f'<pre style="white-space: pre-wrap">{LONG}</pre>',
}
