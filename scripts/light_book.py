"""Make a built book light: drop whatever the theme and its tools bring along and no page uses.

    python scripts/light_book.py [--html _build/html]

The theme serves 2,000 icons for the dozen on a page, styles of parts that the book does not have,
and the maps from its scripts to their sources; MathJax comes in fourteen bundles, of which one is
loaded. `make book` calls this after Sphinx. It changes the built files only, and changes nothing if
it is called again.

Of the styles, a rule stays if a page or a script names all of its classes. The icon font of the
theme is cut down to the characters that the remaining rules draw. A page loses MathJax if it has no
formula, and the marks around code that looks the same without them. The index of the search loses
the digits of computed values, which nobody types. A figure keeps only the digits that a screen
shows, and takes the font of the page.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from base64 import b64decode, b64encode
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import numpy as np
from fontTools import subset
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
BUNDLE = "tex-chtml.js"
# The bundle loads these on demand: fonts, packages of TeX, and the explorer of its menu, in
# English. No other renderer is among them, and book.js takes that choice off the menu.
SPEECH = ("a11y", "sre/mathmaps/base.json", "sre/mathmaps/en.json")
LOADED_ON_DEMAND = ("output/chtml", "input/tex", *SPEECH)
UNUSED = ("**/*.map", "**/*webpack-macros.html", "locales", "scripts/fontawesome.js")
FONTS = "vendor/fontawesome/webfonts"
ICONS = "icons.woff"
# Classes that a script puts together from parts, so that no file names them whole.
PUT_TOGETHER = ("bs-",)

COMMENT = re.compile(r"/\*(?!!).*?\*/", re.DOTALL)  # a licence begins with /*!
RULE = re.compile(r"([^{}]+)(\{[^{}]*\})")
EMPTY = re.compile(r"@(?:media|supports)[^{};]*\{\s*\}")
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
INSIDE = re.compile(r"\([^()]*\)|\[[^\]]*\]")
FACE = re.compile(r"@font-face\s*\{[^}]*Font Awesome[^}]*\}")
MATHJAX = re.compile(r"<script\b[^>]*_static/mathjax/[^>]*></script>\s*")
FORMULA = re.compile(r'class="[^"]*\bmath\b')
SPACE = re.compile(r"\s*\n\s*")
AS_WRITTEN = re.compile(r"(?s)(<(pre|script|textarea|style)\b.*?</\2>)")
# Digits of decimals, perhaps with the next column of a table glued to them; years and numbers below
# 100 stay.
DIGITS = re.compile(r"0\d+|\d{3}|(?!19|20)\d{4}|\d{5,}|\d{3,}[a-z_]\w*")
# Things that matplotlib writes before a drawing and beside its parts, and that no reader needs. The
# data of the figure, an object of JSON, are not among them.
REMARKS = re.compile(r"(?s)<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>(?!\{).*?</metadata>")
NUMBER = re.compile(r"(?<![#\w.-])-?\d+\.\d+(?![\w.])")
FONT = re.compile(r";? *font-family: 'DejaVu Sans'(?:,[^;\"]*)?(?=[;\"])")
PAGE_FONT = "text{font-family:-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif}"
MARK = re.compile(r'<use xlink:href="#([^"]*)"[^>]*? style="([^"]*)"')
NAME = re.compile(r'(?:(?<= id=")|(?<=href="#)|(?<=url\(#))([\w.-]+)')
PICTURE = re.compile(r'"data:image/png;base64,([^"]*)"')
STYLE = re.compile(r'html\[data-theme="(\w+)"\] \.highlight( \.\w+)? \{([^}]*)\}')


def pages(html: Path) -> list[Path]:
    """The pages of the book."""
    return [path for path in sorted(html.rglob("*.html")) if "_static" not in path.parts]


def drop_files(static: Path) -> None:
    """Delete what no page loads."""
    for pattern in UNUSED:
        for path in list(static.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    mathjax = static / "mathjax"
    kept = (BUNDLE, *LOADED_ON_DEMAND)
    for path in sorted(mathjax.rglob("*")):
        name = path.relative_to(mathjax).as_posix()
        if path.is_file() and not any(name == k or name.startswith(f"{k}/") for k in kept):
            path.unlink()
    for folder in sorted((p for p in mathjax.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def names_in_use(texts: Iterable[str], scripts: Iterable[str]) -> set[str]:
    """The classes of the pages, and every word of a script, which may be one."""
    found: set[str] = set()
    for text in texts:
        for names in re.findall(r'\bclass="?([^">]*)', text):
            found.update(names.split())
        scripts = [*scripts, *re.findall(r"(?s)<script>(.*?)</script>", text)]
    for script in scripts:
        found.update(re.findall(r"[\w-]+", script))
    return found


def needed(selector: str, names: set[str]) -> bool:
    """True if a page may have such an element: all classes that the selector needs are in use."""
    while (plain := INSIDE.sub("", selector)) != selector:
        selector = plain
    return all(name in names or name.startswith(PUT_TOGETHER) for name in CLASS.findall(selector))


def rules_in_use(css: str, names: set[str]) -> str:
    """A style sheet without the rules for classes that are not in use."""

    def kept(rule: re.Match[str]) -> str:
        # a licence and a statement such as @charset may come before the selectors
        before, selectors = re.fullmatch(r"(?s)((?:.*\*/|.*;)?)(.*)", rule[1]).groups()  # type: ignore[union-attr]
        parts = re.split(r",(?![^(]*\))", selectors)
        chosen = ",".join(part for part in parts if needed(part, names))
        return before + (chosen + rule[2] if chosen.strip() else "")

    css = RULE.sub(kept, COMMENT.sub("", css))
    while (less := EMPTY.sub("", css)) != css:
        css = less
    return css


def cut_font(static: Path, styles: Iterable[str]) -> None:
    """Write the font of the icons that the styles draw, and delete those of the theme."""
    source, target = static / FONTS / "fa-solid-900.ttf", static / FONTS / ICONS
    if not source.exists():
        return
    codes = {code for css in styles for code in re.findall(r'"\\(f[0-9a-f]{3})"', css)}
    options = subset.Options(flavor="woff")
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=[int(code, 16) for code in codes])
    with subset.load_font(str(source), options) as font:
        cutter.subset(font)
        subset.save_font(font, str(target), options)
    for path in (static / FONTS).iterdir():
        if path != target:
            path.unlink()


def with_cut_font(css: str) -> str:
    """A style sheet that loads the font of the icons in use, and no other."""

    def face(found: re.Match[str]) -> str:
        if ICONS in found[0] or "fa-solid-900" not in found[0]:
            return found[0] if ICONS in found[0] else ""
        return re.sub(r"src:[^;}]*", f'src:url(../{FONTS}/{ICONS}) format("woff")', found[0])

    # a screen reader shall not read the icon aloud: its button has a name
    icon = r'content:("\\f[0-9a-f]{3}")(?=[;}])(?!;content)'
    css = re.sub(icon, r'content:\1;content:\1/""', css)
    return FACE.sub(face, css)


def plain_marks(pygments: str) -> set[str]:
    """The classes of highlighted code that look like the code around them, light and dark."""
    found: dict[str, dict[str, str]] = {}
    for theme, name, style in STYLE.findall(pygments):
        colour = re.sub(r"background:[^;]*;?", "", style).strip().lower()
        found.setdefault(name.strip(" ."), {})[theme] = colour
    plain = found.pop("", None)
    return {name for name, colours in found.items() if colours == plain}


def light_page(text: str, marks: set[str]) -> str:
    """A page without MathJax if it has no formula, and without marks that nobody sees."""
    if not FORMULA.search(text):
        text = MATHJAX.sub("", text)
    parts = AS_WRITTEN.split(text)  # text, what stays as it is, its tag, and so on
    parts[::3] = [SPACE.sub("\n", part) for part in parts[::3]]
    del parts[2::3]
    text = "".join(parts)
    if marks:
        any_of = "|".join(sorted(marks))
        text = re.sub(rf'<span class="(?:{any_of})">([^<]*)</span>', r"\1", text)
    return text


def light_index(script: str) -> str:
    """The index of the search without the digits of computed values."""
    start, end = script.index("{"), script.rindex("}") + 1
    index = json.loads(script[start:end])
    for kind in ("terms", "titleterms"):
        index[kind] = {w: p for w, p in index[kind].items() if not DIGITS.fullmatch(w)}
    return script[:start] + json.dumps(index, separators=(",", ":")) + script[end:]


def light_number(found: re.Match[str]) -> str:
    """A coordinate to a hundredth of a point; a factor to five places."""
    value = float(found[0])
    text = f"{value:.{2 if abs(value) >= 1 else 5}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def light_picture(found: re.Match[str]) -> str:
    """The address of a picture, with a table of its colours if they are few; no pixel changes."""
    picture = Image.open(BytesIO(b64decode(found[1]))).convert("RGBA")
    pixels = np.asarray(picture).reshape(-1, 4)
    colours, places = np.unique(pixels, axis=0, return_inverse=True)
    if len(colours) > 256:
        return found[0]
    table = places.reshape(picture.height, picture.width).astype(np.uint8)
    indexed, file = Image.fromarray(table), BytesIO()
    indexed.putpalette(colours.tobytes(), "RGBA")
    indexed.save(file, "PNG", optimize=True)
    text = f'"data:image/png;base64,{b64encode(file.getvalue()).decode()}"'
    return min(text, found[0], key=len)


def light_marks(svg: str) -> str:
    """A drawing with short names, whose marks do not repeat the style of the shape that they show.

    A shape's own style overrides the style of a mark that shows it. So a property that both set is
    set once, and the properties that all marks of a shape share are moved to the shape.
    """
    styles: dict[str, set[str]] = {}
    for name, style in MARK.findall(svg):
        styles.setdefault(name, set()).add(style)

    def shape(found: re.Match[str]) -> str:
        own, (of_marks,) = (found[3] or "").split("; "), styles[found[1]]
        known = {part.partition(":")[0] for part in own}
        more = [part for part in of_marks.split("; ") if part.partition(":")[0] not in known]
        style = "; ".join(part for part in own + more if part)
        return f'<path id="{found[1]}"{found[2]} style="{style}"/>'

    one = {name for name, each in styles.items() if len(each) == 1}
    one &= set(re.findall(r'<path id="([^"]*)"', svg))
    if one:
        any_of = "|".join(map(re.escape, sorted(one)))
        svg = re.sub(rf'<path id="({any_of})"([^>]*?)(?: style="([^"]*)")?/>', shape, svg)
        svg = re.sub(rf'(<use xlink:href="#(?:{any_of})"[^>]*?) style="[^"]*"', r"\1", svg)
    short = {name: f"n{i}" for i, name in enumerate(dict.fromkeys(NAME.findall(svg)))}
    return re.sub(r"<[^>]*>", lambda tag: NAME.sub(lambda n: short[n[1]], tag[0]), svg)


def light_drawing(svg: str) -> str:
    """A drawing of matplotlib that looks the same and is a third smaller."""
    svg = re.sub(r">\s+<", "><", REMARKS.sub("", svg)).strip()
    named = set(re.findall(r"#([\w.-]+)", svg))

    def light_tag(found: re.Match[str]) -> str:
        """Shorten the numbers of a tag; pictures keep their pixels, and words stay as they are."""
        if '"data:' in found[0]:
            return PICTURE.sub(light_picture, found[0])
        tag = NUMBER.sub(light_number, SPACE.sub(" ", found[0]))
        tag = re.sub(r' transform="rotate\(-?0 [^"]*"', "", tag)
        tag = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in named else "", tag)
        tag = re.sub(r'(?<= d=")[^"]*', lambda m: re.sub(r" ?([A-Za-z]) ?", r"\1", m[0]), tag)
        return FONT.sub("", tag)

    svg = svg.replace("</style>", f"{PAGE_FONT}</style>", FONT.search(svg) is not None)
    return light_marks(re.sub(r"<[^>]*>", light_tag, svg))


def lighten(html: Path) -> None:
    """Make the book in this folder light."""
    static = html / "_static"
    drop_files(static)
    pygments = static / "pygments.css"
    marks = plain_marks(pygments.read_text("utf8")) if pygments.exists() else set()
    texts = []
    for path in pages(html):
        text = path.read_text("utf8")
        texts.append(light_page(text, marks))
        if texts[-1] != text:
            path.write_text(texts[-1], "utf8")
    for path in html.glob("searchindex.js"):
        path.write_text(light_index(path.read_text("utf8")), "utf8")
    for path in html.glob("_images/*.svg"):
        path.write_text(light_drawing(path.read_text("utf8")), "utf8")
    scripts = [p.read_text("utf8") for p in static.rglob("*.js") if "mathjax" not in p.parts]
    names = names_in_use(texts, scripts)
    sheets = sorted(static.rglob("*.css"))
    styles = [with_cut_font(rules_in_use(path.read_text("utf8"), names)) for path in sheets]
    cut_font(static, styles)
    for path, css in zip(sheets, styles, strict=True):
        path.write_text(css, "utf8")


def asked_for(about: str | None) -> Path:
    """The folder of the built book that the command line of a script names."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    return parser.parse_args().html  # type: ignore[no-any-return]


def main() -> int:
    """Carry out the command line."""
    html = asked_for(__doc__)
    lighten(html)
    size = sum(path.stat().st_size for path in html.rglob("*") if path.is_file())
    print(f"light_book: {html} has {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
