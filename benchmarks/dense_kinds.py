"""Dense channels that no solver here was built for: smooth, random, products, and tiny ones.

Each has a matrix, shape (k, s), whose rows are laws of a report, and a hundred thousand reports
drawn with fixed seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma

import numpy as np
from scipy.special import ndtr

import ibukit as ik
from benchmarks.draws import SEED

PEOPLE = 100_000


def laws(weights: np.ndarray) -> np.ndarray:
    """Each row divided by its sum."""
    return weights / weights.sum(axis=1, keepdims=True)


def around(k: int, s: int, kernel: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A kernel of the distance between secret and report, with both places on the unit interval."""
    return laws(kernel((np.arange(k)[:, None] + 0.5) / k - (np.arange(s) + 0.5) / s))


def binomial(k: int, trials: int) -> np.ndarray:
    """The number of times that something happens whose chance is the secret."""
    chance, seen = (np.arange(k)[:, None] + 0.5) / k, np.arange(trials + 1)
    ways = np.array([lgamma(trials + 1) - lgamma(z + 1) - lgamma(trials - z + 1) for z in seen])
    return laws(np.exp(ways + seen * np.log(chance) + (trials - seen) * np.log1p(-chance)))


def poisson(k: int, highest: float, s: int) -> np.ndarray:
    """Poisson counts whose mean is the secret; counts above s - 1 are left out."""
    mean, seen = (np.arange(k)[:, None] + 0.5) / k * highest, np.arange(s)
    return laws(np.exp(seen * np.log(mean) - mean - np.array([lgamma(z + 1) for z in seen])))


def lifetimes(k: int, s: int) -> np.ndarray:
    """Exponential lifetimes in s intervals, with means from 0.05 to 5."""
    rate = 1 / np.geomspace(0.05, 5, k)[:, None]
    ends = np.append(np.geomspace(0.02, 10, s), np.inf)
    return laws(-np.diff(np.exp(-rate * np.insert(ends, 0, 0.0)), axis=1))


def ordinal(k: int, grades: int) -> np.ndarray:
    """Thurstone's law of categorical judgement: a latent number with normal noise, in grades."""
    latent, cuts = np.linspace(-2.5, 2.5, k)[:, None], np.linspace(-2, 2, grades - 1)
    below = np.hstack([np.zeros((k, 1)), ndtr(cuts - latent), np.ones((k, 1))])
    return laws(np.diff(below, axis=1))


def sparse(k: int, s: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Random rows in which only few reports have a probability above zero."""
    weights = rng.exponential(size=(k, s)) * (rng.random((k, s)) < share)
    weights[np.arange(k), rng.integers(0, s, k)] += 1.0
    return laws(weights)


def low_rank(k: int, s: int, rank: int, rng: np.random.Generator) -> np.ndarray:
    """Each secret's law is a mixture of a few laws that fall exponentially."""
    parts = laws(np.exp(-np.arange(s) / np.geomspace(2, 60, rank)[:, None]))
    return np.asarray(rng.dirichlet(np.full(rank, 0.5), size=k) @ parts)


def kronecker() -> np.ndarray:
    return np.kron(ik.RandomizedResponse(12, 2.0).matrix(), ik.TruncatedGeometric(14, 0.3).matrix())


KINDS: dict[str, tuple[str, Callable[[np.random.Generator], np.ndarray]]] = {
    "gaussian": (
        "Gaussian blur, 160 x 240",
        lambda rng: around(160, 240, lambda d: np.exp(-0.5 * (d / 0.05) ** 2)),
    ),
    "binomial": ("binomial, 120 x 41", lambda rng: binomial(120, 40)),
    "dirichlet": (
        "rows from a Dirichlet law, 200 x 150",
        lambda rng: rng.dirichlet(np.ones(150), size=200),
    ),
    "exponential": (
        "exponential, 15 x 15 cells",
        lambda rng: ik.Exponential(ik.Grid(15, 15), 0.8).matrix(),
    ),
    "kronecker": ("Kronecker product, 168 x 168", lambda rng: kronecker()),
    "poisson": ("Poisson, 150 x 100", lambda rng: poisson(150, 60.0, 100)),
    "cauchy": (
        "Cauchy kernel, 128 x 128",
        lambda rng: around(128, 128, lambda d: 1 / (1 + (d / 0.02) ** 2)),
    ),
    "box": (
        "box blur, 180 x 200",
        lambda rng: around(180, 200, lambda d: 1.0 * (np.abs(d) < 0.08)),
    ),
    "ordinal": ("ordinal (Thurstone), 100 x 9", lambda rng: ordinal(100, 9)),
    "sparse": ("random and sparse, 250 x 300", lambda rng: sparse(250, 300, 0.05, rng)),
    "low-rank": ("mixtures of 12 laws, 140 x 160", lambda rng: low_rank(140, 160, 12, rng)),
    "lifetimes": ("exponential lifetimes, 100 x 120", lambda rng: lifetimes(100, 120)),
    "tiny-blur": (
        "Gaussian blur, 20 x 20",
        lambda rng: around(20, 20, lambda d: np.exp(-0.5 * (d / 0.08) ** 2)),
    ),
    "tiny-random": (
        "rows from a Dirichlet law, 20 x 30",
        lambda rng: rng.dirichlet(np.ones(30), size=20),
    ),
}


def drawn(name: str, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """The matrix of a kind and the counts of its reports.

    The people form three hills, and a few more are spread evenly.
    """
    number = list(KINDS).index(name)
    rng = np.random.default_rng([seed, 24, number])
    matrix = KINDS[name][1](rng)
    k = len(matrix)
    place = (np.arange(k) + 0.5) / k
    people = 0.1 + sum(
        height * np.exp(-0.5 * ((place - at) / width) ** 2)
        for height, at, width in ((1.0, 0.25, 0.05), (0.6, 0.6, 0.1), (1.5, 0.8, 0.02))
    )
    return matrix, rng.multinomial(PEOPLE, ik.quantize(people / people.sum() @ matrix))
