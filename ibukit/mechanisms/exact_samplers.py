"""Registry of samplers without roundings: each belongs to one class exactly, and is not inherited.

A class that inherits from a mechanism may have another law. A sampler that is proved exact for the
parent class would then be wrong for the subclass, so samplers are looked up by a mechanism's own
class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ibukit.exact import ExactSampler

Kind = TypeVar("Kind")

_SAMPLERS: dict[type, Callable[[Any], ExactSampler]] = {}


def exact_sampler(
    kind: type[Kind],
) -> Callable[[Callable[[Kind], ExactSampler]], Callable[[Kind], ExactSampler]]:
    """Register a function that makes the exact samplers of this class, but not of subclasses."""

    def register(make: Callable[[Kind], ExactSampler]) -> Callable[[Kind], ExactSampler]:
        _SAMPLERS[kind] = make
        return make

    return register


def registered_sampler(kind: type) -> Callable[[Any], ExactSampler] | None:
    """Return the maker that was registered for exactly this class, or None."""
    return _SAMPLERS.get(kind)
