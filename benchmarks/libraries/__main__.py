"""Race ibukit against four libraries of local differential privacy, and show what they get wrong.

    _build/bench/venv/bin/python -m benchmarks.libraries [--quick | --resume]

The run takes a quarter of an hour on an idle core; with --quick it takes under a minute, and the
results stay in _build/bench/quick. Writes libraries.csv and .md, libraries_machine.csv,
library_errors.csv and .txt, and library_names.csv. `make bench` runs this race last. With --resume,
results that are there already are not measured again.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from benchmarks import tables
from benchmarks.libraries import errors, names, peers, summary
from benchmarks.libraries.peer import Peer
from benchmarks.libraries.race import Setting, as_frame, race
from benchmarks.machine import facts
from benchmarks.run import HERE, SCRATCH

RESULTS = HERE / "results"
# each setting, and the CPU seconds after which a peer begins no repetition beyond its second
FULL = [
    *((Setting("ages", 100, 10_000, epsilon, 5), 6.0) for epsilon in (1.0, 2.0, 4.0)),
    (Setting("ages", 100, 100_000, 1.0, 4), 8.0),
    (Setting("words", 1000, 10_000, 1.0, 4), 8.0),
]
WIDE = 500  # secrets: from here only one library races, as the others have the same protocols
QUICK = [(Setting("ages", 100, 2000, 1.0, 2), 1.0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer people; results stay in _build")
    parser.add_argument(
        "--resume", action="store_true", help="measure only what the results do not hold yet"
    )
    quick, resume = (getattr(parser.parse_args(), name) for name in ("quick", "resume"))
    folder = SCRATCH / "quick" if quick else RESULTS
    here, missing = peers()
    print("\n".join(f"not racing: {line}" for line in missing))
    packages = {package for peer in here for package in peer.packages} | {"ibukit"}
    tables.write(facts(packages, "quick" if quick else "full"), folder / "libraries_machine.csv")
    for name, make in (("library_names", names.found), ("library_errors", errors.shown)):
        table = make()
        tables.write(table, folder / f"{name}.csv")
        if name == "library_errors":
            (folder / f"{name}.txt").write_text(errors.transcript(table), encoding="utf-8")
        print(f"\n{name}\n{tables.text(table)}")
    recorded = folder / "libraries.csv"
    rows = pd.read_csv(recorded).to_dict("records") if resume and recorded.exists() else []
    for setting, limit in QUICK if quick else FULL:
        new = []
        for peer in here:
            asked = setting if peer.level is None else replace(setting, epsilon=peer.level)
            if not _done(rows, peer, asked) and (setting.k < WIDE or peer.library == "pure-ldp"):
                new += race(peer, asked, limit)
                tables.write(as_frame(rows + new), recorded)
        rows += new
        (folder / "libraries.md").write_text(summary.markdown(as_frame(rows)), encoding="utf-8")
        print(f"\n{setting}\n{tables.text(_shown(as_frame(new))) if new else 'kept'}", flush=True)


def _done(rows: list[dict[str, Any]], peer: Peer, setting: Setting) -> bool:
    def about(row: Mapping[str, Any]) -> list[object]:
        return [
            *(row[name] for name in ("library", "protocol", "people", "k", "n")),
            f"{row['epsilon']:.4g}",
        ]

    asked = about({"library": peer.library, "protocol": peer.protocol, **vars(setting)})
    return any(about(row) == asked for row in rows)


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=["people", "k", "n", "epsilon"])


if __name__ == "__main__":
    main()
