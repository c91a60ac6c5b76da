"""One switch a chapter: in its published setting a check must hold, in others it may fail."""

from __future__ import annotations

import ast
import sys
import textwrap
from types import ModuleType
from typing import Any

import numpy as np

_HINT = (
    "if you changed the setting, call claims.published(False) in the second cell, and the chapter "
    "runs on"
)
_setting = {"published": True}
_said: set[tuple[object, str]] = set()


def published(setting: bool) -> None:
    """Say whether this run is the published setting; elsewhere, a check stops nothing.

    A chapter calls it in its second cell, about the numbers of the first. In the published setting
    its checks (each ``assert``, `check` and `statements`) raise AssertionError where they fail. In
    any other setting a check that fails prints one sentence, and the chapter runs on: the reader
    changes a number and sees which findings depend on it.

    Parameters
    ----------
    setting : bool
        Whether the numbers of the first cell are those of the stored outputs. False also lets a
        chapter run that was changed somewhere else.

    Raises
    ------
    TypeError
        If `setting` is not a truth value.

    Notes
    -----
    ``assert`` is Python's own. In a notebook, IPython hands over the code of each cell that
    follows, and each ``assert`` in it is wrapped. Outside IPython an ``assert`` is what it always
    is.

    Examples
    --------
    >>> epsilon, seed = 0.1, 2026
    >>> published((epsilon, seed) == (0.05, 2026))
    This is not the published setting: a check that fails is printed and stops nothing.
    >>> published(True)
    """
    if not isinstance(setting, (bool, np.bool_)):
        raise TypeError(
            "setting must be True or False, as from (epsilon, seed) == (0.05, 2026), "
            f"got {setting!r}"
        )
    _setting["published"] = bool(setting)
    _said.clear()
    shell = _shell()
    if shell is not None:
        shell.ast_transformers[:] = [
            t for t in shell.ast_transformers if not isinstance(t, _Checks)
        ] + [_Checks()]
    if not setting:
        print("This is not the published setting: a check that fails is printed and stops nothing.")


def is_published() -> bool:
    """True if a check that fails must raise."""
    return _setting["published"]


def say(what: str, error: BaseException | None = None) -> None:
    """Print, once for each cell, that a check does not hold here: the check may be in a loop."""
    shell = _shell()
    key = (None if shell is None else shell.execution_count, what)
    if key not in _said:
        _said.add(key)
        why = (
            ""
            if error is None or isinstance(error, AssertionError)
            else f" ({type(error).__name__}: {error})"
        )
        print(
            textwrap.shorten(f"Does not hold in this setting: {what}{why}", 200, placeholder=" ...")
        )


class _Checks(ast.NodeTransformer):
    """Wraps each assert of a cell, as the setting wants it."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        text = ast.unparse(node.test)
        if is_published():
            if node.msg is None:
                node.msg = ast.Constant(f"{textwrap.shorten(text, 200)} does not hold; {_HINT}")
            return ast.fix_missing_locations(node)
        # imported in place, so that no name of ours appears among the reader's
        here, error = (
            f"__import__({__name__!r}, fromlist=['say'])",
            "__import__('sys').exc_info()[1]",
        )
        told = ast.parse(f"{here}.say({text!r}, {error})")
        for part in ast.walk(told):
            ast.copy_location(part, node)
        handler = ast.ExceptHandler(
            type=ast.Name("Exception", ast.Load()), name=None, body=told.body
        )
        wrapped = ast.Try(body=[node], handlers=[handler], orelse=[], finalbody=[])
        return ast.fix_missing_locations(ast.copy_location(wrapped, node))


def _shell() -> Any:
    """The running IPython shell, or None; IPython is not imported for it."""
    ipython: ModuleType | None = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
