"""How the reports of the workloads are drawn: fixed seeds, on first use, kept in _build/bench/data.

W1 to W6 are drawn one after the other from a single generator, so that each workload depends on all
those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ibukit as ik

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "_build" / "bench" / "data"
SEED = 20240601
# the levels of the ten mechanisms that are pooled
TEN_EPSILONS = (0.020, 0.025, 0.031, 0.039, 0.050, 0.065, 0.088, 0.131, 0.236, 0.869)
ROWS_AT_ONCE = 10**5
USERS_AT_ONCE = 10**7
MANHATTAN = ik.Grid(20, 14, cell_size=0.5)
CITY = ik.Grid(256, 256)


def load(name: str, folder: Path = DATA) -> np.ndarray:
    """Counts of all reports, packed bit rows, or, for the mixed workload, counts of secrets.

    They are drawn on first use.
    """
    wanted = folder / f"{name}.npy"
    if not wanted.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if name in ALONE:
            np.save(wanted, ALONE[name]())
        else:
            for drawn, values in in_turn(np.random.default_rng(SEED)):
                np.save(folder / f"{drawn}.npy", values)
                if drawn == name:
                    break
    return np.asarray(np.load(wanted))


def ten_matrix() -> np.ndarray:
    """Ten truncated geometric mechanisms, of which each person uses one, chosen by lot."""
    return np.hstack(
        [ik.TruncatedGeometric(100, epsilon).matrix() for epsilon in TEN_EPSILONS]
    ) / len(TEN_EPSILONS)


def in_turn(rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """The workloads of one generator, by name."""
    ages = _ages(100)
    yield "W1", _through(ik.TruncatedGeometric(100, 0.05).matrix(), ages, 48_842, rng)
    people = _towns((20, 14), ([0, 0], [20, 14]), 6, 60, 1.1, 14 * 0.09, 0.07, rng)
    for epsilon in (0.2, 1.0, 3.0):
        matrix = ik.TruncatedPlanarGeometric(MANHATTAN, epsilon).matrix()
        yield f"W2-{epsilon:g}", _through(matrix, people, 98_060, rng)
    for k, name in ((1000, "W3-1e3"), (10_000, "W3-1e4")):
        yield name, answered(ik.RandomizedResponse(k, 1.0), 10**6, rng)
    for k, n in ((20, 10**5), (100, 10**6)):
        yield f"W4-{k}", bit_rows(ik.Rappor(k, 0.5), n, rng)
    yield "W5", _through(ten_matrix(), ages, 48_842, rng)
    yield "W6-line-1e5", _bumps_and_spikes(10**5, 0.01, 10**7, rng)
    yield "W6-plane", _exponential_on_the_city(10**7, rng)


def _ages(k: int) -> np.ndarray:
    """A smooth, right-skewed distribution of 17 to 90."""
    x = np.arange(k)
    years = np.maximum(x - 16.0, 0)
    weights = np.where((x >= 17) & (x <= 90), years**1.1 * np.exp(-years / 13.5), 0.0)
    return weights / weights.sum()


def _through(
    matrix: np.ndarray, people: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    rows = matrix / matrix.sum(axis=1, keepdims=True)
    return rng.multinomial(rng.multinomial(n, people), rows).sum(axis=0)


def _zipf(k: int, rng: np.random.Generator) -> np.ndarray:
    weights = 1 / np.arange(1, k + 1)
    weights /= weights.sum()
    rng.shuffle(weights)
    return weights


def answered(mechanism: ik.RandomizedResponse, n: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of reports by k-RR in O(k): some keep their secret, the others answer at random."""
    kept = rng.binomial(
        rng.multinomial(n, _zipf(mechanism.k, rng)), mechanism.truth - mechanism.lie
    )
    return kept + rng.multinomial(n - kept.sum(), np.full(mechanism.k, 1 / mechanism.k))


def bit_rows(mechanism: ik.Rappor, n: int, rng: np.random.Generator) -> np.ndarray:
    k = mechanism.k
    secrets = rng.choice(k, size=n, p=_zipf(k, rng))
    blocks = []
    for own in np.split(secrets, range(ROWS_AT_ONCE, n, ROWS_AT_ONCE)):
        rows = (rng.random((len(own), k)) < mechanism.p_zero).astype(np.uint8)
        rows[np.arange(len(own)), own] ^= 1
        blocks.append(np.packbits(rows, axis=1))
    return np.concatenate(blocks)


