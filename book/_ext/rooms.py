"""Document the public names of ibukit by the room they live in, with nothing kept up by hand.

``.. room:: NAME`` writes a table and the full entry of every public name that ``ibukit`` takes from its module or
package NAME. Where NAME is a package such as ``ibukit.channels``, or ``ibukit`` takes nothing from it, its other
functions and classes follow under the names that they have there. A public name that no room shows is a warning, so it
fails the build.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import ibukit

LOGGER = logging.getLogger(__name__)
PAGE = "book/api"
BASES = ("Mechanism", "FiniteMechanism", "Channel", "StoppingRule", "Alphabet")
# whose inherited methods are shown with it, because their class is not public; and from which ancestor on no longer
WITH_INHERITED = {"Estimate": "ReadOnlyArrays"}


def _is_public(name: str, thing: Any) -> bool:
    ours = (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith("ibukit.")
    return ours and not name.startswith("_")


def public_names() -> dict[str, str]:
    """Every public class and function of ``ibukit`` and the room it comes from."""
    things = {name: getattr(ibukit, name) for name in ibukit.__all__}
    return {n: t.__module__.split(".")[1] for n, t in things.items() if _is_public(n, t)}


def _namespace(room: str) -> ModuleType:
    attribute = getattr(ibukit, room, None)
    return attribute if inspect.ismodule(attribute) else importlib.import_module(f"ibukit.{room}")


def names_in(room: str) -> list[tuple[str, Any]]:
    """The names of one room as a reader writes them after ``ibukit.``, with what they mean."""
    names = [name for name, home in public_names().items() if home == room]
    # what others inherit from stands first
    found = [(name, getattr(ibukit, name)) for name in sorted(names, key=lambda name: [*BASES, name].index(name))]
    module = _namespace(room)
    if found and not hasattr(module, "__path__"):
        return found  # what else a file defines is for its neighbours; a package names what is public
    home = f"{module.__name__}."
    members = [(n, t) for n, t in vars(module).items() if _is_public(n, t) and f"{t.__module__}.".startswith(home)]
    return found + [(f"{room}.{n}", t) for n, t in members if n not in names]


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
            lines += ["", f".. {kind}:: ibukit::{name}", *(["   :members:"] if kind == "autoclass" else [])]
            if name in WITH_INHERITED:
                lines.append(f"   :inherited-members: {WITH_INHERITED[name]}")
        parent = nodes.container()
        self.state.nested_parse(StringList([*lines, ""], source=self.env.docname), self.content_offset, parent)
        return parent.children


def every_name_is_shown(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn about a public name without an entry."""
    shown = env.get_domain("py").data["objects"]
    for name in public_names():
        if PAGE in env.found_docs and f"ibukit.{name}" not in shown:
            LOGGER.warning("ibukit.%s is public and in no room of the reference", name, location=PAGE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("room", Room)
    app.connect("env-check-consistency", every_name_is_shown)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
