"""Cost against k, for each structure on its own.

The measurements are run by pytest-benchmark, which also keeps and compares runs.
"""

from __future__ import annotations

import pickle

import pytest

import ibukit as ik
from benchmarks.measure import budget
from benchmarks.workloads import STRUCTURES

TOL = {"plane": 1e-8}
CASES = [(structure, k) for structure, (sizes, _) in STRUCTURES.items() for k in sizes]


@pytest.mark.parametrize(("structure", "k"), CASES)
def test_cost(benchmark, structure, k, limit):
    kept = pickle.dumps(STRUCTURES[structure][1](k))
    tol = TOL.get(structure, 1e-10)

    def fresh():
        return (pickle.loads(kept),), {"tol": tol}

    with budget(limit):
        rounds = 3 if k <= STRUCTURES[structure][0][-2] else 1
        estimate = benchmark.pedantic(ik.mle, setup=fresh, rounds=rounds, warmup_rounds=1)
    benchmark.extra_info.update(
        structure=structure,
        k=k,
        tol=tol,
        gap=estimate.gap,
        iterations=estimate.n_iter,
        method=estimate.method,
    )
