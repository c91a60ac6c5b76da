"""Race a library's estimators and ours on the reports that the library's client makes.

The race goes on repetition by repetition, and all estimators get the same reports.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

import ibukit as ik
from benchmarks.libraries.peer import Peer, Session, seed_all
from benchmarks.measure import OverBudget, budget

SEED = 20260801
TOL = 1e-9  # the certified gap of our maximum, which is the default
WARM_UP = 2000  # people
MIN_REPETITIONS = 4  # for a standard error: with two, its own error is three quarters of it
CALL = 120.0  # CPU seconds after which a call is given up
UNFINISHED = f"did not finish in {CALL:g} s"


@dataclass(frozen=True)
class Setting:
    """People and a level."""

    people: str
    k: int
    n: int
    epsilon: float
    repetitions: int

    def secrets(self) -> NDArray[np.int64]:
        """The same people in every repetition: shares of Zipf's law or of the ages, drawn once."""
        rng = np.random.default_rng(SEED)
        share = (
            ik.normalize(1 / np.arange(1, self.k + 1)) if self.people == "words" else ages(self.k)
        )
        return rng.choice(self.k, size=self.n, p=share)


def ages(k: int) -> NDArray[np.float64]:
    share = np.zeros(k)
    given = ik.datasets.load_adult_ages()
    share[: len(given.distribution)] = given.distribution
    return share


@dataclass
class _Lane:
    seconds: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    given_up: bool = False


def race(peer: Peer, setting: Setting, limit: float = np.inf) -> list[dict[str, object]]:
    """The rows of the table for one protocol.

    Repetitions end early if the CPU seconds are used up, and the row says how many there were. The
    contenders take turns within each repetition, and a round before the first, which compiles, is
    not timed. An estimator that needs more than `CALL` seconds for one estimate is not asked again,
    and its row says so; if the client or the conversion of its reports needs more, the protocol is
    a line without numbers.
    """
    row = {"library": peer.library, "protocol": peer.protocol, **_described(setting)}
    try:
        lanes = _run(peer, setting, limit)
    except Exception as error:  # whatever a library stumbles over is a line of the table
        return [
            row
            | {"estimate": "-", "note": f"{type(error).__name__}: {error}".splitlines()[0][:150]}
        ]
    clients = {
        name: median(lanes.pop(name).seconds)
        for name in ("client", "our client", "conversion")
        if name in lanes
    }
    rows = []
    for name, lane in lanes.items():
        ours = name.startswith("ibukit")
        client = clients.get("our client" if ours else "client")
        if lane.given_up:
            rows.append(
                row
                | {"estimate": name, "client_seconds": client, "repetitions": 0, "note": UNFINISHED}
            )
            continue
        errors = np.array(lane.errors)
        told = {
            "estimate": name,
            "client_seconds": client,
            "conversion_seconds": clients.get("conversion") if ours else None,
            "seconds": median(lane.seconds),
            "squared_error": errors.mean(),
            "standard_error": errors.std(ddof=1) / np.sqrt(len(errors))
            if len(errors) >= MIN_REPETITIONS
            else np.nan,
            "repetitions": len(errors),
        }
        rows.append(row | told | {"note": "" if ours else peer.note})
    return rows


def _described(setting: Setting) -> dict[str, object]:
    return {"people": setting.people, "k": setting.k, "n": setting.n, "epsilon": setting.epsilon}


def _run(peer: Peer, setting: Setting, limit: float) -> dict[str, _Lane]:
    secrets, lanes = setting.secrets(), defaultdict(_Lane)
    truth = np.bincount(secrets, minlength=setting.k) / setting.n
    begun = time.process_time()
    for repetition in range(-1, setting.repetitions):
        if repetition > 1 and time.process_time() - begun > limit:
            break
        warm_up = repetition < 0  # what the first call compiles or imports is not timed
        seed_all(SEED + repetition)
        _seed_compiled(SEED + repetition)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = peer.start(setting.k, setting.epsilon)
            _round(
                session,
                secrets[:WARM_UP] if warm_up else secrets,
                truth,
                repetition,
                None if warm_up else lanes,
            )
    return dict(lanes)


def _round(
    session: Session,
    people: NDArray[np.int64],
    truth: Any,
    repetition: int,
    lanes: dict[str, _Lane] | None,
) -> None:
    kept: dict[str, _Lane] = defaultdict(_Lane) if lanes is None else lanes

    def clocked(name: str, call: Callable[[], Any]) -> Any:
        start = time.process_time()
        with budget(CALL):
            found = call()
        kept[name].seconds.append(time.process_time() - start)
        return found

    def judged(name: str, call: Callable[[], Any], order: Any = None) -> Any:
        if kept[name].given_up:
            return None
        try:
            found = clocked(name, call)
        except OverBudget:
            kept[name].given_up = True
            return None
        found = found if order is None else found[order]
        kept[name].errors.append(float(((found - truth) ** 2).sum()))
        return found

    reports = clocked("client", lambda: session.client(people))
    # the library's reports to ours, hash calls included: part of our time on these reports
    mechanism, converted = clocked("conversion", lambda: session.convert(reports))
    ours = mechanism if session.ours is None else session.ours
    rng = np.random.default_rng([SEED, repetition + 1])
    clocked("our client", lambda: ours.randomize(people, rng, codes=True))

    def theirs(name: str, make: Callable[[Any], Any]) -> None:
        found = judged(name, partial(make, reports))
        if found is not None and name == next(iter(session.estimators)):
            for more, derive in session.derived.items():
                judged(f"{name}, {more}", partial(derive, found))

    tasks = [partial(theirs, name, make) for name, make in session.estimators.items()]

    if session.inverts:
        for post, name in (
            ("none", "debiased"),
            ("norm-mul", "Norm-Mul"),
            ("norm-sub", "Norm-Sub"),
        ):
            invert = partial(_inverted, mechanism, converted, post)
            tasks.append(partial(judged, f"ibukit, {name}", invert, order=session.order))
    maximise = partial(_maximised, mechanism, converted)
    tasks.append(partial(judged, "ibukit, MLE", maximise, order=session.order))
    first = repetition % len(tasks)
    for task in tasks[first:] + tasks[:first]:
        task()


def _inverted(mechanism: ik.Mechanism, reports: Any, post: Any) -> NDArray[np.float64]:
    """The inversion of reports, timed with their tally, because the libraries also count theirs."""
    return ik.inv(mechanism.tally(reports), post=post).distribution


def _maximised(mechanism: ik.Mechanism, reports: Any) -> NDArray[np.float64]:
    return ik.mle(mechanism.tally(reports), TOL, strict=False).distribution


@njit
def _seed_compiled(seed: int) -> None:
    """Seed numba's own generator, which compiled clients draw from."""
    np.random.seed(seed)  # noqa: NPY002


def as_frame(rows: list[dict[str, object]]) -> pd.DataFrame:
    order = [
        "library",
        "protocol",
        "people",
        "k",
        "n",
        "epsilon",
        "estimate",
        "client_seconds",
        "conversion_seconds",
        "seconds",
    ]
    order += ["squared_error", "standard_error", "repetitions", "note"]
    return pd.DataFrame(rows).reindex(columns=order)
