"""Who races: ibukit, plain IBU, and whatever of the peers is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version

from benchmarks.race import Contender

PEERS = (
    "ours",
    "plain_ibu",
    "libqif",
    "unfolding",
    "ldpy",
    "deconvolution",
    "general",
    "constrained_newton",
    "conic",
    "mixture_sqp",
)


def contenders(structured: bool = False) -> tuple[list[Contender], list[str]]:
    """All installed contenders, and a line for each one that is not installed.

    If `structured`, only ibukit races, because no peer can do without a matrix.
    """
    found: list[Contender] = []
    missing = []
    for name in PEERS[:1] if structured else PEERS:
        try:
            found += import_module(f"benchmarks.peers.{name}").contenders()
        except ImportError as error:
            missing.append(f"{name}: {error}")
    return found, missing


def versions(packages: set[str]) -> dict[str, str]:
    return {package: version(package) for package in sorted(packages)}
