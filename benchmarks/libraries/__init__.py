"""Four libraries of local differential privacy and ibukit on the same reports.

Their time and squared error are set side by side. A module for each library says how its client,
its server and its estimators are called, and which of ibukit's mechanisms has the law of its
reports. A peer that is not installed is left out, and a line says so.
"""

from __future__ import annotations

from importlib import import_module

from benchmarks.libraries.peer import Peer

LIBRARIES = ("pure_ldp", "multi_freq", "toolbox", "google_rappor")


def peers() -> tuple[list[Peer], list[str]]:
    """All peers at hand, and a line for each library that is not."""
    found: list[Peer] = []
    missing = []
    for name in LIBRARIES:
        try:
            found += import_module(f"benchmarks.libraries.{name}").peers()
        except ImportError as error:
            missing.append(f"{name}: {error}")
    return found, missing
