"""What a PRIVIC loop was begun with, and what a cycle does with a tally under these choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.design.blahut_arimoto import MAX_CHANNELS, blahut_arimoto
from ibukit.design.least_information import slope
from ibukit.domain.alphabet import Alphabet, as_alphabet
from ibukit.domain.distributions import Population, quantize, uniform
from ibukit.errors import AlphabetMismatch, ForeignFile
from ibukit.estimate import Estimate
from ibukit.estimators.certificate import as_estimate
from ibukit.estimators.iterative_update import ibu
from ibukit.estimators.maximum_likelihood import mle
from ibukit.estimators.stopping import Steps
from ibukit.mechanisms import MatrixMechanism
from ibukit.tally.tally import Tally

Draw = Callable[[MatrixMechanism, Generator], Tally]

COMBINATIONS = ("last", "average")
# weeks of them
MAX_CYCLES = 10**7


@dataclass(frozen=True, eq=False)
class Choices(arguments.ReadOnlyArrays):
    """The arguments of `Privic`, validated."""

    alphabet: Alphabet
    beta: float
    ba_steps: int | None
    ibu_steps: int | None
    start: Floats
    ba_start: Floats | None
    restart: bool
    combine: str
    tol: float

    @property
    def warm(self) -> bool:
        """Whether the next update starts at the current estimate."""
        return self.ibu_steps is not None and not self.restart

    def design(self, theta: Floats, strict: bool) -> MatrixMechanism:
        """The mechanism of the cycle that begins with theta, rounded so that its last digits do not decide a draw."""
        given: Any = {"tol": self.tol} if self.ba_steps is None else {"start": self.ba_start}
        return blahut_arimoto(
            quantize(theta), self.alphabet, self.beta, self.ba_steps, strict=strict, **given
        )

    def updated(self, tally: Tally, theta: Floats) -> Estimate:
        """The cycle's own estimate."""
        if self.ibu_steps is None:
            return mle(tally, self.tol, strict=False)
        return ibu(tally, start=self.start if self.restart else theta, stop=Steps(self.ibu_steps))

    def accept(self, tally: Tally, estimate: Estimate | ArrayLike) -> Estimate:
        """The estimate that comes in its place, validated."""
        known = estimate if isinstance(estimate, Estimate) else None
        if known is not None and known.alphabet != self.alphabet:
            raise AlphabetMismatch(
                f"estimate must be of {self.alphabet!r}, it is of {known.alphabet!r}"
            )
        given: Any = estimate if known is None else known.distribution
        if self.warm:
            why = (
                "and the next cycle's IBU, which starts here, could not raise it; mix it with the uniform "
                "distribution, or set restart=True"
            )
            arguments.positive_distribution("estimate", given, tally.k, why)
        else:
            arguments.distribution("estimate", given, tally.k)
        return as_estimate(estimate, tally, "estimate", "handed in")

    def combined(self, own: Floats, n: int, theta: Floats, before: int) -> Floats:
        """The estimate after a cycle of n reports, from its own and that of the `before` reports; a new array."""
        if self.combine == "average" and before:
            own = (n * own + before * theta) / (n + before)
        # over hundreds of cycles the probability of an empty cell falls below what a double holds,
        # and 0 would stay 0
        return np.maximum(own, np.finfo(float).tiny) if self.warm else own.copy()

    def differences(self, there: Choices) -> Iterator[str]:
        """What is not the same there, in words."""
        for name in (field.name for field in fields(self)):
            theirs, ours = getattr(there, name), getattr(self, name)
            if isinstance(theirs, np.ndarray) or isinstance(ours, np.ndarray):
                if not np.array_equal(theirs, ours):
                    yield f"{name} is another"
            elif theirs != ours:
                yield f"{name} is {theirs!r} there, {ours!r} here"

    def refuse_others(self, there: Choices, path: Any) -> None:
        """ForeignFile if the file was begun otherwise."""
        differing = "; ".join(self.differences(there))
        if differing:
            raise ForeignFile(
                f"path must be a file that was begun with the same arguments, {path} was not: {differing}. "
                "Name another file, or read it by Privic.load"
            )


def number_of_cycles(cycles: int) -> int:
    """How many cycles there are to be in all, if they can be waited for."""
    return arguments.whole("cycles", cycles, 0, MAX_CYCLES)


def functions(callbacks: Iterable[Callable[..., Any]]) -> tuple[Callable[..., Any], ...]:
    """What is to be called after each cycle."""
    found = arguments.items("callbacks", callbacks, "functions of a Privic")
    for each in found:
        if not callable(each):
            raise TypeError(f"callbacks must be functions of a Privic, got {each!r} among them")
    return found


def drawing(population: Population | ArrayLike | Draw, alphabet: Alphabet) -> Draw:
    """How a cycle's reports are drawn."""
    if callable(population):
        if not arguments.takes(population, 2):
            raise TypeError(
                f"population must be counts, or a function of a mechanism and an rng, got {population!r}"
            )
        return population
    given: Any = population
    if hasattr(given, "alphabet"):
        if given.alphabet != alphabet:
            raise AlphabetMismatch(
                f"population must be over {alphabet!r}, it is over {given.alphabet!r}"
            )
        given = given.counts
    counts = arguments.counts("population", given, len(alphabet))
    return lambda mechanism, rng: mechanism.simulate(counts, rng)


def validated(
    alphabet: Alphabet | int,
    beta: float,
    ba_steps: int | None,
    ibu_steps: int | None,
    start: ArrayLike | None,
    ba_start: ArrayLike | None,
    restart: bool,
    combine: str,
    tol: float,
) -> Choices:
    """The choices, or the error that says which of them cannot be."""
    secrets = as_alphabet(alphabet)
    if ba_start is not None and ba_steps is None:
        raise ValueError(
            "ba_start must be left out with ba_steps=None: the optimum does not depend on it"
        )
    arguments.flag("restart", restart)
    if not arguments.is_one_of(combine, COMBINATIONS):
        raise ValueError(f'combine must be "last" or "average", got {combine!r}')
    return Choices(
        alphabet=secrets,
        beta=slope(beta),
        ba_steps=None
        if ba_steps is None
        else arguments.whole("ba_steps", ba_steps, 1, MAX_CHANNELS),
        ibu_steps=None
        if ibu_steps is None
        else arguments.whole("ibu_steps", ibu_steps, 1, MAX_CHANNELS),
        start=_full_support("start", uniform(len(secrets)) if start is None else start, secrets),
        ba_start=None if ba_start is None else _full_support("ba_start", ba_start, secrets),
        restart=bool(restart),
        combine=combine,
        tol=arguments.positive("tol", tol),
    )


def _full_support(name: str, values: ArrayLike, alphabet: Alphabet) -> Floats:
    why = "and neither BA nor IBU could ever raise it; mix it with the uniform distribution"
    p: Floats = arguments.frozen(
        arguments.positive_distribution(name, values, len(alphabet), why).copy()
    )
    return p
