"""A library's protocol as its module describes it, and how its reports become ours."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ibukit as ik

Vector = NDArray[np.float64]
Estimator = Callable[[Any], Vector]  # from all reports to frequencies: aggregation is part of it


@dataclass(frozen=True)
class Session:
    """One protocol at one k and epsilon: hash functions, if there are any, are drawn."""

    client: Callable[[NDArray[np.int64]], Any]
    """All secrets to all reports, as the library does it."""
    estimators: dict[str, Estimator]
    """By the library's own names; the first is the one whose time counts for `derived`."""
    convert: Callable[[Any], tuple[ik.Mechanism, Any]]
    """The mechanism with the law of these reports (up to a factor of the report); its reports."""
    derived: dict[str, Callable[[Vector], Vector]] = field(default_factory=dict)
    """What the library makes of its first estimate: clipped, projected."""
    inverts: bool = True
    """Whether `ibukit.inv` of the converted reports is the protocol's published estimate."""
    order: NDArray[np.int64] | None = None
    """Where the secrets are in what `convert` gives, if the library shuffles them."""
    ours: ik.Mechanism | None = None
    """Whose sampler is timed beside the client, where it is not that of `convert`."""


@dataclass(frozen=True)
class Peer:
    """A protocol of a library."""

    library: str
    protocol: str
    start: Callable[[int, float], Session]
    note: str = ""
    packages: tuple[str, ...] = ()
    level: float | None = None  # if the protocol's parameters, not epsilon, set its noise


def peers_of(
    library: str,
    starts: Mapping[str, Callable[[int, float], Session]],
    told: Mapping[str, str] = MappingProxyType({}),
) -> list[Peer]:
    """The protocols of a library that hashes by xxhash, with notes on some of them."""
    packages = (library, "xxhash")
    return [
        Peer(library, name, start, told.get(name, ""), packages) for name, start in starts.items()
    ]


def seed_all(seed: int) -> None:
    """Seed Python's and numpy's generators, which the libraries draw from."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002


def anew() -> np.random.Generator:
    """A generator seeded from numpy's own generator, which also makes the libraries' draws."""
    return np.random.default_rng(np.random.randint(2**31))  # noqa: NPY002


def each(privatise: Callable[[Any], Any]) -> Callable[[NDArray[np.int64]], list[Any]]:
    """A client that is called once for each user."""
    return lambda secrets: [privatise(int(x)) for x in secrets]


def as_bits(reports: Sequence[Any]) -> NDArray[np.uint8]:
    """Rows of zeros and ones."""
    return np.stack([np.asarray(report, dtype=np.uint8) for report in reports])


def of_supports(k: int, epsilon: float, supports: NDArray[Any], share: float | None = None) -> Any:
    """Reports that support some secrets, as reports of unary encoding.

    A report is e^eps times as likely for the secrets that it supports as for the others. The
    likelihood of a set of secrets under `UnaryEncoding(p, q)` is p (1 - q) / ((1 - p) q) times as
    large for a secret in it as for one outside. Any p and q with that ratio give the same estimates
    by maximum likelihood. With `share`, the chance that a report supports a secret that is not its
    user's, `inv` is also the published estimate.
    """
    if share is None:
        return ik.Rappor(k, epsilon), np.asarray(supports, dtype=np.uint8)
    p = share * np.exp(epsilon) / (share * np.exp(epsilon) + 1 - share)
    return ik.UnaryEncoding(k, float(p), share), np.asarray(supports, dtype=np.uint8)


def table(functions: Sequence[Callable[[Any], int]], values: Sequence[Any]) -> NDArray[np.int64]:
    """The library's own hash of each value under each function, shape (functions, values)."""
    return np.array([[function(value) for value in values] for function in functions])
