"""Count the habits that tire a reader of the book, and fail where a page has more than it may.

    python scripts/prose.py            what has grown, with its places; exit 1 if anything has
    python scripts/prose.py PAGE ...   every place on these pages, allowed or not

`prose_habits.tsv` has a row for each habit: a pattern, how often it may occur, the better form.
A *hard* habit may not occur at all. A *soft* one may occur once on a page, and on a long page as
often as its limit for 1,000 words says. An *except* row gives words that are not the habit.

`prose_counts.tsv` records the pages that are still above a limit. A count in it may shrink but not
grow, and a run without arguments writes the smaller ones back.

We count ourselves because linters find other things: proselint complains of straight quote marks,
and codespell of misspelt words, of which there are none.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HABITS = Path("scripts/prose_habits.tsv")
COUNTS = Path("scripts/prose_counts.tsv")
# pages made of the chapters, which are read themselves
MADE = ("book/answers.md", "book/exercises.md", "book/gallery.md")
MARKDOWN = (
    *("README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "VISION.md"),
    *("book/*.md", "book/reference/*.md", "*/README.md", "tests/*/README.md", "paper/*.md"),
)
PROGRAMS = ("ibukit/**/*.py", "benchmarks/*.py", "scripts/*.py", "book/_ext/**/*.py")
# the columns that are in our words; the others quote papers or hold numbers
OURS = {
    "data/ledger.csv": ("claim", "expected"),
    "data/errata.csv": ("wrong", "right"),
    "data/sections.csv": ("left_out",),
}
CODE = re.compile(r"\{(code|math|raw|bibliography|literalinclude|mermaid|toctree)")
OPTION = re.compile(r"^:(?!alt|caption)[\w-]+:.*$|^\(\S+\)=$")
# the parts of a line of Markdown that are not read as words, and what is read instead
SILENT = (
    (re.compile(r"\{[\w:-]+\}`([^`<]*?)\s*<[^`>]*>`"), r"\1"),
    (re.compile(r"\{(?:cite|math|eq|doc|ref|prf|numref)[\w:]*\}`[^`]*`"), "x"),
    (re.compile(r"\{[\w:-]+\}`([^`]*)`"), r"\1"),
    (re.compile(r"(`+)(?:(?!\1).)*\1"), "x"),
    (re.compile(r"(?<!\\)\$[^$]+\$"), "x"),
    (re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)"), r"\1"),
    (re.compile(r"“[^”]*”"), "x"),  # the words of others
    (re.compile(r"<[^>]+>"), " "),
    (re.compile(r"^\(\S+\)=$|^\s*(?:[-*+]|\d+\.) |^:alt: |[*_]{2}|(?<!\w)\*(?=\w)"), ""),
)
LEAD = re.compile(r"\s*(?:[-*+]|\d+\.)\s|\s*\||:alt:|:caption:|#|:{3,}|`{3,}")
WORD = re.compile(r"[^\W_](?:[\w'’.,-]*\w)?")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"“(]?[A-Z])")
HINGE = re.compile(
    r"\b(because|so|since|if|when|while|for (instance|example)|that is|but|although|though|which|"
    r"who|whose|where|therefore|then|thus|hence|unless|as|until|whether|than|otherwise|instead)\b"
    r"|[:;?]",
    re.IGNORECASE,
)
RUN, SHORT = 4, 18  # this many sentences in a row without a hinge, each of at most this many words


@dataclass(frozen=True)
class Text:
    """A paragraph, heading, caption, docstring or message: its page, its place, its words."""

    page: str
    place: str
    words: str
    is_heading: bool = False


@dataclass(frozen=True)
class Habit:
    """A row of the table: where a pattern is met, how often it may be, and what is better."""

    name: str
    kind: str
    pattern: str
    limit: float
    better: str

    def places(self, text: Text, excepted: dict[str, re.Pattern[str]]) -> list[str]:
        """The words of a text that are an instance of the habit."""
        if self.name == "heading" and not text.is_heading:
            return []
        if self.name == "run":
            return runs(text.words)
        words = excepted[self.name].sub("x", text.words) if self.name in excepted else text.words
        return [found[0] for found in re.finditer(self.pattern, words, re.IGNORECASE)]

    def allowed(self, n_words: int) -> int:
        """How many instances a page of `n_words` words may have."""
        return 0 if self.kind == "hard" else max(1, round(self.limit * n_words / 1000))


def runs(words: str) -> list[str]:
    """Every run of short sentences that nothing joins, by the first of them."""
    found, sentences = [], SENTENCE.split(words)
    start = 0
    for i, sentence in enumerate([*sentences, "so"]):
        if len(WORD.findall(sentence)) > SHORT or HINGE.search(sentence):
            if i - start >= RUN:
                found.append(sentences[start])
            start = i + 1
    return found


def rows(path: Path) -> list[list[str]]:
    """The rows of a table below its heading."""
    return [line.split("\t") for line in path.read_text("utf8").splitlines()[1:]]


def habits(path: Path = ROOT / HABITS) -> tuple[list[Habit], dict[str, re.Pattern[str]]]:
    """The habits, and for some of them the words that they may stand in."""
    table = [Habit(row[0], row[1], row[2], float(row[3]), row[4]) for row in rows(path)]
    excepted: dict[str, list[str]] = {}
    for habit in table:
        if habit.kind == "except":
            excepted.setdefault(habit.name, []).append(habit.pattern)
    joined = {name: re.compile("|".join(p), re.IGNORECASE) for name, p in excepted.items()}
    return [habit for habit in table if habit.kind != "except"], joined


def read_aloud(line: str) -> str:
    """A line as somebody would read it: without code, formulas, links and quotations."""
    for pattern, instead in SILENT:
        line = pattern.sub(instead, line)
    return line.strip()


def of_markdown(page: str, source: str, cell: str = "") -> Iterator[Text]:
    """The paragraphs, headings, items and cells of tables of a text in Markdown."""
    open_fences: list[tuple[str, bool]] = []  # of each fence: its marks, and whether it is code
    paragraph: list[str] = []
    start, is_front = 1, source.startswith("---\n")
    lines = re.sub(r"\$\$.*?\$\$", lambda m: "x" + "\n" * m[0].count("\n"), source, flags=re.DOTALL)

    def finished() -> Iterator[Text]:
        words = " ".join(read_aloud(" ".join(paragraph)).split())
        paragraph.clear()
        if words:
            yield Text(page, f"{cell or page}:{start}", words)

    for number, line in enumerate([*lines.splitlines(), ""], 1):
        fence = re.match(r"\s*(`{3,}|:{3,}|~{3,})\s*(.*)$", line)
        if is_front:
            is_front = number == 1 or line != "---"
        elif fence and open_fences and not fence[2] and fence[1] == open_fences[-1][0]:
            yield from finished()
            open_fences.pop()
        elif open_fences and open_fences[-1][1]:
            continue
        elif fence:
            yield from finished()
            is_code = fence[1][0] != ":" and (not fence[2].startswith("{") or CODE.match(fence[2]))
            open_fences.append((fence[1], bool(is_code)))
            start = number
            paragraph.append(re.sub(r"^\{[^}]*\}", "", fence[2]) if fence[1][0] == ":" else "")
            yield from finished()
        elif line.startswith("#"):
            yield from finished()
            yield Text(page, f"{cell or page}:{number}", read_aloud(line.lstrip("# ")), True)
        elif line.lstrip().startswith("|"):
            yield from finished()
            start = number
            for part in re.split(r"(?<!\\)\|", line):
                paragraph.append("" if re.fullmatch(r"[\s:-]*", part) else part)
                yield from finished()
        else:
            if not line.strip() or LEAD.match(line):
                yield from finished()
            if not paragraph:
                start = number
            if not OPTION.match(line):
                paragraph.append(line)
            if line.startswith(":alt:"):
                yield from finished()


def of_notebook(page: str, source: str) -> Iterator[Text]:
    """The cells of text of a chapter, and the captions and descriptions of its figures."""
    for cell in json.loads(source)["cells"]:
        if cell["cell_type"] == "markdown":
            yield from of_markdown(page, "".join(cell["source"]), cell["id"])
            continue
        shown = cell["metadata"].get("mystnb", {})
        for kind in ("figure", "image"):
            for words in shown.get(kind, {}).values():
                if isinstance(words, str) and " " in words:
                    yield Text(page, cell["id"], read_aloud(words))


def of_docstring(page: str, place: str, words: str) -> Iterator[Text]:
    """The paragraphs of a docstring without its examples and formulas."""
    words = re.sub(r"^ *>>>.*?(?=\n\s*\n|\Z)", "", words, flags=re.DOTALL | re.MULTILINE)
    words = re.sub(r"^( *)\.\. [\w-]+::.*?\n(?=\1\S|\Z)", "", words, flags=re.DOTALL | re.MULTILINE)
    words = re.sub(r"^References\n-+.*", "", words, flags=re.DOTALL | re.MULTILINE)
    words = re.sub(r":[\w:]+:`([^`<]*)[^`]*`", r"\1", words)
    for paragraph in re.split(r"\n\s*\n", words):
        if paragraph.strip():
            yield Text(page, place, " ".join(read_aloud(paragraph.replace("\n", " ")).split()))


def of_python(page: str, place: str, source: str) -> Iterator[Text]:
    """The docstrings, the comments, and the messages of errors and warnings of a module."""
    nodes = list(ast.walk(ast.parse(source)))
    formatted = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    parts_of_texts = {id(part) for node in formatted for part in node.values}
    for node in nodes:
        at = f"{place}:{getattr(node, 'lineno', 1)}"
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield from of_docstring(page, at, ast.get_docstring(node) or "")
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "x" for p in node.values]
            message = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in parts_of_texts:
            message = str(node.value)
        else:
            continue
        if "\n" not in message and len(WORD.findall(message)) > 4:
            yield Text(page, at, read_aloud(message))
    comments: dict[int, str] = {}  # by their first line
    first = last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            first = first if token.start[0] == last + 1 else token.start[0]
            last = token.start[0]
            comments[first] = f"{comments.get(first, '')} {token.string.lstrip('# ')}"
    for number, comment in comments.items():
        yield Text(page, f"{place}:{number}", read_aloud(comment))


def texts(root: Path = ROOT) -> Iterator[Text]:
    """All that a reader of the book, of the package or of their errors may meet."""
    for pattern in MARKDOWN:
        for path in sorted(set(root.glob(pattern)) - {root / made for made in MADE}):
            yield from of_markdown(path.relative_to(root).as_posix(), path.read_text("utf8"))
    for path in sorted(root.glob("book/**/*.ipynb")):
        yield from of_notebook(path.relative_to(root).as_posix(), path.read_text("utf8"))
    for folder in ("book/schematics", "book/sketches", "book/moving"):
        for path in sorted((root / folder).glob("*.[sh][vt][gm]*")):
            source = path.read_text("utf8")
            said = re.findall(r">([^<>{}]*[a-z]{3} [^<>{}]*)<|aria-label=\"([^\"]*)\"", source)
            for words in said:
                yield Text(folder, path.relative_to(root).as_posix(), "".join(words).strip())
    for name in filter(lambda name: (root / name).exists(), OURS):
        with (root / name).open(encoding="utf8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), 2):
                for column in OURS[name]:
                    yield from of_markdown(name, row[column], f"{name}:{number}")
    for path in sorted(path for pattern in PROGRAMS for path in root.glob(pattern)):
        place = path.relative_to(root)
        page = "/".join(place.parts[:2]) if len(place.parts) > 2 else place.parts[0]
        yield from of_python(page, place.as_posix(), path.read_text("utf8"))


def recorded(path: Path) -> dict[tuple[str, str], int]:
    """The recorded counts of pages above their limits, by page and habit."""
    return {(page, name): int(count) for page, name, count in rows(path)} if path.exists() else {}


Survey = dict[tuple[str, str], tuple[int, list[str]]]


def survey(root: Path = ROOT) -> Survey:
    """By page and habit: how often it may occur there, and every place where it does."""
    table, excepted = habits()
    places: dict[tuple[str, str], list[str]] = {}
    words: Counter[str] = Counter()
    for text in texts(root):
        words[text.page] += len(WORD.findall(text.words))
        for habit in table:
            for said in habit.places(text, excepted):
                places.setdefault((text.page, habit.name), []).append(f"{text.place}: {said}")
    limits = {habit.name: habit.allowed for habit in table}
    return {key: (limits[key[1]](words[key[0]]), found) for key, found in sorted(places.items())}


def grown(counted: Survey, root: Path = ROOT) -> list[tuple[str, str]]:
    """The pages and habits above their limits and above what is recorded."""
    known = recorded(root / COUNTS)
    return [
        key for key, (may, found) in counted.items() if len(found) > max(may, known.get(key, 0))
    ]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Print what has grown and record what has shrunk; 1 if something has grown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="pages of which every place is printed")
    pages = parser.parse_args(arguments).pages
    counted, better = survey(root), {habit.name: habit.better for habit in habits()[0]}
    known = recorded(root / COUNTS)
    more = grown(counted, root) if known else []
    for page, name in [key for key in counted if key[0] in pages] if pages else more:
        may, found = counted[page, name]
        print(f"{page}: {name}, {len(found)} times where {may} may be. Better: {better[name]}")
        print(*(f"    {place}" for place in found), sep="\n")
    left = {key: len(found) for key, (may, found) in counted.items() if len(found) > may}
    if not pages and not more and left != known:
        lines = [f"{page}\t{name}\t{count}" for (page, name), count in left.items()]
        (root / COUNTS).write_text("\n".join(["page\thabit\tcount", *lines, ""]), "utf8")
    if not pages:
        print(f"{sum(left.values())} places above the limits, on {len({p for p, _ in left})} pages")
    return int(bool(more) and not pages)


if __name__ == "__main__":
    sys.exit(main())
