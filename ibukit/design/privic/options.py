"""The arguments of `Privic` and of `Privic.run`, validated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.design.blahut_arimoto import MAX_CHANNELS
from ibukit.design.least_information import valid_beta
from ibukit.domain.alphabet import Alphabet, AlphabetLike, as_alphabet
from ibukit.domain.distributions import Population, uniform
from ibukit.domain.vectors import VectorLike, positive_distribution_over
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms import MatrixMechanism
from ibukit.tally.tally import Tally

Draw = Callable[[MatrixMechanism, Generator], Tally]

COMBINATIONS = ("last", "average")
# Largest number of cycles; so many take weeks.
MAX_CYCLES = 10**7


@dataclass(frozen=True, eq=False)
class PrivicOptions(arguments.ReadOnlyArrays):
    """The arguments of `Privic`; they do not change while the loop goes on."""

    alphabet: Alphabet
    beta: float
    ba_steps: int | None
    ibu_steps: int | None
    start: Floats
    ba_start: Floats | None
    restart: bool
    combine: str
    tol: float

    def differences(self, there: PrivicOptions) -> Iterator[str]:
        """Say in words which arguments are not the same there."""
        for name in (field.name for field in fields(self)):
            theirs, ours = getattr(there, name), getattr(self, name)
            # A distribution of many secrets would not fit into a message.
            if isinstance(theirs, np.ndarray) or isinstance(ours, np.ndarray):
                if not np.array_equal(theirs, ours):
                    yield f"{name} is another"
            elif theirs != ours:
                yield f"{name} is {theirs!r} there, {ours!r} here"


def number_of_cycles(cycles: int) -> int:
    """Return a valid number of cycles."""
    return arguments.whole("cycles", cycles, 0, MAX_CYCLES)


def valid_callbacks(callbacks: Iterable[Callable[..., Any]]) -> tuple[Callable[..., Any], ...]:
    """Return the callbacks as a tuple of functions."""
    functions = arguments.items("callbacks", callbacks, "functions of a Privic")
    for function in functions:
        if not callable(function):
            raise TypeError(f"callbacks must be functions of a Privic, got {function!r} among them")
    return functions


def tally_source(population: Population | ArrayLike | Draw, alphabet: Alphabet) -> Draw:
    """Return the function that draws the tally of a cycle."""
    # A function draws whatever it likes; the tally is checked when the cycle ends.
    if callable(population):
        if not arguments.takes(population, 2):
            raise TypeError(
                "population must be counts, or a function of a mechanism and an rng, got "
                f"{population!r}"
            )
        return population
    counts: Any = population
    # Plain counts belong to no alphabet; the counts of a data set must be over this one.
    if hasattr(counts, "alphabet"):
        if counts.alphabet != alphabet:
            raise AlphabetMismatch(
                f"population must be over {alphabet!r}, but it is over {counts.alphabet!r}"
            )
        counts = counts.counts
    counts = arguments.counts("population", counts, len(alphabet))
    return lambda mechanism, rng: mechanism.simulate(counts, rng)


def privic_options(
    alphabet: AlphabetLike,
    beta: float,
    ba_steps: int | None,
    ibu_steps: int | None,
    start: VectorLike | None,
    ba_start: VectorLike | None,
    restart: bool,
    combine: str,
    tol: float,
) -> PrivicOptions:
    """Return the validated arguments, or raise the error that names the invalid one."""
    secrets = as_alphabet(alphabet)
    # An argument without effect is refused, because it may be a misunderstanding.
    if ba_start is not None and ba_steps is None:
        raise ValueError(
            "ba_start must be left out with ba_steps=None: the optimum does not depend on it"
        )
    arguments.flag("restart", restart)
    if not arguments.is_one_of(combine, COMBINATIONS):
        raise ValueError(f'combine must be "last" or "average", got {combine!r}')
    return PrivicOptions(
        alphabet=secrets,
        beta=valid_beta(beta),
        ba_steps=_valid_steps("ba_steps", ba_steps),
        ibu_steps=_valid_steps("ibu_steps", ibu_steps),
        start=_full_support("start", uniform(len(secrets)) if start is None else start, secrets),
        ba_start=None if ba_start is None else _full_support("ba_start", ba_start, secrets),
        restart=bool(restart),
        combine=combine,
        tol=arguments.positive("tol", tol),
    )


def _valid_steps(name: str, steps: int | None) -> int | None:
    # None stands for the certified optimum.
    return None if steps is None else arguments.whole(name, steps, 1, MAX_CHANNELS)


def _full_support(name: str, values: VectorLike, alphabet: Alphabet) -> Floats:
    why = "and neither BA nor IBU could ever raise it; mix it with the uniform distribution"
    # The copy keeps the loop apart from later changes of the caller's array.
    return arguments.frozen(positive_distribution_over(name, values, alphabet, why).copy())
