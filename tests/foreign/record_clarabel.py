"""Clarabel, through cvxpy:
the primal and the dual problem of the maximum likelihood, by its default and tightly.
"""

from importlib.metadata import version

import cvxpy as cp

from foreign.inputs import COUNTS, LINE_COUNTS, LINE_MATRIX, MATRIX
from foreign.record import write

TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}


def primal(matrix, q, **how):
    theta = cp.Variable(len(matrix))
    problem = cp.Problem(
        cp.Maximize(q @ cp.log(matrix.T @ theta)), [theta >= 0, cp.sum(theta) == 1]
    )
    problem.solve(solver=cp.CLARABEL, **how)
    return {"theta": theta.value, "value": problem.value, "status": problem.status}


def dual(matrix, q, **how):
    """Maximise sum q log w subject to M w <= 1; theta are the multipliers."""
    w = cp.Variable(len(q))
    within = matrix @ w <= 1
    problem = cp.Problem(cp.Maximize(q @ cp.log(w)), [within])
    problem.solve(solver=cp.CLARABEL, **how)
    return {"theta": within.dual_value, "status": problem.status}


answers = {"cvxpy": version("cvxpy")}
for name, matrix, counts in (("small", MATRIX, COUNTS), ("line", LINE_MATRIX, LINE_COUNTS)):
    q = counts / counts.sum()
    answers |= {
        name: primal(matrix, q),
        f"{name}, tight": primal(matrix, q, **TIGHT),
        f"{name}, dual": dual(matrix, q),
    }
write("clarabel", "Clarabel", version("clarabel"), answers)
