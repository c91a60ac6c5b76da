"""Which random numbers a mechanism meets: a text for each, recorded here, so that code may move and draws may not.

The text of a mechanism is its recorded name with its parameters. It depends neither on what a class
or a field is called today nor on the last digits of a number: on another machine these may differ,
and the draws must not.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Alphabet, Line, UnboundedLine
from ibukit.domain.grid import Grid, UnboundedGrid
from ibukit.mechanisms import (
    BloomRappor,
    CountMeanSketch,
    DiscreteGaussian,
    DiscreteSquareWave,
    Duchi,
    Exponential,
    HadamardCountMeanSketch,
    HadamardMechanism,
    HadamardResponse,
    HistogramEncoding,
    HybridMechanism,
    LinearGaussian,
    LinearGeometric,
    LinearLaplace,
    LinkedRounds,
    LocalHashing,
    LongitudinalHashing,
    LongitudinalResponse,
    LongitudinalUnaryEncoding,
    MatrixMechanism,
    OptimizedUnaryEncoding,
    Piecewise,
    PlanarGaussian,
    PlanarGeometric,
    PlanarLaplace,
    RandomizedResponse,
    Rappor,
    SquareWave,
    Staircase,
    SubsetSelection,
    ThresholdedHistogram,
    TightConstraints,
    TruncatedGeometric,
    TruncatedPlanarGeometric,
    UnaryEncoding,
)
from ibukit.mechanisms.mixtures.free_will import FreeWill

# A matrix is told by one weighted mean of its entries, in steps of this: far above the last digits
# of any solver.
RESOLUTION = 2.0**-16
GOLDEN = (math.sqrt(5) - 1) / 2

Parts = Callable[[Any], Mapping[str, Any]]


def spawn_key(mechanism: Any) -> tuple[int, ...]:
    """Four 32-bit words that depend on the mechanism alone: the head of the SHA-256 of its text."""
    words = hashlib.sha256(text(mechanism).encode()).digest()[:16]
    return tuple(np.frombuffer(words, dtype="<u4").tolist())


def text(thing: Any) -> str:
    """The text that the words are made of."""
    if isinstance(thing, (bool, str, type(None))):
        return repr(thing)
    if isinstance(thing, (int, np.integer)):
        return repr(int(thing))
    if isinstance(thing, (float, np.floating)):
        return f"{thing:.9g}"
    if isinstance(thing, (list, tuple)):
        return f"({','.join(map(text, thing))})"
    if isinstance(thing, np.ndarray):
        return mean_of(thing) if thing.ndim == 2 else _shares(thing)
    if isinstance(thing, Alphabet):
        return _alphabet(thing)
    name, parts = RECORDED.get(type(thing), (type(thing).__qualname__, _fields))
    return f"{name}({','.join(f'{key}={text(value)}' for key, value in parts(thing).items())})"


def mean_of(matrix: Floats) -> str:
    """A matrix's shape and a generic weighted mean of its entries, in whole steps.

    The weights are the fractional parts of multiples of the golden ratio, so that no two entries
    have the same one and a mean of tidy numbers does not fall between two steps.
    """
    weights = np.arange(1.0, matrix.size + 1) * GOLDEN % 1
    mean = (
        math.fsum(weights * matrix.ravel()) / math.fsum(np.abs(matrix).ravel())
        if matrix.any()
        else 0.0
    )
    return f"matrix{matrix.shape}:{math.floor(mean / RESOLUTION)}"


def _shares(values: Floats) -> str:
    if values.dtype.kind != "f":
        return text(values.tolist())
    content = (
        np.round(values, 9).astype("<f8") + 0.0
    )  # which makes a negative zero one like the others
    return f"array{values.shape}:{hashlib.sha256(content.tobytes()).hexdigest()}"


def _alphabet(alphabet: Alphabet) -> str:
    """By what == compares, so without the unit, which is a label."""
    name = ALPHABETS.get(type(alphabet), type(alphabet).__qualname__)
    if type(alphabet) is Alphabet and alphabet._distances is not None:
        total = math.fsum(alphabet._distances.ravel())
        unit = math.floor(math.log(total) / RESOLUTION) if total else 0
        return f"{name}({text(tuple(alphabet.values.tolist()))},{mean_of(alphabet._distances)} unit {unit})"
    return name + text(alphabet._key())


def _fields(thing: Any) -> Mapping[str, Any]:
    """Of a class that is not recorded: its fields under their own names."""
    if is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in fields(thing)}
    shown = repr(thing)
    # the default repr tells the address, which is another one in the next session
    return {} if " at 0x" in shown else {"repr": shown}


def _level(mechanism: Any) -> Mapping[str, Any]:
    return {"alphabet": mechanism.alphabet, "epsilon": mechanism.epsilon}


def _subset(mechanism: SubsetSelection) -> Mapping[str, Any]:
    return {**_level(mechanism), "size": mechanism.size}


def _of(*names: str) -> Parts:
    """The alphabet and these fields."""
    return lambda mechanism: {name: getattr(mechanism, name) for name in ("alphabet", *names)}


def _matrix(mechanism: MatrixMechanism) -> Mapping[str, Any]:
    return {"entries": mechanism.matrix(), "alphabet": mechanism.alphabet}


def _free_will(users: FreeWill) -> Mapping[str, Any]:
    return {"mechanisms": users.mechanisms, "shares": users.shares, "name": users.name}


# Never change a name or a key on the right: published numbers hang on them, and tests/test_keys.py
# pins the words. A class that is renamed changes on the left. A class that is not here, and a
# subclass, goes by its own name.
ALPHABETS: Mapping[type, str] = {
    Alphabet: "Alphabet",
    Grid: "Grid",
    Line: "Line",
    UnboundedGrid: "UnboundedGrid",
    UnboundedLine: "UnboundedLine",
}
RECORDED: Mapping[type, tuple[str, Parts]] = {
    BloomRappor: ("BloomRappor", _of("bits", "hashes", "cohorts", "f", "p", "q", "seed")),
    CountMeanSketch: ("CountMeanSketch", _of("epsilon", "rows", "width", "seed")),
    DiscreteGaussian: ("DiscreteGaussian", _of("sigma")),
    DiscreteSquareWave: ("DiscreteSquareWave", _level),
    Duchi: ("Duchi", _level),
    Exponential: ("Exponential", _level),
    FreeWill: ("FreeWill", _free_will),
    HadamardCountMeanSketch: ("HadamardCountMeanSketch", _of("epsilon", "rows", "width", "seed")),
    HadamardMechanism: ("HadamardMechanism", _of("epsilon", "bits")),
    HadamardResponse: ("HadamardResponse", _of("epsilon", "blocks", "published")),
    HistogramEncoding: ("HistogramEncoding", _level),
    HybridMechanism: ("Hybrid", _level),
    LinearGaussian: ("LinearGaussian", _of("sigma")),
    LinearGeometric: ("LinearGeometric", _level),
    LinearLaplace: ("LinearLaplace", _level),
    LinkedRounds: ("LinkedRounds", _of("permanent", "instantaneous", "rounds")),
    LocalHashing: ("LocalHashing", _of("epsilon", "g", "balanced")),
    LongitudinalHashing: ("LongitudinalHashing", _of("epsilon", "epsilon_inf", "g")),
    LongitudinalResponse: ("LongitudinalResponse", _of("epsilon", "epsilon_inf")),
    LongitudinalUnaryEncoding: ("LongitudinalUnaryEncoding", _of("permanent", "instantaneous")),
    MatrixMechanism: ("MatrixMechanism", _matrix),
    OptimizedUnaryEncoding: ("OptimizedUnaryEncoding", _level),
    Piecewise: ("Piecewise", _level),
    PlanarGaussian: ("PlanarGaussian", _of("sigma")),
    PlanarGeometric: ("PlanarGeometric", _level),
    PlanarLaplace: ("PlanarLaplace", _level),
    RandomizedResponse: ("RandomizedResponse", _level),
    Rappor: ("Rappor", _level),
    SquareWave: ("SquareWave", _of("epsilon", "secrets", "report_bins")),
    Staircase: ("Staircase", _of("epsilon", "gamma")),
    SubsetSelection: ("SubsetSelection", _subset),
    ThresholdedHistogram: ("ThresholdedHistogram", _of("nominal", "threshold")),
    TightConstraints: ("TightConstraints", _level),
    TruncatedGeometric: ("TruncatedGeometric", _level),
    TruncatedPlanarGeometric: ("TruncatedPlanarGeometric", _level),
    UnaryEncoding: ("UnaryEncoding", _of("p", "q")),
}
