"""The package's front: names are loaded when asked for, and which ones are seen does not depend on what is loaded."""

import pickle
import subprocess
import sys

import pytest

import ibukit as ik


def printed(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_nothing_but_public_names_is_seen_whatever_is_loaded():
    import ibukit.estimators._chance
    import ibukit.tally  # noqa: F401

    assert [name for name in dir(ik) if not name.startswith("_")] == sorted(ik.__all__)
    assert {name for name in vars(ik) if not name.startswith("_")} <= set(ik.__all__)


def test_a_star_brings_the_public_names():
    names: dict[str, object] = {}
    exec("from ibukit import *", names)
    assert set(names) - {"__builtins__"} == set(ik.__all__)
    assert all(thing is getattr(ik, name) for name, thing in names.items() if name != "__builtins__")


@pytest.mark.parametrize("room", ["tally", "plotting"])
def test_every_module_can_be_imported_by_its_name(room):
    code = f"import ibukit.{room}, sys; print(ibukit.{room} is sys.modules['ibukit.{room}'])"
    assert printed(code) == ["True"]
    assert printed(f"from ibukit import {room} as room; print(room.__name__)") == [f"ibukit.{room}"]


@pytest.mark.parametrize("first", ["import ibukit.posterior", "from ibukit.posterior import Posterior", "ik.Posterior"])
def test_a_function_is_not_hidden_by_the_module_of_its_name(first):
    assert printed(f"import ibukit as ik; {first}; print(type(ik.posterior).__name__)") == ["function"]


def test_a_name_that_is_not_there_is_an_attribute_error():
    for name in ("nothing", "_nothing", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"module 'ibukit' has no attribute '{name}'"):
            getattr(ik, name)


def test_a_module_that_lacks_something_says_what(monkeypatch):
    monkeypatch.delitem(sys.modules, "ibukit.cli", raising=False)
    monkeypatch.setitem(sys.modules, "argparse", None)
    with pytest.raises(ModuleNotFoundError, match="argparse"):
        ik.cli  # noqa: B018


def test_the_package_travels_to_workers():
    # a function of a notebook that says `ik` is sent with what it names
    assert pickle.loads(pickle.dumps(ik)) is ik
