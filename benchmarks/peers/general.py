"""scipy's general-purpose minimisers with exact gradients, as tight as they go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from benchmarks.race import Answer, Contender, with_matrix
from benchmarks.workloads import Workload

FLOOR = 1e-300  # a trial point may leave a report no probability at all


def minimised(columns: np.ndarray, q: np.ndarray, method: str, gtol: float = 1e-12) -> Any:
    """scipy's result; only L-BFGS-B looks at `gtol`."""
    k = len(columns)
    how: dict[str, Any]
    if method == "SLSQP":
        how = {
            "constraints": LinearConstraint(np.ones(k), 1, 1),
            "options": {"ftol": 1e-16, "maxiter": 1000},
        }
    else:
        how = {
            "options": {
                "ftol": 0,
                "gtol": gtol,
                "maxiter": 100_000,
                "maxfun": 100_000,
                "maxcor": 20,
            }
        }

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        p = np.maximum(theta @ columns, FLOOR)
        # the sum in the loss makes the maximiser sum to 1, for the method that cannot be told so
        return theta.sum() - q @ np.log(p), 1 - columns @ (q / p)

    return minimize(loss, np.full(k, 1 / k), jac=True, method=method, bounds=[(0, None)] * k, **how)


def _prepare(method: str, workload: Workload) -> Callable[[], Answer]:
    columns, q = workload.seen

    def call() -> Answer:
        found = minimised(columns, q, method)
        return Answer(found.x, found.nit, note=str(found.message)[:60])

    return call


def contenders() -> list[Contender]:
    packages = ("scipy",)
    return [
        Contender("scipy L-BFGS-B", partial(_prepare, "L-BFGS-B"), packages=packages),
        Contender(
            "scipy SLSQP", partial(_prepare, "SLSQP"), with_matrix(secrets=300), packages=packages
        ),
    ]
