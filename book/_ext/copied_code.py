"""Let the copy button of a cell take along the cells that it needs, so that what is pasted runs.

A cell needs the cells before it that give a value to a name that it uses, the cells that these
need, and so on. `copied-code.js` reads the classes that say so.
"""

from __future__ import annotations

import ast
import symtable

from docutils import nodes
from evidence import is_cell
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class Generators(ast.NodeTransformer):
    """Comprehensions as generators, whose names are their own in every version of Python."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Write a generator of the same elements, or of the keys and values."""
        super().generic_visit(node)
        if isinstance(node, (ast.ListComp, ast.SetComp)):
            return ast.GeneratorExp(node.elt, node.generators)
        if isinstance(node, ast.DictComp):
            return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)
        return node


def table_of(source: str) -> symtable.SymbolTable:
    """The table of the names of a cell."""
    tree = ast.fix_missing_locations(Generators().visit(ast.parse(source)))
    return symtable.symtable(ast.unparse(tree), "cell", "exec")


def used(table: symtable.SymbolTable) -> set[str]:
    """The names that code uses; of a function, only those that it does not define itself."""
    own = table.get_name() == "top"
    names = {s.get_name() for s in table.get_symbols() if own or s.is_global()}
    return names.union(*map(used, table.get_children()))


def given(source: str, table: symtable.SymbolTable) -> set[str]:
    """The names to which a cell gives a value, or of whose values it changes a part."""
    parts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Subscript)]
    changed = {ast.unparse(node.value) for node in parts if isinstance(node.ctx, ast.Store)}
    return changed | {
        s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()
    }


def needed(sources: list[str]) -> list[set[int]]:
    """For each cell, the numbers of the cells before it that it needs."""
    givers: dict[str, set[int]] = {}
    found: list[set[int]] = []
    for number, source in enumerate(sources):
        try:
            table = table_of(source)
        except SyntaxError:  # a command: it may need anything, such as a file that a cell wrote
            found.append(set(range(number)))
            continue
        needs = set().union(*(givers.get(name, ()) for name in used(table)))
        found.append(needs.union(*(found[other] for other in needs)))
        for name in given(source, table):
            givers[name] = {*givers.get(name, ()), number}
    return found


class CopiedCode(SphinxPostTransform):
    """Note for each visible cell which cells it needs."""

    default_priority = 199  # after the folds, before the evidence is gathered
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Go through the cells of one page."""
        cells = [
            cell
            for cell in self.document.findall(nodes.container)
            if is_cell(cell) and not cell.get("hide_mode")
        ]
        sources = [
            code.astext()
            for cell in cells
            for code in cell.findall(nodes.container)
            if code.get("nb_element") == "cell_code_source"
        ]
        for number, (cell, needs) in enumerate(zip(cells, needed(sources), strict=True)):
            cell["classes"] += [f"shown-{number}", *(f"needs-{other}" for other in sorted(needs))]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_js_file("copied-code.js")
    app.add_post_transform(CopiedCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
