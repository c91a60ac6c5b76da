"""The package's front: names are loaded when asked for,
and which ones are seen does not depend on what is loaded.
"""

import json
import pickle
import subprocess
import sys

import cloudpickle
import pytest

import ibukit as ik

# each begins with nothing of the package loaded, and shares the rest with the others: that takes
# most of the time
FRESH = """
import json, sys

def answer(code):
    for name in [name for name in sys.modules if name.partition(".")[0] == "ibukit"]:
        del sys.modules[name]
    names = {}
    exec(code, names)
    return names["answer"]

print(json.dumps([answer(code) for code in json.loads(sys.argv[1])]))
"""


def answers(*codes):
    """What each of these programs calls its answer."""
    command = [sys.executable, "-c", FRESH, json.dumps(codes)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_nothing_but_public_names_is_seen_whatever_is_loaded():
    import ibukit.estimators._expected_deviance  # noqa: F401
    import ibukit.tally.tally  # noqa: F401

    assert [name for name in dir(ik) if not name.startswith("_")] == sorted(ik.__all__)


def test_a_star_brings_the_public_names():
    names: dict[str, object] = {}
    exec("from ibukit import *", names)
    assert set(names) - {"__builtins__"} == set(ik.__all__)
    assert all(
        thing is getattr(ik, name) for name, thing in names.items() if name != "__builtins__"
    )


def test_every_module_can_be_imported_by_its_name():
    codes, expected = [], []
    for room in ("tally", "plotting"):
        codes += [
            f"import ibukit.{room}, sys; answer = ibukit.{room} is sys.modules['ibukit.{room}']"
        ]
        codes += [f"from ibukit import {room} as room; answer = room.__name__"]
        expected += [True, f"ibukit.{room}"]
    assert dict(zip(codes, answers(*codes), strict=True)) == dict(zip(codes, expected, strict=True))


def test_a_function_is_not_hidden_by_the_module_of_its_name():
    ways = ["import ibukit.bayes", "from ibukit.bayes import Posterior", "ik.Posterior"]
    types = answers(
        *(f"import ibukit as ik; {first}; answer = type(ik.posterior).__name__" for first in ways)
    )
    assert dict(zip(ways, types, strict=True)) == dict.fromkeys(ways, "function")


def test_a_name_that_is_not_there_is_an_attribute_error():
    for name in ("nothing", "_nothing", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"No ibukit attribute {name}"):
            getattr(ik, name)


def test_a_module_that_lacks_something_says_what(monkeypatch):
    monkeypatch.delitem(sys.modules, "ibukit.testing", raising=False)
    monkeypatch.delitem(vars(ik), "testing", raising=False)
    monkeypatch.setitem(sys.modules, "pickle", None)
    with pytest.raises(ModuleNotFoundError, match="pickle"):
        ik.testing  # noqa: B018


def test_the_package_travels_to_workers():
    # A function of a notebook that says `ik` is sent with what it names, as joblib and dask do it.
    names: dict[str, object] = {"__name__": "__main__"}
    exec("import ibukit as ik\ndef k_of(mechanism): return ik, mechanism.k", names)
    k_of = pickle.loads(cloudpickle.dumps(names["k_of"]))
    assert k_of(ik.RandomizedResponse(3, 1.0)) == (ik, 3)
