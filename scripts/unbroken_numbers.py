"""Keep a number of a built book on one line with its error and its unit.

    python scripts/unbroken_numbers.py [--html _build/html]

The space in "75 %", "1.5 ± 0.1" and "0.5 km" becomes one at which no browser breaks a line. The
space may have tags around it, as beside a computed number, or follow a formula. Code, scripts,
formulas, drawings, attributes and the name of a page stay as they are. `make book` calls this last;
it changes nothing if it is called again.
"""

from __future__ import annotations

import re
from pathlib import Path

import light_book

# Symbols only: a unit that is a word, as in "30 minutes", may begin a line.
UNIT = r"(?:%|(?:km|m|cm|ms|µs|s|kB|MB|GB)\b)"
AS_WRITTEN = "|".join(
    (
        r"<!--.*?-->",
        r"<(?P<kind>pre|script|style|textarea|title|svg)\b.*?</(?P=kind)>",
        # Up to the last character, which a unit may follow.
        r"<(?:code|kbd|samp)\b.*?(?=(?:</span>)?</(?:code|kbd|samp)>)",
        r'<(?:span|div) class="math\b[^<>]*>[^<]*?(?=\\[)\]]</)',
        r"<[^<>]*>",
    )
)
INLINE = r"(?:</(?:a|b|code|em|i|span|strong|sub|sup)>|<(?:a|b|em|i|span|strong)\b[^<>]*>)*"
SPACE = rf"(?:(?<=\d)|(?<=\\\)))(?P<close>{INLINE})\s+(?P<open>{INLINE})(?=±|{UNIT})"
BEFORE_ERROR = rf"(?<=±)\s+(?P<error>{INLINE})(?=\d)"
PART = re.compile(rf"(?s){BEFORE_ERROR}|{SPACE}|{AS_WRITTEN}")


def unbroken(page: str) -> str:
    """The page with its numbers kept whole."""

    def part(found: re.Match[str]) -> str:
        if found["error"] is not None:
            return "\u00a0" + found["error"]
        if found["close"] is not None:
            return found["close"] + "\u00a0" + found["open"]
        return found[0]

    return PART.sub(part, page)


def finish(html: Path) -> None:
    """Keep the numbers whole on every page of the book in this folder."""
    for path in light_book.pages(html):
        text = path.read_text("utf8")
        if (whole := unbroken(text)) != text:
            path.write_text(whole, "utf8")


def main() -> int:
    """Carry out the command line."""
    finish(light_book.asked_for(__doc__))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
