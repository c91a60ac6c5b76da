"""The cost of a session's first call, with the kernels still to be compiled, and with them cached.

The cache is numba's. A short line is worked out by plain Python, so a line that is long enough to
be compiled for has a row of its own.

Run as a program with the name of a structure, this file is the session; it prints three numbers of
CPU seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import pandas as pd

USERS = 20_000
# Structures whose reports are drawn by their mechanism, which also compiles.
ROWS = ("local hashing", "count mean sketch")
# Hash functions and buckets.
SKETCH = {"count mean sketch": (256, 256)}
OTHERS = ("line of 5000", "line of 10000", "labels, to_frame", *ROWS)


def session(structure: str) -> list[float]:
    """CPU seconds: start and import, the first tally and estimate, the second."""
    import ibukit as ik
    from benchmarks.workloads import STRUCTURES

    times = [time.process_time()]
    for _ in range(2):
        if structure == "labels, to_frame":
            labelled: Any = ik.RandomizedResponse
            mechanism = labelled(["a", "b", "c", "d"], 1.0)
            estimate = ik.mle(mechanism.tally_counts({"a": 40, "b": 30, "c": 20, "d": 10}))
            estimate.to_frame(level=0.95)
        elif structure in ROWS:
            rng = np.random.default_rng(1)
            kind: Any = ik.LocalHashing if structure == "local hashing" else ik.CountMeanSketch
            mechanism = kind(100, 1.0, *SKETCH.get(structure, ()))
            ik.mle(mechanism.tally(mechanism.randomize(rng.integers(0, 100, USERS), rng)))
        else:
            name, _, size = structure.partition(" of ")
            sizes, make = STRUCTURES[name]
            ik.mle(make(int(size) if size else sizes[0]))
        times.append(time.process_time())
    return [times[0], times[1] - times[0], times[2] - times[1]]


def measure(structures: list[str], limit: float = 120.0) -> pd.DataFrame:
    """Time a fresh process with an empty cache, then another with the cache that the first left."""
    rows = []
    for structure in structures:
        row: dict[str, object] = {"structure": structure}
        with tempfile.TemporaryDirectory() as cache:
            for state in ("empty cache", "filled cache"):
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.compile_time", structure],
                    env={**os.environ, "NUMBA_CACHE_DIR": cache},
                    capture_output=True,
                    text=True,
                    timeout=limit,
                    check=False,
                )
                if done.returncode:
                    row["note"] = (done.stderr.splitlines() or ["failed"])[-1][:100]
                    break
                start, first, second = json.loads(done.stdout)
                row |= {
                    f"first call, {state}": first,
                    "start and import": start,
                    "second call": second,
                }
        rows.append(row)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    print(json.dumps(session(sys.argv[1])))