def _bumps(k: int, rng: np.random.Generator) -> np.ndarray:
    """Four bell curves and 200 spikes."""
    x = np.arange(k) / k
    bells = ((0.4, 0.2, 0.05), (0.3, 0.5, 0.02), (0.2, 0.55, 0.1), (0.1, 0.8, 0.01))
    people = sum(w * np.exp(-0.5 * ((x - centre) / s) ** 2) / s for w, centre, s in bells)
    spikes = rng.choice(k, 200, replace=False)
    people = 0.8 * people / people.sum()
    people[spikes] += 0.2 * rng.dirichlet(np.full(200, 0.3))
    return people / people.sum()


def _bumps_and_spikes(k: int, epsilon: float, n: int, rng: np.random.Generator) -> np.ndarray:
    secrets = rng.choice(k, size=n, p=_bumps(k, rng))
    stop = 1 - np.exp(-epsilon)
    noise = rng.geometric(stop, n) - rng.geometric(stop, n)
    return np.bincount(np.clip(secrets + noise, 0, k - 1), minlength=k)


def _towns(
    shape: tuple[int, int],
    centres_in: tuple[Any, Any],
    n_centres: int,
    n_places: int,
    power: float,
    spread: float,
    elsewhere: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Busy places around a few centres, and a thin, uneven background."""
    centres = rng.uniform(*centres_in, size=(n_centres, 2))
    people = np.zeros(shape)
    for weight in 1 / np.arange(1, n_places + 1) ** power:
        centre = centres[rng.integers(n_centres)]
        place = np.round(centre + rng.normal(0, spread, 2))
        people[tuple(np.clip(place, 0, np.array(shape) - 1).astype(int))] += weight
    thin = rng.gamma(0.05, size=people.size)
    people = (1 - elsewhere) * people.ravel() / people.sum() + elsewhere * thin / thin.sum()
    return people / people.sum()


def _city_people(rng: np.random.Generator) -> np.ndarray:
    return _towns((256, 256), (20, 236), 25, 1500, 1.0, 9, 0.05, rng)


def _exponential_on_the_city(n: int, rng: np.random.Generator) -> np.ndarray:
    people = _city_people(rng)
    # the draws of a separable kernel that does not race: passed over, so that those below stay
    # comparable with it
    rng.choice(people.size, size=n, p=people)
    for _ in range(4):
        rng.geometric(1 - np.exp(-0.2), n)
    offsets = np.arange(-255, 256)
    kernel = np.exp(-0.2 * np.hypot(offsets[:, None], offsets))
    counts = np.zeros((256, 256), dtype=np.int64)
    secrets = rng.multinomial(n, people).reshape(256, 256)
    for row, col in zip(*np.nonzero(secrets), strict=True):
        reports = kernel[255 - row : 511 - row, 255 - col : 511 - col]
        counts += rng.multinomial(secrets[row, col], (reports / reports.sum()).ravel()).reshape(
            256, 256
        )
    return counts.ravel()


def by_users(mechanism: Any, people: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of the reports of n users, drawn user by user in blocks."""
    counts = np.zeros(mechanism.m, dtype=np.int64)
    ends = np.cumsum(rng.multinomial(n, people))
    for start in range(0, n, USERS_AT_ONCE):
        users = np.arange(start, min(start + USERS_AT_ONCE, n))
        reports = mechanism.randomize(np.searchsorted(ends, users, side="right"), rng)
        counts += np.bincount(reports, minlength=mechanism.m)
    return counts


def _long_line() -> np.ndarray:
    rng = np.random.default_rng([SEED, 6])
    return by_users(ik.TruncatedGeometric(10**7, 0.01), _bumps(10**7, rng), 10**8, rng)


def _remapped() -> np.ndarray:
    rng = np.random.default_rng([SEED, 7])
    return by_users(ik.TruncatedPlanarGeometric(CITY, 0.2), _city_people(rng), 10**7, rng)


def _mixed_secrets() -> np.ndarray:
    rng = np.random.default_rng([SEED, 8])
    return rng.multinomial(10**6, 0.5 * _bumps(1000, rng) + 0.5 * _zipf(1000, rng))


ALONE: dict[str, Callable[[], np.ndarray]] = {
    "W3-1e6": lambda: answered(
        ik.RandomizedResponse(10**6, 10.0), 10**7, np.random.default_rng([SEED, 3])
    ),
    "W6-line-1e7": _long_line,
    "W6-remapped": _remapped,
    "mixed": _mixed_secrets,
}
