"""Other people's ways to the maximum of sum_z counts_z log (theta M)_z, to compare ours with."""

import numpy as np
from scipy import optimize


def by_quasi_newton(matrix, counts):
    """Maximise sum_z q_z log (w M)_z - sum_x w_x over w >= 0:
    the maximiser sums to 1 by itself (Poisson form).
    """
    columns, q = _seen(matrix, counts)

    def objective(w):
        p = w @ columns
        return w.sum() - q @ np.log(p), 1 - columns @ (q / p)

    k = len(matrix)
    found = optimize.minimize(
        objective,
        np.full(k, 1 / k),
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-15, None)] * k,
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30},
    )
    return found.x / found.x.sum()


def by_least_squares(matrix, counts, steps=30):
    """Newton's method with the constraints inside,
    by non-negative least squares (Wang 2007, the CNM algorithm).

    Around theta with p = theta M the objective is, up to a constant, -1/2 sum_z q_z ((phi M)_z /
    p_z - 2)^2. Half the way, and half again, until the likelihood does not fall; a step of EM where
    it does for every length.
    """
    columns, q = _seen(matrix, counts)
    columns = columns / columns.max(axis=0)
    root = np.sqrt(q)[:, None]
    theta = np.full(len(columns), 1 / len(columns))
    for _ in range(steps):
        p = theta @ columns
        g = columns @ (q / p)
        if g.max() < 1 + 1e-12:
            break
        target = _least_squares(columns.T / p[:, None] * root, 2 * root[:, 0])
        target = theta * g if target is None else target
        length = 1.0
        while (reached := _mean_log(theta + length * (target - theta), columns, q)) < q @ np.log(
            p
        ) and length > 1e-12:
            length /= 2
        theta = theta * g if reached < q @ np.log(p) else theta + length * (target - theta)
    return theta / theta.sum()


def _seen(matrix, counts):
    seen = counts > 0
    return matrix[:, seen], counts[seen] / counts.sum()


def _least_squares(rows, wanted):
    """Min |rows theta - wanted| over the simplex;
    the sum enters as one more row of a large weight.
    """
    rows = np.vstack([rows, np.full(rows.shape[1], 1e3)])
    try:
        found, _ = optimize.nnls(rows, np.append(wanted, 1e3), maxiter=50 * rows.shape[1])
    except RuntimeError:  # too many exchanges
        return None
    return found / found.sum()


def _mean_log(theta, columns, q):
    p = theta @ columns
    return q @ np.log(p) if (p > 0).all() else -np.inf
