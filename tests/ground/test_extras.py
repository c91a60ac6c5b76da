"""What a user is told to install: from one table, which is that of pyproject.toml."""

import ast
import re
import tomllib

import duckdb
import narwhals as nw
import pytest

import ibukit as ik
from ibukit._ground.extras import EXTRAS, missing_extra
from ibukit.tables.columns import collected
from source_rules import PACKAGE, ROOT, SOURCES, nodes


def test_the_extra_that_is_named_installs_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    for package, extra in EXTRAS.items():
        name, _, part = package.partition(".")
        (wanted,) = [
            line
            for line in project["optional-dependencies"][extra]
            if re.match(r"[\w-]+", line)[0] == name
        ]
        assert part in wanted
        message = str(missing_extra("this", package))
        assert (
            message
            == f'this needs {package}, which is not installed: pip install "ibukit[{extra}]"'
        )


def test_the_advice_is_written_in_one_place():
    advice = re.compile(r"pip install|\bMissingExtra\(")
    files = {path for path in SOURCES if advice.search(path.read_text("utf8"))}
    assert files == {PACKAGE / "_ground/extras.py", PACKAGE / "errors.py"}


@pytest.mark.parametrize("package", ["pyarrow", "sqlframe"])
def test_a_lazy_frame_that_lacks_a_package_of_others_says_so_itself(package, monkeypatch):
    def fails(self, *args, **kwargs):
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    frame = nw.from_native(duckdb.sql("SELECT 'car' AS report"))
    assert isinstance(frame, nw.LazyFrame)
    monkeypatch.setattr(nw.LazyFrame, "collect", fails)
    with pytest.raises(ImportError, match=package) as caught:
        collected(frame)
    # An extra of ours would not install the other one.
    assert isinstance(caught.value, ik.errors.MissingExtra) == (package == "pyarrow")
    assert ("pip install" in str(caught.value)) == (package == "pyarrow")


def test_every_package_of_the_table_is_asked_for_somewhere():
    calls = [
        node
        for path in SOURCES
        for node in nodes(path.read_text("utf8"))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "missing_extra"
    ]
    asked = {node.args[1].value for node in calls if isinstance(node.args[1], ast.Constant)}
    assert asked == set(EXTRAS)
