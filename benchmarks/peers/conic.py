"""cvxpy with the conic solvers Clarabel and ECOS, on the problem itself and on its dual."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from benchmarks.race import ANY_MATRIX, SMALL_MATRIX, Answer, Contender
from benchmarks.workloads import Workload

TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
TIGHT_ECOS = {"abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12}


def _primal(workload: Workload) -> tuple[cp.Problem, Callable[[], Any]]:
    columns, q = workload.seen
    theta = cp.Variable(len(columns))
    # the sum in the objective makes the maximiser sum to 1, and the solver fares better than with a
    # constraint on the sum
    return cp.Problem(
        cp.Maximize(q @ cp.log(columns.T @ theta) - cp.sum(theta)), [theta >= 0]
    ), lambda: theta.value


def dual(columns: np.ndarray, q: np.ndarray) -> tuple[cp.Problem, Callable[[], Any]]:
    """Maximise sum q log w subject to M w <= 1; theta are the multipliers."""
    w = cp.Variable(len(q))
    within = columns @ w <= 1
    return cp.Problem(cp.Maximize(q @ cp.log(w)), [within]), lambda: within.dual_value


def _dual(workload: Workload) -> tuple[cp.Problem, Callable[[], Any]]:
    return dual(*workload.seen)


def _prepare(
    form: Callable[..., Any], solver: str, settings: dict[str, float], workload: Workload
) -> Any:
    problem, theta = form(workload)

    def call() -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # "may be inaccurate": the note and the gap say so
            problem.solve(solver=solver, **settings)
        if theta() is None:
            raise RuntimeError(problem.status)
        return Answer(theta(), problem.solver_stats.num_iters, note=problem.status)

    return call


def contenders() -> list[Contender]:
    forms = (
        ("Clarabel, primal", _primal, cp.CLARABEL, {}, ANY_MATRIX),
        ("Clarabel, primal, tight", _primal, cp.CLARABEL, TIGHT, SMALL_MATRIX),
        ("Clarabel, dual", _dual, cp.CLARABEL, {}, ANY_MATRIX),
        ("ECOS, tight", _primal, cp.ECOS, TIGHT_ECOS, SMALL_MATRIX),
    )
    return [
        Contender(
            f"cvxpy + {name}",
            partial(_prepare, form, solver, settings),
            suits,
            slow=lambda w: not SMALL_MATRIX(w),
            packages=("cvxpy", solver.lower()),
        )
        for name, form, solver, settings, suits in forms
    ]
