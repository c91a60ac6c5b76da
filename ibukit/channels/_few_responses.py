"""Scores of k-RR with few secrets by numpy, as `_score_kernels` adds them up."""

from __future__ import annotations

import math

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels._score_kernels import SMALL_BLOCK


def sum_few_in_blocks(values: Floats) -> float:
    """Sum of the values of one block, in small blocks: few additions follow each other."""
    blocks = np.zeros(-(-values.size // SMALL_BLOCK) * SMALL_BLOCK)
    blocks[: values.size] = values
    return _in_turn(blocks.reshape(-1, SMALL_BLOCK).cumsum(axis=1)[:, -1])


def _in_turn(values: Floats) -> float:
    """Sum of the values, added one after the other."""
    return float(values.cumsum()[-1]) if values.size else 0.0


def score_few_responses(
    theta: Floats,
    g: Floats,
    total: float,
    reports: Ints,
    counts: Floats | Ints,
    off: float,
    extra: float,
) -> tuple[float, float, float]:
    """Do what `score_responses` does, in the same order of sums, for the reports of one block."""
    base, masses = off * total, theta[reports]
    p = base + extra * masses
    with np.errstate(all="ignore"):
        w = counts / p
        shares = extra * w
    weights = sum_few_in_blocks(w)
    # The logarithms of the machine's library, as in the compiled loop: numpy's differ in a bit.
    logs = [math.log(each) if each > 0 else -math.inf for each in p[masses != 0].tolist()]
    log_likelihood = _in_turn(counts[masses != 0] * np.array(logs, dtype=np.float64))
    idle = _in_turn(counts[masses == 0].astype(np.float64))
    if idle > 0:
        log_likelihood += idle * (math.log(base) if base > 0 else -math.inf)
    if g.size:
        g[reports] += shares
        g += off * weights
    most = max(float(shares.max()), 0.0 if counts.size < theta.size else -math.inf)
    return log_likelihood, float(p.min()), most + off * weights
