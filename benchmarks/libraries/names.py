"""Every protocol of the installed libraries, by the name of its client, for the page's list."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd


def found() -> pd.DataFrame:
    """One row for each library and name; a library that is not installed has none."""
    rows = []
    for library, package, is_protocol in (
        (
            "pure-ldp",
            "pure_ldp",
            lambda name, thing: inspect.isclass(thing) and name.endswith("Client"),
        ),
        (
            "multi-freq-ldpy",
            "multi_freq_ldpy",
            lambda name, thing: callable(thing) and name.endswith("_Client"),
        ),
        (
            "ldp-toolbox",
            "ldp_toolbox.protocols",
            lambda name, thing: inspect.isclass(thing) and name != "BaseProtocol",
        ),
    ):
        rows += [(library, name) for name in sorted(_names(package, is_protocol))]
    return pd.DataFrame(rows, columns=["library", "name"])


def _names(package: str, is_protocol: Callable[[str, Any], bool]) -> set[str]:
    return {
        name
        for module in _modules(package)
        for name, thing in vars(module).items()
        if is_protocol(name, thing)
        and getattr(thing, "__module__", "").startswith(package.split(".")[0])
        and name not in ("FreqOracleClient", "HeavyHitterClient")
    }


def _modules(package: str) -> Iterator[Any]:
    """All modules under a package that can be imported, without those that only simulate."""
    try:
        root = importlib.import_module(package)
    except ImportError:
        return
    for folder in map(
        Path, root.__path__
    ):  # some folders have no __init__.py, which pkgutil would pass over
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if "simulations" not in parts and parts[-1] != "__init__":
                try:
                    yield importlib.import_module(".".join([package, *parts]))
                except ImportError:
                    continue
