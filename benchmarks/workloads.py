"""The problems of the races: W1 to W6 and a mixed one, and each structure at any size."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import ibukit as ik
from benchmarks import draws
from benchmarks.draws import CITY, MANHATTAN, SEED, TEN_EPSILONS
from ibukit.tally.tally import make_tally_part


@dataclass(frozen=True)
class Workload:
    """One maximum-likelihood problem.

    It has a fresh tally whenever asked for, and its matrix where one is thinkable.
    """

    name: str
    title: str
    make: Callable[[np.ndarray], ik.Tally]
    tol: float = 1e-10
    matrix_of: Callable[[], np.ndarray] | None = None
    unit: tuple[str, Callable[[ik.Tally], int]] | None = (
        None  # what memory is compared with, and its bytes
    )
    drawn_as: str = ""

    @cached_property
    def drawn(self) -> np.ndarray:
        return draws.load(self.drawn_as or self.name)

    @cached_property
    def _pickled(self) -> bytes:
        return pickle.dumps(self.make(self.drawn))

    def tally(self) -> ik.Tally:
        """A tally that nobody has used: pickling leaves out all that is cached."""
        tally: ik.Tally = pickle.loads(self._pickled)
        return tally

    @cached_property
    def matrix(self) -> np.ndarray | None:
        """All columns, (k, m); for RAPPOR those of the rows seen."""
        if self.unit is PACKED:
            return self.tally().matrix() if self.tally().k <= 20 else None
        return None if self.matrix_of is None else self.matrix_of()

    @cached_property
    def counts(self) -> np.ndarray:
        """Counts of the matrix's columns."""
        return self.tally().counts if self.unit is PACKED else self.drawn

    @cached_property
    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Matrix (k, s) and frequencies (s,) of the reports seen."""
        keep = self.counts > 0
        return np.ascontiguousarray(self.matrix[:, keep]), self.counts[keep] / self.counts.sum()

    def as_matrix(self) -> ik.Tally:
        """The same reports through the bare matrix, whose structure no solver knows."""
        return ik.MatrixMechanism(self.matrix).tally_counts(self.counts)


def finite(mechanism: Any) -> dict[str, Any]:
    """A mechanism whose reports were counted, and whose matrix is small."""
    return {"make": mechanism.tally_counts, "matrix_of": mechanism.matrix}


def packed(k: int, epsilon: float) -> Callable[[np.ndarray], ik.Tally]:
    return lambda rows: ik.Tally((make_tally_part(ik.Rappor(k, epsilon), rows),))


def ten(counts: np.ndarray) -> ik.Tally:
    stretches = zip(TEN_EPSILONS, np.split(counts, len(TEN_EPSILONS)), strict=True)
    return sum(
        ik.TruncatedGeometric(100, epsilon).tally_counts(part) for epsilon, part in stretches
    )


def bytes_of_rows(tally: ik.Tally) -> int:
    return int(tally.parts[0].reports.nbytes)


PACKED = ("packed bits", bytes_of_rows)
VECTOR = ("vectors of length k", lambda tally: 8 * tally.k)
# the mechanism, and the n of "one in n of the million users has it"
MIXED: dict[str, tuple[Any, int]] = {
    "k-RR": (ik.RandomizedResponse(1000, 4.0), 1),
    "truncated geometric": (ik.TruncatedGeometric(1000, 0.05), 1),
    "RAPPOR": (ik.Rappor(1000, 2.0), 10),
}


def mixed(*names: str) -> Callable[[np.ndarray], ik.Tally]:
    def make(secrets: np.ndarray) -> ik.Tally:
        parts = [(seed, *MIXED[name]) for seed, name in enumerate(MIXED) if name in names]
        return sum(
            mechanism.simulate(secrets // one_in, np.random.default_rng([SEED, 9, seed]))
            for seed, mechanism, one_in in parts
        )

    return make


def _all() -> Iterator[Workload]:
    yield Workload(
        "W1", "truncated geometric, k=100, eps=0.05", **finite(ik.TruncatedGeometric(100, 0.05))
    )
    for epsilon in (0.2, 1.0, 3.0):
        mechanism: Any = ik.TruncatedPlanarGeometric(MANHATTAN, epsilon)
        yield Workload(
            f"W2-{epsilon:g}", f"truncated planar, 20 x 14, eps={epsilon:g}/km", **finite(mechanism)
        )
    yield Workload(
        "W3-1e3", "k-RR, k=1000, eps=1", tol=1e-12, **finite(ik.RandomizedResponse(1000, 1.0))
    )
    yield Workload(
        "W3-1e6", "k-RR, k=1e6, eps=10", ik.RandomizedResponse(10**6, 10.0).tally_counts, tol=1e-12
    )
    yield Workload("W4-20", "RAPPOR, k=20, n=1e5, eps=0.5", packed(20, 0.5), unit=PACKED)
    yield Workload("W4-100", "RAPPOR, k=100, n=1e6, eps=0.5", packed(100, 0.5), unit=PACKED)
    yield Workload("W5", "ten truncated geometrics pooled, k=100", ten, matrix_of=draws.ten_matrix)
    for k, size, n in ((10**5, "1e5", "1e7"), (10**7, "1e7", "1e8")):
        make = ik.TruncatedGeometric(k, 0.01).tally_counts
        yield Workload(
            f"W6-line-{size}", f"truncated geometric, k={size}, n={n}, eps=0.01", make, unit=VECTOR
        )
    for name, title, mechanism in (
        ("W6-plane", "exponential, 256 x 256 cells, decay 0.2 a cell", ik.Exponential(CITY, 0.4)),
        (
            "W6-remapped",
            "truncated planar, 256 x 256 cells, eps=0.2 a cell",
            ik.TruncatedPlanarGeometric(CITY, 0.2),
        ),
    ):
        yield Workload(name, title, mechanism.tally_counts, tol=1e-8)
    yield Workload("mixed", " + ".join(MIXED) + ", k=1000", mixed(*MIXED), tol=1e-8)
    for name in MIXED:
        yield Workload(
            f"mixed, {name}",
            f"the {name} of the mixed one alone",
            mixed(name),
            1e-8,
            drawn_as="mixed",
        )


WORKLOADS = {workload.name: workload for workload in _all()}


def _smooth(mechanism: Any, n: int) -> ik.Tally:
    people = np.exp(-0.5 * ((np.arange(mechanism.k) / mechanism.k - 0.4) / 0.1) ** 2) + 0.1
    rng = np.random.default_rng([SEED, mechanism.k])
    secrets = np.repeat(np.arange(mechanism.k), rng.multinomial(n, people / people.sum()))
    return mechanism.tally(mechanism.randomize(secrets, rng))


def _square(k: int) -> ik.Grid:
    side = round(k**0.5)
    return ik.Grid(side, side)


# structure -> sizes k and a tally of that size: about a hundred users for each secret, at most ten
# million
STRUCTURES: dict[str, tuple[tuple[int, ...], Callable[[int], ik.Tally]]] = {
    "k-RR": (
        (10**2, 10**3, 10**4, 10**5, 10**6, 10**7),
        lambda k: ik.RandomizedResponse(k, 4.0).tally_counts(krr_counts(k)),
    ),
    "line": (
        (10**2, 10**3, 10**4, 10**5, 10**6),
        lambda k: _smooth(ik.TruncatedGeometric(k, 0.05), min(100 * k, 10**7)),
    ),
    "bits": ((16, 32, 64, 128, 256, 512), lambda k: _smooth(ik.Rappor(k, 1.0), 10**5)),
    "dense": (
        (50, 100, 200, 400, 800, 1600),
        lambda k: _smooth(ik.MatrixMechanism(ik.TruncatedGeometric(k, 0.05).matrix()), 100 * k),
    ),
    "plane": (
        (8**2, 16**2, 32**2, 64**2, 128**2),
        lambda k: _smooth(ik.TruncatedPlanarGeometric(_square(k), 0.5), 100 * k),
    ),
}


def krr_counts(k: int) -> np.ndarray:
    return draws.answered(
        ik.RandomizedResponse(k, 4.0), min(100 * k, 10**7), np.random.default_rng([SEED, k])
    )
