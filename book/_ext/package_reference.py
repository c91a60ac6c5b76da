"""Document the public names of ibukit by the room they live in, with nothing kept up by hand.

``.. room:: NAME`` writes a table and the full entry of every public name that ``ibukit`` takes from
its package or module NAME, such as ``channels`` or ``domain.grid``. Where NAME is a package, the
other functions and classes that it makes public follow under the names that they have there.

Each entry ends with the names that it mentions or that mention it, and with the chapters whose code
calls it. Types of parameters become links.
"""

import importlib
import inspect
import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from chapter_lists import chapters
from docutils import nodes
from docutils.statemachine import StringList
from numpydoc.xref import DEFAULT_LINKS
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

import ibukit

PAGES = "book/reference"
FIRST = ("mle", "smooth", "ibu", "inv", "posterior_mean")  # what a reader looks for
LAST = ("StoppingRule", "Change", "Discrepancy", "Gap", "Steps")
BASES = ("Mechanism", "FiniteMechanism", "Channel", "Alphabet")
INHERITED = (*BASES, "StoppingRule")  # what a reader's own classes inherit from
# a class shown with its inherited methods, because their own class is not public, and the first
# ancestor whose methods are left out
WITH_INHERITED = {"theory.MleSet": "ReadOnlyArrays"}
MAX_RELATED = 8
CALL = re.compile(r"\bik\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
FROM_ROOM = re.compile(r"^from ibukit import (.+)$", re.MULTILINE)
MENTION = re.compile(r"`~?(?:ibukit\.)?([A-Za-z_][\w.]*)`")
# modules that every chapter calls, and whose calls no reader looks for
UNREMARKABLE = ("plotting", "testing", "errors")


def _is_public(name: str, thing: Any) -> bool:
    ours = (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith(
        "ibukit."
    )
    return ours and not name.startswith("_")


def public_names() -> dict[str, str]:
    """Every public class and function of ``ibukit`` and the module it comes from."""
    things = {name: getattr(ibukit, name) for name in ibukit.__all__}
    return {n: t.__module__.removeprefix("ibukit.") for n, t in things.items() if _is_public(n, t)}


def _namespace(room: str) -> ModuleType:
    attribute = getattr(ibukit, room, None)
    return attribute if inspect.ismodule(attribute) else importlib.import_module(f"ibukit.{room}")


def _shown_here(module: ModuleType, name: str, thing: Any) -> bool:
    """True for a thing of the room, or of another room that does not show it by this name itself.

    A file shows only its own things, not what it imports.
    """
    if f"{thing.__module__}.".startswith(f"{module.__name__}."):
        return True
    home = _namespace(thing.__module__.split(".")[1])
    return hasattr(module, "__path__") and getattr(home, name, None) is not thing


def _place(name: str) -> tuple[int, int]:
    """The place of a name: main estimators, classes to inherit from, the rest, and rules last."""
    if name in FIRST:
        return 0, FIRST.index(name)
    if name in LAST:
        return 2, LAST.index(name)
    return 1, [*BASES, name].index(name)


def names_in(room: str) -> list[tuple[str, Any]]:
    """The names of one room as a reader writes them after ``ibukit.``, with what they mean."""
    names = [name for name, home in public_names().items() if f"{home}.".startswith(f"{room}.")]
    found = [(name, getattr(ibukit, name)) for name in sorted(names, key=_place)]
    if "." in room:
        return found  # a folder or a file of a room: the room itself says what is public
    module = _namespace(room)
    if found and not hasattr(module, "__path__"):
        # What else a file defines is for its neighbours; a package names what is public.
        return found
    things = [(n, t) for n, t in vars(module).items() if _is_public(n, t)]
    members = [(n, t) for n, t in things if _shown_here(module, n, t)]
    # A name that ibukit itself offers is shown by it, wherever its class was written.
    public = set(ibukit.__all__)
    return found + [(n if n in public else f"{room}.{n}", t) for n, t in members if n not in names]


def rooms_shown(root: Path) -> list[str]:
    """The rooms that the pages of the reference show."""
    texts = [path.read_text("utf8") for path in sorted((root / PAGES).glob("*.md"))]
    return [
        room for text in texts for room in re.findall(r"^\.\. room:: (\S+)$", text, re.MULTILINE)
    ]


@cache
def entries(root: Path) -> dict[str, Any]:
    """Every name that has an entry in the reference, with what it means."""
    return {name: thing for room in rooms_shown(root) for name, thing in names_in(room)}


@cache
def _short(root: Path) -> dict[str, str]:
    """The last word of an entry's name -> the name, if no other name ends with that word."""
    found = defaultdict(list)
    for name in entries(root):
        found[name.rpartition(".")[2]].append(name)
    return {last: names[0] for last, names in found.items() if len(names) == 1}


@cache
def related(root: Path) -> dict[str, list[str]]:
    """The names that an entry mentions in its docstring, then those that mention it."""
    mentions: dict[str, list[str]] = {}
    for name, thing in entries(root).items():
        words = MENTION.findall(inspect.getdoc(thing) or "")
        if inspect.isfunction(thing):
            words = [word for word in words if word not in inspect.signature(thing).parameters]
        known = [word if word in entries(root) else _short(root).get(word) for word in words]
        mentions[name] = [other for other in dict.fromkeys(known) if other and other != name]
    found = {}
    for name, mine in mentions.items():
        back = [other for other, theirs in mentions.items() if name in theirs and other not in mine]
        here = entries(root)[name].__module__
        back.sort(
            key=lambda other: (entries(root)[other].__module__ != here, other not in INHERITED)
        )
        found[name] = (mine + back)[:MAX_RELATED]
    return found


def called(source: str, known: dict[str, Any]) -> set[str]:
    """The names of ibukit that a piece of code calls, as ``ik.mle`` or as ``ik.theory.mle_set``."""
    rooms = {part.strip() for line in FROM_ROOM.findall(source) for part in line.split(",")}
    words = set(CALL.findall(source))
    for room in filter(str.isidentifier, rooms):
        words |= set(re.findall(rf"\b{room}\.[A-Za-z_]\w*", source))
    found = set()
    for word in words:
        parts = word.split(".")
        found |= {name for i in range(len(parts)) if (name := ".".join(parts[: i + 1])) in known}
    # A thing may have a second name: ik.errors.ConvergenceError is ik.ConvergenceError.
    things = {id(thing): name for name, thing in known.items()}
    for word in words - found:
        thing: Any = ibukit
        for part in word.split("."):
            thing = getattr(thing, part, None)
        if thing is not None and id(thing) in things:
            found.add(things[id(thing)])
    return found


@cache
def used_in(root: Path) -> dict[str, list[str]]:
    """Name -> the chapters whose code calls it, in their order."""
    found = defaultdict(list)
    for file in chapters(root):
        path = root / f"{file}.ipynb"
        cells = json.loads(path.read_text("utf8"))["cells"]
        source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        for name in called(source, entries(root)):
            found[name].append(path.stem)
    return found


class Room(SphinxDirective):
    """The directive."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write the entries and let Sphinx parse them."""
        names = names_in(self.arguments[0])
        if not names:
            raise self.error(f"ibukit has nothing public in the room {self.arguments[0]!r}")
        lines = [".. currentmodule:: ibukit", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name, _ in names]
        for name, thing in names:
            kind = "autoclass" if inspect.isclass(thing) else "autofunction"
            lines += [
                "",
                f".. {kind}:: ibukit::{name}",
                *(["   :members:"] if kind == "autoclass" else []),
            ]
            if name in WITH_INHERITED:
                lines.append(f"   :inherited-members: {WITH_INHERITED[name]}")
        parent = nodes.container()
        self.state.nested_parse(
            StringList([*lines, ""], source=self.env.docname), self.content_offset, parent
        )
        return parent.children


def point_elsewhere(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """End an entry with its relations and the chapters that call it."""
    root, short = Path(app.srcdir), name.removeprefix("ibukit.")
    if what not in ("class", "function", "exception") or short not in entries(root):
        return
    if others := related(root).get(short):
        links = ", ".join(f":py:obj:`~ibukit.{other}`" for other in others)
        lines += ["", f"**See also:** {links}", ""]
    users = used_in(root).get(short)
    if users and short.split(".")[0] not in UNREMARKABLE:
        links = ", ".join(f":doc:`/book/chapters/{slug}`" for slug in users[:MAX_RELATED])
        more = (
            f", and in {len(users) - MAX_RELATED} more chapters" if len(users) > MAX_RELATED else ""
        )
        lines += ["", f"**Used in:** {links}{more}", ""]


def link_types(app: Sphinx, config: Config) -> None:
    """Tell numpydoc where our classes are; it must link to no page of Python or numpy."""
    ours = {
        name.rpartition(".")[2]: f"ibukit.{name}"
        for name, thing in entries(Path(app.srcdir)).items()
        if inspect.isclass(thing)
    }
    config.numpydoc_xref_aliases = {word: word for word in DEFAULT_LINKS} | ours
    config.numpydoc_xref_ignore = "all"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("room", Room)
    app.connect("config-inited", link_types, priority=100)
    app.connect("autodoc-process-docstring", point_elsewhere, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
