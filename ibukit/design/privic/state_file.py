"""The file that holds a PRIVIC loop between two moments: replaced as a whole, never half of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.design.privic.options import Choices
from ibukit.files import file_format
from ibukit.files.alphabets import alphabet_of, describe
from ibukit.files.file_format import ANYTHING, Arrays
from ibukit.mechanisms import MatrixMechanism

WRITER_OF_LOOPS = "Privic"
VERSION_OF_LOOPS = 2

# of the choices and of a cycle, what JSON can hold as it is
PLAIN = ("beta", "ba_steps", "ibu_steps", "restart", "combine", "tol")
SCALARS = ("gap", "n_iter", "status", "method")


@dataclass(frozen=True)
class Cycle(arguments.ReadOnlyArrays):
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
        "counts": np.array([cycle.counts for cycle in cycles], dtype=np.int64).reshape(
            -1, len(choices.alphabet)
        ),
        "mechanism": mechanism.matrix(),
        **own,
    }
    if choices.ba_start is not None:
        arrays["ba_start"] = choices.ba_start
    values = {name: getattr(choices, name) for name in PLAIN} | {
        "alphabet": alphabet,
        "cycles": [{name: getattr(cycle, name) for name in SCALARS} for cycle in cycles],
    }
    return file_format.write(path, WRITER_OF_LOOPS, VERSION_OF_LOOPS, values, arrays, over)


def read(path: Path) -> tuple[dict[str, Any], tuple[Cycle, ...], MatrixMechanism, str]:
    """What `write` wrote: the arguments of `Privic`, the finished cycles, the running one's mechanism; the checksum."""
    values, arrays, digest = file_format.read(path, WRITER_OF_LOOPS, VERSION_OF_LOOPS)
    with file_format.sensible(path, WRITER_OF_LOOPS):
        return *_parsed(values, arrays), digest


def _parsed(
    values: dict[str, Any], arrays: Arrays
) -> tuple[dict[str, Any], tuple[Cycle, ...], MatrixMechanism]:
    alphabet = alphabet_of(values["alphabet"], arrays)
    start, *thetas = (arguments.frozen(theta.copy()) for theta in arrays["distributions"])
    cycles = tuple(
        Cycle(theta, arguments.frozen(counts.copy()), **scalars)
        for theta, counts, scalars in zip(thetas, arrays["counts"], values["cycles"], strict=True)
    )
    given = {name: values[name] for name in PLAIN} | {"alphabet": alphabet, "start": start}
    given["ba_start"] = arrays.get("ba_start")
    return given, cycles, MatrixMechanism(arrays["mechanism"], alphabet)
