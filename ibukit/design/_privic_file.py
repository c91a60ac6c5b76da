"""The file that holds a PRIVIC loop between two moments: replaced as a whole, never half of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ibukit import _validate
from ibukit._validate import Floats, Ints
from ibukit.design._privic_choices import Choices
from ibukit.mechanisms import MatrixMechanism
from ibukit.saved import sealed
from ibukit.saved.alphabets import alphabet_of, describe
from ibukit.saved.sealed import ANYTHING, Arrays

WRITER_OF_LOOPS = "Privic"
VERSION_OF_LOOPS = 2

# of the choices and of a cycle, what JSON can hold as it is
PLAIN = ("beta", "ba_steps", "ibu_steps", "restart", "combine", "tol")
SCALARS = ("gap", "n_iter", "status", "method")


@dataclass(frozen=True)
class Cycle(_validate.ReadOnlyArrays):
    """What is kept of a finished cycle."""

    distribution: Floats
    counts: Ints
    gap: float
    n_iter: int
    status: str
    method: str

    @property
    def n(self) -> int:
        """Number of reports."""
        return int(self.counts.sum())


def write(
    path: Path,
    choices: Choices,
    cycles: Sequence[Cycle],
    mechanism: MatrixMechanism,
    over: str | None = ANYTHING,
) -> str:
    """Put the new content in the place of the old, and return its checksum; `over` is that of the old, if known."""
    alphabet, own = describe(choices.alphabet)
    arrays: Arrays = {
        "distributions": np.array([choices.start, *(cycle.distribution for cycle in cycles)]),
        "counts": np.array([cycle.counts for cycle in cycles], dtype=np.int64).reshape(-1, len(choices.alphabet)),
        "mechanism": mechanism.matrix(),
        **own,
    }
    if choices.ba_start is not None:
        arrays["ba_start"] = choices.ba_start
    values = {name: getattr(choices, name) for name in PLAIN} | {
        "alphabet": alphabet,
        "cycles": [{name: getattr(cycle, name) for name in SCALARS} for cycle in cycles],
    }
    return sealed.write(path, WRITER_OF_LOOPS, VERSION_OF_LOOPS, values, arrays, over)


def read(path: Path) -> tuple[dict[str, Any], tuple[Cycle, ...], MatrixMechanism, str]:
    """What `write` wrote: the arguments of `Privic`, the finished cycles, the running one's mechanism; the checksum."""
    values, arrays, digest = sealed.read(path, WRITER_OF_LOOPS, VERSION_OF_LOOPS)
    with sealed.sensible(path, WRITER_OF_LOOPS):
        return *_parsed(values, arrays), digest


def _parsed(values: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], tuple[Cycle, ...], MatrixMechanism]:
    alphabet = alphabet_of(values["alphabet"], arrays)
    start, *thetas = (_validate.frozen(theta.copy()) for theta in arrays["distributions"])
    cycles = tuple(
        Cycle(theta, _validate.frozen(counts.copy()), **scalars)
        for theta, counts, scalars in zip(thetas, arrays["counts"], values["cycles"], strict=True)
    )
    arguments = {name: values[name] for name in PLAIN} | {"alphabet": alphabet, "start": start}
    arguments["ba_start"] = arrays.get("ba_start")
    return arguments, cycles, MatrixMechanism(arrays["mechanism"], alphabet)
