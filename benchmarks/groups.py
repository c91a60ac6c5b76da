"""Time of `mle` and its table for many groups, beside a loop of single calls.

Run: python -m benchmarks.groups [number of groups]
"""

import sys
import time

import numpy as np
import pandas as pd

import ibukit as ik

LABELS = [f"app{i:02d}" for i in range(20)]
MECHANISMS = {version: ik.RandomizedResponse(LABELS, float(version)) for version in (1, 2, 3)}
# Groups of the loop, from which its time for all is extrapolated.
LOOP = 50


def counts_of(groups: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return counted reports of each group, by version."""
    frames = []
    for group in range(groups):
        theta = rng.dirichlet(np.full(len(LABELS), 0.3))
        for version, mechanism in MECHANISMS.items():
            counts = rng.multinomial(200, theta @ mechanism.matrix())
            frames.append((group, version, counts))
    return pd.DataFrame(
        {
            "group": np.repeat([frame[0] for frame in frames], len(LABELS)),
            "version": np.repeat([frame[1] for frame in frames], len(LABELS)),
            "report": np.tile(LABELS, len(frames)),
            "n": np.concatenate([frame[2] for frame in frames]),
        }
    )


def main(groups: int) -> None:
    """Print seconds of CPU together, one by one, and their ratio."""
    table = counts_of(groups, np.random.default_rng(0))
    start = time.process_time()
    tallies = ik.Tally.from_table(table, MECHANISMS, by="version", count="n", groups="group")
    read = time.process_time()
    ik.mle(tallies).to_frame()
    together = time.process_time()
    for group in list(tallies)[:LOOP]:
        ik.mle(tallies[group]).to_frame(method="wald")
    alone = (time.process_time() - together) * groups / min(LOOP, groups)
    print(f"{groups} groups: read {read - start:.2f} s, estimated {together - read:.2f} s")
    print(f"one by one {alone:.1f} s, ratio {alone / (together - read):.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4800)
