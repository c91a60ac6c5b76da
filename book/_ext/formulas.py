"""Typeset the formulas of docstrings.

A docstring is read in a terminal, so it writes its formulas in plain characters; the reference
shows the same formulas as mathematics. ``formulas.tsv`` has the two forms of the larger ones side
by side, and a row of it that no docstring has any more is a warning, which fails the build. The
others are read by the small grammar of ``ascii_math.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ascii_math import as_role
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
TABLE = Path(__file__).with_name("formulas.tsv")
LITERAL = re.compile(r"(``.+?``|:[\w:]+:`.+?`|`.+?`_{0,2})", re.DOTALL)
# what is literal or mathematics already
SET = re.compile(rf"({LITERAL.pattern[1:-1]}|\0.+?\0)", re.DOTALL)
# what begins a block that has a form of its own: an example, a directive, a list, a quoted formula
OWN_FORM = re.compile(r"\s*(>>>|\*\*|\.\.\s|\.\.$|:\w|[-*]\s|\d+\.\s|\|)")


class Formula(NamedTuple):
    """One formula in its two forms."""

    plain: str
    tex: str
    is_block: bool


@cache
def table() -> tuple[Formula, ...]:
    """The rows of the table, the longest first: a formula may be a part of another."""
    lines = [
        line for line in TABLE.read_text("utf8").splitlines() if line and not line.startswith("#")
    ]
    rows = [[*line.split("\t"), ""] for line in lines]
    return tuple(
        sorted(
            (Formula(row[0], row[1], row[2] == "block") for row in rows),
            key=lambda f: -len(f.plain),
        )
    )


@cache
def pattern() -> re.Pattern[str]:
    """All formulas, with any white space between their words, where no longer word begins or goes on."""
    each = (r"\s+".join(re.escape(word) for word in formula.plain.split()) for formula in table())
    return re.compile(r"(?<![\w^_(|'`/*-])(" + "|".join(each) + r")(?![\w^_'`(*]|\s*\||\s[-+/^]\s)")


def typeset(lines: list[str]) -> tuple[list[str], set[str]]:
    """The lines of a docstring with the known formulas as mathematics, and which ones these were."""
    by_plain = {formula.plain: formula for formula in table()}
    used: set[str] = set()
    out: list[str] = []
    for number, (block, is_as_printed) in enumerate(_as_printed(_blocks(lines))):
        text = "\n".join(block)
        if (
            is_as_printed
            or not text.strip()
            or OWN_FORM.match(text)
            or len({_indent(line) for line in block}) > 1
        ):
            out += block
            continue
        margin, parts = " " * _indent(block[0]), LITERAL.split(text)

        def markup(found: re.Match[str], inline: bool = bool(margin) or number == 0) -> str:
            formula = by_plain[" ".join(found.group().split())]
            used.add(formula.plain)
            if (
                formula.is_block and not inline
            ):  # the first sentence also stands in the table on top of the page
                return f"\0{formula.tex}\0"
            return f":math:`{formula.tex}`"

        parts[::2] = [pattern().sub(markup, part) for part in parts[::2]]
        parts = SET.split("".join(parts))
        parts[::2] = [as_role(part) for part in parts[::2]]
        out += _paragraphs("".join(parts))
    return out, used


def _as_printed(blocks: list[list[str]]) -> Iterator[tuple[list[str], bool]]:
    """Each block, and whether it is code: an example with what it prints, or what is indented below two colons."""
    example, margin = False, None
    above = ""
    for block in blocks:
        if not block[0].strip():
            example = False
        else:
            example = example or any(line.lstrip().startswith(">>>") for line in block)
            if margin is not None and _indent(block[0]) <= margin:
                margin = None
            if margin is None and above.endswith("::") and _indent(block[0]) > _indent(above):
                margin = _indent(above)
            above = block[-1].rstrip()
        yield block, example or margin is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _blocks(lines: list[str]) -> list[list[str]]:
    """The lines, divided where they are empty and where the indent changes; the empty ones by themselves."""
    blocks: list[list[str]] = []
    for line in lines:
        if (
            blocks
            and line.strip()
            and blocks[-1][-1].strip()
            and _indent(line) == _indent(blocks[-1][-1])
        ):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _paragraphs(text: str) -> list[str]:
    """Text in which some formulas, between two zero bytes, are to stand on a line of their own."""
    out: list[str] = []
    pieces = text.split("\0")
    for i, piece in enumerate(pieces):
        if i % 2:
            stop = (re.match(r"[.,;:]?", pieces[i + 1]) or [""])[0]
            pieces[i + 1] = pieces[i + 1].removeprefix(stop)
            out += ["", ".. math::", "", f"   {piece}{stop}", ""]
        elif piece.strip():
            out += piece.strip("\n").lstrip(" ").splitlines() if i else piece.rstrip().splitlines()
    return out


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Typeset one docstring, after numpydoc has divided it into sections."""
    lines[:], used = typeset(lines)
    _seen(app.env).update(used)


def _seen(env: BuildEnvironment) -> set[str]:
    """The formulas that were typeset; kept with the pages, so that a build of a few pages knows of the others."""
    return env.__dict__.setdefault("formulas_typeset", set())


def merge(app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    """Take over what another process has read."""
    _seen(env).update(_seen(other))


def every_formula_is_used(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn about a row of the table that no docstring has."""
    if "book/api" in env.found_docs:
        for formula in table():
            if formula.plain not in _seen(env):
                LOGGER.warning(
                    "no docstring has the formula %r of %s",
                    formula.plain,
                    TABLE.name,
                    location="book/api",
                )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=900)
    app.connect("env-merge-info", merge)
    app.connect("env-check-consistency", every_formula_is_used)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
