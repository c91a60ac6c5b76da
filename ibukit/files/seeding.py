"""Stable seeds: each mechanism has a recorded text that is hashed into its spawn key.

The text of a mechanism is its recorded name with its parameters. It depends neither on today's name
of a class or a field nor on the last digits of a number, so neither refactoring nor another machine
can change published draws.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, Line, UnboundedLine
from ibukit.domain.grid import Grid, UnboundedGrid
from ibukit.files.canonical_text import CanonicalText

# The text of a matrix is one weighted mean of its entries, in steps of this number, which is far
# above the last digits of any solver.
RESOLUTION = 2.0**-16
GOLDEN = (math.sqrt(5) - 1) / 2

# Recorded names of alphabets. Never change a name on the right: published numbers depend on it.
ALPHABETS: Mapping[type, str] = {
    Alphabet: "Alphabet",
    Grid: "Grid",
    Line: "Line",
    UnboundedGrid: "UnboundedGrid",
    UnboundedLine: "UnboundedLine",
}
# The recorded name and fields of each public mechanism, by the name that `ibukit` gives it today.
# Never change a text on the right: published numbers depend on it, and tests/files/test_keys.py
# pins the words. If a class is renamed, change its name on the left. A class that is not here, even
# a subclass of one that is, goes by its own name and fields.
RECORDED: Mapping[str, tuple[str, str]] = {
    "BloomRappor": ("BloomRappor", "alphabet bits hashes cohorts f p q seed"),
    "CountMeanSketch": ("CountMeanSketch", "alphabet epsilon rows width seed"),
    "DiscreteGaussian": ("DiscreteGaussian", "alphabet sigma"),
    "DiscreteSquareWave": ("DiscreteSquareWave", "alphabet epsilon"),
    "Duchi": ("Duchi", "alphabet epsilon"),
    "Exponential": ("Exponential", "alphabet epsilon"),
    "FreeWill": ("FreeWill", "mechanisms shares name"),
    "HadamardCountMeanSketch": ("HadamardCountMeanSketch", "alphabet epsilon rows width seed"),
    "HadamardMechanism": ("HadamardMechanism", "alphabet epsilon bits"),
    "HadamardResponse": ("HadamardResponse", "alphabet epsilon blocks published"),
    "HistogramEncoding": ("HistogramEncoding", "alphabet epsilon"),
    "HybridMechanism": ("Hybrid", "alphabet epsilon"),
    "LinearGaussian": ("LinearGaussian", "alphabet sigma"),
    "LinearGeometric": ("LinearGeometric", "alphabet epsilon"),
    "LinearLaplace": ("LinearLaplace", "alphabet epsilon"),
    "LinkedRounds": ("LinkedRounds", "alphabet permanent instantaneous rounds"),
    "LocalHashing": ("LocalHashing", "alphabet epsilon g balanced"),
    "LongitudinalHashing": ("LongitudinalHashing", "alphabet epsilon epsilon_inf g"),
    "LongitudinalResponse": ("LongitudinalResponse", "alphabet epsilon epsilon_inf"),
    "LongitudinalUnaryEncoding": ("LongitudinalUnaryEncoding", "alphabet permanent instantaneous"),
    "MatrixMechanism": ("MatrixMechanism", "entries alphabet"),
    "OptimizedUnaryEncoding": ("OptimizedUnaryEncoding", "alphabet epsilon"),
    "Piecewise": ("Piecewise", "alphabet epsilon"),
    "PlanarGaussian": ("PlanarGaussian", "alphabet sigma"),
    "PlanarGeometric": ("PlanarGeometric", "alphabet epsilon"),
    "PlanarLaplace": ("PlanarLaplace", "alphabet epsilon"),
    "RandomizedResponse": ("RandomizedResponse", "alphabet epsilon"),
    "Rappor": ("Rappor", "alphabet epsilon"),
    "SquareWave": ("SquareWave", "alphabet epsilon secrets report_bins"),
    "Staircase": ("Staircase", "alphabet epsilon gamma"),
    "SubsetSelection": ("SubsetSelection", "alphabet epsilon size"),
    "ThresholdedHistogram": ("ThresholdedHistogram", "alphabet nominal threshold"),
    "TightConstraints": ("TightConstraints", "alphabet epsilon"),
    "TruncatedGeometric": ("TruncatedGeometric", "alphabet epsilon"),
    "TruncatedPlanarGeometric": ("TruncatedPlanarGeometric", "alphabet epsilon"),
    "UnaryEncoding": ("UnaryEncoding", "alphabet p q"),
}


def spawn_key(mechanism: Any) -> tuple[int, ...]:
    """Return four 32-bit words that depend on the mechanism alone.

    They are the beginning of the SHA-256 of its text.
    """
    words = hashlib.sha256(text(mechanism).encode()).digest()[:16]
    return tuple(np.frombuffer(words, dtype="<u4").tolist())


def text(thing: Any) -> str:
    """Return the text that is hashed into the spawn key."""
    return SeedText().of(thing)


@cache
def recorded_classes() -> dict[type, tuple[str, str]]:
    """Return the recorded name and fields by class: a subclass does not inherit them."""
    # Mechanisms are in a higher layer, so they are looked up by their public names.
    import ibukit

    return {getattr(ibukit, name): record for name, record in RECORDED.items()}


class SeedText(CanonicalText):
    """The recorded text of a mechanism, in which the last digits of numbers do not appear."""

    @override
    def number(self, value: float) -> str:
        return f"{value:.9g}"

    @override
    def array(self, array: NDArray[Any]) -> str:
        if array.ndim == 2:
            return matrix_text(array)
        if array.dtype.kind != "f":
            return self.of(array.tolist())
        # Adding 0 turns a negative zero into a positive one.
        content = np.round(array, 9).astype("<f8") + 0.0
        return f"array{array.shape}:{hashlib.sha256(content.tobytes()).hexdigest()}"

    @override
    def alphabet(self, alphabet: Alphabet) -> str:
        name = ALPHABETS.get(type(alphabet), type(alphabet).__qualname__)
        if type(alphabet) is Alphabet and alphabet._distances is not None:
            total = math.fsum(alphabet._distances.ravel())
            unit = math.floor(math.log(total) / RESOLUTION) if total else 0
            labels = self.of(tuple(alphabet.values.tolist()))
            return f"{name}({labels},{matrix_text(alphabet._distances)} unit {unit})"
        return name + self.of(alphabet._key())

    @override
    def record(self, thing: Any) -> str:
        name = type(thing).__qualname__
        if (recorded := recorded_classes().get(type(thing))) is not None:
            name, names = recorded
            values = (
                thing.matrix() if field == "entries" else getattr(thing, field)
                for field in names.split()
            )
            return self.named(name, zip(names.split(), values, strict=True))
        if is_dataclass(thing):
            return self.named(name, ((f.name, getattr(thing, f.name)) for f in fields(thing)))
        shown = repr(thing)
        # The default repr has the address, which differs in the next process.
        return self.named(name, () if " at 0x" in shown else [("repr", shown)])


def matrix_text(matrix: Floats) -> str:
    """Return a matrix's shape and a generic weighted mean of its entries, in whole steps.

    The weights are the fractional parts of multiples of the golden ratio, so that no two entries
    have the same weight, and the mean of tidy numbers does not lie exactly between two steps.
    """
    weights = np.arange(1.0, matrix.size + 1) * GOLDEN % 1
    mean = (
        math.fsum(weights * matrix.ravel()) / math.fsum(np.abs(matrix).ravel())
        if matrix.any()
        else 0.0
    )
    return f"matrix{matrix.shape}:{math.floor(mean / RESOLUTION)}"
