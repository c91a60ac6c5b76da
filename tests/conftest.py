"""What every test shares:
one source of randomness, one Hypothesis profile, and the ids of claims and errata.
"""

from __future__ import annotations

import csv
import difflib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hypothesis
import numpy as np
import pytest

collect_ignore = ["rounding"]  # a sitecustomize, which only `make portable` puts in the way

DATA = Path(__file__).resolve().parents[1] / "data"
TABLES = {"ledger": "ledger.csv", "erratum": "errata.csv"}
# what was collected, slow tests included: the files with a test, and for each mark and id the tests
# that carry it
Carried = dict[str, dict[str, set[str]]]
FILES, CARRIED = pytest.StashKey[set[Path]](), pytest.StashKey[Carried]()

# The same examples in every run: a failure that was seen once is seen again.
hypothesis.settings.register_profile(
    "ibukit", derandomize=True, deadline=None, print_blob=False, max_examples=100
)
# `make mutants` asks whether there is a failure, not for the smallest one.
QUICK = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
hypothesis.settings.register_profile(
    "mutants", hypothesis.settings.get_profile("ibukit"), phases=QUICK
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ibukit"))


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh for every test, so that no test's draws depend on which tests ran before it."""
    return np.random.default_rng(20260101)


@pytest.fixture
def only_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes before it has tests of its own, except for few secrets with mass."""
    from ibukit.solvers.dense import interior_steps, quasi_newton_steps

    for method in (interior_steps, quasi_newton_steps):
        monkeypatch.setattr(method, "maximise", lambda *given: None)


@pytest.fixture
def closed_figures() -> Iterator[None]:
    """No figure from before or left behind, and the settings of matplotlib as they were."""
    import matplotlib.pyplot as plt

    plt.close("all")
    with plt.rc_context():
        yield
    plt.close("all")


@pytest.fixture
def collected(request: pytest.FixtureRequest) -> tuple[set[Path], Carried]:
    """What this run has collected:
    the files with a test, and for each mark and id the tests that carry it.
    """
    return request.config.stash[FILES], request.config.stash[CARRIED]


@cache
def known_ids(mark: str) -> tuple[str, ...]:
    """The ids that a mark may name, in the order of its table."""
    with (DATA / TABLES[mark]).open(encoding="utf-8", newline="") as file:
        return tuple(row["id"] for row in csv.DictReader(file))


def complaint(mark: str, name: object, where: str) -> str | None:
    """Say that an id names no row and which rows it may have meant; None where it names one."""
    known = known_ids(mark)
    if name in known:
        return None
    nearest = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
    hint = f"; the nearest are {', '.join(nearest)}" if nearest else ""
    return f"{where}: {mark} {name!r} names no row of data/{TABLES[mark]}{hint}"


@pytest.hookimpl(
    tryfirst=True
)  # before -m deselects: a wrong id in a slow test fails the quick run too
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Stop the run where a mark names no row: a claim that counts as tested must exist."""
    wrong = []
    config.stash[FILES] = {item.path for item in items}
    carried: Carried = {mark: {} for mark in TABLES}
    config.stash[CARRIED] = carried
    for item in items:
        test = f"{item.path.name}::{item.nodeid.split('::', 1)[-1].split('[')[0]}"
        for mark in TABLES:
            for marker in item.iter_markers(mark):
                for name in map(str, marker.args):
                    carried[mark].setdefault(name, set()).add(test)
                if not marker.args or marker.kwargs:
                    wrong.append(
                        f"{item.nodeid}: {mark} wants ids, as in @pytest.mark.{mark}('A-T1')"
                    )
                wrong += [
                    text for name in marker.args if (text := complaint(mark, name, item.nodeid))
                ]
    wrong = list(dict.fromkeys(wrong))
    if wrong and hasattr(
        config, "workerinput"
    ):  # xdist buries an exception of a worker under its own
        session.shouldfail = "\n".join(wrong)
    elif wrong:
        raise pytest.UsageError(*wrong)
